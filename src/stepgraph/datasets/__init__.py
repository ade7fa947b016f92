"""Sources of videos by name: a folder, a file, the embedded corpus, or a published data set."""

from __future__ import annotations

import os
from pathlib import Path

from stepgraph.core import Dataset
from stepgraph.errors import ConfigError

__all__ = ["open_source"]


def open_source(source: str | Path, *, skip_bad: bool = False) -> Dataset:
    """Open videos, and their vocabulary and truth where the source has them.

    Parameters
    ----------
    source
        A folder of videos and transcripts, one such file, ``demo``, or ``crosstask:PATH``.
    skip_bad
        Leave out transcripts that cannot be read instead of failing.
    """
    from stepgraph.datasets import crosstask, folder

    text = str(source)
    kind, colon, rest = text.partition(":")
    if text == "demo":
        return folder.open_folder(Path(__file__).parent / "demo", name="demo")
    if kind == "crosstask" and colon:
        return crosstask.open_crosstask(Path(os.path.expanduser(rest)))
    path = Path(source)
    path = path if path.exists() else Path(os.path.expanduser(path))
    if path.is_dir():
        return folder.open_folder(path, skip_bad=skip_bad)
    if path.is_file():
        return folder.open_file(path)
    raise ConfigError(
        f"source must be a folder, a video or transcript file, 'demo' or 'crosstask:PATH', "
        f"got {text!r}, where nothing is"
    )
