"""Speech that is not English is noticed: what the model makes of it changes when heard again."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stepgraph.datasets.generated import speaking
from stepgraph.ingest import open_video, speech
from stepgraph.ingest.language_check import LanguageCheck
from stepgraph.problems import Problems
from videos import recording, write_speech

pytest.importorskip("av")
RATE = speech.RATE
STEPS = "Crack three eggs into a bowl and whisk them with the milk until it is smooth."
BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "languages.toml"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))


def problems_of(path):
    problems = Problems()
    video = open_video(path, problems=problems)
    assert video.transcript, "the file still gets its sentences"
    return problems


def listener(texts):
    """A recogniser that hears these texts one after the other, and how often it listened."""
    heard = []

    def transcribe(piece, rate):
        heard.append(len(piece) / rate)
        line = SimpleNamespace(start_time=0.0, duration=4.0, text=texts[len(heard) % len(texts)])
        return SimpleNamespace(lines=[line])

    return SimpleNamespace(transcribe_without_streaming=transcribe), heard


def test_what_is_heard_the_same_twice_is_heard_once_from_then_on():
    twice = LanguageCheck()

    asked = [number for number in range(200) if twice.wants(number)]
    twice.compare(STEPS, STEPS)
    twice.compare(STEPS, STEPS.replace("three", "free"))

    assert asked == [0, 1, 3, 7, 15, 31]
    assert 0 < twice.share < 0.1
    assert not any(map(twice.wants, range(200)))


def test_a_few_words_tell_nothing():
    twice = LanguageCheck()
    twice.compare("Try again.", "Fly a gun.")

    assert twice.share == 0.0
    assert twice.wants(1)


def words(number, kind="w"):
    """So many words, no two of which are the same."""
    return " ".join(f"{kind}{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(number))


@pytest.mark.parametrize(
    ("number", "changed", "share", "clear"),
    [
        (24, 24, 0.0, False),
        (25, 4, 0.16, True),
        (25, 5, 0.2, False),
        (25, 25, 1.0, False),
        (150, 1, 0.007, True),
    ],
)
def test_of_twenty_five_words_less_than_a_fifth_may_change(number, changed, share, clear):
    first, twice = words(number), LanguageCheck()

    twice.compare(first, " ".join([words(changed, "v"), *first.split()[changed:]]))

    assert twice.share == share
    assert twice.wants(1) is not clear


@pytest.mark.parametrize(
    ("first", "again", "share"),
    [
        (words(30), f"{words(30)} {words(10, 'x')}", 0.25),  # ten more, of forty
        (f"{words(30)} {words(10, 'x')}", words(30), 0.25),
        (f"{words(20)} {words(10, 'x')}", f"{words(5, 'y')} {words(20)}", 0.5),
        ("", words(30), 1.0),
        (words(1), words(30, "x"), 1.0),
    ],
)
def test_words_that_are_missing_or_new_have_changed(first, again, share):
    twice = LanguageCheck()

    twice.compare(first, again)

    assert twice.share == share


def test_changes_of_all_pieces_are_added_up_and_no_more_than_all_words_change():
    twice = LanguageCheck()
    for other in ("w", "v", "w", "u"):
        twice.compare(words(20), words(20, other))

    assert twice.share == 0.5
    for _ in range(9):
        twice.compare(f"{words(20)} stir", f"stir {words(20, 'x')}")
    assert twice.share == 1.0


def test_words_that_come_often_count_as_others_do():
    twice = LanguageCheck()

    twice.compare("so " + "stir it " * 150, "do " + "stir it " * 150)

    assert twice.share == 0.003


def test_a_sentence_that_comes_again_and_again_counts_once():
    twice = LanguageCheck()
    for _ in range(4):
        twice.compare("He is the one. " * 20, "It was a day. " * 20)

    assert twice.share == 0.0


def test_a_piece_is_changed_by_little_now_slower_now_faster():
    twice, piece = LanguageCheck(), np.sin(np.arange(9 * RATE, dtype=np.float32) / 50)

    slower = twice.changed(piece)
    twice.compare("", "")
    faster = twice.changed(piece)

    assert len(faster) < len(piece) < len(slower) < 1.05 * len(piece)
    assert slower.dtype == faster.dtype == np.float32
    assert [len(slower), len(faster)] == [150_000, 138_461]
    np.testing.assert_allclose(slower[1000], piece[960], atol=1e-3)
    np.testing.assert_allclose(faster[1000], piece[1040], atol=1e-3)
    twice.compare("", "")
    assert len(twice.changed(piece)) == len(slower)


def test_inventions_are_said_and_kept(tmp_path, monkeypatch):
    words = ["the answer is that a government has been able to decide upon that matter again"]
    words += ["remember when everybody saw many stars in our hands as they went under those hills"]
    model, _ = listener(words)
    monkeypatch.setattr(speech, "_load_moonshine", lambda: model)
    path = write_speech(tmp_path / "talk.wav", np.ones(30 * RATE), codec="pcm_s16le")

    first, again = problems_of(path), problems_of(path)

    [problem] = first.found
    assert problem.kind == "foreign speech"
    assert (
        "speech must be English for the built-in model, got words of which 100 %" in problem.what
    )
    assert problem.what.endswith("; put a transcript beside it, or give a speech model")
    assert again.found == first.found


def test_hearing_twice_costs_little_of_a_long_file(tmp_path, monkeypatch):
    model, heard = listener([STEPS])
    monkeypatch.setattr(speech, "_load_moonshine", lambda: model)
    path = write_speech(tmp_path / "talk.wav", np.ones(240 * RATE), codec="pcm_s16le")

    assert not problems_of(path)

    # Silence that only separates pieces costs next to nothing.
    assert sum(heard) - len(heard) * speech._HUSH < 1.15 * 240


@pytest.mark.parametrize("language", ["de", "cake"])
def test_a_voice_in_another_language_is_noticed(tmp_path, monkeypatch, language):
    pytest.importorskip("moonshine_voice")
    if speaking.speaker() is None:
        pytest.skip("needs espeak-ng")
    texts = tomllib.loads(BENCHMARK.read_text("utf-8"))
    english = language == "cake"
    text = texts["english" if english else "seen"][language]
    monkeypatch.setattr(speaking, "VOICE", "en-us" if english else language)
    sound = speaking._synthesize(text, speaking.SPEED)
    at_rate = np.interp(np.arange(0, len(sound), speaking.RATE / RATE), range(len(sound)), sound)

    problems = problems_of(write_speech(tmp_path / "talk.mp4", at_rate, picture=True))

    assert ("foreign speech" in problems.counts) is not english


def test_a_track_in_another_language_is_noticed(tmp_path):
    tried = recording("beckett.wav")[: int(3.2 * RATE)]
    path = write_speech(tmp_path / "talk.mkv", tried, language="ger", picture=True)

    problems = problems_of(path)

    assert "speech must be English for the built-in model, got a track marked 'ger'" in str(
        problems.found[0]
    )
