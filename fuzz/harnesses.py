"""Every reader of stepgraph by name: whole files to begin with, and what reads one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz import binary_seeds, own_seeds, readers, text_seeds


@dataclass(frozen=True)
class Harness:
    """How one reader is tried.

    Attributes
    ----------
    folder
        Whether the reader gets the folder of the input, whatever number of files it has.
    needs
        Modules of extras without which it cannot run.
    programs
        Whether the reader may start a process of its own.
    inputs
        How many the tests try: fewer where each takes long.
    """

    seeds: Callable[[], list[dict[str, bytes]]]
    read: Callable[[Path, Path], object]
    folder: bool = False
    needs: tuple[str, ...] = ()
    programs: bool = False
    inputs: int = 400


_VIDEO, _TRAIN = ("av",), ("pyarrow",)
HARNESSES = {
    "transcripts-timed": Harness(text_seeds.timed_text, readers.read_transcript),
    "transcripts-styled": Harness(text_seeds.styled_text, readers.read_transcript),
    "transcripts-json": Harness(text_seeds.json_text, readers.read_transcript),
    "steps": Harness(text_seeds.step_lists, readers.read_steps),
    "graph": Harness(own_seeds.graph, readers.read_graph),
    "saved": Harness(own_seeds.saved, readers.read_saved),
    "saved-arrays": Harness(own_seeds.saved_arrays, readers.read_saved),
    "results": Harness(own_seeds.results, readers.read_results),
    "folder": Harness(text_seeds.folders, readers.read_source(), folder=True),
    "manifest": Harness(text_seeds.manifests, readers.read_source("manifest:"), folder=True),
    "crosstask": Harness(text_seeds.crosstask, readers.read_source("crosstask:"), folder=True),
    "coin": Harness(text_seeds.coin, readers.read_source("coin:"), folder=True),
    "howto100m": Harness(text_seeds.howto100m, readers.read_howto100m, folder=True),
    "articles": Harness(text_seeds.articles, readers.read_articles),
    "numpy": Harness(binary_seeds.numpy_arrays, readers.read_arrays, folder=True),
    "torch": Harness(binary_seeds.torch_arrays, readers.read_arrays, folder=True),
    "pickle": Harness(binary_seeds.pickled_arrays, readers.read_arrays, folder=True),
    "hdf5": Harness(binary_seeds.hdf5_arrays, readers.read_arrays, folder=True, needs=("h5py",)),
    "parquet": Harness(
        binary_seeds.parquet_arrays, readers.read_arrays, folder=True, needs=_TRAIN, programs=True
    ),
    "features": Harness(own_seeds.own_features, readers.read_arrays, folder=True),
    "labels": Harness(own_seeds.own_labels, readers.read_labels, folder=True, needs=_TRAIN),
    "cache": Harness(own_seeds.embedding_cache, readers.read_cache),
    "checkpoints": Harness(own_seeds.checkpoints, readers.read_checkpoint),
    "training": Harness(own_seeds.training_states, readers.read_state),
    "models": Harness(own_seeds.model_folders, readers.read_model, folder=True, needs=_VIDEO),
    "clips": Harness(own_seeds.clips, readers.read_stored_clips, folder=True, needs=_VIDEO),
    "media": Harness(binary_seeds.media, readers.read_video, needs=_VIDEO),
    "frames": Harness(binary_seeds.media, readers.read_frames, needs=_VIDEO),
    "commands": Harness(own_seeds.commands, readers.run_commands, folder=True),
}
