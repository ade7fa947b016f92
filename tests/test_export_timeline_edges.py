"""Timelines at their edges: hours, tasks of a part, titles without room, and JSON as written."""

import csv
import io

import numpy as np
import pytest

from reference import make_scores
from stepgraph.core import Labels, Segment, Timeline, Video, Vocabulary
from stepgraph.export.timeline import to_csv, to_json, to_text, to_youtube

NAMES = ("boil", "pour", "stïr", "drink")


def timeline_of(*segments, duration, names=NAMES, tasks=None, probable=None, hop=1.0):
    vocabulary = Vocabulary(names, tasks or {})
    given = [Segment(*one) for one in segments]
    labels = Labels.from_segments("v", given, vocabulary, duration=duration, hop=hop)
    scores = make_scores(np.full((len(labels), len(names)), 0.5), vocabulary=vocabulary, hop=hop)
    labels = Labels("v", labels.keysteps, vocabulary, hop, tasks=probable)
    return Timeline(Video("v", duration), labels, scores)


@pytest.mark.parametrize(
    ("start", "clock"), [(3540, "59:00"), (3599, "59:59"), (3600, "1:00:00"), (3661, "1:01:01")]
)
def test_hours_are_shown_from_the_first_on(start, clock):
    timeline = timeline_of((start, start + 60, 0), duration=3800.0)

    assert to_text(timeline).split()[0] == clock


@pytest.mark.parametrize(("keystep", "task"), [(0, "tea"), (1, "tea"), (2, "soup"), (3, "tea")])
def test_a_chapter_of_another_task_names_the_first_that_lists_it(keystep, task):
    tasks = {"soup": (1, 2), "tea": (0, 1), "stew": (2,)}
    timeline = timeline_of((0, 2, keystep), duration=2.0, tasks=tasks, probable={"tea": 0.9})

    [row] = csv.DictReader(io.StringIO(to_csv(timeline), newline=""))

    assert row["task"] == task


def test_where_the_video_shows_no_task_no_chapter_has_one():
    timeline = timeline_of((0, 2, 0), duration=2.0, tasks={"tea": (0,)}, probable={"tea": 0.1})

    [row] = csv.DictReader(io.StringIO(to_csv(timeline), newline=""))

    assert row["task"] == ""


def test_a_short_last_chapter_is_named_by_the_one_before():
    segments = (0, 20, 0), (20, 40, 1), (40, 42, 2)

    lines = to_youtube(timeline_of(*segments, duration=42.0)).splitlines()

    assert lines == ["0:00 boil", "0:20 pour, stïr"]


@pytest.mark.parametrize("count", [3, 4, 5, 6])
def test_a_title_names_as_many_as_there_is_room_for(count):
    names = tuple(f"{number}" * 30 for number in range(count))
    segments = [(2 * number, 2 * number + 2, number) for number in range(count)]

    [line] = to_youtube(timeline_of(*segments, duration=12.0, names=names)).splitlines()

    room = next(
        shown
        for shown in range(count, 0, -1)
        if len(", ".join(names[:shown])) + (len(" and 9 more") if shown < count else 0) <= 100
    )
    more = f" and {count - room} more" if room < count else ""
    assert line == f"0:00 {', '.join(names[:room])}{more}"


def test_json_is_indented_by_one_and_keeps_its_letters():
    text = to_json(timeline_of((0, 2, 2), duration=2.0))

    assert '\n "chapters": [\n  {\n' in text
    assert "stïr" in text
