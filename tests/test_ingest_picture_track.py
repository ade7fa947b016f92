"""Which files hold a picture, which are cut off or damaged, and what is done about it."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import videos
from stepgraph.errors import DataError
from stepgraph.ingest import frames
from stepgraph.ingest.frames import ClipOptions, PictureTrack, read_clips
from videos import number_in, numbered, numbers_in, plain, write_sound, write_video

SMALL = ClipOptions(height=32, width=32)


def refusal(path):
    """Return the message with which a file is refused."""
    with pytest.raises(DataError) as caught:
        list(read_clips(path, SMALL))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("data", [b"", b"no video at all\n" * 100], ids=["empty", "text"])
def test_a_file_that_is_no_video_is_refused(tmp_path, data):
    pytest.importorskip("av")
    path = tmp_path / "talk.mp4"
    path.write_bytes(data)

    assert refusal(path).startswith("must be a readable video file, got Invalid data")


def test_sound_without_a_picture_is_refused(tmp_path):
    path = write_sound(tmp_path / "talk.mp4")

    assert refusal(path).startswith("must contain a picture track, got only sound; give the video")


def cut(source, share, target):
    data = source.read_bytes()
    target.write_bytes(data[: int(share * len(data))])
    return target


def test_a_video_that_lost_its_index_is_refused(tmp_path):
    whole = write_video(tmp_path / "whole.mp4", noise(50))
    path = cut(whole, 0.6, tmp_path / "cut.mp4")

    assert refusal(path).startswith("must be a readable video file, got Invalid data")


@pytest.mark.parametrize(
    ("name", "form"), [("whole.mp4", {"movflags": "faststart"}), ("whole.mkv", {})]
)
def test_a_video_whose_picture_breaks_off_is_refused(tmp_path, name, form):
    whole = write_video(tmp_path / name, noise(250), form=form)
    half = cut(whole, 0.5, tmp_path / f"half-{name}")
    most = cut(whole, 0.9, tmp_path / f"most-{name}")

    assert refusal(half).startswith("picture must last the 10.0 s that the file states, got ")
    assert refusal(half).endswith(" s; the file is cut off, fetch or copy it again")
    assert len(list(read_clips(most, SMALL))) == 10


def noise(number):
    """Pictures that make up most of their file, not its index."""
    return np.random.default_rng(0).integers(0, 255, (number, 32, 32, 3), np.uint8)


def spoil(source, target, every):
    """Copy a video and overwrite every so many-th of its packets."""
    import av

    with av.open(str(source)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for number, packet in enumerate(old.demux(video=0)):
            if packet.pts is None:
                continue
            bad = number % every == every - 1
            copy = av.Packet(b"\xff" * packet.size if bad else bytes(packet))
            copy.pts, copy.dts, copy.time_base = packet.pts, packet.dts, packet.time_base
            copy.duration, copy.is_keyframe, copy.stream = packet.duration, number == 0, stream
            new.mux(copy)
    return target


def test_a_damaged_video_is_refused_unless_the_damage_is_small(tmp_path):
    whole = write_video(tmp_path / "whole.mp4", map(numbered, range(250)))
    bad = spoil(whole, tmp_path / "bad.mp4", every=10)
    good = spoil(whole, tmp_path / "good.mp4", every=60)

    assert refusal(bad).startswith("must hold pictures that can be decoded, got 2")
    assert refusal(bad).endswith(" damaged; fetch or copy it again")
    assert len(list(read_clips(good, SMALL))) == 10


def test_a_video_of_which_nothing_can_be_decoded_is_refused(tmp_path):
    whole = write_video(tmp_path / "whole.mp4", map(numbered, range(50)))
    path = spoil(whole, tmp_path / "nothing.mp4", every=1)

    assert refusal(path).startswith("must hold pictures, got none that can be decoded; play it")


class LateTrack:
    """A file in which another track appears while it is read; PyAV stumbles over its end."""

    def __init__(self, container):
        self.container = container

    def __getattr__(self, name):
        return getattr(self.container, name)

    def demux(self, *streams):
        yield from (packet for packet in self.container.demux(*streams) if packet.size)
        raise IndexError("list index out of range")


def test_a_track_that_appears_late_costs_no_picture(tmp_path):
    av = pytest.importorskip("av")
    path = write_video(tmp_path / "whole.mp4", map(numbered, range(50)))

    with av.open(str(path)) as container:
        track = PictureTrack(LateTrack(container), path)
        shown = [number_in(frame.to_ndarray(format="rgb24")) for _, frame in track.pictures()]

    assert shown == list(range(50))


@pytest.mark.parametrize("rate", [25, 10])
def test_a_picture_without_a_time_follows_at_the_rate_of_the_file(tmp_path, monkeypatch, rate):
    av = pytest.importorskip("av")
    path = write_video(tmp_path / "talk.mp4", map(numbered, range(3)), rate=rate)
    timeless = SimpleNamespace(pts=None, dts=None, duration=0)
    monkeypatch.setattr(PictureTrack, "_decoded", lambda self: iter([timeless] * 3))

    with av.open(str(path)) as container:
        tick = container.streams.video[0].time_base
        ticks = [begin for begin, _ in PictureTrack(container, path).pictures()]

    assert [float((one - ticks[0]) * tick) for one in ticks] == [0, 1 / rate, 2 / rate]


@pytest.mark.parametrize(("rate", "tick", "step"), [(25, 1 / 25, 1), (None, 1 / 1000, 40)])
def test_a_picture_lasts_a_tick_at_least_and_25_are_a_second_if_nothing_is_said(
    monkeypatch, rate, tick, step
):
    stream = SimpleNamespace(average_rate=rate, guessed_rate=None, start_time=0, duration=0)
    timeless = SimpleNamespace(pts=None, dts=None, duration=0)
    track = object.__new__(PictureTrack)
    track._stream, track._tick, track._count, track._damaged = stream, tick, 3, 0
    track._container, track.path = SimpleNamespace(duration=0), None
    monkeypatch.setattr(PictureTrack, "_decoded", lambda self: iter([timeless] * 3))

    assert [begin for begin, _ in track.pictures()] == [0, step, 2 * step]
    track._damaged = 1
    with pytest.raises(DataError, match="got 1 of 3 damaged"):
        list(track.pictures())


def test_pictures_that_tell_only_when_they_are_decoded_begin_where_their_track_does(
    tmp_path, monkeypatch
):
    av = pytest.importorskip("av")
    times = 1700 + 40 * np.arange(3)
    path = write_video(tmp_path / "late.mp4", map(numbered, range(3)), times=times)

    with av.open(str(path)) as container:
        start = container.streams.video[0].start_time
        decoded = [SimpleNamespace(pts=None, dts=9 * start + n, duration=1) for n in range(3)]
        monkeypatch.setattr(PictureTrack, "_decoded", lambda self: iter(decoded))
        ticks = [begin for begin, _ in PictureTrack(container, path).pictures()]

    assert start > 0
    assert ticks == [start, start + 1, start + 2]


def write_with_art(path, pictures):
    """Write a file that begins with cover art, then sound, then pictures if there are any."""
    av = pytest.importorskip("av")
    from av.stream import Disposition

    with av.open(str(path), "w") as container:
        art = container.add_stream("png", rate=1)
        art.width, art.height, art.pix_fmt = 100, 100, "rgb24"
        art.disposition = Disposition.attached_pic
        sound = videos.add_sound(container)
        stream = container.add_stream("libx264", rate=25) if pictures else None
        if stream:
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        cover = av.VideoFrame.from_ndarray(plain((255, 0, 0), 1, 100, 100)[0], "rgb24")
        container.mux([*art.encode(cover), *art.encode()])
        for picture in pictures or ():
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode() if stream else [])
        videos.write_silence(container, sound, 2.0)
    return path


def test_cover_art_is_not_the_video(tmp_path):
    whole = write_with_art(tmp_path / "film.mp4", map(numbered, range(50)))
    song = write_with_art(tmp_path / "song.mp4", None)

    clips = list(read_clips(whole, SMALL))

    assert [number_in(clip.frames[0]) for clip in clips[:2]] == [12, 37]
    assert refusal(song).startswith("must contain a picture track, got only cover art; give")


@pytest.mark.parametrize(("marked", "shown"), [([], 0), ([1], 1), ([1, 2], 1), ([0, 1, 2], 0)])
def test_of_several_picture_tracks_players_show_the_first_that_is_marked_or_the_first(
    marked, shown
):
    pytest.importorskip("av")
    from av.stream import Disposition

    marks = [Disposition.default if at in marked else Disposition(0) for at in range(3)]
    tracks = [SimpleNamespace(disposition=mark, codec_context="known") for mark in marks]
    container = SimpleNamespace(streams=SimpleNamespace(video=tracks, audio=[]))

    assert frames.shown_track(container, "talk.mp4") is tracks[shown]


@pytest.mark.parametrize(
    ("end", "stated", "short"),
    [(8.0, 10.0, False), (7.9, 10.0, True), (95.0, 100.0, False), (94.9, 100.0, True)],
)
def test_a_picture_may_end_two_seconds_or_a_twentieth_too_early(end, stated, short):
    assert frames._is_short(end, stated) == short


@pytest.mark.parametrize("name", ["talk.mp4", "talk.mkv"])
def test_a_picture_that_ends_before_its_sound_stands_still(tmp_path, name):
    pictures = map(numbered, range(25))
    path = write_video(tmp_path / name, pictures, sound=9.0, options=videos.IN_ORDER)

    clips = list(read_clips(path, SMALL))

    assert len(clips) in (9, 10)
    assert [number_in(clip.frames[0]) for clip in clips] == [12] + [24] * (len(clips) - 1)


def test_very_large_pictures_are_read_few_at_once(tmp_path, monkeypatch):
    av = pytest.importorskip("av")
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    how = {"codec": "mjpeg", "pixels": "yuvj420p"}
    large = write_video(tmp_path / "8k.mp4", [numbered(5, 7680, 4320)], **how)
    small = write_video(tmp_path / "small.mp4", plain(0, 1))
    threads = {}
    for path in (large, small):
        with av.open(str(path)) as container:
            PictureTrack(container, path)
            threads[path] = container.streams.video[0].codec_context.thread_count

    (clip,) = read_clips(large, ClipOptions())

    assert numbers_in(clip) == [5]
    assert threads == {large: 5, small: 0}  # 0: as many as the library likes


@pytest.mark.parametrize(
    ("starts", "lasts", "stated", "sound", "whole"),
    [
        (None, 5.0, 99.0, [], False),  # the track's own length counts
        (None, 4.0, 99.0, [], True),
        (1.0, 4.0, 99.0, [], False),
        (None, None, 4.5, [], False),
        (None, None, 4.5, [2.4], False),
        (None, None, 4.5, [4.5], True),  # the sound goes on
        (None, None, 4.0, [], True),
        (None, None, None, [], True),
    ],
)
def test_a_picture_may_end_two_seconds_early(monkeypatch, starts, lasts, stated, sound, whole):
    """It ends after two seconds; a tick is a hundredth of one."""
    container = SimpleNamespace(
        duration=stated and 1_000_000 * stated,
        streams=SimpleNamespace(audio=sound),
        demux=lambda *tracks: tracks,
    )
    monkeypatch.setattr(frames, "opened", lambda path: nullcontext(container))
    monkeypatch.setattr(frames, "end_of", lambda packet: packet)
    track = object.__new__(PictureTrack)
    track.path, track._container, track._tick = "v.mp4", container, 0.01
    track._stream = SimpleNamespace(
        start_time=starts and 100 * starts, duration=lasts and 100 * lasts
    )

    if whole:
        track._require_end(2.0)
    else:
        with pytest.raises(
            DataError, match=r"picture must last the .* s that the file states, got 2"
        ):
            track._require_end(2.0)
        if not sound and stated == 4.5:  # no sound ends at its beginning
            container.duration = 2_800_000
            with pytest.raises(DataError, match=r"got 0.5 s"):
                track._require_end(0.5)


@pytest.mark.parametrize(
    ("packets", "damaged", "whole"), [(40, 2, True), (39, 2, False), (0, 0, True)]
)
def test_a_twentieth_of_the_packets_may_be_damaged(monkeypatch, packets, damaged, whole):
    av = pytest.importorskip("av")

    def decode(packet):
        if 0 < packet <= damaged:
            raise av.error.InvalidDataError(1, "broken")
        return [packet]

    stream = SimpleNamespace(time_base=0.01, decode=decode)
    stream.codec_context = SimpleNamespace(width=8, height=8)
    monkeypatch.setattr(frames, "shown_track", lambda *_: stream)
    monkeypatch.setattr(frames, "packets_of", lambda *_: range(packets))
    track = PictureTrack(SimpleNamespace(), "v.mp4")

    assert len(list(track._decoded())) == packets - damaged
    if whole:
        track.require_undamaged()
    else:
        with pytest.raises(DataError, match=r"got 2 of 39 damaged"):
            track.require_undamaged()


@pytest.mark.parametrize("size", [(4, 1), (1, 4)])
def test_of_a_picture_of_one_line_a_point_is_left(size):
    av = pytest.importorskip("av")
    lines = np.full((*size, 3), 77, np.uint8)
    options = ClipOptions(frames=1, window=1.0, height=size[0] ** 2, width=size[1] ** 2, crop=True)

    frame = av.VideoFrame.from_ndarray(lines, format="rgb24")
    picture = frames._Scaler(options, 1.0).picture(frame)

    assert picture.shape == (options.height, options.width, 3)
    assert abs(int(picture.mean()) - 77) < 3
