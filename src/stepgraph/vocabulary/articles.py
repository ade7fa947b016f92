"""Read how-to articles, and find the article of a task.

An article is a title and the headlines of its steps; its prose is dropped.  Files of hundreds of
thousands of articles are read as streams, and broken entries are reported and skipped.
The published WikiHow dump stores each method of an article by itself and glues the number of
the method to the title (``How to Make Pesto2``); matching puts the methods together again.
"""

from __future__ import annotations

import csv
import json
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from stepgraph.errors import DataError, quoted, reason
from stepgraph.files.disk import MIB, reading
from stepgraph.ingest.cleaning import unescaped
from stepgraph.problems import Problems

# Bytes of a line, cell or file of one article; more is another kind of file, or an open quote.
_LONGEST = 16 * MIB
_TOO_LONG = f"an article must be at most {_LONGEST // MIB} MiB, got more"

# Fields that may hold the steps of an article or a method of it; the first non-empty one counts.
_STEP_FIELDS = ("steps", "headlines", "headline", "methods", "parts", "sections")

_LINE_END = re.compile(r"[\r\n]+")
_NO_TEXT = re.compile("[\ud800-\udfff]")  # what stands for bytes that are no UTF-8
_INITIALS = re.compile(r"\b\w\.\w\.$")
_METHOD = re.compile(r"(?<=[^\W\d_]|[)\]\"'”’?!])(?:[1-9]|1\d)$")
_METHOD_AFTER_DIGIT = re.compile(r"(?<=\d)[1-9]$")
_APOSTROPHES = dict.fromkeys(map(ord, "'’‘‛ʼʹ′`´＇"))
_ACCENT = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"[^\W_]+[+#]*")


@dataclass(frozen=True)
class Article:
    """Title of an article, and the headlines of its steps in order."""

    title: str
    steps: tuple[str, ...]


# Methods by the title they share; an article that is not one of several is number 0.
_Groups: TypeAlias = dict[tuple[str, bool], dict[int, Article]]


def read_articles(path: str | Path, *, problems: Problems) -> Iterator[Article]:
    """Read articles one at a time, from any of the layouts in which they are passed on.

    ==================  =====================================================================
    JSON lines          ``title`` and ``steps``, one article a line
    folder              the same as one ``.json`` file an article
    ``wikihowAll.csv``  ``headline, title, text``: a method a row, its headlines in one cell
    ``wikihowSep.csv``  ``overview, headline, text, sectionLabel, title``: a step a row
    ==================  =====================================================================

    In JSON, ``headlines`` or ``headline`` may stand for ``steps``, a step may be an object with
    a ``headline``, and ``methods``, ``parts`` or ``sections`` may be lists of lists of steps or
    of objects with ``steps``.  White space is evened out, the full stop of a headline is taken
    off, and steps without a letter or digit are dropped.  ``problems`` receive every line, row or
    file that is broken and was skipped.
    """
    path = Path(path)
    # os.path answers False for a name that is too long, Path would raise.
    found = (_read_folder if os.path.isdir(path) else _read_file)(path, problems)
    return _at_least_one(found, path, problems)


def _at_least_one(
    articles: Iterator[Article | None], path: Path, problems: Problems
) -> Iterator[Article]:
    """Yield the articles that are not broken; raise an error if there are none."""
    before = len(problems.found)
    empty = True
    for article in filter(None, articles):
        empty = False
        yield article
    if empty:
        why = [f"the first problem is {problem}" for problem in problems.found[before:][:1]]
        raise DataError(f"{path}: must hold articles, got none; {(why or ['is it empty?'])[0]}")


def _read_file(path: Path, problems: Problems) -> Iterator[Article | None]:
    with reading(path, "file or folder of articles") as file:
        head = file.read(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        hint = f"convert it, for example: iconv -f utf-16 -t utf-8 {path}"
        raise DataError(f"{path}: must be UTF-8 text, got UTF-16; {hint}")
    text = head.decode("utf-8-sig", "replace").replace("\0", "").lstrip()
    if text.startswith("{"):
        return _read_lines(path, problems)
    header = next(csv.reader(_LINE_END.split(text)[:1]), [])
    columns = {name.strip().lower() for name in header}
    if {"title", "headline"} <= columns:
        one_step_a_row = {"overview", "sectionlabel"} & columns
        return (_read_sep if one_step_a_row else _read_all)(path, problems)
    raise DataError(
        f"{path}: must be articles as JSON lines of title and steps, a folder of such JSON files, "
        f"wikihowAll.csv or wikihowSep.csv, got "
        + (f"a file that begins {text[:40]!r}" if text else "an empty file")
    )


def _read_lines(path: Path, problems: Problems) -> Iterator[Article | None]:
    number = 0
    with path.open("rb") as file:
        while line := file.readline(_LONGEST + 1):
            number += 1
            if number == 1 and len(line) > _LONGEST:  # stop before reading gigabytes
                raise DataError(f"{path}:1: {_TOO_LONG}; is it the right file?")
            if line.strip():
                yield _parse(line, f"{path}:{number}", problems)
            while len(line) > _LONGEST and not line.endswith(b"\n"):
                line = file.readline(_LONGEST + 1)


def _read_folder(folder: Path, problems: Problems) -> Iterator[Article | None]:
    files = sorted(path for path in folder.rglob("*.json") if not path.name.startswith("."))
    if not files:
        raise DataError(
            f"{folder}: must contain one .json file an article, got none; articles in one file "
            f"are opened by the path of that file"
        )
    return (_read_one(path, problems) for path in files)


def _read_one(path: Path, problems: Problems) -> Article | None:
    try:
        with reading(path) as file:
            return _parse(file.read(_LONGEST + 1), str(path), problems)
    except DataError as error:
        problems.add_error(error, "unreadable file", str(path))
        return None


def _parse(data: bytes, where: str, problems: Problems) -> Article | None:
    """The article in a piece of JSON, or None and a problem."""
    if len(data) > _LONGEST:
        problems.add(where, "article too long", _TOO_LONG)
        return None
    try:
        # Control characters inside a text do no harm here: white space is evened out anyway.
        content = json.loads(data.decode("utf-8-sig"), strict=False)
        if not isinstance(content, dict):
            raise TypeError(f"an object with title and steps was expected, got {quoted(content)}")
        title, steps = content.get("title"), _steps(content)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at position {error.start}"
        problems.add(where, "not UTF-8", f"must be UTF-8 text, got {byte}; convert the file")
    except RecursionError:
        problems.add(where, "broken JSON", "must be JSON nested a few levels deep, got too many")
    except json.JSONDecodeError as error:
        what = f"must be JSON of an article, got {error.msg!r} at character {error.pos + 1}"
        problems.add(where, "broken JSON", what)
    except (ValueError, TypeError) as error:
        problems.add(where, "broken JSON", f"must be JSON of an article, got {str(error)[:120]}")
    else:
        return _article(title if isinstance(title, str) else "", steps, where, problems)
    return None


def _steps(content: dict[str, Any]) -> list[str]:
    value: Any = next((content[name] for name in _STEP_FIELDS if content.get(name)), [])
    # One text is a summary as the dump has it, a headline a line.
    return _LINE_END.split(value) if isinstance(value, str) else _flat(value)


def _flat(value: Any) -> list[str]:
    """Texts of nested lists and objects in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _flat(item)]
    if isinstance(value, dict):
        return _steps(value)
    raise TypeError(f"steps must be texts, got {quoted(value)}")


def _read_all(path: Path, problems: Problems) -> Iterator[Article | None]:
    for where, title, headline in _rows(path, problems):
        yield _article(title, _LINE_END.split(headline), where, problems)


def _read_sep(path: Path, problems: Problems) -> Iterator[Article | None]:
    for title, rows in groupby(_rows(path, problems), key=lambda row: _even(row[1])):
        wheres, _, steps = zip(*rows, strict=True)
        yield _article(title, steps, wheres[0], problems)


def _rows(path: Path, problems: Problems) -> Iterator[tuple[str, str, str]]:
    """Yield the place, title and headline of every whole row of a CSV file."""
    # The limit is one for all of Python; raising it harms nobody, lowering it might.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
    exhausted: list[bool] = []

    def lines() -> Iterator[str]:
        # A byte that is no UTF-8 matters only where it is used: most of the file is prose.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            for line in file:
                yield line.replace("\0", "") if "\0" in line else line
        exhausted.append(True)

    reader = csv.reader(lines())
    try:
        header = next(row for row in reader if any(map(str.strip, row)))
        columns = [name.strip().lower() for name in header]
        title, headline = columns.index("title"), columns.index("headline")
    except (csv.Error, StopIteration, ValueError) as error:
        what = f"must be CSV with columns title and headline, got others ({reason(error)})"
        raise DataError(f"{path}:1: {what}; is a quote not closed?") from error
    while True:
        where = f"{path}:{reader.line_num + 1}"
        try:
            row = next(reader, None)
        except csv.Error as error:
            problems.add(where, "broken row", f"must be CSV, got: {error}; is a quote not closed?")
            continue
        if row is None:
            return
        if exhausted:  # the end came before the row's own end
            what = "a row must be complete, got the end of the file; fetch the file again"
            problems.add(where, "row cut off", what)
        elif row and len(row) != len(columns):
            what = f"a row must have {len(columns)} columns, got {len(row)}"
            problems.add(where, "wrong number of columns", what)
        elif row:
            yield where, row[title], row[headline]


def _article(title: str, steps: Iterable[str], where: str, problems: Problems) -> Article | None:
    title = _plain(title)
    cleaned = tuple(filter(None, map(_clean, steps)))
    if not title:
        problems.add(where, "article without title", "an article must have a title, got none")
    elif not cleaned:
        what = f"an article must have steps, got none in {quoted(title)}"
        problems.add(where, "article without steps", what)
    elif _NO_TEXT.search("".join((title, *cleaned))):
        what = (
            f"an article must be UTF-8 text, got other bytes in {quoted(title)}; convert the file"
        )
        problems.add(where, "not UTF-8", what)
    else:
        return Article(title, cleaned)
    return None


def _clean(step: str) -> str:
    """Strip the marks at the ends of a headline; empty without a letter or digit."""
    text = _even(step).strip(" ,;")
    if text.endswith(".") and not _INITIALS.search(text):
        text = text.rstrip(" .,;")
    return text if any(map(str.isalnum, text)) else ""


def _even(text: str) -> str:
    return " ".join(text.replace("\0", "").replace("\ufeff", "").split())


def match_articles(names: Iterable[str], articles: Iterable[Article]) -> dict[str, Article]:
    """Find the article of each task; tasks without one are not in the result.

    Case, *How to*, punctuation, apostrophes, accents, *a*, *an* and *the*, ``&`` for *and*,
    escapes of web addresses (``%27``) and the dump's method numbers make no difference in titles.
    Of several articles that fit, the one with exactly the task's name is taken, then one that
    differs in case and *How to* only, then the first.  The methods of one are joined in order.
    """
    keys = {name: _key(_plain(name)) for name in names}
    wanted = set(keys.values()) - {""}
    fitting: defaultdict[str, _Groups] = defaultdict(dict)
    for article in articles:
        whole = _plain(article.title)
        # An article of its own, or a method of another.
        methods = (_split(whole, mark) for mark in (_METHOD, _METHOD_AFTER_DIGIT))
        for base, number in sorted({(whole, 0), *methods}):
            if (key := _key(base)) in wanted:
                fitting[key].setdefault((base, number > 0), {}).setdefault(number, article)
    best = {name: _best(name, fitting[key]) for name, key in keys.items() if key in fitting}
    return {name: article for name, article in best.items() if article is not None}


def join_methods(articles: Iterable[Article], problems: Problems) -> list[Article]:
    """Put the methods of one article together, and leave out articles that come again.

    A number at the end of a title is taken for that of a method only where there are a first
    and a second: a title may end in one of its own (*Use an MP3*).
    """
    first: dict[str, Article] = {}
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for article in articles:
        if first.setdefault(article.title, article) is not article:
            what = f"articles must differ in their titles, got {quoted(article.title)} again"
            problems.add("articles", "article repeated", what)
        base, number = _split(article.title, _METHOD)
        numbers[base].add(number)
    methods: defaultdict[str, dict[int, Article]] = defaultdict(dict)
    for title, article in first.items():
        base, number = _split(title, _METHOD)
        joined = number and {1, 2} <= numbers[base]
        methods[base if joined else title][number if joined else 0] = article
    return [_joined(title, parts) for title, parts in methods.items()]


def _joined(title: str, parts: dict[int, Article]) -> Article:
    return Article(title, tuple(step for number in sorted(parts) for step in parts[number].steps))


def _best(name: str, groups: _Groups) -> Article | None:
    """The article that fits best, its methods joined; a number in the task's name must fit."""
    plain = _plain(name)

    def rank(group: tuple[str, bool]) -> tuple[bool, bool, bool]:
        base, numbered = group
        bare, wanted = (text.casefold().removeprefix("how to ") for text in (base, plain))
        return base != plain, bare != wanted, numbered

    # "Windows 81" is method 1 of Windows 8 only beside "Windows 82"; else it is its own title.
    sure = [
        group
        for group, parts in groups.items()
        if not (group[1] and group[0][-1:].isdigit()) or {1, 2} <= parts.keys()
    ]
    chosen = min(sure, key=rank, default=None)
    return _joined(chosen[0], groups[chosen]) if chosen else None


def _split(title: str, number: re.Pattern[str]) -> tuple[str, int]:
    """A title without the number of its method, and that number, or 0."""
    found = number.search(title)
    return (title[: found.start()], int(found.group())) if found else (title, 0)


def _plain(title: str) -> str:
    """A title as people read it, without the escapes of web addresses and pages."""
    return _even(unescaped(unquote(title)))


def _key(plain: str) -> str:
    text = plain.replace("&", " and ").translate(_APOSTROPHES)
    if not text.isascii():
        bare = _ACCENT.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", bare)  # other marks make other letters: か, が
    words = _WORD.findall(text.casefold())
    if words[:2] == ["how", "to"]:
        words = words[2:]
    # At the end it is no article but a letter: vitamin A.
    left = [word for word in words[:-1] if word not in ("a", "an", "the")]
    return " ".join([*left, *words[-1:]])
