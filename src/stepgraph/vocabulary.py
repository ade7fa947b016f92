"""Build a vocabulary: from a list that a person wrote, from articles, or with noise mixed in.

Also what every saved file that holds a vocabulary is checked for when it is read back.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepgraph.articles import Article, join_methods, match_articles
from stepgraph.core import Vocabulary
from stepgraph.disk import MIB, read_json, read_text, require_file
from stepgraph.errors import ConfigError, DataError, StepgraphError
from stepgraph.problems import Problems

_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])(?:\s+|$)")
_JSON = re.compile(r'\s*\{\s*("|\}|$)')


@dataclass(frozen=True)
class FileKind:
    """A kind of saved file: how it is marked, called, and made again."""

    format: str
    version: int
    noun: str
    remedy: str


VOCABULARY_KIND = FileKind(
    "stepgraph-vocabulary", 1, "vocabulary", "make one with: stepgraph vocabulary"
)


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary from a text file, or from ``vocabulary.json`` as it was saved.

    In text, each line is a keystep and ``# headings`` name tasks.  Blank lines and list marks
    (``-``, ``*``, ``1.``) are ignored.  A keystep may stand under several headings; it is then
    one keystep of several tasks.
    """
    path = Path(path)
    if _is_json(path):
        return read_vocabulary_json(path)
    return _parse(read_text(path, limit=16 * MIB).splitlines(), str(path))


def read_vocabulary_json(path: Path) -> Vocabulary:
    """Read a vocabulary that was saved as JSON."""
    content = read_json(path, limit=4096 * MIB)
    check_header(content, path, VOCABULARY_KIND)
    with reading_fields(path, VOCABULARY_KIND):
        vocabulary = vocabulary_of(content)
    if vocabulary.fingerprint != content.get("fingerprint"):
        raise DataError(
            f"{path}: must hold the keysteps it was saved with (fingerprint "
            f"{content.get('fingerprint')!r}), got others ({vocabulary.fingerprint!r}); was it "
            f"edited? a vocabulary to edit is a text file, one keystep a line"
        )
    return vocabulary


def _is_json(path: Path) -> bool:
    require_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False  # reading it as text says why
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return bool(_JSON.match(head.decode("utf-16" if wide else "utf-8-sig", "replace")))


def check_header(content: Any, path: Path, kind: FileKind) -> None:
    """Refuse the content of another kind of file, and one that a newer program saved."""
    found = content.get("format") if isinstance(content, dict) else type(content).__name__
    if found != kind.format:
        raise DataError(
            f"{path}: must be a {kind.noun} (format {kind.format!r}), got {found!r}; {kind.remedy}"
        )
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise DataError(f"{path}: version must be a number of at least 1, got {version!r}")
    if version > kind.version:
        raise DataError(
            f"{path}: format version must be at most {kind.version}, got {version}; it was saved "
            f"by a newer stepgraph ({content.get('stepgraph')}), so upgrade this one"
        )


@contextmanager
def reading_fields(path: Path, kind: FileKind) -> Iterator[None]:
    """Turn whatever goes wrong with the fields of a saved file into one clear error."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = (
            str(error) if isinstance(error, StepgraphError) else f"{type(error).__name__}: {error}"
        )
        raise DataError(
            f"{path}: must be a {kind.noun} as stepgraph saves it, got {what}"
        ) from error


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in the fields of a saved file."""
    return Vocabulary(
        tuple(map(as_text, as_list(content["keysteps"]))),
        {
            as_text(name): tuple(map(as_whole, as_list(ks)))
            for name, ks in content["tasks"].items()
        },
    )


def as_list(value: Any) -> list[Any]:
    """A value that must be a list."""
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, got {value!r}"[:200])
    return value


def as_whole(value: Any) -> int:
    """A value that must be a whole number."""
    if type(value) is not int:
        raise TypeError(f"whole numbers were expected, got {value!r}"[:200])
    return value


def as_text(value: Any) -> str:
    """A value that must be text."""
    if not isinstance(value, str):
        raise TypeError(f"names must be text, got {value!r}"[:200])
    return value


def make_vocabulary(keysteps: Sequence[str]) -> Vocabulary:
    """Make a vocabulary from lines as they would stand in a file.

    >>> make_vocabulary(["# Make tea", "boil water", "add leaves"]).tasks
    {'Make tea': (0, 1)}
    """
    return _parse(keysteps, "vocabulary")


def _parse(lines: Iterable[str], origin: str) -> Vocabulary:
    names: dict[str, str] = {}  # as compared: as first written
    tasks: dict[str, list[str]] = {}
    loose: dict[str, int] = {}
    current: list[str] | None = None
    for number, line in enumerate(lines, start=1):
        text = " ".join(line.split())
        if not text:
            continue
        if text.startswith("#"):
            current = _open_task(text, tasks, f"{origin}:{number}")
            continue
        text = _BULLET.sub("", text)
        if not text:
            continue
        key = text.casefold()
        repeated = key in loose if current is None else key in current
        if repeated:
            raise DataError(
                f"{origin}:{number}: keysteps of a task must differ, got {text!r} again; "
                f"remove one of the two lines"
            )
        names.setdefault(key, text)
        if current is None:
            loose[key] = number
        else:
            current.append(key)
    _check(names, tasks, origin)
    position = {key: index for index, key in enumerate(names)}
    members = {task: tuple(position[key] for key in keys) for task, keys in tasks.items()}
    return Vocabulary(tuple(names.values()), members)


def _open_task(text: str, tasks: dict[str, list[str]], where: str) -> list[str]:
    task = text.lstrip("#").strip()
    if not task:
        raise DataError(f"{where}: a heading must name a task, got {text!r}")
    if task in tasks:
        raise DataError(
            f"{where}: tasks must differ, got {task!r} again; put its keysteps under one heading"
        )
    tasks[task] = []
    return tasks[task]


def _check(names: dict[str, str], tasks: dict[str, list[str]], origin: str) -> None:
    if len(names) < 2:
        found = "none" if not names else f"only {next(iter(names.values()))!r}"
        raise DataError(
            f"{origin}: must list at least 2 keysteps, one a line, got {found}; "
            f"a graph of transitions needs something to go from and to"
        )
    for task, keys in tasks.items():
        if not keys:
            raise DataError(f"{origin}: task {task!r} must have at least one keystep, got none")


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
    articles
        Taken one at a time; only those of the tasks are kept.
    min_videos
        Tasks with fewer videos are left out.  Without tasks it has no meaning.
    max_steps
        So many steps of each article, from its first, are taken; None takes all.
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
    keysteps: dict[str, str] = {}  # as compared: as first written
    for article in found.values():
        for step in article.steps[:max_steps]:
            keysteps.setdefault(_compared(step), step)
    if len(keysteps) < 2:
        raise DataError(
            f"articles must have at least 2 different steps in all, got {len(keysteps)}; give "
            f"more articles, lower min_videos ({min_videos}) or raise max_steps ({max_steps})"
        )
    position = {key: index for index, key in enumerate(keysteps)}
    members = {
        task: tuple(dict.fromkeys(position[_compared(s)] for s in article.steps[:max_steps]))
        for task, article in found.items()
    }
    return Vocabulary(tuple(keysteps.values()), members)


def _frequent(tasks: Iterable[tuple[str, int]], min_videos: int) -> list[str]:
    videos: Counter[str] = Counter()
    for name, count in tasks:
        videos[name] += count
    kept = [name for name, count in videos.items() if count >= min_videos]
    if not kept:
        most = max(videos.values(), default=0)
        raise DataError(
            f"min_videos must leave some of the {len(videos)} tasks, got {min_videos}, and the "
            f"task with most videos has {most}; lower it"
        )
    return kept


def _articles_of(
    names: Sequence[str], articles: Iterable[Article], min_videos: int, problems: Problems
) -> dict[str, Article]:
    read = 0

    def counted() -> Iterator[Article]:
        nonlocal read
        for article in articles:
            read += 1
            yield article

    found = match_articles(names, counted())
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


def add_noise(
    vocabulary: Vocabulary,
    others: Vocabulary | Sequence[str],
    *,
    factor: float,
    seed: int = 0,
) -> Vocabulary:
    """Mix in keysteps that have nothing to do with the tasks, ``factor`` times as many.

    The supplement's experiment on noisy labels: a vocabulary of ``1.5 x N`` has a factor of 0.5.
    The keysteps keep their positions and tasks; the noise follows them and belongs to no task.
    A smaller factor of the same seed adds the first of those that a larger one adds.

    >>> tea = make_vocabulary(["# Make tea", "boil water", "add leaves"])
    >>> add_noise(tea, ["mow the lawn", "Boil water", "saw the board"], factor=0.5).keysteps
    ('boil water', 'add leaves', 'mow the lawn')
    """
    if not (math.isfinite(factor) and factor >= 0):
        raise ConfigError(f"factor of the noise must be at least 0, got {factor!r}")
    names = others.keysteps if isinstance(others, Vocabulary) else others
    present = set(map(_compared, vocabulary.keysteps))
    candidates = {_compared(name): " ".join(name.split()) for name in reversed(names)}
    drawn = sorted(candidates.keys() - present - {""}, key=lambda key: _lot(seed, key))
    wanted = round(factor * len(vocabulary))
    if wanted > len(drawn):
        raise ConfigError(
            f"factor of the noise must be at most {len(drawn) / len(vocabulary):.2f} with "
            f"{len(drawn)} other keysteps for {len(vocabulary)}, got {factor}; lower it, or draw "
            f"from a larger vocabulary"
        )
    noise = tuple(candidates[key] for key in drawn[:wanted])
    return Vocabulary((*vocabulary.keysteps, *noise), vocabulary.tasks)


def _lot(seed: int, key: str) -> bytes:
    """What a keystep draws: chance by hash is the same on every machine and in every order."""
    return hashlib.sha256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest()


def _compared(name: str) -> str:
    return " ".join(name.split()).casefold()
