"""Every reader of stepgraph by name: whole files to begin with, and what reads one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fuzz import binary_seeds, growing, own_seeds, readers, results, text_seeds
from fuzz.serving_here import here


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
    inputs: int = 1500


_of_folder = partial(Harness, folder=True)
_of_arrays = partial(Harness, read=here(readers.read_arrays), folder=True, inputs=750)
_of_process = partial(_of_arrays, read=readers.read_arrays, programs=True)
_source = readers.read_source
_VIDEO, _TRAIN = ("av",), ("pyarrow",)
HARNESSES = {
    "transcripts-timed": Harness(text_seeds.timed_text, readers.read_transcript),
    "transcripts-styled": Harness(text_seeds.styled_text, readers.read_transcript, inputs=750),
    "transcripts-json": Harness(text_seeds.json_text, readers.read_transcript),
    "steps": Harness(text_seeds.step_lists, readers.read_steps, inputs=750),
    "folder": _of_folder(text_seeds.folders, _source(), inputs=600),
    "manifest": _of_folder(text_seeds.manifests, _source("manifest:"), inputs=300),
    "crosstask": _of_folder(text_seeds.crosstask, _source("crosstask:"), inputs=600),
    "coin": _of_folder(text_seeds.coin, _source("coin:"), inputs=600),
    "howto100m": _of_folder(text_seeds.howto100m, readers.read_howto100m, inputs=300),
    "articles": Harness(text_seeds.articles, readers.read_articles, inputs=750),
    "graph": Harness(own_seeds.graph, readers.read_graph, inputs=750),
    "saved": Harness(own_seeds.saved, readers.read_saved),
    "saved-arrays": Harness(own_seeds.saved_arrays, here(readers.read_saved)),
    "annotations": Harness(own_seeds.annotations, readers.read_annotations, inputs=750),
    "timelines": _of_folder(results.timelines, results.read_timelines, needs=_VIDEO, inputs=150),
    "index": _of_folder(results.search_index, results.read_index, inputs=450),
    "requests": Harness(results.requests, results.answer_request, needs=_VIDEO, inputs=450),
    "shards": _of_folder(growing.finished_shards, growing.read_shards, inputs=150),
    "executions": _of_folder(growing.executions, growing.read_executions, inputs=300),
    "lines": Harness(growing.lines, growing.read_lines, inputs=750),
    "sound": Harness(growing.sound, growing.read_sound, inputs=450),
    "results": Harness(own_seeds.results, readers.read_results),
    "numpy": _of_arrays(binary_seeds.numpy_arrays, inputs=1500),
    "torch": _of_arrays(binary_seeds.torch_arrays),
    "pickle": _of_arrays(binary_seeds.pickled_arrays),
    "hdf5": _of_arrays(binary_seeds.hdf5_arrays, needs=("h5py",)),
    # Its library ends the process at some damaged files.
    "parquet": _of_process(binary_seeds.parquet_arrays, needs=_TRAIN),
    "process": _of_process(binary_seeds.numpy_arrays),
    "features": _of_arrays(own_seeds.own_features, inputs=1500),
    "labels": _of_folder(own_seeds.own_labels, readers.read_labels, needs=_TRAIN),
    "cache": Harness(own_seeds.embedding_cache, readers.read_cache, inputs=450),
    "heard": Harness(own_seeds.heard_speech, readers.read_heard, inputs=600),
    "screen": Harness(own_seeds.read_screens, readers.read_screen, inputs=600),
    "checkpoints": Harness(own_seeds.checkpoints, here(readers.read_checkpoint)),
    "models": _of_folder(own_seeds.model_folders, readers.read_model, needs=_VIDEO, inputs=600),
    "training": Harness(own_seeds.training_states, here(readers.read_state)),
    "clips": _of_folder(own_seeds.clips, readers.read_stored_clips, needs=_VIDEO, inputs=600),
    "media": Harness(binary_seeds.media, readers.read_video, needs=_VIDEO),
    "frames": Harness(binary_seeds.media, readers.read_frames, needs=_VIDEO),
    "commands": _of_folder(own_seeds.commands, readers.run_commands, inputs=150),
}
