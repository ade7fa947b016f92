"""The exceptions raised on purpose.

Each message is one line: what was expected, what came, and what to do.  The command line
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
    """A disk that takes no more files, such as a full one: no use in going on."""


class ConfigError(StepgraphError, ValueError):
    """A name or an option that does not exist or does not fit."""


class MissingExtraError(StepgraphError, ImportError):
    """An optional dependency that is not installed."""


class IncompleteError(StepgraphError):
    """Work that was done in part: what failed, and the answer for the rest."""

    def __init__(self, message: str, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text that a terminal only shows; ``lines`` may be several.

    Control characters are spelt as in JSON, so that JSON stays what it is.

    >>> print(printable("tea\x1b[2J"))
    tea\u001b[2J
    """
    unsafe = _UNSAFE if lines else _UNSAFE_OR_LINE
    return unsafe.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(message: str, longest: int = 1000) -> str:
    """A message as one line that can be read: what is quoted in it may be of any length."""
    line = printable(" ".join(message[: 2 * longest].split()))
    if len(message) <= 2 * longest and len(line) <= longest:
        return line
    end = printable(" ".join(message[-longest:].split()))
    return f"{line[: longest * 7 // 10]} ... {end[-longest // 4 :]}"


def quoted(value: object, limit: int = 200) -> str:
    """What came, as a message shows it: a file may hold anything, also megabytes of it."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except RecursionError:
        text = "what is nested without end"
    shown = repr(text[:limit]) if text is value else text[:limit]
    return printable(shown if len(text) <= limit else f"{shown}…")


def and_got(error: Exception) -> str:
    """What was found instead of the fields of a file, as the rest of a message about it."""
    said = one_line(str(error), 500)
    if isinstance(error, KeyError):
        return f", got one without {quoted(error.args[0])}"
    if isinstance(error, StepgraphError):
        return f", got {said}"
    if " expected, got " in said:
        return f", got one where {said}"
    return f", got something else ({said})"


def reason(error: BaseException) -> str:
    """What another library says went wrong, shortly."""
    return one_line(str(error))[:120] or type(error).__name__
