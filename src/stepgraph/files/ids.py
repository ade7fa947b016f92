"""Checks of video ids, which come from untrusted input and name the files of results."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from stepgraph.errors import DataError, quoted

# Bytes of the name of a file: a suffix and what a temporary name adds leave it under 255.
_LONGEST = 200
_PLAIN = re.compile(rf"[\w-]{{1,{_LONGEST}}}", re.ASCII)  # most ids; no further check
_SEPARATORS = tuple(one for one in (os.sep, os.altsep) if one not in ("/", None))


def check_id(id: str) -> str:
    """Return an id that can name a file in a folder; refuse all others.

    Slashes are allowed between names: the id of a video in a folder of the source has them.
    """
    if why := _why_not(id):
        raise DataError(
            f"id of a video must be usable as a file name, got {quoted(id, 80)}, {why}; "
            f"rename the video"
        )
    return id


def file_in(folder: Path | str, id: str, suffix: str) -> Path:
    """Return the file of an id in a folder, never one outside it.

    >>> file_in("keysteps", "monday/tea", ".steps.json").as_posix()
    'keysteps/monday/tea.steps.json'
    """
    return Path(folder) / f"{check_id(id)}{suffix}"


def _why_not(id: str) -> str:
    if _PLAIN.fullmatch(id):
        return ""
    parts = id.split("/")
    if not id.strip():
        return "which is empty"
    if ".." in id.split("\\"):
        return "which leads out of the folder"
    if {"", ".", ".."} & {*parts} or any(one in id for one in _SEPARATORS) or Path(id).drive:
        return "which leads out of the folder"
    if any(unicodedata.category(letter) == "Cc" for letter in id):
        return "which has control characters"
    if max(len(part.encode("utf-8", "replace")) for part in parts) > _LONGEST or len(id) > 1000:
        return f"of more than {_LONGEST} bytes"
    return "which is no Unicode text" if any("\ud800" <= x <= "\udfff" for x in id) else ""
