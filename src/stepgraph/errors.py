"""The exceptions raised on purpose.

Each message is one line: what was expected, what came, and what to do.  The command line
prints it and exits with code 1; a Python user catches :class:`StepgraphError`.
"""

from __future__ import annotations


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
