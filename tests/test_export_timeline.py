"""Timelines, and the formats that people want them in."""

import csv
import io
import json
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pysubs2
import pytest

from reference import make_scores
from stepgraph.core import Chapter, Labels, Segment, Sentence, Timeline, Video, Vocabulary
from stepgraph.datasets.reading import read_truth
from stepgraph.export.timeline import (
    FORMATS,
    to_csv,
    to_json,
    to_text,
    to_vtt,
    to_youtube,
    write_timeline,
)
from stepgraph.files.cells import read_cell
from stepgraph.problems import Problems

HOSTILE = (
    "a\n\nb",
    "a\r\nb",
    "a\rb",
    "a, b; 'c' \"d\"",
    "00:00:00.000 --> 00:00:09.000",
    "x\n\n00:00:00.000 --> 00:00:09.000\ny",
    "<b>bold</b> & <script>",
    "0:00 zero",
    "crème 🥚",
    "a\u2028b",
)


def timeline_of(*segments, duration, names=("boil", "pour", "stir"), anchors=None, hop=1.0):
    """A timeline whose chapters are the (start, end, keystep) given; all rows score 0.5."""
    vocabulary = Vocabulary(tuple(names))
    labels = Labels.from_segments(
        "v", (Segment(*one) for one in segments), vocabulary, duration=duration, hop=hop
    )
    scores = make_scores(np.full((len(labels), len(names)), 0.5), vocabulary=vocabulary, hop=hop)
    labels = Labels("v", labels.keysteps, vocabulary, hop, anchors)
    return Timeline(Video("v", duration), labels, scores, overlap=0.0)


def youtube(timeline):
    """Read chapters back as YouTube does: a time and a title a line."""
    chapters = []
    for line in to_youtube(timeline).splitlines():
        clock, _, title = line.partition(" ")
        seconds = 0
        for part in clock.split(":"):
            seconds = 60 * seconds + int(part)
        chapters.append((seconds, title))
    return chapters


EMPTY = timeline_of(duration=30.0)


# --- Chapters


def test_chapters_are_runs_of_one_keystep():
    timeline = timeline_of((0, 2, 1), (2, 5, 0), (6, 7, 0), duration=8.0)

    assert list(timeline) == [
        Chapter(0, 2, "pour", 0.5, "label"),
        Chapter(2, 5, "boil", 0.5, "label"),
        Chapter(6, 7, "boil", 0.5, "label"),
    ]


def test_no_chapter_reaches_past_the_end_of_the_video():
    [chapter] = timeline_of((0, 10, 1), duration=9.2)

    assert (chapter.start, chapter.end) == (0, 9.2)


def test_score_is_the_mean_over_observed_rows():
    vocabulary = Vocabulary(("boil", "pour"))
    labels = Labels("v", np.zeros(3, np.int64), vocabulary)
    scores = make_scores([[0.2, 9], [7, 9], [0.4, 9]], [True, False, True], vocabulary=vocabulary)

    [chapter] = Timeline(Video("v", 3.0), labels, scores)

    assert chapter.score == pytest.approx(0.3)


def test_score_of_a_chapter_without_speech_is_none():
    vocabulary = Vocabulary(("boil", "pour"))
    labels = Labels("v", np.zeros(2, np.int64), vocabulary)
    scores = make_scores(np.zeros((2, 2)), [False, False], vocabulary=vocabulary)

    [chapter] = Timeline(Video("v", 2.0), labels, scores)

    assert chapter.score is None


def test_origin_tells_what_was_heard_from_what_was_found():
    anchors = np.array([True, False, False, False, False, True])

    timeline = timeline_of((0, 2, 0), (2, 4, 1), (4, 6, 2), duration=6.0, anchors=anchors)

    assert [chapter.origin for chapter in timeline] == ["anchor", "path", "anchor"]


def test_origin_without_any_anchor_is_the_label():
    timeline = timeline_of((0, 2, 0), duration=2.0, anchors=np.zeros(2, bool))

    assert [chapter.origin for chapter in timeline] == ["label"]


def test_chapters_of_short_rows_are_in_seconds():
    timeline = timeline_of((0, 0.3, 0), (0.3, 0.6, 1), duration=0.6, hop=0.1)

    assert [(c.start, c.end) for c in timeline] == [
        (0, pytest.approx(0.3)),
        (pytest.approx(0.3), pytest.approx(0.6)),
    ]


# --- JSON and CSV


def test_json_holds_everything():
    content = json.loads(to_json(timeline_of((0, 2, 1), duration=3.0)))

    assert (content["format"], content["version"]) == ("stepgraph-timeline", 2)
    assert (content["video"], content["duration"]) == ("v", 3.0)
    assert content["chapters"] == [
        {
            "start": 0.0,
            "end": 2.0,
            "keystep": "pour",
            "score": 0.5,
            "origin": "label",
            "confidence": None,
            "words": None,
            "task": None,
            "alternatives": [],
        }
    ]
    assert (content["media"], content["transcript"]) == (None, [])


def test_what_is_said_has_its_times_to_the_thousandth_of_a_second():
    said = (Sentence(0.12349, 1.23451, "pour it"),)
    timeline = timeline_of((0, 2, 1), duration=3.0)

    content = json.loads(to_json(replace(timeline, video=Video("v", 3.0, said))))

    assert content["transcript"] == [[0.123, 1.235, "pour it"]]


@pytest.mark.parametrize("name", HOSTILE)
def test_json_gives_any_name_back(name):
    timeline = timeline_of((0, 2, 0), duration=3.0, names=(name, "stir"))

    assert json.loads(to_json(timeline))["chapters"][0]["keystep"] == name


def test_csv_has_one_line_a_chapter():
    text = to_csv(timeline_of((0, 2, 1), (2, 3, 0), duration=3.0))

    assert text.splitlines() == [
        "video,start,end,keystep,score,basis,confidence,words,task",
        "v,0.0,2.0,pour,0.5000,unspecified,,,",
        "v,2.0,3.0,boil,0.5000,unspecified,,,",
    ]


@pytest.mark.parametrize(
    ("anchors", "basis"), [([True, False, True], "matched"), ([False, False, True], "inferred")]
)
def test_csv_names_the_basis_of_a_chapter(anchors, basis):
    timeline = timeline_of((0, 2, 1), (2, 3, 0), duration=3.0)
    labels = replace(timeline.labels, anchors=np.array(anchors))
    timeline = Timeline(timeline.video, labels, timeline.scores)

    rows = [*csv.DictReader(io.StringIO(to_csv(timeline), newline=""))]

    assert [row["basis"] for row in rows] == [basis, "matched"]


def test_csv_has_the_confidence_the_words_and_the_task():
    sure, said = np.array([0.5, 0.75, 0.25]), (Sentence(0.0, 3.0, 'now, "pour" it'),)
    timeline = timeline_of((0, 3, 1), duration=3.0)
    labels = replace(timeline.labels, confidence=sure, tasks={"make tea": 0.7, "wash up": 0.2})
    timeline = Timeline(Video("v", 3.0, said), labels, timeline.scores)

    [row] = csv.DictReader(io.StringIO(to_csv(timeline), newline=""))

    assert (row["confidence"], row["words"], row["task"]) == ("0.5000", said[0].text, "make tea")


def test_csv_has_no_task_where_the_video_most_probably_shows_none():
    timeline = timeline_of((0, 3, 1), duration=3.0)
    labels = replace(timeline.labels, tasks={"make tea": 0.3, "wash up": 0.1})

    [row] = csv.DictReader(io.StringIO(to_csv(replace(timeline, labels=labels)), newline=""))

    assert row["task"] == ""


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_gives_any_name_back(name):
    text = to_csv(timeline_of((0, 2, 0), (2, 3, 1), duration=3.0, names=(name, "stir")))

    rows = list(csv.reader(io.StringIO(text, newline="")))

    assert [row[3] for row in rows] == ["keystep", name, "stir"]


# --- WebVTT


def test_vtt_parses_back():
    timeline = timeline_of((0, 2, 1), (3, 4000, 0), duration=4000.0)

    parsed = pysubs2.SSAFile.from_string(to_vtt(timeline), format_="vtt")

    assert to_vtt(timeline).startswith("WEBVTT\n\n00:00:00.000 --> 00:00:02.000\npour\n\n")
    assert [(cue.start, cue.end, cue.plaintext) for cue in parsed] == [
        (0, 2000, "pour"),
        (3000, 4_000_000, "boil"),
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_break_a_cue_of_vtt(name):
    text = to_vtt(timeline_of((0, 2, 0), (2, 3, 1), duration=3.0, names=(name, "stir")))

    blocks = text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n\n")
    assert len(blocks) == 3
    assert [block.count("-->") for block in blocks] == [0, 1, 1]
    assert all(len(block.split("\n")) == 2 for block in blocks[1:])
    assert "<" not in text


# pysubs2 takes any line with two times for the beginning of a cue, arrow or not.
@pytest.mark.parametrize("name", [name for name in HOSTILE if "-->" not in name])
def test_vtt_with_hostile_names_still_parses(name):
    text = to_vtt(timeline_of((0, 2, 0), (2, 3, 1), duration=3.0, names=(name, "stir")))

    parsed = pysubs2.SSAFile.from_string(text, format_="vtt")

    assert [(cue.start, cue.end) for cue in parsed] == [(0, 2000), (2000, 3000)]


def test_no_cue_of_vtt_ends_when_it_begins():
    """A row that was only just started: WebVTT wants every cue to last."""
    text = to_vtt(timeline_of((0, 9, 0), (9, 10, 1), duration=9.0001))

    cues = [line.split(" --> ") for line in text.splitlines() if "-->" in line]

    assert all(start < end for start, end in cues)


def test_vtt_of_nothing_is_an_empty_file_of_that_format():
    assert to_vtt(EMPTY) == "WEBVTT\n"


# --- YouTube


def test_youtube_chapters_keep_the_rules_of_youtube():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        borders = np.cumsum(rng.integers(1, 25, 20)).tolist()
        segments = [
            (start, end, int(rng.integers(0, 3)))
            for start, end in pairwise(borders)
            if rng.random() < 0.8
        ]
        timeline = timeline_of(*segments, duration=float(borders[-1]))

        starts = [start for start, _ in youtube(timeline)]

        assert starts[0] == 0
        assert all(b - a >= 10 for a, b in pairwise([*starts, borders[-1]]))


def test_youtube_chapters_name_what_is_done():
    timeline = timeline_of((0, 20, 1), (20, 40, 0), (3700, 3800, 2), duration=3800.0)

    assert to_youtube(timeline) == "0:00 pour\n0:20 boil\n1:01:40 stir\n"


def test_youtube_chapters_begin_at_zero_when_nothing_is_done_yet():
    assert youtube(timeline_of((15, 40, 1), duration=40.0)) == [(0, "Start"), (15, "pour")]


def test_a_chapter_too_short_for_youtube_is_named_with_the_next():
    timeline = timeline_of((0, 20, 0), (20, 25, 1), (25, 60, 2), duration=60.0)

    assert youtube(timeline) == [(0, "boil"), (20, "pour, stir")]


def test_a_short_last_chapter_is_named_with_the_one_before():
    timeline = timeline_of((0, 20, 0), (20, 25, 1), duration=25.0)

    assert youtube(timeline) == [(0, "boil, pour")]


def test_a_short_beginning_without_a_keystep_is_not_named():
    timeline = timeline_of((3, 63, 1), (63, 90, 2), duration=90.0)

    assert youtube(timeline) == [(0, "pour"), (63, "stir")]


def test_equal_neighbours_become_one():
    timeline = timeline_of((0, 20, 0), (25, 45, 0), (45, 60, 1), duration=60.0)

    assert youtube(timeline) == [(0, "boil"), (45, "pour")]
    timeline = timeline_of((0, 20, 0), (20, 25, 1), (25, 40, 2), (45, 60, 2), duration=60.0)

    assert youtube(timeline) == [(0, "boil"), (20, "pour, stir")]


def test_no_keystep_is_missing_from_youtube_chapters():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        borders = np.cumsum(rng.integers(1, 15, 12)).tolist()
        segments = [(a, b, int(rng.integers(0, 3))) for a, b in pairwise(borders)]
        timeline = timeline_of(*segments, duration=float(borders[-1]))

        named = [name for _, title in youtube(timeline) for name in title.split(", ")]

        assert set(named) - {"Start"} == {chapter.keystep for chapter in timeline}


def test_there_are_as_many_youtube_chapters_as_can_be():
    # Ten seconds each, if they are put together well.
    timeline = timeline_of(*((5 * n, 5 * n + 5, n % 3) for n in range(6)), duration=30.0)

    assert [start for start, _ in youtube(timeline)] == [0, 10, 20]


def test_a_youtube_title_that_would_be_too_long_says_how_many_are_left_out():
    names = tuple(f"{what} the eggs with all the care in the world" for what in "abcdefgh")
    timeline = timeline_of(*((n, n + 1, n) for n in range(8)), duration=8.0, names=names)

    [(_, title)] = youtube(timeline)

    assert title == f"{names[0]}, {names[1]} and 6 more"
    assert len(title) <= 100


@pytest.mark.parametrize(
    ("segments", "enough"),
    [
        ([(0, 20, 0), (20, 40, 1), (40, 60, 2)], True),
        ([(0, 20, 0), (20, 60, 1)], False),
        ([(0, 20, 0), (20, 55, 1), (55, 60, 2)], False),
    ],
)
def test_json_says_whether_youtube_will_show_the_chapters(segments, enough):
    timeline = timeline_of(*segments, duration=60.0)

    said = json.loads(to_json(timeline))["youtube"]

    assert said == {"chapters": len(youtube(timeline)), "enough": enough}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_add_a_line_to_youtube_chapters(name):
    timeline = timeline_of((0, 20, 0), (20, 40, 1), duration=40.0, names=(name, "stir"))

    assert len(to_youtube(timeline).splitlines()) == 2


# --- Text and files


def test_text_has_one_line_a_chapter():
    timeline = timeline_of((0, 2, 1), (3, 3700, 0), duration=3700.0)

    assert to_text(timeline).splitlines() == [
        "    0:00 - 0:02     pour",
        "    0:03 - 1:01:40  boil",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_add_a_line_to_the_text(name):
    timeline = timeline_of((0, 2, 0), (2, 4, 1), duration=4.0, names=(name, "stir"))

    assert len(to_text(timeline).splitlines()) == 2


@pytest.mark.parametrize("convert", [to_json, to_csv, to_vtt, to_youtube, to_text])
def test_a_timeline_without_chapters_can_be_written(convert):
    assert "pour" not in convert(EMPTY)


def test_every_format_is_written(tmp_path):
    paths = write_timeline(timeline_of((0, 2, 1), duration=3.0), tmp_path / "new")

    assert [path.name for path in paths] == [f"v{suffix}" for suffix, _ in FORMATS.values()]
    assert sorted(paths) == sorted((tmp_path / "new").iterdir())


def test_a_video_from_a_folder_within_is_written_into_one(tmp_path):
    timeline = timeline_of((0, 2, 1), duration=3.0)
    within = Timeline(Video("deep/v", 3.0), timeline.labels, timeline.scores)

    paths = write_timeline(within, tmp_path)

    assert {path.parent for path in paths} == {tmp_path / "deep"}


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@a", "'=1", "''-x", "'plain", "plain"])
def test_cells_of_text_are_no_formulas_and_come_back(tmp_path, name):
    spoken = Video(name, 9.0, (Sentence(0.0, 9.0, name),))
    timeline = replace(timeline_of((0, 9, 0), duration=9, names=(name, "b")), video=spoken)

    [row] = csv.DictReader(io.StringIO(to_csv(timeline)))

    for column in ("video", "keystep", "words"):
        assert row[column][0] not in "=+-@\t\r"
        assert read_cell(row[column]) == name
    assert row["start"] == "0.0"
    path = tmp_path / "truth.csv"
    path.write_text(f"video,start,end,keystep\n{row['video']},0,9,{row['keystep']}\n")
    truth = read_truth(path, Vocabulary((name, "b")), {name: 9.0}, Problems(strict=True))
    assert truth == {name: [Segment(0.0, 9.0, 0)]}


def slow_words(timeline, chapter):
    """The sentence of the row that scores best for the keystep, found by looking at all."""
    hop, keystep = timeline.labels.hop, timeline.labels.vocabulary.index(chapter.keystep)
    first, last = round(chapter.start / hop), round(chapter.end / hop)
    rows = [row for row in range(first, last) if timeline.scores.observed[row]]
    if not rows:
        return None
    best = max(rows, key=lambda row: (timeline.scores.values[row, keystep], -row))
    middle = (best + 0.5) * hop
    distance = [max(s.start - middle, middle - s.end, 0.0) for s in timeline.video.transcript]
    return timeline.video.transcript[distance.index(min(distance))].text if distance else None


@pytest.mark.parametrize("seed", range(40))
def test_words_are_those_nearest_to_the_best_row(seed):
    rng = np.random.default_rng(seed)
    rows, vocabulary = int(rng.integers(1, 60)), Vocabulary(("a", "b", "c"))
    starts = np.sort(rng.integers(0, rows, rng.integers(0, 12)))
    said = [
        Sentence(float(s), float(s + rng.integers(1, 9)), f"{i}") for i, s in enumerate(starts)
    ]
    labels = Labels("v", rng.integers(-1, 3, rows), vocabulary)
    values, seen = rng.integers(0, 4, (rows, 3)).astype(np.float32), rng.random(rows) < 0.7
    scores = make_scores(values, vocabulary=vocabulary, observed=seen)

    timeline = Timeline(Video("v", float(rows), tuple(said)), labels, scores)

    assert [one.words for one in timeline] == [slow_words(timeline, one) for one in timeline]


def test_a_day_of_video_is_written_in_seconds(tmp_path):
    rows, vocabulary = 24 * 3600, Vocabulary(("a", "b", "c"))
    said = tuple(Sentence(float(at), at + 2.0, "stir it") for at in range(0, rows, 2))
    labels = Labels("v", np.arange(rows) // 20 % 3, vocabulary)
    scores = make_scores(np.zeros((rows, 3), np.float32), vocabulary=vocabulary)
    timeline = Timeline(Video("v", float(rows), said), labels, scores, overlap=0.0)
    begun = time.process_time()

    write_timeline(timeline, tmp_path)

    assert time.process_time() - begun < 10
    assert len(timeline.chapters) == rows // 20  # none of which looks through all that is said
