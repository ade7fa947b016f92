"""The omelette: one vocabulary, three tiny videos and their truth; and an encoder of words."""

import gc
import os
import zlib
from contextlib import contextmanager
from pathlib import Path

# Each worker of a parallel run has one core; more threads would only wait for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

from stepgraph.core import Dataset, Features, Labels, Segment, Sentence, Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

# Processes of a parallel run that wait for each other do not do the same work side by side.
TAKES_TURNS = fcntl is not None and "PYTEST_XDIST_WORKER" in os.environ
MANY = 100  # texts, of which the demo has thousands
ROOT = Path(__file__).parents[1]

CRACK, WHISK, HEAT, POUR, FOLD = range(5)
KEYSTEPS = ("crack the eggs", "whisk them", "heat a pan", "pour everything", "fold the omelette")

SAID = {
    "plain": (
        (0.0, 4.0, "crack the eggs into a bowl"),
        (4.0, 8.0, "whisk them well"),
        (8.0, 12.0, "heat a pan"),
        (12.0, 16.0, "pour everything in"),
        (16.0, 20.0, "fold the omelette"),
    ),
    "chatty": (
        (0.0, 3.0, "hello, my name is Jo"),
        (3.0, 6.0, "crack the eggs"),
        (6.0, 10.0, "whisk them"),
        (12.0, 16.0, "now heat a pan"),
        (16.0, 20.0, "pour everything"),
        (22.0, 26.0, "fold the omelette in half"),
    ),
    "hurried": (
        (0.0, 3.0, "heat a pan first"),
        (3.0, 6.0, "crack the eggs"),
        (6.0, 9.0, "whisk them"),
        (9.0, 12.5, "pour everything"),
    ),
}

DONE = {
    "plain": (
        Segment(0.0, 4.0, CRACK),
        Segment(4.0, 8.0, WHISK),
        Segment(8.0, 12.0, HEAT),
        Segment(12.0, 16.0, POUR),
        Segment(16.0, 20.0, FOLD),
    ),
    "chatty": (
        Segment(3.0, 6.0, CRACK),
        Segment(6.0, 11.0, WHISK),
        Segment(13.0, 16.0, HEAT),
        Segment(16.0, 20.0, POUR),
        Segment(22.0, 26.0, FOLD),
    ),
    "hurried": (
        Segment(0.0, 3.0, HEAT),
        Segment(3.0, 6.0, CRACK),
        Segment(6.0, 9.0, WHISK),
        Segment(9.0, 12.0, POUR),
    ),
}


class WordEncoder:
    """Bags of words: each word is one of many directions.  Needs no model and no cache."""

    size = 4096
    options = EncoderOptions("text:words")

    def encode_keysteps(self, vocabulary):
        return self.encode_texts(vocabulary.keysteps)

    def encode_videos(self, videos):
        for video in videos:
            intervals = np.array([[s.start, s.end] for s in video.transcript]).reshape(-1, 2)
            texts = [sentence.text for sentence in video.transcript]
            yield Features(video.id, video.duration, self.encode_texts(texts), intervals)

    def encode_texts(self, texts):
        vectors = np.zeros((len(texts), self.size), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.size] += 1
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(length, 1e-12)


def pytest_configure(config):
    config.addinivalue_line("markers", "own_cache: sets STEPGRAPH_CACHE itself")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage: all that is made then is kept to the end."""
    gc.disable()
    try:
        with _one_before_the_others():
            return (yield)
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _one_before_the_others():
    """Let one process of a parallel run go first: the others find compiled what it imported."""
    if not TAKES_TURNS:
        yield
        return
    with Path(__file__).open() as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(turn, fcntl.LOCK_SH)  # when the first is done,
            fcntl.flock(turn, fcntl.LOCK_UN)  # all others at once
        yield


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    """One for all processes of a run, so that nothing is encoded twice; yours if you name it."""
    if chosen := os.environ.get("STEPGRAPH_TEST_CACHE"):
        return Path(chosen)
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _many_texts_in_turn(session_cache):
    """Let one process at a time encode many texts: others find them in the cache, then."""
    if not TAKES_TURNS:
        yield
        return
    encode = TextEncoder.encode_texts

    def encode_in_turn(encoder, texts):
        if len(texts) < MANY:
            return encode(encoder, texts)
        with (session_cache / "turn").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            return encode(encoder, texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextEncoder, "encode_texts", encode_in_turn)
        yield


@pytest.fixture(autouse=True)
def _cache_of_the_tests(request, monkeypatch, session_cache):
    """Keep tests out of the user's own cache."""
    if "own_cache" not in request.keywords:
        monkeypatch.setenv("STEPGRAPH_CACHE", str(session_cache))


@pytest.fixture
def encoder():
    return WordEncoder()


@pytest.fixture(scope="session")
def vocabulary():
    return Vocabulary(KEYSTEPS, {"Make an omelette": (CRACK, WHISK, HEAT, POUR, FOLD)})


@pytest.fixture(scope="session")
def videos():
    return tuple(
        Video(name, said[-1][1], tuple(Sentence(*sentence) for sentence in said))
        for name, said in SAID.items()
    )


@pytest.fixture(scope="session")
def truth(videos, vocabulary):
    return {
        video.id: Labels.from_segments(
            video.id, DONE[video.id], vocabulary, duration=video.duration
        )
        for video in videos
    }


@pytest.fixture(scope="session")
def omelette(vocabulary, videos, truth):
    return Dataset("omelette", videos, vocabulary, truth)


@pytest.fixture
def omelette_folder(tmp_path):
    """The same as a folder of WebVTT files, steps.txt and truth.csv."""
    folder = tmp_path / "omelette"
    folder.mkdir()
    for name, said in SAID.items():
        cues = [f"00:{start:06.3f} --> 00:{end:06.3f}\n{text}" for start, end, text in said]
        (folder / f"{name}.vtt").write_text("\n\n".join(["WEBVTT", *cues]) + "\n", "utf-8")
    steps = ["# Make an omelette", *KEYSTEPS]
    (folder / "steps.txt").write_text("\n".join(steps) + "\n", "utf-8")
    rows = [
        f"{name},{start},{end},{KEYSTEPS[keystep]}"
        for name, segments in DONE.items()
        for start, end, keystep in segments
    ]
    lines = ["video,start,end,keystep", *rows]
    (folder / "truth.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="session")
def real_data():
    """The folder of the published data sets; tests that need it are skipped without."""
    chosen = os.environ.get("STEPGRAPH_DATA")
    folder = Path(chosen) if chosen else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set STEPGRAPH_DATA to its folder")
    return folder


@pytest.fixture
def one_thread():
    """Little work is done faster by one thread, above all beside other tests."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
