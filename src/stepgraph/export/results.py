"""Read and correct results of ``recognize``: a folder with a file for each video.

Corrections lie beside a result and replace its steps on reading; the result itself is unchanged.
Files may come from elsewhere, so they are untrusted: times and names are checked like any other
input.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from stepgraph.core import Chapter, Result, Sentence, Video, is_unicode
from stepgraph.errors import DataError, StepgraphError
from stepgraph.files.disk import parse_json, read_json, read_text
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_seconds,
    as_text,
    check_header,
    reading_fields,
    write_fields,
)
from stepgraph.files.ids import check_id
from stepgraph.problems import Problems

TIMELINE_KIND = FileKind("stepgraph-timeline", 2, "timeline", "make it with: stepgraph recognize")
RESULT_SUFFIX = ".steps.json"
CORRECTED_KIND = FileKind(
    "stepgraph-corrections", 2, "file of corrections", "correct the video again, or delete it"
)
CORRECTED_SUFFIX = ".corrected.json"
NONE_OF_THEM = "none of them"
_ORIGINS = ("anchor", "path", "label", "corrected")
_MOST_STEPS, _LONGEST_NAME = 100_000, 1000


def read_results(folder: Path | str, problems: Problems | None = None) -> Iterator[Result]:
    """Read every result in a folder and those below it, in the order of their ids.

    Parameters
    ----------
    problems
        Collects results that cannot be read; if not given, the first is an error.
    """
    found = each_result(result_files(Path(folder)), problems)
    return (result for result in found if result is not None)


def each_result(
    files: Iterable[Path], problems: Problems | None = None, *, brief: bool = False
) -> Iterator[Result | None]:
    """Read results one after the other; None stands for one that cannot be read.

    With ``brief``, see :func:`load_result`, it takes half the time.
    """
    for path in files:
        try:
            yield load_result(path, brief=brief)
        except StepgraphError as error:
            if problems is None:
                raise
            problems.add_error(error, "unreadable result", str(path), fatal=True)
            yield None


def result_files(folder: Path) -> list[Path]:
    """List the files of results in a folder and those below it, or raise an error without any."""
    found = sorted(folder.rglob(f"*{RESULT_SUFFIX}"), key=lambda path: path.parts)
    if not found:
        raise DataError(
            f"{folder}: must hold results ({RESULT_SUFFIX}), got none; "
            f"make them with: stepgraph recognize … -o {folder}"
        )
    return found


def load_result(path: Path | str, *, corrected: bool = True, brief: bool = False) -> Result:
    """Load the timeline of one video; one of version 1 has no transcript.

    Parameters
    ----------
    corrected
        Apply the corrections beside the result, if any.
    brief
        Leave out the transcript and the alternatives of each step.
    """
    path = Path(path)
    result = _load(path, brief=brief)
    if not corrected or not os.path.isfile(_corrections_of(path)):
        return result
    steps, _ = read_annotation(path)
    same = {(one.start, one.end, one.keystep): one for one in result}
    task = result.chapters[0].task if result.chapters else None
    chapters = tuple(
        same.get(step) or Chapter(*step, None, "corrected", 1.0, None, task) for step in steps
    )
    return replace(result, chapters=chapters, corrected=True)


def read_annotation(
    path: Path,
) -> tuple[list[tuple[float, float, str]], list[tuple[float, float]]]:
    """Read corrections of a result: all steps, and the intervals annotated before it was made."""
    file = corrections_file(path)
    content = read_json(file)
    check_header(content, file, CORRECTED_KIND)
    with reading_fields(file, CORRECTED_KIND):
        spans = [_span(*as_list(one)) for one in as_list(content.get("annotated", []))]
        return as_steps(content["steps"]), spans


def corrections_file(path: Path) -> Path:
    """Return the path of the corrections of a result, which may not exist."""
    return Path(_corrections_of(path))


def _corrections_of(path: Path) -> str:
    return str(path).removesuffix(RESULT_SUFFIX) + CORRECTED_SUFFIX


def save_corrections(
    path: Path,
    steps: Sequence[tuple[float, float, str]] | None,
    spans: Sequence[tuple[float, float]] | None = None,
) -> None:
    """Store a person's corrections of a video beside its result; None deletes them.

    Parameters
    ----------
    spans
        Intervals of the current result that were annotated before it was made; unchanged if
        not given.
    """
    file = corrections_file(path)
    if steps is None:
        file.unlink(missing_ok=True)
        return
    if spans is None:
        spans = read_annotation(path)[1] if file.is_file() else ()
    kind = CORRECTED_KIND
    fields = {"format": kind.format, "version": kind.version, "steps": sorted(steps)}
    write_fields(fields | {"annotated": sorted(spans)}, file)


def as_steps(content: Any) -> list[tuple[float, float, str]]:
    """Check the steps of a video: start, end and name of each."""
    found = [(*_span(start, end), as_text(name).strip()) for start, end, name in as_list(content)]
    for start, end, name in found:
        if not (start < end and 0 < len(name) <= _LONGEST_NAME and is_unicode(name)):
            raise TypeError(f"a step with a length and a name was expected, got {name!r:.60}")
    if len(found) > _MOST_STEPS:
        raise TypeError(f"at most {_MOST_STEPS:,} steps were expected, got {len(found):,}")
    return found


def _load(path: Path, *, brief: bool) -> Result:
    content = _content(path)
    check_header(content, path, TIMELINE_KIND)
    with reading_fields(path, TIMELINE_KIND):
        media = content.get("media")
        sentences = [] if brief else as_list(content.get("transcript", []))
        video = Video(
            check_id(as_text(content["video"])),
            as_seconds(content["duration"]),
            tuple(_sentence(*as_list(one)) for one in sentences),
            None if media is None else path.parent / as_text(media),
        )
        tasks = content["tasks"]
        probable = {as_text(name): _share(p) for name, p in (tasks or {}).items()}
        probable.pop(NONE_OF_THEM, None)
        chapters = tuple([_chapter(one, brief=brief) for one in as_list(content["chapters"])])
        fingerprint = as_text(content.get("fingerprint", ""))
        return Result(video, chapters, None if tasks is None else probable, fingerprint)


def _content(path: Path) -> Any:
    text = read_text(path)
    try:
        return orjson.loads(text)  # in half the time, as thousands are read at once
    except orjson.JSONDecodeError:
        return parse_json(text, str(path))  # which reports the error and its position


def seen_from(path: Path, folder: Path | str) -> Path:
    """Make a path relative to a folder where both can be moved together; else absolute.

    >>> seen_from(Path("videos/tea.mp4"), "chapters").as_posix()
    '../videos/tea.mp4'
    """
    # Links are not followed: a browser resolves addresses by their letters, too.
    file, target = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    try:
        common = Path(os.path.commonpath([file, target]))
    except ValueError:  # two drives
        return file
    # The root of the file system is no common folder of both.
    return file if common == Path(common.anchor) else Path(os.path.relpath(file, target))


def _sentence(start: Any, end: Any, text: Any) -> Sentence:
    return Sentence(*_span(start, end), as_text(text))


def _chapter(content: dict[str, Any], *, brief: bool) -> Chapter:
    get = content.get
    score, words, task, confidence = get("score"), get("words"), get("task"), get("confidence")
    origin, others = content["origin"], [] if brief else as_list(get("alternatives", []))
    if origin not in _ORIGINS:
        raise TypeError(f"origin must be one of {', '.join(_ORIGINS)}, got {origin!r:.40}")
    return Chapter(
        *_span(content["start"], content["end"]),
        as_text(content["keystep"]),
        None if score is None else float(score),
        origin,
        None if confidence is None else _share(confidence),
        None if words is None else as_text(words),
        None if task is None else as_text(task),
        tuple([(as_text(name), _share(p)) for name, p in others]),
    )


def _span(start: Any, end: Any) -> tuple[float, float]:
    first, last = as_seconds(start), as_seconds(end)
    if last < first:
        raise TypeError(f"an end after its start was expected, got {first} and {last}")
    return first, last


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise TypeError(f"a probability was expected, got {value!r:.40}")
    return float(value)
