"""Escaping of text in CSV cells that a spreadsheet would take for a formula."""

from __future__ import annotations

import re

# A text that is already escaped is escaped again, so that any text can be restored.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_cell(text: str) -> str:
    """Escape a text that a spreadsheet would take for a formula, with an apostrophe.

    >>> write_cell("=1+1"), write_cell("stir")
    ("'=1+1", 'stir')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def read_cell(text: str) -> str:
    """Restore a text that :func:`write_cell` escaped."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
