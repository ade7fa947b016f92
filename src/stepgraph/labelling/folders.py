"""Labels on disk: parts of whole videos, and a manifest of the videos in each part.

A part is written atomically; its footer has its provenance and its videos.  A killed run
therefore continues after its last part, and its files are those of an uninterrupted one.  The
manifest is written at the end: with it the folder is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stepgraph.core import Video, Vocabulary, is_unicode, rows_in
from stepgraph.decoders import DECODERS, Decoder, load_decoder
from stepgraph.errors import DataError
from stepgraph.files import headers
from stepgraph.files.disk import MIB, read_json, write_text
from stepgraph.graph import TaskGraph
from stepgraph.labelling.clips import (
    LABELS_KIND,
    ClipLabels,
    label_clips,
    read_footer,
    read_table,
    write_table,
)
from stepgraph.pipeline import open_scorer, recognize_all
from stepgraph.problems import Problems
from stepgraph.progress import counting
from stepgraph.scoring import Scorer, StoredScores
from stepgraph.vocabulary.lists import require_as_saved, vocabulary_fields, vocabulary_of

MANIFEST = "labels.json"
_MANIFEST_KIND = replace(LABELS_KIND, noun="manifest of labels")


Label: TypeAlias = Callable[[list[Video]], Iterable[ClipLabels]]
"""Function from videos to the labels of those that can be labelled."""


@dataclass(frozen=True)
class Provenance:
    """Everything that decides the labels of a video; labels of different provenance never mix.

    ``graph`` is a hash, ``decoder`` and ``encoder`` are names and options, ``hop`` is the time
    from one clip to the next in seconds.
    """

    vocabulary: Vocabulary
    graph: str
    decoder: Mapping[str, Any]
    encoder: Mapping[str, Any]
    hop: float = 1.0

    def fields(self) -> dict[str, Any]:
        """Return the fields of the header of the files."""
        made = {"graph": self.graph, "decoder": dict(self.decoder), "encoder": dict(self.encoder)}
        first = headers.header(LABELS_KIND.format, LABELS_KIND.version, self.vocabulary)
        return first | made | {"hop": self.hop} | vocabulary_fields(self.vocabulary)


@dataclass(frozen=True)
class LabelFile:
    """One file of labels: its number of clips, its videos, and those of them that failed."""

    file: str
    rows: int
    videos: tuple[str, ...]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelFolder:
    """A complete folder of labels."""

    path: Path
    provenance: Provenance
    parts: tuple[LabelFile, ...]

    @property
    def rows(self) -> int:
        """Number of clips."""
        return sum(part.rows for part in self.parts)

    @property
    def videos(self) -> int:
        """Number of videos that were labelled."""
        return sum(len(part.videos) - len(part.failed) for part in self.parts)

    @property
    def failed(self) -> tuple[str, ...]:
        """Videos that could not be labelled."""
        return tuple(video for part in self.parts for video in part.failed)


def label_source(
    videos: Iterable[Video],
    graph: TaskGraph,
    folder: Path,
    *,
    decoder: Decoder | None = None,
    encoder: Scorer | None = None,
    problems: Problems | None = None,
) -> LabelFolder:
    """Label every clip of every video, or continue an interrupted run in the folder.

    Parameters
    ----------
    decoder
        :class:`~stepgraph.TaskMarkov` if not given.
    encoder
        The one that the graph was mined with if not given.
    problems
        Receives the videos that cannot be labelled; the others go on.
    """
    decoder, problems = decoder or load_decoder(), problems if problems is not None else Problems()
    encoder = encoder or open_scorer(graph=graph)
    if isinstance(encoder, StoredScores):
        read = {"scale": encoder.scale, "seconds_per_row": encoder.seconds_per_row}
        scoring = {"scores": str(encoder.path), **read}
    else:
        scoring = asdict(encoder.options)
    how: dict[str, Any] = {"decoder": decoder, "encoder": encoder, "problems": problems}

    def label(group: list[Video]) -> Iterable[ClipLabels]:
        return map(label_clips, recognize_all(group, graph, **how))

    provenance = provenance_of(graph, decoder, scoring)
    return write_labels(videos, label, folder, provenance, problems=problems)


def provenance_of(graph: TaskGraph, decoder: Decoder, scoring: Mapping[str, Any]) -> Provenance:
    """Return the provenance of labels made with a graph, a decoder and options of scoring."""
    return Provenance(graph.vocabulary, graph_fingerprint(graph), describe(decoder), scoring)


def describe(decoder: Decoder) -> dict[str, Any]:
    """Name and options of a decoder as plain values.

    >>> from stepgraph.decoders import PathSearch
    >>> describe(PathSearch(threshold=0.5))
    {'name': 'path-search', 'threshold': 0.5}
    """
    names = {kind: name for name, kind in DECODERS.items()}
    name = names.get(type(decoder), type(decoder).__qualname__)
    if not is_dataclass(decoder) or isinstance(decoder, type):
        return {"name": name, "options": repr(decoder)}
    return {"name": name, **json.loads(json.dumps(asdict(decoder), default=repr))}


def graph_fingerprint(graph: TaskGraph) -> str:
    """Hash the vocabulary, the transition counts and the timing of a graph."""
    digest = hashlib.sha256(graph.vocabulary.fingerprint.encode())
    counts = graph.counts
    for values in (counts.indptr, counts.indices, counts.data):
        digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
    if graph.timing is not None:
        digest.update(np.ascontiguousarray(graph.timing, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def write_labels(
    videos: Iterable[Video],
    label: Label,
    folder: Path,
    provenance: Provenance,
    *,
    part_size: int = 50_000,
    problems: Problems | None = None,
) -> LabelFolder:
    """Write labels as parts of whole videos, and the manifest at the end.

    Existing parts are kept if they hold the same videos, without failures.  Videos that cannot be
    written are noted as problems, and the others go on.

    Parameters
    ----------
    part_size
        Clips after which a part is closed.
    """
    problems, parts = problems if problems is not None else Problems(), []
    total = len(videos) if isinstance(videos, Sized) else None
    with counting("labelling (videos)", total) as done:
        for number, group in enumerate(_groups(videos, provenance.hop, part_size, problems)):
            path = folder / f"labels-{number:05}.parquet"
            part = finished(path, provenance) if path.exists() else None
            # One of which some videos failed is made again: they may have been repaired.
            if part is None or part.failed or not _holds(part, group, provenance.hop):
                counted = _counted(label(group), done)
                part = _write_part(path, group, counted, provenance)
            else:
                done(len(group))
            parts.append(part)
    written = sorted(folder.glob("labels-*.parquet"))
    if not any(part.rows for part in parts):
        for path in written[: len(parts)]:
            path.unlink()
        first = f": {problems.summary()}" if problems else ""
        raise DataError(f"{folder}: labels must be of at least one clip, got none{first}")
    for path in written[len(parts) :]:
        path.unlink()  # of an earlier run over more videos
    content = provenance.fields() | {"shards": [asdict(part) for part in parts]}
    write_text(folder / MANIFEST, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return LabelFolder(folder, provenance, tuple(parts))


def _groups(
    videos: Iterable[Video], hop: float, part_size: int, problems: Problems
) -> Iterator[list[Video]]:
    """Split videos into parts by their durations alone, so that every run splits alike."""
    group: list[Video] = []
    given: set[str] = set()
    rows = 0
    for video in videos:
        if video.id in given:
            what = f"ids of videos must differ, got {video.id!r} again; only the first is labelled"
            problems.add(f"video {video.id!r}", "video listed twice", what)
            continue
        if not is_writable(video):
            what = f"names must be Unicode text, got {video.id!r}; rename the file"
            problems.add(f"video {video.id!r}", "video that cannot be labelled", what, fatal=True)
            continue
        given.add(video.id)
        group.append(video)
        rows += rows_in(video.duration, hop)
        if rows >= part_size:
            yield group
            group, rows = [], 0
    if group:
        yield group


def is_writable(video: Video) -> bool:
    """Check that the id and the path of a video are Unicode text, which a file can hold."""
    return is_unicode(f"{video.id}{video.path}")


def finished(path: Path, provenance: Provenance) -> LabelFile:
    """Read an existing part; refuse, and do not overwrite, one of another provenance."""
    content = read_footer(path)
    wanted = provenance.fields()
    for name, value in wanted.items():
        if name != "stepgraph" and content.get(name) != value:
            raise DataError(
                f"{path}: must hold labels made with {name} {shortened(value)}, got "
                f"{shortened(content.get(name))}; choose another folder, or delete this one"
            )
    with headers.reading_fields(path, LABELS_KIND):
        return _part(content)


def _holds(part: LabelFile, videos: Sequence[Video], hop: float) -> bool:
    """Check that a part has the labels of these videos, at their present lengths."""
    rows = sum(rows_in(video.duration, hop) for video in videos if video.id not in part.failed)
    return part.videos == tuple(video.id for video in videos) and part.rows == rows


def shortened(value: Any) -> str:
    """Format a value as JSON, cut to a length that suits a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:150]}…"


def _counted(labelled: Iterable[ClipLabels], done: Callable[[int], None]) -> Iterator[ClipLabels]:
    for one in labelled:
        yield one
        done(1)


def _write_part(
    path: Path, videos: Sequence[Video], found: Iterable[ClipLabels], provenance: Provenance
) -> LabelFile:
    labelled = list(found)
    done = {one.video for one in labelled}
    ids = tuple(video.id for video in videos)
    rows = sum(map(len, labelled))
    part = LabelFile(path.name, rows, ids, tuple(one for one in ids if one not in done))
    write_table(path, labelled, provenance.vocabulary, provenance.fields() | asdict(part))
    return part


def open_labels(folder: Path) -> LabelFolder:
    """Read the manifest of a complete folder of labels."""
    path = folder / MANIFEST
    if not path.exists():
        begun = len(list(folder.glob("labels-*.parquet"))) if folder.is_dir() else 0
        got = f"{begun} finished files without it" if begun else "none"
        remedy = "run the same command again to finish it" if begun else LABELS_KIND.remedy
        raise DataError(f"{folder}: must be labels with a {MANIFEST}, got {got}; {remedy}")
    content = read_json(path, limit=4096 * MIB)
    headers.check_header(content, path, _MANIFEST_KIND)
    with headers.reading_fields(path, _MANIFEST_KIND):
        vocabulary = vocabulary_of(content)
        provenance = Provenance(
            vocabulary,
            headers.as_text(content["graph"]),
            dict(content["decoder"]),
            dict(content["encoder"]),
            float(content["hop"]),
        )
        parts = tuple(map(_part, headers.as_list(content["shards"])))
    require_as_saved(vocabulary, content, path, "label again")
    return LabelFolder(folder, provenance, parts)


def _part(fields: Mapping[str, Any]) -> LabelFile:
    file = headers.as_text(fields["file"])
    if Path(file).name != file:
        raise TypeError(f"files of labels must be beside the manifest, got {file!r}"[:200])
    return LabelFile(
        file,
        headers.as_whole(fields["rows"]),
        tuple(map(headers.as_text, headers.as_list(fields["videos"]))),
        tuple(map(headers.as_text, headers.as_list(fields["failed"]))),
    )


def read_labels(folder: Path | LabelFolder) -> Iterator[ClipLabels]:
    """Yield the labels of each video; one part at a time is in memory."""
    labels = folder if isinstance(folder, LabelFolder) else open_labels(folder)
    for part in labels.parts:
        path = labels.path / part.file
        if finished(path, labels.provenance) != part:
            raise DataError(
                f"{path}: must hold the clips and videos that {MANIFEST} lists, got others; "
                f"delete it and label again"
            )
        yield from read_table(path, len(labels.provenance.vocabulary))
