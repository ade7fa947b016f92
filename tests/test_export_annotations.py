"""Annotations stay: in results that are made again, in what is mined, and as a truth."""

import json
from pathlib import Path

import numpy as np
import pytest

import stepgraph as sg
from reference import make_scores
from stepgraph.cli import main
from stepgraph.core import BACKGROUND, Chapter, Labels, Result, Segment, Timeline, Video
from stepgraph.errors import DataError
from stepgraph.export.annotations import (
    AnnotatedSegment,
    _around,
    read_annotations,
    to_segments,
    write_annotated,
)
from stepgraph.export.results import load_result, read_annotation, save_corrections
from stepgraph.export.timeline import write_timeline
from stepgraph.problems import Problems

FOUND = (
    Chapter(10.0, 20.0, "boil", None, "label"),
    Chapter(20.0, 40.0, "pour", None, "label"),
    Chapter(50.0, 60.0, "stir", None, "label"),
)
PLAIN = [(one.start, one.end, one.keystep) for one in FOUND]


def annotated(folder: Path, steps, earlier=None):
    write_timeline(Result(Video("tea", 90.0), FOUND), folder)
    save_corrections(folder / "tea.steps.json", steps, earlier)
    return read_annotations(folder).get("tea", ())


def test_what_was_left_as_it_was_is_not_annotated(tmp_path):
    assert annotated(tmp_path, PLAIN) == ()


def test_a_border_that_was_moved_decides_both_sides_of_it(tmp_path):
    steps = [(10.0, 23.5, "boil"), (23.5, 40.0, "pour"), PLAIN[2]]

    assert annotated(tmp_path, steps) == (
        AnnotatedSegment(10.0, 23.5, "boil"),
        AnnotatedSegment(23.5, 40.0, "pour"),
    )


def test_a_step_that_was_taken_away_leaves_nothing_there(tmp_path):
    assert annotated(tmp_path, PLAIN[1:]) == (AnnotatedSegment(10.0, 20.0, None),)


def test_of_a_step_that_was_shortened_the_rest_is_nothing(tmp_path):
    assert annotated(tmp_path, [*PLAIN[:2], (50.0, 55.0, "stir")]) == (
        AnnotatedSegment(50.0, 55.0, "stir"),
        AnnotatedSegment(55.0, 60.0, None),
    )


def test_a_step_that_gets_the_name_of_the_next_decides_it_too(tmp_path):
    steps = [(10.0, 20.0, "pour"), *PLAIN[1:]]

    assert annotated(tmp_path, steps) == (
        AnnotatedSegment(10.0, 20.0, "pour"),
        AnnotatedSegment(20.0, 40.0, "pour"),
    )


def test_a_new_step_and_a_new_name_are_annotated(tmp_path):
    steps = [*PLAIN[:2], (42.0, 45.0, "wait"), (50.0, 60.0, "serve")]

    assert annotated(tmp_path, steps) == (
        AnnotatedSegment(42.0, 45.0, "wait"),
        AnnotatedSegment(50.0, 60.0, "serve"),
    )


def test_what_was_annotated_before_the_result_was_made_still_is(tmp_path):
    assert annotated(tmp_path, PLAIN, [(10.0, 20.0), (70.0, 80.0)]) == (
        AnnotatedSegment(10.0, 20.0, "boil"),
        AnnotatedSegment(70.0, 80.0, None),
    )
    save_corrections(tmp_path / "tea.steps.json", PLAIN[:2])

    assert [one.start for one in read_annotations(tmp_path)["tea"]] == [10.0, 50.0, 70.0]


@pytest.mark.parametrize(
    ("spans", "left"),
    [
        ([], [(10, 40)]),
        ([(20, 30, None)], [(10, 20), (30, 40)]),
        ([(20, 30, "boil"), (32, 35, None)], [(10, 20), (30, 32), (35, 40)]),
        ([(5, 10, None), (40, 50, "boil")], [(10, 40)]),
        ([(5, 12, "boil"), (30, 50, None)], [(12, 30)]),
        ([(5, 50, None)], []),
        # What is shorter than a row is left out.
        ([(11, 39.5, None)], [(10, 11)]),
        ([(10.5, 39, None)], [(39, 40)]),
        # Of a step that was decided nothing else goes on, in the row beside it neither.
        ([(20, 30, "pour")], []),
        ([(40.4, 50, "pour")], []),
        ([(40.5, 50, "pour")], [(10, 40)]),
        ([(5, 9.6, "pour")], []),
        ([(5, 9.5, "pour")], [(10, 40)]),
        ([(20, 25, None), (30, 35, "pour")], [(10, 20)]),
    ],
)
def test_of_a_chapter_what_nobody_annotated_is_left(spans, left):
    pour = Chapter(10.0, 40.0, "pour", 0.5, "path", 0.25)

    found = [*_around(pour, [AnnotatedSegment(*one) for one in spans], 1.0)]

    assert found == [Chapter(*one, "pour", 0.5, "path", 0.25) for one in left]


def test_videos_of_a_folder_and_below_it_are_read_and_one_without_decisions_is_not(tmp_path):
    assert read_annotations(tmp_path / "none") == {}
    for name, steps in (("a/tea", PLAIN[1:]), ("b/tea", PLAIN), ("c", PLAIN[:2]), ("z", [])):
        write_timeline(Result(Video(name, 90.0), FOUND), tmp_path)
        save_corrections(tmp_path / f"{name}.steps.json", steps)
    save_corrections(tmp_path / "gone.steps.json", PLAIN)
    problems = Problems()

    assert read_annotations(tmp_path, problems) == {
        "a/tea": (AnnotatedSegment(10.0, 20.0, None),),
        "c": (AnnotatedSegment(50.0, 60.0, None),),
        "z": (
            AnnotatedSegment(10.0, 20.0, None),
            AnnotatedSegment(20.0, 40.0, None),
            AnnotatedSegment(50.0, 60.0, None),
        ),
    }
    assert len(problems.failed) == 1
    with pytest.raises(DataError, match=r"gone\.steps\.json"):
        read_annotations(tmp_path)


def test_a_step_that_reaches_into_what_was_annotated_is_annotated_as_a_whole(tmp_path):
    assert annotated(tmp_path, PLAIN, [(35.0, 52.0)]) == (
        AnnotatedSegment(20.0, 40.0, "pour"),
        AnnotatedSegment(40.0, 50.0, None),
        AnnotatedSegment(50.0, 60.0, "stir"),
    )


def test_steps_over_each_other_are_annotated_together(tmp_path):
    steps = [*PLAIN, (15.0, 18.0, "wait"), (55.0, 70.0, "serve")]

    assert annotated(tmp_path, steps) == (
        AnnotatedSegment(10.0, 20.0, "boil"),
        AnnotatedSegment(15.0, 18.0, "wait"),
        AnnotatedSegment(50.0, 60.0, "stir"),
        AnnotatedSegment(55.0, 70.0, "serve"),
    )


def test_a_step_in_pieces_that_touch_is_annotated_as_one_wherever_it_stands(tmp_path):
    steps = [*PLAIN, (60.0, 70.0, "stir"), (70.0, 75.0, "stir")]

    assert annotated(tmp_path, steps) == (
        AnnotatedSegment(50.0, 60.0, "stir"),
        AnnotatedSegment(60.0, 70.0, "stir"),
        AnnotatedSegment(70.0, 75.0, "stir"),
    )


def test_a_timeline_is_written_with_what_was_annotated_in_it(tmp_path):
    tea = sg.Vocabulary(("boil", "pour"), {"Make tea": (0, 1)})
    rows = [0] * 4 + [1] * 4 + [BACKGROUND] * 2
    labels = Labels("tea", np.array(rows), tea, 2.0, tasks={"Make tea": 0.75})
    timeline = Timeline(
        Video("tea", 20.0), labels, make_scores(np.zeros((10, 2)), vocabulary=tea, hop=2.0)
    )
    spans = (AnnotatedSegment(1.5, 5.25, None), AnnotatedSegment(9.0, 11.5, "wait"))

    result = write_annotated(timeline, spans, tmp_path)

    assert [(one.start, one.end, one.keystep, one.origin) for one in result] == [
        (5.25, 8.0, "boil", "label"),
        (9.0, 11.5, "wait", "corrected"),
        (11.5, 16.0, "pour", "label"),
    ]
    wait = Chapter(9.0, 11.5, "wait", None, "corrected", 1.0, None, "Make tea")
    assert result.chapters[1] == wait
    assert (result.tasks, result.fingerprint, result.corrected) == (
        {"Make tea": 0.75},
        tea.fingerprint,
        True,
    )
    assert read_annotation(tmp_path / "tea.steps.json")[1] == [one[:2] for one in spans]
    assert load_result(tmp_path / "tea.steps.json").chapters == result.chapters
    assert read_annotations(tmp_path)["tea"] == spans


def test_a_step_that_the_vocabulary_does_not_know_is_none_of_its_keysteps():
    tea = sg.Vocabulary(("boil", "pour"))

    found = to_segments([AnnotatedSegment(1, 2, "boil"), AnnotatedSegment(2, 3, "serve")], tea)

    assert found == [Segment(1, 2, 0), Segment(2, 3, BACKGROUND)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Results of the demo, and the graph they were made with."""
    folder = tmp_path_factory.mktemp("demo")
    assert main(["mine", "demo", "-o", str(folder / "graph.json")]) == 0
    chosen = ["recognize", "demo", "--graph", str(folder / "graph.json")]
    assert main([*chosen, "-o", str(folder / "out")]) == 0
    return folder


@pytest.fixture
def corrected(made, tmp_path, monkeypatch):
    """The same with one video corrected: a border moved, a step taken away, one renamed."""
    monkeypatch.chdir(tmp_path)
    for path in (made / "out").glob("chair-*"):
        Path("out").mkdir(exist_ok=True)
        Path("out", path.name).write_bytes(path.read_bytes())
    steps = [(one.start, one.end, one.keystep) for one in sg.load("out/chair-1.steps.json")]
    border = steps[1][1] + 2.5
    steps[1] = (steps[1][0], border, steps[1][2])
    steps[2] = (border, *steps[2][1:])
    steps[-1] = (*steps[-1][:2], "polish the chair")
    gone = steps.pop(-3)
    save_corrections(Path("out/chair-1.steps.json"), steps)
    return made, steps, gone


@pytest.mark.parametrize("decoder", ["task-markov", "path-search"])
def test_recognising_again_keeps_what_was_annotated(corrected, capsys, decoder):
    made, steps, gone = corrected
    again = ["recognize", "demo", "--graph", str(made / "graph.json"), "-o", "out"]

    for _ in range(2):  # and then once more
        assert main([*again, "--decoder", decoder]) == 0

        assert "(1 with corrections)" in capsys.readouterr().out
        found = sg.load("out/chair-1.steps.json")
        spans = [(one.start, one.end, one.keystep) for one in found]
        kept = [step for step in spans if step in (steps[1], steps[2], steps[-1])]
        assert kept == [steps[1], steps[2], steps[-1]]
        assert [one.origin for one in found].count("corrected") == 3
        assert not [one for one in spans if one[0] < gone[1] and gone[0] < one[1]]
        assert found.corrected
        ordered = [time for start, end, _ in spans for time in (start, end)]
        assert ordered == sorted(ordered)
        assert "polish the chair" in Path("out/chair-1.chapters.vtt").read_text()
        assert "-inf" not in Path("out/chair-1.steps.csv").read_text()
    assert not Path("out/chair-2.corrected.json").exists()


def test_results_elsewhere_take_the_corrections_named(corrected, capsys):
    made, steps, _ = corrected
    args = ["recognize", "demo", "--graph", str(made / "graph.json"), "-o", "new"]

    assert main([*args, "--corrections", "out"]) == 0

    assert [*steps[-1]] in json.loads(Path("new/chair-1.corrected.json").read_text())["steps"]


def test_mining_counts_what_was_annotated(corrected, capsys):
    made, _, _ = corrected

    assert main(["mine", "demo", "--corrections", "out", "-o", "graph.json"]) == 0

    assert "mined from 36 videos, 1 of them corrected" in capsys.readouterr().out
    before, after = sg.load(made / "graph.json"), sg.load("graph.json")
    assert (before.counts != after.counts).nnz > 0
    assert before.mined_on == after.mined_on


def test_corrections_are_the_truth_of_their_videos(corrected, capsys):
    steps = [(one.start, one.end, one.keystep) for one in sg.load("out/chair-2.steps.json")]
    save_corrections(Path("out/chair-2.steps.json"), steps)
    Path("out/chair-1.corrected.json").unlink()
    Path("videos").mkdir()
    Path("videos/chair-2.srt").write_text("1\n00:00:01,000 --> 00:00:09,000\nscrape the glue\n")
    words = ["# Chair", *dict.fromkeys(step[2] for step in steps)]
    Path("steps.txt").write_text("\n".join(words))
    chosen = ["evaluate", "videos", "--vocabulary", "steps.txt", "--corrections", "out", "--json"]
    capsys.readouterr()

    assert main(chosen) == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["videos"], told["videos_with_truth"]) == (1, 1)
    assert told["keystep_rows"] == sum(round(end - start) for start, end, _ in steps)


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (["mine", "demo", "--corrections", "none"], "none: must hold corrected results"),
        (["evaluate", "demo", "--corrections", "out"], "49 of the vocabulary, got 'polish the"),
        (["evaluate", "demo", "--corrections", "none"], "none: must hold results"),
    ],
)
def test_what_cannot_be_taken_is_one_line(corrected, capsys, verb, message):
    assert main(verb) == 1

    assert message in capsys.readouterr().err


def test_a_damaged_correction_stops_no_other_video(corrected, capsys):
    made, *_ = corrected
    Path("out/chair-2.corrected.json").write_text('{"format": "stepgraph-corrections", "ver')
    args = ["recognize", "demo", "--graph", str(made / "graph.json"), "-o", "out"]

    assert main(args) == 1

    printed = capsys.readouterr()
    assert "36 videos: chapters written to out (1 with corrections)" in printed.out
    assert "chair-2.corrected.json" in printed.err
