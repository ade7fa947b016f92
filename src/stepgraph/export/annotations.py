"""Annotation from corrected results, and its effect on scores and timelines.

The annotation of a video consists of the steps that a person changed or added, and the times from
which a step was removed.  All else is unannotated, and is recognised again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stepgraph.core import (
    BACKGROUND,
    Chapter,
    Dataset,
    Result,
    Scores,
    Segment,
    Timeline,
    Vocabulary,
)
from stepgraph.datasets.reading import labelled
from stepgraph.errors import DataError, StepgraphError
from stepgraph.export.results import (
    CORRECTED_SUFFIX,
    RESULT_SUFFIX,
    load_result,
    read_annotation,
    read_results,
    save_corrections,
)
from stepgraph.export.timeline import write_timeline
from stepgraph.files.ids import file_in
from stepgraph.problems import Problems


class AnnotatedSegment(NamedTuple):
    """Annotated interval in seconds; keystep None means background."""

    start: float
    end: float
    keystep: str | None


Annotations = Mapping[str, tuple[AnnotatedSegment, ...]]
"""Annotation by video."""


def read_annotations(
    folder: Path, problems: Problems | None = None
) -> dict[str, tuple[AnnotatedSegment, ...]]:
    """Read the annotation of results in a folder, by video; videos without any are left out."""
    found = {}
    for file in sorted(folder.rglob(f"*{CORRECTED_SUFFIX}")) if folder.is_dir() else ():
        path = file.with_name(file.name.removesuffix(CORRECTED_SUFFIX) + RESULT_SUFFIX)
        try:
            result = load_result(path, corrected=False)
            annotated = (*_annotated(result, *read_annotation(path)),)
        except StepgraphError as error:
            if problems is None:
                raise
            problems.add_error(error, "unreadable correction", str(file), fatal=True)
            continue
        if annotated:
            found[result.video.id] = annotated
    return found


def _annotated(
    result: Result, steps: list[tuple[float, float, str]], earlier: list[tuple[float, float]]
) -> Iterator[AnnotatedSegment]:
    """Yield the differences between corrections and result, and earlier annotation."""
    plain = {(one.start, one.end, one.keystep) for one in result}
    changed = plain ^ {*steps}
    changed |= {(one.start, one.end, one.keystep) for one in result if one.origin == "corrected"}
    spans = [(start, end, True) for start, end, _ in changed] + [(*one, True) for one in earlier]
    # A step that overlaps an annotated interval is annotated as a whole, and so is one that
    # continues at its end: recognition does not extend an annotated step.
    runs: list[tuple[float, float, str]] = []
    for start, end, name in sorted(steps):
        if runs and runs[-1][2] == name and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(runs[-1][1], end), name)
        else:
            runs.append((start, end, name))
    spans += [(start, end, False) for start, end, _ in runs]
    groups: list[tuple[float, float, bool]] = []
    for start, end, annotated in sorted(spans):
        if groups and start < groups[-1][1]:
            first, last, before = groups[-1]
            groups[-1] = (first, max(last, end), before or annotated)
        else:
            groups.append((start, end, annotated))
    left = sorted(steps, reverse=True)
    for start, end, annotated in groups:
        at = start
        while left and left[-1][0] < end:
            step = AnnotatedSegment(*left.pop())
            if annotated and at < step.start:
                yield AnnotatedSegment(at, step.start, None)
            if annotated:
                yield step
            at = max(at, step.end)
        if annotated and at < end:
            yield AnnotatedSegment(at, end, None)


def annotate(scores: Scores, annotations: Annotations | None) -> Scores:
    """Clamp the scores of a video to its annotation, if it has any."""
    annotated = (annotations or {}).get(scores.video)
    return scores.annotate(to_segments(annotated, scores.vocabulary)) if annotated else scores


def to_segments(annotated: Iterable[AnnotatedSegment], vocabulary: Vocabulary) -> list[Segment]:
    """Convert annotation to segments of a vocabulary; an unknown keystep becomes background."""
    place = {name: at for at, name in enumerate(vocabulary.keysteps)}
    return [
        Segment(one.start, one.end, place.get(one.keystep or "", BACKGROUND)) for one in annotated
    ]


def write_annotated(
    timeline: Timeline, annotated: tuple[AnnotatedSegment, ...], folder: Path
) -> Result:
    """Write a timeline with its annotation, whose times and names are kept exactly.

    The file of corrections beside it is updated: it contains all steps of the new result, and the
    annotated intervals.
    """
    result = _with_annotations(timeline, annotated)
    steps = [(one.start, one.end, one.keystep) for one in result]
    spans = [(one.start, one.end) for one in annotated]
    # First, so that no annotation is lost on an interruption.
    save_corrections(file_in(folder, result.video.id, RESULT_SUFFIX), steps, spans)
    write_timeline(result, folder)
    return result


def _with_annotations(timeline: Timeline, annotated: tuple[AnnotatedSegment, ...]) -> Result:
    chapters = [
        Chapter(one.start, one.end, one.keystep, None, "corrected", 1.0, None, timeline.task)
        for one in annotated
        if one.keystep is not None
    ]
    for chapter in timeline:
        chapters += _around(chapter, annotated, timeline.labels.hop)
    chapters.sort(key=lambda one: (one.start, one.end))
    video = timeline.video
    return Result(video, tuple(chapters), timeline.tasks, timeline.fingerprint, corrected=True)


def _around(
    chapter: Chapter, annotated: Iterable[AnnotatedSegment], hop: float
) -> Iterator[Chapter]:
    """Yield the unannotated parts of a chapter; an annotated step is not extended."""
    parts = [(chapter.start, chapter.end)]
    for one in annotated:
        near = hop / 2 if one.keystep == chapter.keystep else 0.0
        hit = [part for part in parts if part[0] < one.end + near and one.start - near < part[1]]
        parts = [part for part in parts if part not in hit]
        for start, end in hit if not near else ():
            left = ((start, one.start), (one.end, end))
            parts += [part for part in left if part[1] - part[0] >= hop]
    for start, end in parts:
        yield replace(chapter, start=start, end=end)


def with_corrections(dataset: Dataset, folder: Path) -> Dataset:
    """Use corrected results as the truth of their videos; other videos keep theirs."""
    vocabulary = dataset.vocabulary
    if vocabulary is None:
        raise DataError(
            f"{dataset.name}: must have a vocabulary, got none; pass it with --vocabulary"
        )
    segments: dict[str, list[Segment]] = {}
    ids = {video.id for video in dataset.videos}
    for result in read_results(folder, dataset.problems):
        if result.corrected and result.video.id in ids:
            segments[result.video.id] = []
            for one in result:
                try:
                    segment = Segment(one.start, one.end, vocabulary.index(one.keystep))
                    segments[result.video.id].append(segment)
                except DataError as error:
                    dataset.problems.add(result.video.id, "unknown keystep", str(error))
    if not segments:
        raise DataError(
            f"{folder}: must hold corrections of videos of {dataset.name}, got none; "
            f"correct some with: stepgraph view {folder}"
        )
    videos, truth = labelled(dataset.videos, segments, vocabulary)
    return replace(dataset, videos=videos, truth=ChainMap({**truth}, {**dataset.truth}))
