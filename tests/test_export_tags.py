"""Tags for CVAT, held against what PyAV decodes."""

import xml.etree.ElementTree as ElementTree

import pytest

from stepgraph.core import Chapter, Result, Video
from stepgraph.errors import DataError
from stepgraph.export.formats import write_results
from stepgraph.export.tags import to_cvat
from videos import number_in, numbered, write_sound, write_video

av = pytest.importorskip("av")

HOSTILE = 'pour <i>;=\n"#\x08'
STEPS = (Chapter(0.2, 1.0, "boil", None, "label"), Chapter(1.5, 3.0, HOSTILE, None, "label"))


def tagged(path):
    """Label and number of each picture with a tag."""
    root = ElementTree.parse(path).getroot()
    assert {one.get("name") for one in root.iter("image")} == {
        f"frame_{int(one.get('id')):06}" for one in root.iter("image")
    }
    known = [one.text for one in root.iter("name")][1:]  # the first is that of the video
    assert {one.get("label") for one in root.iter("tag")} <= {*known}
    return [
        (tag.get("label"), int(image.get("id")))
        for image in root.iter("image")
        for tag in image.iter("tag")
    ]


def test_every_picture_of_a_step_has_its_tag(tmp_path):
    # The first second has 10 pictures, the others 20 each.
    times = [*range(0, 1000, 100), *range(1000, 4000, 50)]
    pictures = [numbered(number) for number in range(len(times))]
    write_video(tmp_path / "tea.mp4", pictures, times=times)
    with av.open(str(tmp_path / "tea.mp4")) as found:
        shown = [(f.time, number_in(f.to_ndarray(format="rgb24"))) for f in found.decode(video=0)]

    result = Result(Video("tea", 4.0, path=tmp_path / "tea.mp4"), STEPS)
    [path] = write_results([result], tmp_path / "out", ["cvat"])

    expected = [("boil", n) for time, n in shown if 0.2 <= time < 1.0]
    expected += [('pour <i>;= "#\ufffd', n) for time, n in shown if 1.5 <= time < 3.0]
    assert tagged(path) == expected
    assert path == tmp_path / "out" / "tea.cvat.xml"
    assert len(expected) == 8 + 30


def test_a_video_without_steps_has_no_tags(tmp_path):
    (tmp_path / "none.xml").write_text(to_cvat(Result(Video("none", 1.0), ()), [0.0], 64, 48))

    assert tagged(tmp_path / "none.xml") == []


def test_a_picture_has_its_size_and_a_tag_for_each_step_that_is_shown():
    both = (Chapter(0.0, 2.0, "boil", None, "label"), Chapter(1.0, 3.0, "stir", None, "label"))

    root = ElementTree.fromstring(to_cvat(Result(Video("a&b", 9.0), both), [0, 1, 2, 3], 64, 48))

    assert [one.text for one in root.iter("name")] == ["a&b", "boil", "stir"]
    assert root.find("meta/task/size").text == "4"
    assert [
        (one.get("name"), one.get("width"), one.get("height"), [tag.get("label") for tag in one])
        for one in root.iter("image")
    ] == [
        ("frame_000000", "64", "48", ["boil"]),
        ("frame_000001", "64", "48", ["boil", "stir"]),
        ("frame_000002", "64", "48", ["stir"]),
    ]


def test_without_pictures_there_is_nothing_to_tag(tmp_path):
    write_sound(tmp_path / "talk.wav", 2.0)
    for path, got in (
        (None, "must have a file .* got none;"),
        (tmp_path / "gone.mp4", "must have a file .* got .*gone.mp4, which does not exist;"),
        (tmp_path / "talk.wav", "must have pictures, got sound only"),
    ):
        with pytest.raises(DataError, match=got):
            write_results([Result(Video("talk", 2.0, path=path), STEPS)], tmp_path, ["cvat"])
    assert not (tmp_path / "talk.cvat.xml").exists()
