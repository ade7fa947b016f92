"""Copies of video files, looked at by PyAV."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepgraph.core import Chapter, Result, Video
from stepgraph.errors import DataError
from stepgraph.export.clips import _clip, _copy, _writing, cut, mux
from stepgraph.export.tags import write_cvat
from videos import IN_ORDER, number_in, numbered, numbers_in, write_sound, write_video

av = pytest.importorskip("av")

STEPS = (
    Chapter(0.0, 1.0, "boil", None, "label"),
    Chapter(1.5, 3.0, "pour <i>;=\n#", None, "label"),
)


@pytest.fixture(scope="module")
def tea(tmp_path_factory):
    """Four seconds of numbered pictures with sound, a whole picture every half second."""
    path = tmp_path_factory.mktemp("videos") / "tea.mp4"
    pictures = (numbered(number) for number in range(40))
    write_video(path, pictures, rate=10, sound=4.0, options={"g": "5", "crf": "12"})
    return Result(Video("monday/tea", 4.0, path=path), STEPS)


def decoded(path):
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_chapters_are_put_into_a_copy(tea, suffix, tmp_path):
    source = tmp_path / f"tea{suffix}"
    write_video(source, (numbered(number) for number in range(40)), rate=10, sound=4.0)

    [path] = mux(replace(tea, video=Video("tea", 4.0, path=source)), tmp_path)

    with av.open(str(path)) as found:
        chapters = found.chapters()
        kinds = [stream.type for stream in found.streams]
    assert path.name == f"tea.chapters{suffix}"
    spans = [(one["start"] * one["time_base"], one["end"] * one["time_base"]) for one in chapters]
    # Only Matroska holds gaps between chapters.
    assert spans == [(0, 1 if suffix == ".mkv" else 1.5), (1.5, 3)]
    assert [one["metadata"]["title"] for one in chapters] == ["boil", "pour <i>;= #"]
    assert kinds[:2] == ["video", "audio"]


def test_pictures_of_a_copy_are_those_of_the_file(tea, tmp_path):
    [path] = mux(tea, tmp_path)

    found, expected = decoded(path), decoded(tea.video.path)

    assert path == tmp_path / "monday" / "tea.chapters.mp4"
    assert len(found) == len(expected) == 40
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))


def test_a_clip_is_cut_for_each_chapter(tea, tmp_path):
    first, second = cut(tea, tmp_path)

    assert first == tmp_path / "monday" / "tea" / "01 boil.mp4"
    assert second.name == "02 pour i ;= #.mp4"


def test_a_clip_begins_with_the_last_whole_picture_and_ends_with_its_chapter(tea, tmp_path):
    class Clip:
        frames = ()

    _, path = cut(tea, tmp_path)
    Clip.frames = decoded(path)

    numbers = numbers_in(Clip)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert 10 <= numbers[0] <= 15
    assert 29 <= numbers[-1] <= 35  # pictures that others after them are told by


def test_the_clock_of_a_clip_begins_at_0(tea, tmp_path):
    _, path = cut(tea, tmp_path)

    with av.open(str(path)) as found:
        starts = [float(s.start_time * s.time_base) for s in found.streams]
        length = found.duration / 1_000_000

    assert max(starts) < 0.3
    assert length == pytest.approx(1.5, abs=0.7)


def cut_one(path, start, end, folder):
    """The clip of one chapter: its pictures, their times, and the times of its sound."""
    steps = (Chapter(start, end, "stir", None, "label"),)
    [clip] = cut(Result(Video("tea", 4.0, path=path), steps), folder)
    with av.open(str(clip)) as found:
        frames = [*found.decode(video=0)]
    with av.open(str(clip)) as found:
        sound = [one.dts * one.time_base for one in found.demux(audio=0) if one.dts is not None]
    numbers = [number_in(frame.to_ndarray(format="rgb24")) for frame in frames]
    return numbers, [frame.time for frame in frames], [float(time) for time in sound]


@pytest.fixture(scope="module")
def plainly(tmp_path_factory):
    """As tea, but pictures are stored in the order in which they are shown."""
    path = tmp_path_factory.mktemp("videos") / "plain.mkv"
    pictures = (numbered(number) for number in range(40))
    return write_video(path, pictures, rate=10, sound=4.0, options={"g": "5"} | IN_ORDER)


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        (0.0, 0.3, 0, 2),
        (0.0, 1.0, 0, 9),
        (1.2, 2.35, 10, 23),
        (1.5, 3.0, 15, 29),
        (3.9, 9.0, 35, 39),
    ],
)
def test_a_clip_has_just_the_pictures_and_the_sound_of_its_time(
    plainly, tmp_path, start, end, first, last
):
    numbers, times, sound = cut_one(plainly, start, end, tmp_path)

    begun, whole = first / 10, [number * 0.064 for number in range(63)]
    assert numbers == list(range(first, last + 1))
    assert times == pytest.approx([number / 10 for number in range(last - first + 1)], abs=0.002)
    expected = [time - begun for time in whole if begun <= time < end]
    assert sound == pytest.approx(expected, abs=0.002)


def test_times_of_pictures_that_are_stored_out_of_order_stay_theirs(tea, tmp_path):
    numbers, times, _ = cut_one(tea.video.path, 1.5, 3.0, tmp_path)

    assert times == sorted(times)
    assert [time - times[0] for time in times] == pytest.approx(
        [(number - numbers[0]) / 10 for number in numbers], abs=0.002
    )
    assert {*range(15, 30)} <= {*numbers}


def test_a_file_whose_clock_begins_late_is_cut_where_players_show_it(tmp_path):
    path, times = tmp_path / "tea.ts", [2000 + 100 * number for number in range(40)]
    write_video(path, map(numbered, range(40)), times=times, options={"g": "5"} | IN_ORDER)
    with av.open(str(path)) as found:
        assert found.start_time == 2_000_000

    _, clip = cut(Result(Video("tea", 4.0, path=path), STEPS), tmp_path)

    assert clip.suffix == ".mkv"
    assert [number_in(picture) for picture in decoded(clip)] == list(range(15, 30))


def packet(track, dts, pts=None):
    """A packet of one of two tracks, in tenths of a second."""
    kind = ("video", "audio")[track]
    stream = SimpleNamespace(index=track, type=kind)
    return SimpleNamespace(stream=stream, dts=dts, pts=pts, time_base=Fraction(1, 10))


def clip_of(until, *packets):
    """What is kept of packets: which track, and the times that it has then."""
    tracks = [packet(track, 0).stream for track in (0, 1)]
    source = SimpleNamespace(demux=lambda _: iter(packets))
    return [(one.stream.index, one.dts, one.pts) for one in _clip(source, tracks, until)]


def test_a_track_may_lie_before_another_in_a_file():
    pictures = [packet(0, time, time) for time in (10, 11, 12, 13, 14)]
    sound = [packet(1, time) for time in (9, 10, 11, 12, 13)]

    found = clip_of(1.2, *pictures, packet(0, None), *sound)

    assert found == [(0, 0, 0), (0, 1, 1), (1, 0, None), (1, 1, None)]
    assert clip_of(1.2, *sound[:2], *pictures) == found[:2]


def test_pictures_that_a_kept_one_was_told_by_are_kept():
    stored = [packet(0, dts, pts) for dts, pts in ((0, 1), (1, 5), (2, 3), (3, 4), (4, 5), (5, 9))]

    found = [pts for _, _, pts in clip_of(0.2, *stored)]

    assert found == [1, 5, 3, 4]


def test_what_comes_after_a_clip_is_not_read():
    packets = iter([packet(track, time, time) for time in range(9) for track in (0, 1)])
    tracks = [packet(track, 0).stream for track in (0, 1)]

    kept = [*_clip(SimpleNamespace(demux=lambda _: packets), tracks, 0.3)]

    assert len(kept) == 6
    assert len([*packets]) == 10  # of hours, perhaps


def test_tracks_that_nothing_can_copy_are_left_out(tea, tmp_path):
    with av.open(str(tea.video.path)) as found:
        unknown = SimpleNamespace(type="subtitle", codec_context=None)
        data = SimpleNamespace(type="data", codec_context="klv")
        source = SimpleNamespace(streams=[*found.streams, unknown, data])
        with _writing(tmp_path / "tea.mp4", source) as (output, tracks):
            copied = [track.type for track in tracks]
            _copy(found.demux(list(tracks)), output, tracks)

    assert copied == ["video", "audio"]


def narrated(path, form):
    """A video file with a text track, whatever it is called."""
    with av.open(str(path), "w", format=form) as file:
        pictures = file.add_stream("mpeg4", rate=10)
        pictures.width = pictures.height = 64
        words = file.add_stream("mov_text")
        words.codec_context.subtitle_header = b"[Script Info]\n"
        for number in range(40):
            file.mux(pictures.encode(av.VideoFrame.from_ndarray(numbered(number))))
        file.mux(pictures.encode())
        said = av.Packet(b"\x00\x04boil")
        said.stream, said.time_base = words, Fraction(1, 1000)
        said.pts, said.dts, said.duration = 0, 0, 1000
        file.mux(said)
    return Result(Video(path.stem, 4.0, path=path), STEPS)


def test_subtitles_that_a_copy_cannot_hold_are_left_out(tmp_path):
    [path] = mux(narrated(tmp_path / "tea.mkv", "mp4"), tmp_path / "out")

    with av.open(str(path)) as found:
        assert [stream.type for stream in found.streams] == ["video"]
        assert len(found.chapters()) == 2


@pytest.mark.parametrize("copy", [mux, cut])
def test_a_file_that_is_called_as_another_kind_is_one_line(copy, tmp_path):
    with pytest.raises(DataError, match="video of a file must be of a kind that its container"):
        copy(narrated(tmp_path / "tea.webm", "mp4"), tmp_path / "out")

    assert not list(Path(tmp_path, "out").rglob("*.*"))


@pytest.mark.parametrize("name", ["secret", "key.pem", "steps.txt"])
def test_a_file_that_is_not_called_a_video_is_not_opened(name, tea, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(tea.video.path.read_bytes())
    monkeypatch.setattr(av, "open", None)

    for copy in (mux, cut, write_cvat):
        with pytest.raises(DataError, match=rf"got .*{name}, which has none of the endings \.mp4"):
            copy(Result(Video("tea", 4.0, path=tmp_path / name), STEPS), tmp_path / "out")


def test_a_clip_is_called_as_its_keystep_as_far_as_files_may_be(tea, tmp_path):
    steps = [replace(STEPS[0], keystep=name) for name in ("a" * 200, '.. /a\\:b*?"|c. ')] * 5

    paths = cut(replace(tea, chapters=tuple(steps)), tmp_path)

    assert [path.name for path in paths[-2:]] == [f"09 {'a' * 80}.mp4", "10 a b c.mp4"]


def test_sound_alone_gets_chapters_and_clips(tmp_path):
    path = write_sound(tmp_path / "talk.m4a", 4.0)
    result = Result(Video("talk", 4.0, path=path), STEPS)

    [muxed] = mux(result, tmp_path / "out")
    clips = cut(result, tmp_path / "out")

    with av.open(str(muxed)) as found:
        assert len(found.chapters()) == 2
    with av.open(str(clips[1])) as found:
        assert found.duration / 1_000_000 == pytest.approx(1.5, abs=0.2)


def test_a_file_that_is_gone_is_one_line(tmp_path):
    gone = Result(Video("tea", 4.0, path=tmp_path / "gone.mp4"), STEPS)

    with pytest.raises(DataError, match=r"^video 'tea' must have a file to be copied, got .*gone"):
        mux(gone, tmp_path)

    assert not list(tmp_path.iterdir())


def test_what_is_no_video_is_refused_and_nothing_is_left(tmp_path):
    path = tmp_path / "tea.mp4"
    path.write_text("no video")

    with pytest.raises(DataError, match="must be a readable video file"):
        mux(Result(Video("tea", 4.0, path=path), STEPS), tmp_path / "out")

    assert not list(Path(tmp_path, "out").rglob("*.*"))
