"""Make vocabularies: of a list, of articles, or with noise mixed in; save them and load them."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.files.disk import MIB, read_json, read_text, reading
from stepgraph.files.headers import (
    FileKind,
    as_list,
    as_text,
    as_whole,
    check_header,
    header,
    reading_fields,
    write_fields,
)
from stepgraph.problems import Problems
from stepgraph.vocabulary.articles import Article, join_methods, match_articles
from stepgraph.vocabulary.notes import COMMENT, notes_fields, notes_of, with_notes

VOCABULARY_KIND = FileKind(
    "stepgraph-vocabulary", 2, "vocabulary", "make one with: stepgraph vocabulary"
)


def load_vocabulary(path: str | Path) -> Vocabulary:
    """Load a vocabulary that :func:`save_vocabulary` wrote."""
    path = Path(path)
    content = read_json(path, limit=4096 * MIB)
    check_header(content, path, VOCABULARY_KIND)
    with reading_fields(path, VOCABULARY_KIND):
        vocabulary = vocabulary_of(content)
    remedy = "a vocabulary to edit is a text file, one keystep a line"
    require_as_saved(vocabulary, content, path, remedy)
    return vocabulary


def require_as_saved(
    vocabulary: Vocabulary, content: Mapping[str, Any], path: Path, remedy: str
) -> None:
    """Refuse a file whose vocabulary is not the one it was saved with."""
    if vocabulary.fingerprint != content.get("fingerprint"):
        raise DataError(
            f"{path}: must hold the keysteps it was saved with (fingerprint "
            f"{quoted(content.get('fingerprint'))}), got others ({vocabulary.fingerprint!r}); "
            f"was it edited? {remedy}"
        )


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in the fields of a saved file."""
    return Vocabulary(
        tuple(map(as_text, as_list(content["keysteps"]))),
        {
            as_text(name): tuple(map(as_whole, as_list(ks)))
            for name, ks in content["tasks"].items()
        },
        notes_of(content.get("notes"), content["keysteps"]),
    )


def save_vocabulary(vocabulary: Vocabulary, path: str | Path) -> None:
    """Save a vocabulary as JSON, whole or not at all."""
    first = header(VOCABULARY_KIND.format, VOCABULARY_KIND.version, vocabulary)
    write_fields(first | vocabulary_fields(vocabulary) | notes_fields(vocabulary), path)


def vocabulary_fields(vocabulary: Vocabulary) -> dict[str, Any]:
    """Fields of a saved file that hold the vocabulary."""
    return {
        "keysteps": list(vocabulary.keysteps),
        "tasks": {task: list(members) for task, members in vocabulary.tasks.items()},
    }


LONG_LIST = 20
"""More keysteps than this without a heading are likely of several tasks; published have 15."""

_MARK = re.compile(r"^(?:[-*+•]|\d+[.)])(?:\s+|$)")
_BOX = re.compile(r"^(?:\[[ xX]?\]|[☐☑☒])\s*")
_COLONS = ":： "
_JSON = re.compile(r'\s*\{\s*("|\}|$)')

# The line of a heading, and the keysteps below it as they are compared.
_Task: TypeAlias = tuple[int, dict[str, None]]


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary from a text file, or from ``vocabulary.json`` as it was saved.

    In text, each line is a keystep and ``# headings`` name tasks.  Blank lines, lines that begin
    with ``//``, list marks (``-``, ``*``, ``1.``) and boxes (``[ ]``, ``[x]``) are ignored, but
    a ``//`` indented below a keystep begins a note on it.  A keystep may stand under
    several headings, and is then one keystep of several tasks; one that a task lists twice is one
    keystep of it.

    In a list without ``#``, a line that ends in a colon (``Pancakes:``) is a heading; between
    ``# headings`` it only divides a task, and names nothing.  An item with a list mark is such a
    line only where the next one is indented below it.
    """
    path = Path(path)
    if _is_json(path):
        return load_vocabulary(path)
    vocabulary = _parse(read_text(path, limit=16 * MIB).split("\n"), str(path))
    if len(vocabulary) > LONG_LIST and not vocabulary.tasks:
        warnings.warn(
            f"{path}: {len(vocabulary)} keysteps without a heading are taken as one task; if they "
            f"are of several, put a line like '# Name of the task' above those of each",
            stacklevel=2,
        )
    return vocabulary


def _is_json(path: Path) -> bool:
    with reading(path) as file:
        head = file.read(64)
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return bool(_JSON.match(head.decode("utf-16" if wide else "utf-8-sig", "replace")))


def make_vocabulary(keysteps: Sequence[str]) -> Vocabulary:
    """Make a vocabulary from lines as they would stand in a file.

    >>> make_vocabulary(["# Make tea", "boil water", "add leaves"]).tasks
    {'Make tea': (0, 1)}
    """
    return _parse(keysteps, "vocabulary")


class _Line(NamedTuple):
    """A line that is not blank, without its list mark and box."""

    number: int
    indent: int
    marked: bool
    text: str

    @property
    def is_heading(self) -> bool:
        return self.text.startswith("#") and not self.marked

    def is_divider(self, following: _Line | None) -> bool:
        below = following is not None and following.indent > self.indent
        return self.text[-1] in _COLONS and (below or not self.marked)


def _lines(lines: Iterable[str]) -> Iterator[_Line]:
    for number, line in enumerate(lines, start=1):
        text = " ".join(line.split())
        bare = _BOX.sub("", _MARK.sub("", text, count=1), count=1)
        if bare and not text.startswith(COMMENT):
            yield _Line(number, len(line) - len(line.lstrip()), bare != text, bare)


def _parse(lines: Sequence[str], origin: str) -> Vocabulary:
    written = list(_lines(lines))
    has_headings = any(line.is_heading for line in written)
    names: dict[str, str] = {}  # as compared: as first written
    named: dict[int, str] = {}
    tasks: dict[str, _Task] = {}
    current: dict[str, None] = {}
    for line, following in zip_longest(written, written[1:]):
        divides = line.is_divider(following)
        if line.is_heading or (divides and not has_headings):
            current = _open_task(line, tasks, origin)
        elif not divides and (text := line.text.rstrip(_COLONS)):
            named[line.number] = names.setdefault(text.casefold(), text)
            current[text.casefold()] = None
    if len(names) < 2:
        found = "none" if not names else f"only {quoted(next(iter(names.values())))}"
        raise DataError(
            f"{origin}: must list at least 2 keysteps, one a line, got {found}; "
            f"a graph of transitions needs something to go from and to"
        )
    for name, (number, keysteps) in tasks.items():
        if not keysteps:
            raise DataError(
                f"{origin}:{number}: task {quoted(name)} must have at least one keystep, got none"
            )
    members = {name: [names[key] for key in keys] for name, (_, keys) in tasks.items()}
    headings = {number: name for name, (number, _) in tasks.items()}
    vocabulary = vocabulary_of_tasks(names.values(), members, origin)
    return with_notes(vocabulary, lines, named, headings)


def _open_task(line: _Line, tasks: dict[str, _Task], origin: str) -> dict[str, None]:
    name = line.text.lstrip("#").strip().rstrip(_COLONS)
    if not name:
        got = quoted(line.text)
        raise DataError(f"{origin}:{line.number}: a heading must name a task, got {got}")
    if name in tasks:
        raise DataError(
            f"{origin}:{line.number}: tasks must differ, got {quoted(name)} again; put its "
            f"keysteps under one heading"
        )
    tasks[name] = (line.number, {})
    return tasks[name][1]


def vocabulary_of_tasks(
    names: Iterable[str], tasks: Mapping[str, Iterable[str]], where: str | Path
) -> Vocabulary:
    """Make a vocabulary of the unique names in order, with the keysteps of each task by name."""
    keysteps = tuple(dict.fromkeys(names))
    position = {name: index for index, name in enumerate(keysteps)}
    members = {
        task: tuple(dict.fromkeys(position[name] for name in steps))
        for task, steps in tasks.items()
    }
    try:
        return Vocabulary(keysteps, members)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def add_noise(
    vocabulary: Vocabulary,
    others: Vocabulary | Sequence[str],
    *,
    factor: float,
    seed: int = 0,
) -> Vocabulary:
    """Add keysteps that are unrelated to the tasks, ``factor`` times as many.

    The supplement's experiment on noisy labels: a vocabulary of ``1.5 x N`` has a factor of 0.5.
    The keysteps keep their positions and tasks; the noise follows them and belongs to no task.
    A smaller factor of the same seed adds the first of those that a larger one adds.

    >>> from stepgraph import make_vocabulary
    >>> tea = make_vocabulary(["# Make tea", "boil water", "add leaves"])
    >>> add_noise(tea, ["mow the lawn", "Boil water", "saw the board"], factor=0.5).keysteps
    ('boil water', 'add leaves', 'mow the lawn')
    """
    if not (math.isfinite(factor) and factor >= 0):
        raise ConfigError(f"factor of the noise must be at least 0, got {factor!r}")
    names = others.keysteps if isinstance(others, Vocabulary) else others
    present = set(map(compared, vocabulary.keysteps))
    candidates = {compared(name): " ".join(name.split()) for name in reversed(names)}

    def lot(key: str) -> bytes:  # chance by hash is the same on every machine, in every order
        return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()

    drawn = sorted(candidates.keys() - present - {""}, key=lot)
    wanted = round(factor * len(vocabulary))
    if wanted > len(drawn):
        raise ConfigError(
            f"factor of the noise must be at most {len(drawn) / len(vocabulary):.2f} with "
            f"{len(drawn)} other keysteps for {len(vocabulary)}, got {factor}; lower it, or draw "
            f"from a larger vocabulary"
        )
    noise = tuple(candidates[key] for key in drawn[:wanted])
    return Vocabulary((*vocabulary.keysteps, *noise), vocabulary.tasks, vocabulary.notes)


def compared(name: str) -> str:
    """A name as it is compared with others: case and spaces do not count."""
    return " ".join(name.split()).casefold()


def vocabulary_from_articles(
    tasks: Iterable[tuple[str, int]] | None,
    articles: Iterable[Article],
    *,
    min_videos: int = 100,
    max_steps: int | None = None,
    problems: Problems | None = None,
) -> Vocabulary:
    """Make a vocabulary of the step headlines of the articles that teach the tasks.

    The paper's rule for HowTo100M: of the tasks with at least 100 videos, all step headlines of
    the article with the task's title.  A headline that several tasks share is one keystep of
    each of them.

    Parameters
    ----------
    tasks
        Name and number of videos of each task; None takes every article as a task.
    min_videos
        Tasks with fewer videos are left out.
    max_steps
        Maximum number of steps of each article, from its first; None takes all.
    problems
        Receives the tasks that have no article.
    """
    if max_steps is not None and max_steps < 1:
        raise ConfigError(f"max_steps must be at least 1, or None for all, got {max_steps}")
    problems = problems if problems is not None else Problems()
    if tasks is None:
        found = {article.title: article for article in join_methods(articles, problems)}
    else:
        found = _articles_of(_frequent(tasks, min_videos), articles, min_videos, problems)
    steps = {task: article.steps[:max_steps] for task, article in found.items()}
    keysteps: dict[str, str] = {}  # as compared: as first written
    for step in chain.from_iterable(steps.values()):
        keysteps.setdefault(compared(step), step)
    if len(keysteps) < 2:
        raise DataError(
            f"articles must have at least 2 different steps in all, got {len(keysteps)}; give "
            f"more articles, lower min_videos ({min_videos}) or raise max_steps ({max_steps})"
        )
    members = {task: [keysteps[compared(step)] for step in own] for task, own in steps.items()}
    return vocabulary_of_tasks(keysteps.values(), members, "articles")


def _frequent(tasks: Iterable[tuple[str, int]], min_videos: int) -> list[str]:
    videos: Counter[str] = Counter()
    for name, found in tasks:
        videos[name] += found
    frequent = [name for name, found in videos.items() if found >= min_videos]
    if not frequent:
        most = max(videos.values(), default=0)
        raise DataError(
            f"min_videos must leave some of the {len(videos)} tasks, got {min_videos}, and the "
            f"task with most videos has {most}; lower it"
        )
    return frequent


def _articles_of(
    names: Sequence[str], articles: Iterable[Article], min_videos: int, problems: Problems
) -> dict[str, Article]:
    counter = count()
    found = match_articles(names, (article for article, _ in zip(articles, counter, strict=False)))
    read = next(counter)  # as many as were taken
    if not found:
        raise DataError(
            f"tasks must have articles of the same title, got none for the {len(names)} with at "
            f"least {min_videos} videos, such as {names[0]!r}, among {read} articles; give other "
            f"articles, or lower min_videos"
        )
    for name in names:
        if name not in found:
            what = f"a task must have an article of the same title, got none among {read}"
            problems.add(f"task {name!r}", "task without article", what)
    return found
