"""Accuracy and speed of online recognition: ``python -m benchmarks.live DATA``.

DATA is the folder with the data sets.  CrossTask's narration is fed second by second, each
sentence when it ends, with the task unknown and a graph mined on the same videos without their
truth, as for the recogniser that has the whole video; beside it, that one and the paper's Bayes
filter.  Then with a graph of the other half of the videos, and how sure the task is when.  Prints
one JSON object a line; ``--speed`` measures what a second of input costs instead.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.suites import Suite, suite
from stepgraph.assistant.live import FixedLagOutput, Live, LiveOptions, OnlineState
from stepgraph.assistant.live_model import OnlineModel
from stepgraph.assistant.live_recognition import OnlineRecognizer
from stepgraph.core import BACKGROUND, Labels, Sentence, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import BayesFilter, TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.encoders.text import TextEncoder
from stepgraph.evaluation.report import evaluate
from stepgraph.graph import TaskGraph

DELAYS = (0, 2, 5, 10, 20, 30)
# Of which sentences texts are made when one more was said: the one before, this, and with context.
CONTEXTS = np.array([(-1, 0), (0, 1), (-2, 1), (-1, 1)])


def say(**result: object) -> None:
    print(json.dumps(result), flush=True)


def percent(labels: Sequence[Labels], one: Suite) -> dict[str, float]:
    report = evaluate(labels, one.truth)
    names = ("accuracy", "iou", "background_share", "background_precision")
    return {name: round(100 * getattr(report, name), 1) for name in names}


class Known:
    """Vectors of all that the videos will say, encoded at once to save time."""

    def __init__(self, videos: Sequence[Video], encoder: TextEncoder) -> None:
        texts = set()
        for video in videos:
            said = [sentence.text for sentence in video.transcript]
            for here in range(len(said)):
                for first, last in ((here, here), (here - 1, here), (here - 1, here + 1)):
                    texts.add(" ".join(said[max(0, first) : last + 1]))
        ordered = sorted(texts)
        self._vectors = dict(zip(ordered, encoder.encode_texts(ordered), strict=True))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._vectors[text] for text in texts])


def emit(
    model: OnlineModel, video: Video, rows: int, length: float | None
) -> dict[int, list[OnlineState]]:
    """States of a video with each delay: one recogniser, several outputs."""
    recognizer, outputs = (
        OnlineRecognizer(model, length),
        [FixedLagOutput(delay) for delay in DELAYS],
    )
    recognizer.take(np.inf, video.transcript)
    told: dict[int, list[OnlineState]] = {delay: [] for delay in DELAYS}
    for _ in range(rows):
        recognizer.listen()
        for output in outputs:
            told[output.delay] += filter(None, [output.emit(recognizer)])
    for output in outputs:
        for late in range(min(output.delay, rows) - 1, -1, -1):
            told[output.delay] += filter(None, [output.emit(recognizer, late)])
    return told


def measure(
    model: OnlineModel, one: Suite, videos: Sequence[Video], *, known: bool
) -> dict[int, Any]:
    """Labels of all videos by delay, and how often the task is right in each tenth."""
    index = {name: number for number, name in enumerate(one.vocabulary.keysteps)}
    labels: dict[int, list[Labels]] = {delay: [] for delay in DELAYS}
    tenths: defaultdict[int, list[tuple[bool, float]]] = defaultdict(list)
    missing = np.zeros(4, dtype=np.int64)
    for video in videos:
        rows = len(one.truth[video.id])
        told = emit(model, video, rows, float(rows) if known else None)
        for delay, states in told.items():
            found = [BACKGROUND if s.keystep is None else index[s.keystep] for s in states]
            labels[delay].append(Labels(video.id, np.array(found), one.vocabulary))
        for state in told[10]:
            if state.task is not None:
                right = state.task == video.task
                tenths[int(10 * state.at / rows)].append((right, state.tasks[state.task]))
        done = {one.vocabulary.keysteps[k] for k in set(one.truth[video.id].keysteps) if k >= 0}
        listed = {one.vocabulary.keysteps[k] for k in model.tasks[video.task or ""]}
        told_missing = {each.keystep for each in told[10][-1].missing} & listed
        missing += [len(told_missing), len(told_missing - done), len(listed), len(listed - done)]
    return {"labels": labels, "tenths": tenths, "missing": missing}


def run_delays(one: Suite, encode: Known, encoder: TextEncoder) -> None:
    """Accuracy by delay, length known and unknown, beside what has the whole video."""
    graph = learn_graph(one.scores, one.vocabulary, encoder=encoder.options)
    for name, decoder in (("offline", TaskMarkov()), ("bayes-filter", BayesFilter())):
        labels = [decoder.decode(each, graph) for each in one.scores]
        say(method=name, videos=len(labels), **percent(labels, one))
    model = replace(OnlineModel.of_graph(graph, encoder), encode=encode.encode)
    for known in (True, False):
        found = measure(model, one, one.videos, known=known)
        for delay, labels in found["labels"].items():
            say(method="live", delay=delay, length_known=known, **percent(labels, one))
    told, right, listed, absent = found["missing"].tolist()
    shares = {"right": round(100 * right / told, 1), "by_chance": round(100 * absent / listed, 1)}
    say(told_missing_at_the_end=told, of_absent=round(100 * right / absent, 1), **shares)
    for tenth, pairs in sorted(found["tenths"].items()):
        right, said = 100 * np.mean(pairs, axis=0)
        say(tenth_of_the_video=tenth, task_right=round(right, 1), task_said=round(said, 1))


def run_halves(one: Suite, encode: Known, encoder: TextEncoder) -> None:
    """The same with a graph of the other half of the videos."""
    for known in (True, False):
        labels: list[Labels] = []
        for half in (0, 1):
            graph = learn_graph(one.scores[1 - half :: 2], one.vocabulary, encoder=encoder.options)
            model = replace(OnlineModel.of_graph(graph, encoder), encode=encode.encode)
            found = measure(model, one, one.videos[half::2], known=known)
            labels += found["labels"][10]
        name = "live, graph of other videos"
        say(method=name, delay=10, length_known=known, **percent(labels, one))


class Noise:
    """An encoder of any text as random unit vectors, to time all but the encoding."""

    options = EncoderOptions(context=1, task_names=True, blend=True)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> NDArray[np.float32]:
        drawn = np.random.default_rng(len(text) + sum(map(ord, text[:40]))).normal(size=384)
        return (drawn / np.linalg.norm(drawn)).astype(np.float32)

    encode_keysteps = TextEncoder.encode_keysteps
    encode_tasks = TextEncoder.encode_tasks


def large_graph(size: int = 10_588, each: int = 10) -> TaskGraph:
    """As many keysteps as the paper mines, in tasks of ten, with random transitions."""
    rng = np.random.default_rng(0)
    tasks = {f"task {k}": tuple(range(k, min(k + each, size))) for k in range(0, size, each)}
    vocabulary = Vocabulary(tuple(f"keystep {k}" for k in range(size)), tasks)
    source = np.repeat(np.arange(size), 20)
    counts = (np.ones(len(source), np.int64), (source, rng.integers(0, size, len(source))))
    return TaskGraph(vocabulary, csr_array(counts, shape=(size, size)))


def run_speed(each: int, *, two_tasks: bool) -> None:
    """CPU time of every second of twenty minutes in which somebody speaks without a pause.

    Either of anything, so that ever other tasks lead; or of one task, and after ten minutes of
    another.
    """
    graph = large_graph(each=each)
    model = OnlineModel.of_graph(graph, Noise())  # type: ignore[arg-type]
    began = time.process_time()
    model.prepare()
    prepared = time.process_time() - began
    spent = [0.0]

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        began = time.process_time()
        vectors = Noise().encode_texts(texts)
        if two_tasks:
            said = np.array([int(text.split()[-1]) for text in texts])
            assert model.targets.vectors is not None, "keysteps have vectors"
            first = model.targets.first[np.where(said < 600, 3, 7)]
            vectors += model.targets.vectors[first + said // 60 % each]
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        spent[0] += time.process_time() - began
        return vectors

    live = Live(replace(model, encode=encode), LiveOptions(delay=30))
    took = []
    for second in range(1, 1201):
        said = [Sentence(second - 3, second, f"sentence {second}")] if second % 3 == 0 else []
        spent[0], began = 0.0, time.process_time()
        live.feed(second, said)
        took.append(1e3 * (time.process_time() - began - spent[0]))
    shown = dict(zip(("median", "p99", "worst"), np.percentile(took, (50, 99, 100)), strict=True))
    rounded = {f"{name}_ms": round(value, 2) for name, value in shown.items()}
    say(
        bench="a second of input",
        said="of one task, then of another" if two_tasks else "anything",
        keysteps=len(graph.vocabulary),
        keysteps_a_task=each,
        delay=30,
        length_known=False,
        prepared_before_s=round(prepared, 2),
        mean_ms=round(float(np.mean(took)), 2),
        **rounded,
    )


def run_encoding() -> None:
    """CPU time of encoding what one more sentence asks for, which is not in the above."""
    encoder = load_encoder(TaskMarkov.encoder)
    assert isinstance(encoder, TextEncoder), "it hears"
    encoder.encode_texts(["so that the model is there"])
    took, stamp = [], time.time_ns()
    spoken = [f"now pour cup {stamp + n} of milk into the bowl and stir" for n in range(50)]
    for now in range(2, len(spoken)):
        said = [" ".join(spoken[first:last]) for first, last in CONTEXTS + now]
        began = time.process_time()
        encoder.encode_texts(said)
        took.append(1e3 * (time.process_time() - began))
    say(
        bench="encoding a sentence, with its context and that of the one before",
        median_ms=round(float(np.median(took)), 1),
        worst_ms=round(max(took), 1),
    )


def main(arguments: Sequence[str]) -> None:
    if "--speed" in arguments:
        for each in (10, 100):
            for two_tasks in (False, True):
                run_speed(each, two_tasks=two_tasks)
        run_encoding()
        return
    one = suite("CrossTask", open_source(f"crosstask:{Path(arguments[0])}/crosstask"))
    encoder = load_encoder(TaskMarkov.encoder)
    assert isinstance(encoder, TextEncoder), "it hears"
    encode = Known(one.videos, encoder)
    run_delays(one, encode, encoder)
    run_halves(one, encode, encoder)


if __name__ == "__main__":
    main(sys.argv[1:])
