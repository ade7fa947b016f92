"""Narration that a user has beside the files of a published data set, which come without."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.ingest.formats import read_transcript
from stepgraph.ingest.naming import is_transcript, transcript_preference, transcript_stem
from stepgraph.problems import Problems


@dataclass(frozen=True)
class Narration:
    """Transcripts by video, in one or several folders."""

    folders: tuple[Path, ...]
    files: Mapping[str, Path]

    @classmethod
    def beside(cls, folder: Path, *names: str) -> Narration:
        """Look into folders of these names, if they are there; the earlier one wins."""
        folders = tuple(folder / name for name in names)
        files: dict[str, Path] = {}
        for place in filter(Path.is_dir, reversed(folders)):
            with os.scandir(place) as entries:
                names_there = sorted(entry.name for entry in entries if entry.is_file())
            paths = (place / name for name in names_there if not name.startswith("."))
            found = best_transcripts(path for path in paths if is_transcript(path))
            files |= {video.name: path for video, path in found.items()}
        return cls(folders, files)

    def read(self, video: str, problems: Problems) -> tuple[Sentence, ...] | None:
        """What is said in a video: nothing where there is no narration, None if it is broken."""
        path = self.files.get(video)
        if path is None:
            return ()
        try:
            return read_transcript(path, problems=problems)
        except DataError as error:
            problems.add_error(error, "unreadable narration", str(path))
            return None

    def check(
        self, wanted: Sequence[str], known: Collection[str], where: Path, problems: Problems
    ) -> None:
        """Note how many of the videos wanted have none, and what is of no known video."""
        silent = [video for video in wanted if video not in self.files]
        if silent:
            names = " or ".join(folder.name for folder in self.folders)
            several = f" and {len(silent) - 1:,} others" if len(silent) > 1 else ""
            what = f"a video must be narrated in {names}, got nothing for {silent[0]!r}{several}"
            scope = f"{len(silent):,} of {len(wanted):,} videos"
            problems.add(str(where), "without narration", what, scope=scope)
        stray = [path for video, path in self.files.items() if video not in known]
        if stray:
            several = f"; so are {len(stray) - 1:,} more" if len(stray) > 1 else ""
            what = f"narration must be of a listed video, got that of another{several}"
            kind, scope = "with narration of unlisted videos", f"{len(stray):,} files"
            problems.add(str(stray[0]), kind, what, scope=scope)

    def missing(self, count: int, of_what: str) -> tuple[str, ...]:
        """Say how much is missing and where to put it."""
        if not count:
            return ()
        where = self.folders[0]
        return (f"narration of {count:,} {of_what}: not published; put transcripts into {where}",)


def best_transcripts(paths: Iterable[Path]) -> dict[Path, Path]:
    """Of several transcripts of a video the one to take, by the video's place without suffix."""
    best: dict[Path, Path] = {}
    for path in paths:
        stem = transcript_stem(path)
        place = path.parent / stem
        rivals = (best.get(place, path), path)
        best[place] = min(rivals, key=lambda one: transcript_preference(one, stem))
    return best
