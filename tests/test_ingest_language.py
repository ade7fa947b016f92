"""Narration that is not English is noticed, and said."""

import tomllib
from pathlib import Path

import pytest

from stepgraph.cli import main
from stepgraph.core import Sentence
from stepgraph.ingest.language import little_words, reads_as_english

WRITTEN = tomllib.loads(
    (Path(__file__).parents[1] / "benchmarks" / "languages.toml").read_text("utf-8")
)
LANGUAGES = WRITTEN["seen"] | WRITTEN["unseen"]


def said(text):
    return [Sentence(i, i + 1, part) for i, part in enumerate(text.split("."))]


def test_other_languages_do_not_read_as_english():
    enough = {name: text for name, text in LANGUAGES.items() if len(text.split()) >= 25}
    assert len(enough) > 20

    assert [name for name, text in enough.items() if reads_as_english(said(text))] == []


def test_english_does_though_it_be_dialogue_or_a_recipe():
    texts = WRITTEN["english"].values()

    assert all(reads_as_english(said(text)) for text in texts)


def test_share_is_counted_over_the_first_words():
    assert little_words(said("the egg " * 20)) == 0.5
    assert little_words(said("the egg " * 200 + "Ei " * 900)) == 0.5


@pytest.mark.parametrize("text", ["", "Eier schlagen", "Ei " * 24])
def test_few_words_tell_nothing(text):
    assert reads_as_english(said(text))


def test_twenty_five_words_tell():
    assert not reads_as_english(said("Ei " * 25))


@pytest.mark.data
def test_real_english_narration_reads_as_english(real_data):
    from stepgraph.datasets import open_source

    videos = open_source(f"crosstask:{real_data / 'crosstask'}").videos

    assert [one.id for one in videos if not reads_as_english(one.transcript)] == []


def test_the_command_warns_and_goes_on(tmp_path, capsys):
    folder = tmp_path / "videos"
    folder.mkdir()
    cue = "1\n00:00:00,000 --> 00:00:30,000\n{}\n"
    (folder / "tee.srt").write_text(cue.format(" ".join(LANGUAGES["de"].split())), "utf-8")
    (folder / "tea.srt").write_text(cue.format("boil the water and pour it on the tea " * 4))
    (tmp_path / "steps.txt").write_text("# Tea\nboil the water\npour the tea\n")

    steps, graph = str(tmp_path / "steps.txt"), str(tmp_path / "graph.json")
    code = main(["mine", str(folder), "--vocabulary", steps, "-o", graph])

    assert code == 0
    told = capsys.readouterr().err
    assert "1 narration that is not English" in told
    assert "tee" in told
    assert "text:FOLDER" in told
