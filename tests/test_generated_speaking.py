"""Clips that speak: what is said when, by whom, and what happens where nobody can speak."""

import re
import shutil

import numpy as np
import pytest

from stepgraph import progress
from stepgraph.core import Sentence
from stepgraph.datasets import generated
from stepgraph.datasets.generated import generated_folder, open_generated, speaking
from stepgraph.datasets.generated.render import render
from stepgraph.datasets.generated.scripts import Script, Shot
from stepgraph.ingest import Listening, open_video
from stepgraph.ingest.media import media_duration
from stepgraph.problems import Problems

pytest.importorskip("av")
TWO = ("Wire a signal lamp", "Fix a wobbly stool")
SMALL = Script(
    "small",
    "Build a toy cart",
    (Shot(0.0, 9.0, "talk"),),
    (
        Sentence(0.5, 2.0, "good morning and welcome back"),
        Sentence(5.0, 7.0, "push the red block to the left"),
    ),
    seed=5,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path))


@pytest.fixture
def reader(monkeypatch):
    """One who takes a second for four words, and half of it at twice the speed."""

    def read(text, speed):
        seconds = len(text.split()) / 4 * speaking.SPEED / speed
        return np.full(round(seconds * speaking.RATE), 0.5, np.float32)

    monkeypatch.setattr(speaking, "_synthesize", read)


@pytest.fixture
def corpus(monkeypatch):
    """Clips that are only names, and say so with their voice in front."""
    monkeypatch.setattr(generated, "render", lambda script, path: path.write_text(script.video))
    monkeypatch.setattr(speaking, "speaker", lambda: "somebody-1")
    monkeypatch.setattr(generated, "find_spec", lambda _: True)
    monkeypatch.setattr(
        speaking,
        "give_voice",
        lambda script, written, path: path.write_text(f"spoken {written.read_text()}"),
    )
    scripts = generated.write_scripts(0, 2, TWO)
    return lambda: generated._folder_with_speech(
        generated_folder(per_task=2, tasks=TWO), scripts[::2]
    )


def loud(sound):
    """Seconds at which something is said, as pairs of begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], sound > 0, [0]])))
    return [tuple(pair) for pair in np.round(edges.reshape(-1, 2) / speaking.RATE, 2)]


def test_sentences_are_said_at_their_times(reader):
    said = speaking.speak([Sentence(1, 2, "a b c d"), Sentence(4, 5, "a b")], 6.0)

    assert loud(said) == [(1.0, 2.0), (4.0, 4.5)]
    assert len(said) == 6 * speaking.RATE


def test_a_sentence_without_room_is_said_faster(reader):
    sentences = [Sentence(0, 1, " ".join("abcdefgh")), Sentence(1.65, 2, "a b")]

    begin, end = np.flatnonzero(speaking.speak(sentences, 4.0))[[0, -1]] / speaking.RATE
    gap = speaking.speak(sentences, 4.0)[int(1.4 * speaking.RATE) : int(1.64 * speaking.RATE)]

    assert (begin, end) == pytest.approx((0.0, 2.15), abs=0.01)
    assert not gap.any()


def test_what_is_said_last_ends_with_the_clip(reader):
    said = speaking.speak([Sentence(3.8, 5, " ".join("abcdefgh"))], 4.0)

    assert len(said) == 4 * speaking.RATE
    assert said[-1]


def test_some_clips_speak_and_the_written_corpus_stays_as_it_is(corpus):
    folder = corpus()

    written = generated_folder(per_task=2, tasks=TWO)
    assert folder.name == f"{written.name}-somebody-1"
    texts = {path.stem: path.read_text() for path in folder.glob("*.mp4")}
    assert sorted(stem for stem, text in texts.items() if text == f"spoken {stem}") == [
        "signal-lamp-0-01",
        "wobbly-stool-0-01",
    ]
    assert all(path.read_text() == path.stem for path in written.glob("*.mp4"))
    assert (folder / "truth.csv").read_bytes() == (written / "truth.csv").read_bytes()
    assert generated.is_whole(folder)


def test_another_voice_makes_another_folder(corpus, monkeypatch):
    first, again = corpus(), corpus()
    monkeypatch.setattr(speaking, "speaker", lambda: "somebody-2")

    assert first == again != corpus()


def test_a_damaged_clip_speaks_again(corpus):
    folder = corpus()
    next(folder.glob("*.mp4")).unlink()

    assert generated.is_whole(corpus())


@pytest.mark.parametrize("missing", ["espeak-ng", "moonshine-voice"])
def test_where_nothing_speaks_or_listens_text_tracks_stay(monkeypatch, corpus, capsys, missing):
    if missing == "espeak-ng":
        monkeypatch.undo()
        monkeypatch.setattr(generated, "render", lambda script, path: path.write_text("x"))
        monkeypatch.setattr(speaking, "PROGRAM", "no-such-program")
        missing = "no-such-program"
    else:
        monkeypatch.setattr(
            generated, "find_spec", lambda name: None if name == "moonshine_voice" else True
        )

    with progress.shown():
        folder = corpus()

    assert folder == generated_folder(per_task=2, tasks=TWO)
    assert capsys.readouterr().err == (
        f"stepgraph: {missing} is not installed: clips have text tracks instead of speech\n"
    )


def needs_voice():
    pytest.importorskip("moonshine_voice")
    if shutil.which(speaking.PROGRAM) is None:
        pytest.skip("needs espeak-ng")


def test_a_clip_that_speaks_is_heard(tmp_path):
    needs_voice()
    render(SMALL, tmp_path / "written.mp4")
    path = tmp_path / "spoken.mp4"
    speaking.give_voice(SMALL, tmp_path / "written.mp4", path)

    video = open_video(path, listening=Listening(save=True), problems=Problems())

    said = " ".join(one.text.lower() for one in video.transcript)
    assert re.search(r"good morning.*welcome back.*red block", said)
    begin = next(one.start for one in video.transcript if "red block" in one.text)
    assert begin == pytest.approx(5.0, abs=1.0)
    assert media_duration(path) == pytest.approx(9.0, abs=0.1)
    assert re.fullmatch(r"espeak-ng-\d[\w.]*-en-us-150", speaking.speaker())


def test_the_corpus_opens_with_what_was_heard(tmp_path):
    needs_voice()

    dataset = open_generated(0, 1, tasks=TWO[:1], with_speech=True)

    [video], written = dataset.videos, open_generated(0, 1, tasks=TWO[:1]).videos[0]
    assert video.task == TWO[0]
    assert video.duration == pytest.approx(written.duration, abs=0.1)
    words = {word for one in written.transcript for word in one.text.lower().split()}
    heard = [word for one in video.transcript for word in re.findall(r"[a-z']+", one.text.lower())]
    assert np.mean([word in words for word in heard]) > 0.7
    assert "foreign speech" not in dataset.problems.counts
