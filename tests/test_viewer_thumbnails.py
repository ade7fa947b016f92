"""Small pictures of video files: what they show, and that no other file is looked into."""
# ruff: noqa: F811

import io
import json
from pathlib import Path

import pytest

from stepgraph.cli import main
from test_viewer_server import folder, get, server, serving  # noqa: F401
from videos import number_in, numbered, write_video


def filmed():
    """Put a film that can be played in the place of the video."""
    pictures = (numbered(number) for number in range(100))
    write_video(Path("t.mp4"), pictures, rate=2, codec="libx264", options={"g": "2"})


def seen_in(jpeg):
    import av

    with av.open(io.BytesIO(jpeg)) as container:
        return number_in(next(container.decode(video=0)).to_ndarray(format="rgb24"))


@pytest.mark.parametrize(("seconds", "number"), [("0", 0), ("20.0", 40), ("1e9", 99), ("nan", 0)])
def test_a_small_picture_shows_what_is_seen_at_a_time(folder, seconds, number):
    filmed()
    with serving(folder) as server:
        answer, body = get(server, f"picture/monday%2Ftea?of={seconds}")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/jpeg")
    assert seen_in(body) == number
    assert len(body) < 20_000


@pytest.mark.parametrize("name", ["secret", "..%2Fsecret.mp4", "%2Fetc%2Fpasswd", "", "t.mp4"])
def test_no_other_file_is_ever_looked_into(server, name):
    assert get(server, f"picture/{name}?of=1")[0].status == 404


def test_what_is_no_time_has_no_picture(server):
    assert get(server, "picture/monday%2Ftea?of=x")[0].status == 400


def test_what_cannot_be_decoded_has_an_empty_picture(server):
    answer, body = get(server, "picture/monday%2Ftea?of=1")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/svg+xml")
    assert b"script" not in body


def test_the_page_on_disk_has_small_pictures(folder):
    filmed()

    assert main(["view", "out", "--export", "site"]) == 0

    data = Path("site/data.js").read_text().removeprefix("window.STEPGRAPH = ").rstrip(";\n")
    [line] = json.loads(data)["videos"]
    assert line["thumbs"] == ["pictures/0-0.jpg", "pictures/0-1.jpg"]
    assert seen_in(Path("site/pictures/0-0.jpg").read_bytes()) == 8
