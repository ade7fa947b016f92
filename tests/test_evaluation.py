"""Reports: the numbers, and what they were measured on."""

import json
import math
import time
from statistics import fmean, stdev

import numpy as np
import pytest

import reference
from reference import keysteps, make_labels, random_labels
from stepgraph import metrics, segments
from stepgraph.core import Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation import (
    ALL_METRICS,
    LOWER_IS_BETTER,
    METRICS,
    Report,
    evaluate,
    over_splits,
    split_videos,
)
from stepgraph.mining import mine_graph
from stepgraph.scoring import score


def test_truth_evaluated_against_itself_is_perfect(truth):
    report = evaluate(truth.values(), truth)

    assert [getattr(report, name) for name in METRICS] == [1.0] * 4


def test_report_pools_all_videos(truth, vocabulary, videos, encoder):
    scores = list(score(videos, vocabulary, encoder))
    graph = mine_graph(scores, vocabulary)
    labels = [Argmax().decode(one, graph) for one in scores]

    report = evaluate(labels, truth)

    expected = reference.metrics(truth.values(), labels)
    assert {name: getattr(report, name) for name in METRICS} == pytest.approx(expected)


def test_report_counts_videos_and_rows(truth):
    report = evaluate(truth.values(), truth, decoder="mine", graph_mined_on="3 other videos")

    assert (report.videos, report.rows, report.keystep_rows) == (3, 59, 51)
    assert (report.decoder, report.graph_mined_on) == ("mine", "3 other videos")


def test_some_of_the_videos_may_be_evaluated(truth):
    report = evaluate([truth["plain"]], truth)

    assert (report.videos, report.rows) == (1, 20)


def test_labels_may_come_from_a_generator(truth):
    report = evaluate((labels for labels in truth.values()), truth)

    assert report.videos == 3


def test_report_of_no_videos_is_undefined():
    report = evaluate([], {})

    assert (report.videos, report.rows) == (0, 0)
    assert all(math.isnan(getattr(report, name)) for name in METRICS)


def test_a_video_without_truth_is_refused(truth):
    with pytest.raises(DataError, match="'another' must have a truth to be evaluated, got none"):
        evaluate([make_labels([0], video="another")], truth)


def test_videos_of_two_vocabularies_are_refused():
    one = make_labels([0, 1], video="one", vocabulary=Vocabulary(("a", "b")))
    other = make_labels([0, 1], video="other", vocabulary=Vocabulary(("c", "d")))

    with pytest.raises(DataError, match="vocabulary"):
        evaluate([one, other], {"one": one, "other": other})


def test_undefined_metrics_are_null_in_json():
    content = json.loads(json.dumps(evaluate([], {}).to_json(), allow_nan=False))

    assert content["accuracy"] is None
    assert content["videos"] == 0


def test_json_has_every_field_of_a_report(truth):
    content = evaluate(truth.values(), truth, decoder="mine").to_json()

    assert set(content) == set(Report.__dataclass_fields__)
    assert (content["decoder"], content["iou"]) == ("mine", 1.0)


def test_truth_evaluated_against_itself_is_perfect_by_every_metric(truth):
    report = evaluate(truth.values(), truth)

    for name in ALL_METRICS:
        assert getattr(report, name) == (0.0 if name in LOWER_IS_BETTER else 1.0), name


@pytest.mark.data
def test_real_truth_evaluated_against_itself_is_perfect_by_every_metric(real_data):
    truth = open_source(f"crosstask:{real_data / 'crosstask'}").truth

    report = evaluate(truth.values(), truth)

    assert report.videos == 349
    for name in ALL_METRICS:
        assert getattr(report, name) == (0.0 if name in LOWER_IS_BETTER else 1.0), name


def test_every_number_of_a_report_has_a_name_for_people():
    described = {"decoder", "videos", "rows", "keystep_rows", "graph_mined_on"}
    of_other_things = {"task_accuracy", "calibration_error"}

    assert set(ALL_METRICS) | of_other_things == set(Report.__dataclass_fields__) - described


@pytest.mark.parametrize("seed", range(10))
def test_report_has_what_each_metric_says(seed):
    rng = np.random.default_rng(seed)
    truth = {f"{n}": random_labels(rng, n, 4, video=f"{n}") for n in range(0, 20, 4)}
    labels = [random_labels(rng, len(one), 4, video=one.video) for one in truth.values()]
    pairs = [(truth[one.video], one) for one in labels]
    tallies = [metrics.tally(*pair) for pair in pairs]
    total = sum(tallies[1:], tallies[0])
    distances = [segments.edit_distance(*pair) for pair in pairs]

    report = evaluate(labels, truth)

    assert report.accuracy_per_video == metrics.accuracy_per_video(tallies)
    assert report.iou_per_video == metrics.iou_per_video(tallies)
    assert (report.f1, report.f1_per_keystep) == (metrics.f1(total), metrics.f1_per_keystep(total))
    assert report.edit_distance == pytest.approx(fmean(d for d in distances if not math.isnan(d)))
    pieces = sum((segments.segment_tally(*p) for p in pairs), segments.SegmentTally.empty())
    found = [report.segment_f1_10, report.segment_f1_25, report.segment_f1_50]
    assert found == segments.segment_f1(pieces).tolist()


def test_report_of_no_videos_is_undefined_by_every_metric():
    content = evaluate([], {}).to_json()

    assert [content[name] for name in ALL_METRICS] == [None] * len(ALL_METRICS)


def test_a_thousand_videos_are_evaluated_in_little_time():
    rng = np.random.default_rng(0)
    vocabulary = keysteps(1000)
    rows = [np.repeat(rng.integers(-1, 1000, 60), 5) for _ in range(20)]
    truth = {
        f"{n}": make_labels(rows[n % 20], video=f"{n}", vocabulary=vocabulary) for n in range(1000)
    }
    labels = [make_labels(rows[n % 19], video=f"{n}", vocabulary=vocabulary) for n in range(1000)]

    start = time.process_time()
    evaluate(labels, truth)

    # Ten times what it takes; ten thousand videos must stay a matter of seconds.
    assert time.process_time() - start < 3


# --- parts of the videos


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_hold_every_video_once_and_are_of_one_size(parts):
    videos = [f"video {n}" for n in range(7)]

    found = split_videos(videos, parts)

    sizes = [len(part) for part in found]
    assert sorted(video for part in found for video in part) == videos
    assert len(found) == parts
    assert max(sizes) - min(sizes) <= 1


def test_parts_depend_on_the_seed_alone():
    videos = [f"{n}" for n in range(20)]

    assert split_videos(videos, 3) == split_videos(reversed(videos), 3)
    assert split_videos(videos, 3, seed=1) != split_videos(videos, 3, seed=2)


@pytest.mark.parametrize("parts", [0, -1, 4])
def test_there_are_no_more_parts_than_videos(parts):
    with pytest.raises(ConfigError, match=f"at least 1 and at most the 3 videos, got {parts}"):
        split_videos("abc", parts)


def test_videos_to_divide_must_differ():
    with pytest.raises(DataError, match=r"must differ, got \['a'\] repeatedly"):
        split_videos(["a", "b", "a"], 2)


@pytest.mark.parametrize("seed", range(5))
def test_spread_is_that_of_the_metric_of_each_part(seed):
    worth = dict(zip("abcdefgh", np.random.default_rng(seed).random(8).tolist(), strict=True))

    found = over_splits(lambda ids: fmean(worth[i] for i in ids), worth, parts=4, seed=seed)

    values = [fmean(worth[i] for i in part) for part in split_videos(worth, 4, seed=seed)]
    assert found.values == tuple(values)
    assert found.mean == pytest.approx(fmean(values))
    assert found.standard_error == pytest.approx(stdev(values) / 2)


def test_any_metric_of_a_report_has_a_spread(truth):
    found = over_splits(
        lambda ids: evaluate([truth[i] for i in ids], truth).accuracy, truth, parts=3
    )

    assert found == (1.0, 0.0, (1.0, 1.0, 1.0))


def test_one_part_has_no_standard_error():
    found = over_splits(lambda ids: 0.5, "abc", parts=1)

    assert found.mean == 0.5
    assert math.isnan(found.standard_error)
