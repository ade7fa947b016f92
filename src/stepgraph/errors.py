"""Exceptions that stepgraph raises on purpose, and functions that format their messages.

Each message is one line: the rule, the value found, and a remedy.  The command line
prints it and exits with code 1; a Python user catches :class:`StepgraphError`.
"""

from __future__ import annotations

import re

# Characters that move the cursor, change what a terminal shows or turn the order of letters, and
# halves of characters, which cannot be written.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE, _UNSAFE_OR_LINE = re.compile(f"[{_CONTROLS}]"), re.compile(f"[{_CONTROLS}\t\n]")


class StepgraphError(Exception):
    """Any error that stepgraph raises on purpose."""


class DataError(StepgraphError, ValueError):
    """Input that cannot be used: a file, an array, a transcript."""


class DiskError(DataError):
    """Disk that takes no more files, such as a full one, so that the work must stop."""


class ConfigError(StepgraphError, ValueError):
    """Name or option that does not exist or does not fit."""


class MissingExtraError(StepgraphError, ImportError):
    """Optional dependency that is not installed."""


class IncompleteError(StepgraphError):
    """Work that is done only in part: a message about the failures, the output of the rest."""

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape the control characters of a text, and its line breaks unless ``lines`` is true.

    The escapes are those of JSON, so that JSON keeps its meaning.

    >>> print(printable("tea\x1b[2J"))
    tea\u001b[2J
    """
    unsafe = _UNSAFE if lines else _UNSAFE_OR_LINE
    return unsafe.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(message: str, longest: int = 1000) -> str:
    """Put a message on one readable line, shortened in the middle if it is too long."""
    line = printable(" ".join(message[: 2 * longest].split()))
    if len(message) <= 2 * longest and len(line) <= longest:
        return line
    end = printable(" ".join(message[-longest:].split()))
    return f"{line[: longest * 7 // 10]} ... {end[-longest // 4 :]}"


def quoted(value: object, limit: int = 200) -> str:
    """Quote a value for a message, cut to ``limit`` characters."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except RecursionError:
        text = "a value nested without end"
    shown = repr(text[:limit]) if text is value else text[:limit]
    return printable(shown if len(text) <= limit else f"{shown}…")


def and_got(error: Exception) -> str:
    """Format an error in the fields of a file as the end of a message: ``, got ...``."""
    said = one_line(str(error), 500)
    if isinstance(error, KeyError):
        return f", got one without {quoted(error.args[0])}"
    if isinstance(error, StepgraphError):
        return f", got {said}"
    if " expected, got " in said:
        return f", got one where {said}"
    return f", got something else ({said})"


def reason(error: BaseException) -> str:
    """Shorten the message of an error of another library; without one, name its type."""
    return one_line(str(error))[:120] or type(error).__name__
