"""Every verb that writes, killed at any moment and run again: as if nothing had happened."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
import torch

from killing import KILLS, Nursery, files_in, kill_and_compare
from stepgraph.core import Labels, Scores, Timeline, Video, Vocabulary
from stepgraph.labelling.clips import label_clips
from stepgraph.labelling.folders import Provenance, write_labels
from videos import write_video

pytestmark = pytest.mark.slow

# An encoder of a user's own, which needs no model and gives the same numbers every time.
STUB = """
import numpy as np

from stepgraph.core import Features
from stepgraph.pipeline import shards

shards._VIDEOS = 1


class Stub:
    def __init__(self, options):
        self.options = options

    def encode_keysteps(self, vocabulary):
        return np.eye(len(vocabulary), 16, dtype=np.float32)

    def encode_videos(self, videos):
        for video in videos:
            rows = int(video.duration)
            vectors = np.random.default_rng(rows).normal(size=(rows, 16)).astype(np.float32)
            times = np.arange(rows, dtype=np.float64)
            yield Features(video.id, video.duration, vectors, np.stack([times, times + 1], axis=1))
"""


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nursery")
    (folder / "stub_encoder.py").write_text(STUB)
    # Optimisers import the second when they are made: a second of each run, or five uncompiled.
    learning = ("stepgraph.training.pretraining", "torch._dynamo", "pyarrow.parquet")
    modules = ("stepgraph.cli.learning", *learning, "stub_encoder")
    made = Nursery(folder, modules, paths=[folder])
    yield made
    made.close()


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory):
    """Narration of six videos, in two folders."""
    folder = tmp_path_factory.mktemp("transcripts")
    for number in range(6):
        path = folder / f"day{number % 2}" / f"v{number}.vtt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"WEBVTT\n\n00:01.000 --> 00:0{number + 3}.000\nstir the soup\n")
    return folder


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """Two videos of four seconds, each second of them labelled."""
    folder, vocabulary = tmp_path_factory.mktemp("labels"), Vocabulary(("red", "blue"))

    def label(videos):
        for video in videos:
            observed, values = np.ones(4, bool), np.eye(4, 2, dtype=np.float32)
            scores = Scores(video.id, values, observed, vocabulary)
            yield label_clips(
                Timeline(video, Labels(video.id, np.array([0, 1, 1, 0]), vocabulary), scores)
            )

    videos = []
    for number in range(2):
        pictures = [np.full((16, 16, 3), 60 * number + 9 * i, np.uint8) for i in range(16)]
        path = write_video(folder / f"{number}.mp4", pictures, rate=4)
        videos.append(Video(str(number), 4.0, (), path))
    write_labels(videos, label, folder / "labels", Provenance(vocabulary, "g", {}, {}))
    return folder / "labels"


def test_encode_is_killed(nursery, transcripts, tmp_path):
    def verb(folder):
        return "encode", transcripts, "-o", folder, "--encoder", "stub_encoder:Stub"

    kill_and_compare(nursery, tmp_path, verb, KILLS or 3)


def read_result(path):
    """Bytes of a file; of a state what is in it, since its bytes tell which objects are shared."""
    if path.suffix != ".pt":
        return path.read_bytes()
    return repr(_plain(torch.load(path, weights_only=True)))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.tolist() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("clips", ["stored", "streamed"])
def test_train_is_killed(nursery, labels, tmp_path, clips):
    sizes = {"frames": 2, "size": 16, "patch": 8, "width": 8, "depth": 2, "heads": 2}
    how = sizes | {"batch": 3, "epochs": 1, "save-every": 1, "clips": clips}
    options = [part for name, value in how.items() for part in (f"--{name}", value)]

    def verb(folder):
        return "train", labels, "-o", folder, "--no-logs", *options

    kills = KILLS or (3 if clips == "stored" else 2)
    kill_and_compare(nursery, tmp_path, verb, kills, look=partial(files_in, read=read_result))


@pytest.fixture(scope="module")
def graph(nursery, transcripts, tmp_path_factory):
    """A graph of the transcripts, mined with the encoder above."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "steps.txt").write_text("stir the soup\nserve it\n")
    status, _ = nursery.run(*mine(transcripts, folder)(folder))
    assert status == 0, nursery.log.read_text()
    return folder / "graph.json"


def mine(transcripts, given, *more):
    steps, stub = given / "steps.txt", "stub_encoder:Stub"

    def verb(folder):
        output = ("-o", folder / "graph.json")
        return "mine", transcripts, "--vocabulary", steps, "--encoder", stub, *output, *more

    return verb


def test_mine_is_killed(nursery, transcripts, graph, tmp_path):
    kill_and_compare(nursery, tmp_path, mine(transcripts, graph.parent), KILLS or 3)


@pytest.mark.parametrize("name", ["recognize", "label"])
def test_verbs_that_use_a_graph_are_killed(nursery, transcripts, graph, tmp_path, name):
    def verb(folder):
        stub = ("--encoder", "stub_encoder:Stub")
        return name, transcripts, "--graph", graph, *stub, "-o", folder

    kill_and_compare(nursery, tmp_path, verb, KILLS or 5)


@pytest.mark.parametrize("workers", [1, 2])
def test_mining_in_shards_is_killed(nursery, transcripts, graph, tmp_path, workers):
    """What a killed run had finished is gone on with; then no shard is left."""
    if workers == 2 and not KILLS:
        pytest.skip("processes of their own take seconds to begin; see make soak")
    verb = mine(transcripts, graph.parent, "--workers", workers)

    kill_and_compare(nursery, tmp_path, verb, KILLS or 4)


def test_proposing_steps_is_killed(nursery, tmp_path):
    said = (
        "we're going to whisk three eggs in a bowl",
        "now you chop the onion",
        "then you pour the eggs into the pan",
        "you fold the omelette in half",
    )
    (talks := tmp_path / "talks").mkdir()
    for number in range(4):
        lines = (f"00:0{at}.000 --> 00:0{at + 1}.000\n{one}" for at, one in enumerate(said))
        (talks / f"{number}.vtt").write_text("\n\n".join(("WEBVTT", *lines)))

    def verb(folder):
        return "steps", "suggest", talks, "-o", folder / "steps.txt", "--overwrite"

    kill_and_compare(nursery, tmp_path, verb, KILLS or 2)


@pytest.fixture(scope="module")
def results(nursery, transcripts, graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    given = ("--graph", graph, "--encoder", "stub_encoder:Stub", "-o", folder)
    status, _ = nursery.run("recognize", transcripts, *given)
    assert status == 0, nursery.log.read_text()
    return folder


@pytest.mark.parametrize(
    ("name", "options"),
    [("export", ("--format", "csv", "--format", "label-studio", "-o")), ("view", ("--export",))],
)
def test_verbs_that_use_results_are_killed(nursery, results, tmp_path, name, options):
    def verb(folder):
        return name, results, *options, folder

    kill_and_compare(nursery, tmp_path, verb, KILLS or 3)


def test_search_is_killed(nursery, results, tmp_path):
    """The index of results lies in the cache: of a killed run nothing stays there."""
    cache = nursery.log.parent / "cache" / "search"

    def verb(folder):
        return "search", results, "stir the soup"

    def look(folder):
        [index] = cache.glob("*/index.json")
        made = json.loads(index.read_text()).pop("made")
        found = {name.replace(made, "made"): data for name, data in files_in(cache).items()}
        shutil.rmtree(cache)
        return {
            name: data.replace(made.encode(), b"made") if data else data
            for name, data in found.items()
        }

    kill_and_compare(nursery, tmp_path, verb, KILLS or 3, look=look)
