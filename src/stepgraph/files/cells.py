"""Text in the cells of CSV files, which a spreadsheet must not take for a formula."""

from __future__ import annotations

import re

# What has been marked as text before is marked again, so that any text comes back.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_cell(text: str) -> str:
    """Text for a cell; a spreadsheet shows what an apostrophe begins as it stands.

    >>> write_cell("=1+1"), write_cell("stir")
    ("'=1+1", 'stir')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def read_cell(text: str) -> str:
    """Text as it was before :func:`write_cell`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
