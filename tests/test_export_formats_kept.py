"""Files that other programs were seen to read stay as they are, to the letter.

What is meant to be otherwise is written anew by ``python tests/test_export_formats_kept.py``, and
opened in the program it is for.
"""

import os
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.export import annotators
from stepgraph.export.formats import FROM_MEDIA, NAMES, write_results

KEPT = Path(__file__).parent / "formats"
RESULTS = [
    Result(
        Video("tea", 3690.48, (Sentence(1.00049, 2.5004, "Boil <b>water</b>."),), Path("tea.mp4")),
        (
            Chapter(0.0, 0.01, "begin", 0.51239, "anchor"),
            Chapter(1.00049, 20.00061, "=crème\nbrûlée; <b>", 0.5, "anchor", 0.75, "Boil.", "Tea"),
            Chapter(20.04, 45.52, "begin", None, "path", 0.12345),
            Chapter(3661.2, 3690.48, "pour", 1.0, "label", 1.0, None, "Tea"),
        ),
        {"Tea": 0.91236, "Soup": 0.05},
        "f" * 16,
    ),
    Result(Video("talk", 7.0, path=Path("talk.wav")), (Chapter(2.0, 5.0, "stir", None, "label"),)),
    Result(Video("nothing", 5.0), ()),
]


class Then(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=tz)


def write_all(folder):
    """Write the results in all formats that need no video file, seen from a folder beside."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.object(annotators, "datetime", Then):
            paths = write_results(
                RESULTS, Path("out"), [one for one in NAMES if one not in FROM_MEDIA]
            )
        return {path.name: path.read_bytes() for path in paths}
    finally:
        os.chdir(before)


def test_every_format_is_written_as_it_was_kept(tmp_path):
    written = write_all(tmp_path)

    assert set(written) == {path.name for path in KEPT.iterdir()}
    for name, content in written.items():
        assert content.decode() == (KEPT / name).read_bytes().decode(), name


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        for name, content in write_all(Path(place)).items():
            (KEPT / name).write_bytes(content)
