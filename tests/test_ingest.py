"""Opening videos, and finding the transcript that belongs to one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.ingest import Listening, open_video
from stepgraph.ingest.formats import (
    TRANSCRIPT_SUFFIXES,
    find_transcript,
    is_transcript,
    transcript_preference,
    transcript_stem,
)
from stepgraph.ingest.media import NoTextTrackError
from stepgraph.ingest.speech import Transcription
from stepgraph.ingest.whisper import UnheardError

SRT = "1\n00:00:01,000 --> 00:00:02,500\nhello there\n"


@pytest.fixture
def media(tmp_path, monkeypatch):
    """A video file that nothing can read, since the extra is missing."""
    monkeypatch.setitem(sys.modules, "av", None)
    path = tmp_path / "talk.mp4"
    path.touch()
    return path


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("talk.vtt", "talk"),
        ("talk.en.vtt", "talk"),
        ("talk.en-US.vtt", "talk"),
        ("talk.zh-Hans.json3", "talk"),
        ("talk.en-orig.vtt", "talk"),
        ("talk.mp4.srt", "talk"),
        ("talk.mp4.en.srt", "talk"),
        ("my.talk.srt", "my.talk"),
        ("dr.who.srt", "dr.who"),
        ("talk.info.json", "talk.info"),
        ("How to [abc-123].en.vtt", "How to [abc-123]"),
        ("en.vtt", "en"),
        (".en.vtt", ".en"),
    ],
)
def test_stem_is_the_name_of_the_video(name, stem):
    assert transcript_stem(Path("folder") / name) == stem


def test_a_transcript_alone_is_a_video_that_lasts_until_its_last_sentence(tmp_path):
    path = tmp_path / "talk.en.srt"
    path.write_text(SRT, "utf-8")

    video = open_video(str(path))

    assert (video.id, video.duration, video.path) == ("talk", 2.5, None)
    assert video.transcript == (Sentence(1.0, 2.5, "hello there"),)


def test_without_the_extra_the_last_sentence_gives_the_duration(media):
    media.with_suffix(".srt").write_text(SRT, "utf-8")

    video = open_video(media)

    assert (video.id, video.duration, video.path) == ("talk", 2.5, media)


def test_without_the_extra_it_is_the_last_of_all_sentences(media):
    more = "2\n00:00:04,000 --> 00:00:05,500\nboil it\n"
    media.with_suffix(".srt").write_text(f"{SRT}\n{more}", "utf-8")

    assert open_video(media).duration == 5.5


def test_what_is_said_is_needed_and_nothing_listens_if_nothing_else_is_asked_for():
    assert Listening() == Listening(needed=True, speech=None)


def test_a_model_listens_where_it_may_and_nothing_is_written(media, monkeypatch):
    def nothing(path, problems):
        raise NoTextTrackError("talk.mp4: must contain a text track, got none")

    heard = Transcription((Sentence(0.0, 1.5, "boil it"),), 1.5)
    monkeypatch.setattr("stepgraph.ingest.media.read_embedded_transcript", nothing)
    monkeypatch.setattr("stepgraph.ingest.speech.hear", lambda path, model, problems: heard)
    monkeypatch.setattr("stepgraph.ingest.media.media_duration", lambda path, sound: 2.0)

    assert (
        open_video(media, listening=Listening(speech=Path("model"))).transcript == heard.sentences
    )
    assert open_video(media).transcript == heard.sentences
    assert open_video(media, listening=Listening(needed=False, uses_speech=False)).transcript == ()
    with pytest.raises(NoTextTrackError, match="must contain a text track"):
        open_video(media, listening=Listening(uses_speech=False))


@pytest.mark.parametrize("silent", [False, True])
def test_what_is_read_tells_nothing_of_where_the_sound_ends(media, monkeypatch, silent):
    def read(path, problems):
        if silent:
            raise NoTextTrackError("talk.mp4: must contain a text track, got none")
        return (Sentence(0.0, 1.5, "boil it"),)

    ends = []
    monkeypatch.setattr("stepgraph.ingest.media.read_embedded_transcript", read)
    monkeypatch.setattr(
        "stepgraph.ingest.media.media_duration", lambda path, sound: ends.append(sound) or 90.0
    )

    open_video(media, listening=Listening(needed=False, uses_speech=False))

    assert ends == [0.0]  # another one has every longer file read to its end


def test_a_video_without_sound_lasts_as_long_as_it_states(media, monkeypatch):
    def no_text(path, problems):
        raise NoTextTrackError("talk.mp4: must contain a text track, got none")

    def no_sound(path, model, problems):
        raise UnheardError("talk.mp4: must contain a sound track, got none")

    ends = []
    monkeypatch.setattr("stepgraph.ingest.media.read_embedded_transcript", no_text)
    monkeypatch.setattr("stepgraph.ingest.speech.hear", no_sound)
    monkeypatch.setattr(
        "stepgraph.ingest.media.media_duration", lambda path, sound: ends.append(sound) or 90.0
    )

    video = open_video(media, listening=Listening(needed=False))

    assert (video.duration, video.transcript, ends) == (90.0, (), [0.0])


def test_the_transcript_asked_for_goes_before_the_one_beside(media, tmp_path):
    media.with_suffix(".vtt").write_text(SRT.replace("hello", "not"), "utf-8")
    other = tmp_path / "other.srt"
    other.write_text(SRT, "utf-8")

    assert open_video(media, transcript=str(other)).transcript[0].text == "hello there"


def test_a_video_in_which_nobody_speaks_can_be_opened(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\n[Music]\n", "utf-8")

    video = open_video(path)

    assert (video.duration, video.transcript) == (0.0, ())


@pytest.mark.parametrize("first", range(len(TRANSCRIPT_SUFFIXES)))
def test_suffixes_are_listed_in_order_of_preference(media, first):
    for suffix in TRANSCRIPT_SUFFIXES[first:]:
        media.with_suffix(suffix).write_text("0:01\nboil\n0:02\npour\n")

    assert find_transcript(media) == media.with_suffix(TRANSCRIPT_SUFFIXES[first])


def test_no_language_goes_before_english_and_english_before_others(media):
    for name in ("talk.de.vtt", "talk.en.srt", "talk.srt", "talks.vtt", "talk.info.json"):
        media.with_name(name).touch()

    assert find_transcript(media).name == "talk.srt"
    media.with_name("talk.srt").unlink()
    assert find_transcript(media).name == "talk.en.srt"
    media.with_name("talk.en.srt").unlink()
    assert find_transcript(media).name == "talk.de.vtt"
    media.with_name("talk.de.vtt").unlink()
    assert find_transcript(media) is None


def test_a_late_suffix_without_a_language_goes_before_an_early_one_in_english():
    names = [f"talk{TRANSCRIPT_SUFFIXES[-1]}", "talk.en.txt", "talk.de.vtt", "talk.fr.vtt"]

    found = sorted(map(Path, names[::-1]), key=lambda one: transcript_preference(one, "talk"))

    assert [one.name for one in found] == names


def test_a_transcript_that_comes_within_the_clock_of_its_folder_is_found(media):
    assert find_transcript(media) is None
    changed = media.parent.stat().st_mtime_ns
    media.with_name("talk.en.srt").touch()
    os.utime(media.parent, ns=(changed, changed))

    assert find_transcript(media).name == "talk.en.srt"


def test_a_video_whose_name_ends_like_a_language_finds_its_transcript(media):
    media.with_name("talk.en.VTT").touch()

    assert find_transcript(media.with_name("talk.en.mp4")).name == "talk.en.VTT"


def test_a_folder_called_like_a_transcript_is_none(media):
    media.with_suffix(".txt").mkdir()

    assert not is_transcript(media.with_suffix(".txt"))
    assert find_transcript(media) is None


@pytest.mark.parametrize("name", ["none.mp4", "n" * 300 + ".mp4"])
def test_a_missing_video_is_refused(tmp_path, name):
    with pytest.raises(
        DataError, match=r"must be a video file, got (no such file|.*too long); check"
    ):
        open_video(tmp_path / name)


def test_a_missing_transcript_is_refused(media):
    with pytest.raises(DataError, match=r"none.srt: must be a transcript file, got no such file"):
        open_video(media, transcript=media.with_name("none.srt"))


def test_importing_is_cheap():
    code = "import sys, stepgraph.ingest; print({'av', 'pysubs2', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_who_only_reads_neither_hears_nor_saves():
    assert Listening(needed=False, save=True).reading == Listening(uses_speech=False)
    assert Listening(speech=Path("model"), uses_speech=False).reading == Listening(
        uses_speech=False
    )
    quiet = Listening(needed=False, uses_speech=False)
    assert quiet.reading is quiet
