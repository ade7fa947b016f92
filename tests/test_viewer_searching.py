"""Search in results: what is found, and that the index is what the results say."""

import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stepgraph as sg
from stepgraph.cli import main
from stepgraph.core import Chapter, Result, Sentence, Video
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.viewer import index as files
from stepgraph.viewer.searching import Index, nearest

TEA = Result(
    Video(
        "monday/tea",
        60.0,
        (
            Sentence(1.0, 3.0, "Hello and welcome."),
            Sentence(5.0, 9.0, "First bring the water to a boil."),
            Sentence(9.0, 12.0, "While the kettle boils, relax."),
            Sentence(40.0, 44.0, "Now pour it into your favourite mug."),
        ),
    ),
    (
        Chapter(4.0, 20.0, "boil the water", None, "label"),
        Chapter(38.0, 50.0, "pour into the cup", None, "label"),
    ),
)
EGGS = Result(
    Video("eggs", 30.0, (Sentence(2.0, 4.0, "Crack two eggs with the quibbler."),)),
    (Chapter(1.0, 9.0, "crack the eggs", None, "label"),),
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    for one in (TEA, EGGS):
        sg.write_timeline(one, "out")
    return Path("out")


def test_a_question_finds_the_moment_with_its_step(results):
    [best, *_] = Index(results).search("how do I get hot water?")

    assert (best.video, best.start, best.end) == ("monday/tea", 5.0, 9.0)
    assert best.text == "First bring the water to a boil."
    assert (best.keystep, best.chapter) == ("boil the water", (4.0, 20.0))
    assert 0 < best.score <= 1


def test_of_a_chapter_only_the_best_moment_is_shown(results):
    found = Index(results).search("boil water")

    assert [one.keystep for one in found].count("boil the water") == 1


def test_what_is_said_where_nothing_is_done_is_found_too(results):
    found = Index(results).search("hello and welcome")

    assert ("Hello and welcome.", None) in [(one.text, one.keystep) for one in found]


def test_a_rare_word_is_found_among_many_sentences(results, monkeypatch):
    monkeypatch.setattr("stepgraph.viewer.searching._CANDIDATES", 1)

    found = Index(results).search("quibbler")

    assert "Crack two eggs with the quibbler." in [one.text for one in found]


@pytest.mark.parametrize("question", ['"', "a AND (", "NEAR(", "text:x", "-*", "';DROP"])
def test_no_question_is_taken_for_a_query_language(results, question):
    assert len(Index(results).search(question, most=2)) == 2


def test_at_most_as_many_moments_as_asked_for_come(results):
    assert len(Index(results).search("water", most=1)) == 1
    assert len(Index(results).search("water", most=100)) == 4


def test_a_question_without_words_is_an_error(results):
    with pytest.raises(ConfigError, match=r"^question must have words, got none"):
        Index(results).search("  ")
    with pytest.raises(ConfigError, match="top must be at least 1, got 0"):
        Index(results).search("water", 0)


def test_results_in_which_nothing_is_said_answer_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    sg.write_timeline(Result(Video("silent", 9.0), TEA.chapters[:1]), tmp_path / "out")

    assert Index(tmp_path / "out").search("water") == []


# --- The index


def test_an_added_video_is_found(results):
    Index(results)
    sg.write_timeline(replace(EGGS, video=replace(EGGS.video, id="again")), results)

    found = Index(results).search("crack the eggs", most=2)

    assert {one.video for one in found} == {"eggs", "again"}


def test_a_result_that_is_gone_is_not_found(results):
    Index(results)
    (results / "eggs.steps.json").unlink()

    assert {one.video for one in Index(results).search("crack the eggs")} == {"monday/tea"}


def test_only_what_is_new_is_encoded_again(results, monkeypatch):
    Index(results)
    sg.write_timeline(replace(EGGS, video=replace(EGGS.video, id="again")), results)
    encoded = []
    plain = files.TextEncoder.encode_videos

    def counted(self, videos):
        encoded.extend(video.id for video in videos)
        return plain(self, videos)

    monkeypatch.setattr(files.TextEncoder, "encode_videos", counted)

    Index(results)
    Index(results)

    assert encoded == ["again"]


def test_the_updated_index_is_the_one_made_anew(results, tmp_path):
    Index(results)
    sg.write_timeline(replace(EGGS, video=replace(EGGS.video, id="again")), results)
    updated = Index(results)._files

    Path("out").rename("moved")
    anew = Index("moved")._files

    assert updated.keysteps == anew.keysteps
    for name in ("rows", "vectors", "coarse", "directions"):
        assert (getattr(updated, name) == getattr(anew, name)).all()


@pytest.mark.parametrize("name", ["index.json", "vectors", "rows", "coarse"])
def test_a_damaged_index_is_made_again(results, tmp_path, name):
    Index(results)
    [path] = (tmp_path / "cache").rglob(name)
    path.write_bytes(b"{")

    assert Index(results).search("crack the eggs")[0].video == "eggs"


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0", None])
def test_damage_that_shows_only_in_a_search_is_mended(results, tmp_path, damage):
    index = Index(results)
    [path] = (tmp_path / "cache").rglob("words.sqlite" if damage is not None else "rows")
    if damage is None:
        rows = np.fromfile(path, files.ROW)
        rows["keystep"] = 99
        damage = rows.tobytes()
    path.write_bytes(damage)

    assert index.search("crack the eggs")[0].video == "eggs"
    assert Index(results).search("crack the eggs")[0].keystep == "crack the eggs"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("places", [["a.steps.json", "1-1", "a", -1]]),
        ("places", [["a.steps.json", "1-1", 7, 1]]),
        ("size", 10**30),
        ("keysteps", [1, 2, 3]),
    ],
)
def test_an_index_that_says_what_cannot_be_is_made_again(results, tmp_path, field, value):
    Index(results)
    [path] = (tmp_path / "cache").rglob("index.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))

    assert Index(results).search("crack the eggs")[0].video == "eggs"


def test_an_index_that_cannot_be_written_is_one_line(results, tmp_path, capsys):
    (tmp_path / "cache").write_text("no folder")

    assert main(["search", "out", "eggs"]) == 1

    said = capsys.readouterr().err
    assert re.search("the index cannot be written: .*Not a directory.*; set STEPGRAPH_CACHE", said)
    assert said.count("\n") == 1


def test_old_files_do_not_pile_up(results, tmp_path):
    Index(results)
    (results / "eggs.steps.json").unlink()
    Index(results)

    assert len(list((tmp_path / "cache").rglob("vectors"))) == 1


def test_nothing_is_written_into_the_results(results):
    before = sorted(results.rglob("*"))

    Index(results).search("water")

    assert sorted(results.rglob("*")) == before


def test_an_unreadable_result_stops_no_other(results):
    (results / "a.steps.json").write_text("{")
    problems = Problems()

    found = Index(results, problems).search("eggs")

    assert found[0].video == "eggs"
    assert problems.counts == {"unreadable result": 1}
    with pytest.raises(DataError, match=r"a\.steps\.json"):
        Index(results)


def test_words_are_all_there(results, tmp_path):
    Index(results)
    [path] = (tmp_path / "cache").rglob("words.sqlite")

    with sqlite3.connect(path) as database:
        [(count,)] = database.execute("SELECT count(*) FROM said")

    assert count == 5


# --- The first look


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000, 5003])
def test_the_first_look_misses_no_greater_product(count):
    for seed in range(5):
        random = np.random.default_rng(seed)
        coarse = random.integers(-127, 128, (count, 64)).astype(np.int8)
        asked = random.normal(size=64).astype(np.float32)

        found = nearest(coarse, asked, 20)

        query = np.rint(asked * (32_000 / np.abs(asked).max())).astype(np.int64)
        products = coarse.astype(np.int64) @ query
        expected = np.sort(products)[::-1][:20]
        assert (np.sort(products[found])[::-1] == expected).all()
        assert len(set(found.tolist())) == min(20, count)


# --- As a user


def test_moments_are_printed_the_best_first(results, capsys):
    assert main(["search", "out", "where", "is", "the", "water", "boiled?", "--top", "2"]) == 0

    first, _ = capsys.readouterr().out.splitlines()
    assert "monday/tea 0:05  [boil the water]  First bring the water to a boil." in first


def test_moments_are_one_json_object(results, capsys):
    assert main(["search", "out", "eggs", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["sentences"] == 5
    assert found["hits"][0]["keystep"] == "crack the eggs"


def test_a_folder_without_results_is_one_line(results, capsys):
    assert main(["search", "cache", "eggs"]) == 1

    assert "must hold results (.steps.json), got none" in capsys.readouterr().err
