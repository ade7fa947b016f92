"""Reports: the numbers, and what they were measured on."""

import json
import math
import time
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

import reference
from reference import keysteps, make_labels, random_labels
from stepgraph.core import BACKGROUND, Labels, Video, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation import segments
from stepgraph.evaluation.report import (
    ALL_METRICS,
    METRICS,
    Report,
    calibration_error,
    evaluate,
    metrics,
    over_splits,
    split_videos,
    task_accuracy,
)
from stepgraph.graph import mine_graph
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

    for name in ALL_METRICS.keys() - {"background_share"}:
        worst_is_best = name in ("edit_distance", "empty_segments", "empty_chapters")
        assert getattr(report, name) == (0.0 if worst_is_best else 1.0), name


@pytest.mark.data
def test_real_truth_evaluated_against_itself_is_perfect_by_every_metric(real_data):
    truth = open_source(f"crosstask:{real_data / 'crosstask'}").truth

    report = evaluate(truth.values(), truth)

    assert report.videos == 349
    for name in ALL_METRICS.keys() - {"background_share"}:
        worst_is_best = name in ("edit_distance", "empty_segments", "empty_chapters")
        assert getattr(report, name) == (0.0 if worst_is_best else 1.0), name


def test_every_number_of_a_report_has_a_name_for_people():
    described = {"decoder", "videos", "rows", "keystep_rows", "graph_mined_on", "background_rows"}
    of_other_things = {"task_accuracy", "calibration_error"}

    assert set(ALL_METRICS) | of_other_things == set(Report.__dataclass_fields__) - described


def test_report_has_what_each_metric_says():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = {f"{n}": random_labels(rng, n, 4, video=f"{n}") for n in range(0, 20, 4)}
        labels = [random_labels(rng, len(one), 4, video=one.video) for one in truth.values()]
        pairs = [(truth[one.video], one) for one in labels]
        tallies = [metrics.tally(*pair) for pair in pairs]
        total = sum(tallies[1:], tallies[0])
        distances = [segments.edit_distance(*pair) for pair in pairs]

        report = evaluate(labels, truth)

        assert report.accuracy_per_video == metrics.mean_defined(map(metrics.accuracy, tallies))
        assert report.iou_per_video == metrics.mean_defined(map(metrics.iou, tallies))
        assert (report.f1, report.f1_per_keystep) == (
            metrics.f1(total),
            metrics.f1_per_keystep(total),
        )
        assert report.edit_distance == pytest.approx(
            fmean(d for d in distances if not math.isnan(d))
        )
        pieces = sum((segments.segment_tally(*p) for p in pairs), metrics.Tally.empty())
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
    assert split_videos(videos, 3) == split_videos(videos, 3, seed=0)
    assert over_splits(len, videos).values == (4, 4, 4, 4, 4)
    first = over_splits(lambda ids: videos.index(ids[0]), videos)
    assert first == over_splits(lambda ids: videos.index(ids[0]), videos, parts=5, seed=0)


@pytest.mark.parametrize("parts", [0, -1, 4])
def test_there_are_no_more_parts_than_videos(parts):
    with pytest.raises(ConfigError, match=f"at least 1 and at most the 3 videos, got {parts}"):
        split_videos("abc", parts)


def test_videos_to_divide_must_differ():
    with pytest.raises(DataError, match=r"must differ, got \['a'\] repeatedly"):
        split_videos(["a", "b", "a"], 2)


def test_spread_is_that_of_the_metric_of_each_part():
    for seed in range(5):
        worth = dict(zip("abcdefgh", np.random.default_rng(seed).random(8).tolist(), strict=True))

        def mean(ids, worth=worth):
            return fmean(worth[i] for i in ids)

        found = over_splits(mean, worth, parts=4, seed=seed)

        values = [mean(part) for part in split_videos(worth, 4, seed=seed)]
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


# --- tasks, and whether confidence means something


def with_tasks(video, tasks):
    return Labels(video, np.zeros(1, np.int64), keysteps(2), tasks=tasks)


def sure_labels(values, confidence, *, video="video"):
    confidence = None if confidence is None else np.asarray(confidence, float)
    return Labels(video, np.asarray(values, np.int64), keysteps(4), confidence=confidence)


def test_task_accuracy_is_the_share_of_videos_whose_best_task_is_theirs():
    videos = [Video(name, 1.0, task="tea") for name in "abcd"]
    predicted = [
        with_tasks("a", {"tea": 0.9, "soup": 0.1}),
        with_tasks("b", {"soup": 0.2, "tea": 0.6}),  # in whatever order
        with_tasks("c", {"soup": 0.6, "tea": 0.3}),
        with_tasks("d", {"tea": 0.01}),
    ]

    assert task_accuracy(iter(predicted), iter(videos)) == 0.75


def test_a_method_that_names_no_task_for_a_video_is_wrong_about_it():
    videos = [Video(name, 1.0, task="tea") for name in "ab"]

    assert task_accuracy([with_tasks("a", {}), with_tasks("b", {"tea": 0.5})], videos) == 0.5


def test_videos_of_which_no_task_is_known_are_left_out():
    videos = [Video("a", 1.0, task="tea"), Video("b", 1.0), Video("c", 1.0, task="")]
    predicted = [with_tasks(name, {"tea": 0.5}) for name in "abcd"]

    assert task_accuracy(predicted, videos) == 1.0


@pytest.mark.parametrize(
    ("predicted", "videos"),
    [
        ([], []),
        ([with_tasks("a", None)], [Video("a", 1.0, task="tea")]),
        ([with_tasks("a", {"tea": 0.5})], [Video("a", 1.0)]),
        ([], [Video("a", 1.0, task="tea")]),
    ],
    ids=["nothing", "method without tasks", "video without task", "no labels"],
)
def test_task_accuracy_of_nothing_is_undefined(predicted, videos):
    assert math.isnan(task_accuracy(predicted, videos))


def slow_calibration(predicted, truth, bins):
    rows = [
        (float(sure), label == true)
        for labels in predicted
        for label, true, sure in zip(
            labels.keysteps, truth[labels.video].keysteps, labels.confidence, strict=True
        )
    ]
    error = 0.0
    for one in range(bins):
        last = one == bins - 1
        inside = [r for r in rows if one / bins <= r[0] < (one + 1) / bins or (last and r[0] == 1)]
        if inside:
            gap = fmean(sure for sure, _ in inside) - fmean(right for _, right in inside)
            error += len(inside) / len(rows) * abs(gap)
    return error


def test_calibration_error_is_the_mean_gap_of_the_intervals():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        bins = int(rng.integers(1, 12))
        sizes = rng.integers(5, 40, 3).tolist()
        truth = {f"{n}": random_labels(rng, n, 4, video=f"{n}") for n in sizes}
        truth["never"] = make_labels([0], 4)
        predicted = [
            sure_labels(
                rng.integers(-1, 4, n), rng.choice([0, 1, *rng.random(30)], n), video=f"{n}"
            )
            for n in sizes
        ]

        found = calibration_error(iter(predicted), truth, bins=bins)

        assert found == pytest.approx(slow_calibration(predicted, truth, bins))


def random_sure(rng, sure, chance):
    """Rows with such confidence, each right with its own chance."""
    right = rng.random(len(sure)) < chance
    truth = {"video": sure_labels(np.zeros(len(sure)), None)}
    return [sure_labels(np.where(right, 0, 1), sure)], truth


def test_labels_right_as_often_as_they_say_have_no_calibration_error():
    rng = np.random.default_rng(0)
    sure = rng.random(50_000)

    assert calibration_error(*random_sure(rng, sure, sure)) < 0.01


@pytest.mark.parametrize("gap", [0.1, 0.3])
def test_labels_less_often_right_than_they_say_have_that_gap(gap):
    rng = np.random.default_rng(0)
    sure = 0.4 + 0.6 * rng.random(50_000)

    assert calibration_error(*random_sure(rng, sure, sure - gap)) == pytest.approx(gap, abs=0.01)


def test_labels_more_often_right_than_they_say_have_that_gap_too():
    found = calibration_error(
        [sure_labels([0, 1], [0.25, 0.25])], {"video": sure_labels([0, 1], None)}
    )

    assert found == 0.75


def test_gaps_of_different_intervals_do_not_cancel_out():
    truth = {"video": sure_labels([0, 0], None)}

    assert calibration_error([sure_labels([0, 1], [0.2, 0.8])], truth) == pytest.approx(0.8)


def test_confidence_on_true_background_is_judged_as_well():
    truth = {"video": sure_labels([BACKGROUND, BACKGROUND], None)}

    assert calibration_error([sure_labels([BACKGROUND, BACKGROUND], [1.0, 1.0])], truth) == 0
    assert calibration_error([sure_labels([0, 0], [1.0, 1.0])], truth) == 1


def test_confidence_of_background_where_there_is_a_keystep_is_judged_as_well():
    truth = {"video": sure_labels([0, 1], None)}

    found = calibration_error([sure_labels([BACKGROUND] * 2, [0.75, 0.75])], truth)

    assert found == pytest.approx(0.75)


@pytest.mark.parametrize(
    "predicted",
    [
        [],
        [sure_labels([0, 1], None)],
        [sure_labels([0, 1], [0.5, 0.5]), sure_labels([0, 1], None)],
        [sure_labels([], [], video="empty")],
    ],
    ids=["nothing", "no confidence", "confidence of some", "no rows"],
)
def test_calibration_error_of_nothing_is_undefined(predicted):
    truth = {
        "video": sure_labels([0, 1], None),
        "empty": sure_labels([], None),
    }

    assert math.isnan(calibration_error(predicted, truth))


def test_calibration_of_a_video_without_truth_is_refused():
    with pytest.raises(DataError, match="'video' must have a truth to be evaluated, got none"):
        calibration_error([sure_labels([0], [0.5])], {})


def test_calibration_of_labels_of_another_length_is_refused():
    with pytest.raises(DataError, match="video"):
        calibration_error([sure_labels([0], [0.5])], {"video": sure_labels([0, 1], None)})


def test_the_highest_interval_of_confidence_has_certainty_in_it():
    labels = sure_labels([0, 1], [0.95, 1.0])

    found = calibration_error([labels], {"video": sure_labels([0, 0], None)})

    assert found == pytest.approx((1.95 - 1) / 2)


def test_calibration_is_measured_in_tenths():
    labels = replace(make_labels([0, 1]), confidence=np.array([0.105, 0.19]))

    # One right and one wrong, together in the second tenth.
    found = calibration_error([labels], {"video": make_labels([0, 0])})

    assert found == pytest.approx((1 - 0.105 - 0.19) / 2)
