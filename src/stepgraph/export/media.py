"""Say by which address a page reaches the file of a video, so that a browser can play it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from stepgraph.core import Video
from stepgraph.ingest.naming import MEDIA_SUFFIXES


def media_address(video: Video, page: Path) -> str | None:
    """Return the percent-encoded address of a video's file as seen from a page, or None.

    It is relative where both lie under one folder, so that this folder can be moved, copied
    or served; else it is a ``file:`` URI, which works on this computer only.  Whether the
    file is there and can be played is for the browser to find out, and for the page to say.
    None is for a video without a path or whose path is not called like a video file.

    >>> tea = Video("tea", 9.0, path=Path("videos/tea 100%.mp4"))
    >>> media_address(tea, Path("reports/tea.html"))
    '../videos/tea%20100%25.mp4'
    """
    if video.path is None or video.path.suffix.lower() not in MEDIA_SUFFIXES:
        return None
    # Links are not followed: a browser takes addresses apart by their letters, too.
    file, folder = Path(os.path.abspath(video.path)), Path(os.path.abspath(page)).parent
    if not _share_a_folder(file, folder):
        return file.as_uri()
    relative = Path(os.path.relpath(file, folder)).as_posix()
    # A colon is encoded with the rest, so that no name is taken for a scheme; a name in
    # another encoding than the system's keeps its bytes.
    return quote(os.fsencode(relative))


def _share_a_folder(file: Path, folder: Path) -> bool:
    """Whether there is a folder with both; the root of the disk is everybody's and not one."""
    try:
        common = Path(os.path.commonpath([file, folder]))
    except ValueError:  # two drives
        return False
    return common != Path(common.anchor)
