"""Read a folder of one's own: videos and transcripts that share a stem.

Beside them may lie ``steps.txt`` (the vocabulary) and ``truth.csv`` (video, start, end,
keystep), which make the folder a data set that can be evaluated.  The embedded corpus is such
a folder.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from stepgraph.core import Dataset, Segment, Video, Vocabulary, rows_in
from stepgraph.datasets.reading import best_transcripts, has_id, labelled, read_truth
from stepgraph.errors import DataError, StepgraphError
from stepgraph.files.ids import check_id
from stepgraph.ingest import Listening, open_video
from stepgraph.ingest.naming import (
    MEDIA_SUFFIXES,
    TRANSCRIPT_SUFFIXES,
    is_transcript,
    transcript_stem,
)
from stepgraph.problems import Problems
from stepgraph.progress import track
from stepgraph.vocabulary import read_vocabulary

VOCABULARY_FILES = ("steps.txt", "vocabulary.json")
TRUTH_FILE = "truth.csv"

# Parts of a download that was interrupted: "talk.f137.mp4", "talk.temp.mp4".
_PART_OF_DOWNLOAD = re.compile(r"\.(?:f\d+(?:-\d+)?|temp)\.\w+$")


def open_folder(
    path: Path,
    *,
    name: str = "",
    strict: bool | None = None,
    vocabulary: Vocabulary | None = None,
    listening: Listening = Listening(),
) -> Dataset:
    """Open every video or transcript below a folder; its id is its path without suffixes."""
    problems = Problems(strict=strict is not False)
    vocabulary = vocabulary_of(path) or vocabulary
    found = _find(path, problems)
    if not found:
        raise DataError(
            f"{path}: must contain transcripts ({', '.join(TRANSCRIPT_SUFFIXES)}) or videos "
            f"with a text track, got none; put each video's transcript beside it, same name"
        )
    files = {
        video_id: (file, None)
        for video_id, file in found.items()
        if has_id(video_id, str(file), problems)
    }
    videos = open_all(files, problems, listening, strict_cues=strict is True)
    own = path / TRUTH_FILE
    truth = {own: list(found)} if own.is_file() else {}
    return with_truth(Dataset(name or str(path), videos, vocabulary, problems=problems), truth)


def open_file(
    path: Path,
    *,
    strict: bool | None = None,
    vocabulary: Vocabulary | None = None,
    listening: Listening = Listening(),
) -> Dataset:
    """Open one video or transcript."""
    problems = Problems(strict=strict is True)
    video = open_video(path, listening=listening, problems=problems)
    check_id(video.id)
    return Dataset(str(path), (video,), vocabulary, problems=problems)


def vocabulary_of(folder: Path) -> Vocabulary | None:
    """Read the vocabulary that lies in a folder, if there is one."""
    steps, saved = (folder / name for name in VOCABULARY_FILES)
    if steps.is_file():
        return read_vocabulary(steps)
    # Any video may be called "vocabulary"; only a file that was saved as one is one.
    return read_vocabulary(saved) if saved.is_file() and _is_our_own(saved) else None


def open_all(
    files: Mapping[str, tuple[Path, Path | None]],
    problems: Problems,
    listening: Listening,
    *,
    strict_cues: bool,
) -> tuple[Video, ...]:
    """Open videos by id, each from its file and transcript; if none can be, it is an error."""
    failed, blemishes = Problems(), Problems(strict=strict_cues)
    videos = []
    for video_id, (path, transcript) in track(files.items(), "reading", len(files)):
        try:
            video = open_video(path, transcript, listening=listening, problems=blemishes)
            videos.append(replace(video, id=video_id))
        except StepgraphError as error:
            where = str(transcript or path)
            failed.add_error(error, "unreadable video or transcript", where, lost=True)
    if failed and (problems.strict or not videos):
        hint = "; --skip-bad goes on without" if videos else ""
        each = ", ".join(f"({number}) {one}" for number, one in enumerate(failed.found, 1))
        unnamed = len(failed) - len(failed.found)
        more = f" and {unnamed:,} more" if unnamed else ""
        several = f"{len(failed)} of {len(files)} videos cannot be read: {each}{more}"
        raise DataError(f"{failed.found[0] if len(failed) == 1 else several}{hint}")
    for part in (failed, blemishes):
        problems.take(part)
    return tuple(videos)


def with_truth(
    dataset: Dataset, files: Mapping[Path, Sequence[str]], *, alone: bool = False
) -> Dataset:
    """Add the truth in files of so many videos each; ``alone``, one need not name its video."""
    if dataset.vocabulary is None:
        return dataset
    # Only a video file says how long it is; a transcript ends before the video does.  A started
    # row is whole.
    readable = find_spec("av") is not None
    lengths = {
        video.id: float(rows_in(video.duration))
        for video in dataset.videos
        if video.path and readable
    }
    segments: dict[str, list[Segment]] = {}
    for path, ids in files.items():
        # A video that could not be opened may have a truth all the same.
        lasting = {video: lengths.get(video, math.inf) for video in ids}
        only = ids[0] if alone and len(ids) == 1 else ""
        segments |= read_truth(path, dataset.vocabulary, lasting, dataset.problems, only=only)
    videos, truth = labelled(dataset.videos, segments, dataset.vocabulary)
    return replace(dataset, videos=videos, truth=truth)


def _find(folder: Path, problems: Problems) -> dict[str, Path]:
    """What to open for each id: the media file if there is one, else the best transcript."""

    def note(error: OSError) -> None:
        what = f"must be a folder that can be listed, got {error.strerror}; check its permissions"
        problems.add(str(error.filename), "unreadable folder", what, lost=True)

    files = []
    for place, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [path for name in names if _is_candidate(path := Path(place, name))]
    media = {path.with_suffix(""): path for path in sorted(files) if _is_media(path)}
    transcripts = [
        path
        for path in files
        if not _is_media(path)
        and not {path.with_suffix(""), path.parent / transcript_stem(path)} & media.keys()
    ]
    found = media | best_transcripts(transcripts)
    return dict(sorted((_id(place, folder), path) for place, path in found.items()))


def _is_candidate(path: Path) -> bool:
    # What cannot even be looked at is reported when it is opened.
    if path.name.startswith(".") or (os.access(path, os.F_OK) and not path.is_file()):
        return False
    if _is_media(path):
        return not _PART_OF_DOWNLOAD.search(path.name.lower())
    return is_transcript(path) and not _is_our_own(path)


def _is_media(path: Path) -> bool:
    return path.suffix.lower() in MEDIA_SUFFIXES


def _id(place: Path, folder: Path) -> str:
    # A name in another encoding than the system's could never be written into a result.
    return place.relative_to(folder).as_posix().encode("utf-8", "backslashreplace").decode()


def _is_our_own(path: Path) -> bool:
    """A graph, timeline or vocabulary that was saved into the folder of its videos."""
    if path.suffix.lower() != ".json":
        return False
    try:
        with path.open("rb") as file:
            return b'"format": "stepgraph-' in file.read(64)
    except OSError:  # of which opening it will say more
        return False
