"""Comparison of methods by a paired bootstrap, and metrics without rows of true background."""

import json
import math

import numpy as np
import pytest

import stepgraph as sg
from stepgraph.core import BACKGROUND, Labels, Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.comparison import bootstrap_mean, compare_counts, count_videos
from stepgraph.evaluation.comparison import paired_bootstrap as compare
from stepgraph.evaluation.counts import Counts
from stepgraph.evaluation.report import ALL_METRICS, evaluate

WORDS = Vocabulary(tuple("abcd"))


def make(rows, video="v"):
    return Labels(video, np.array(rows, dtype=np.int64), WORDS)


def draw(videos, seed, rows=40):
    rng = np.random.default_rng(seed)
    return {
        f"v{n}": make(np.repeat(rng.integers(-1, 4, rows // 4), 4), f"v{n}") for n in range(videos)
    }


def disturbed(truth, share, seed):
    """The truth with a share of its rows replaced at random."""
    rng = np.random.default_rng(seed)
    found = {}
    for video, one in truth.items():
        other = rng.integers(-1, 4, len(one))
        found[video] = make(np.where(rng.random(len(one)) < share, other, one.keysteps), video)
    return found


def by_hand(first, second, truth, metric, resamples, seed):
    """The slow twin: evaluate every resample of the videos from the start."""
    videos = sorted(truth)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(videos), np.full(len(videos), 1 / len(videos)), size=resamples)
    differences = []
    for often in weights:
        drawn = np.repeat(np.array(videos), often).tolist()
        values = []
        for labels in (first, second):
            copies = [
                Labels(f"{n}", labels[video].keysteps, WORDS) for n, video in enumerate(drawn)
            ]
            true = {f"{n}": Labels(f"{n}", truth[v].keysteps, WORDS) for n, v in enumerate(drawn)}
            values.append(getattr(evaluate(copies, true), metric))
        differences.append(values[0] - values[1])
    return np.quantile(differences, [0.025, 0.975])


@pytest.mark.parametrize("metric", ["accuracy", "iou_per_keystep", "edit_distance", "f1"])
def test_the_interval_is_that_of_evaluating_every_resample(metric):
    truth = draw(6, seed=0)
    first, second = disturbed(truth, 0.2, 1), disturbed(truth, 0.5, 2)

    found = compare(first, second, truth, metric, resamples=40, seed=3)

    assert (found.low, found.high) == pytest.approx(
        tuple(by_hand(first, second, truth, metric, 40, 3))
    )
    reports = [evaluate(labels.values(), truth) for labels in (first, second)]
    expected = getattr(reports[0], metric) - getattr(reports[1], metric)
    assert found.difference == pytest.approx(expected)


def test_a_method_and_itself_do_not_differ():
    truth = draw(5, seed=0)
    labels = disturbed(truth, 0.4, 1)

    assert tuple(compare(labels, labels, truth, "accuracy")) == (0, 0, 0)


def test_a_clear_difference_leaves_zero_outside_and_noise_does_not():
    truth = draw(40, seed=0)
    good, bad, alike = (
        disturbed(truth, share, seed) for share, seed in ((0.2, 1), (0.6, 2), (0.6, 3))
    )

    assert compare(good, bad, truth, "accuracy").low > 0
    assert compare(bad, good, truth, "accuracy").high < 0
    even = compare(bad, alike, truth, "accuracy")
    assert even.low < 0 < even.high


def test_the_same_seed_gives_the_same_interval_in_whatever_order_videos_come():
    truth = draw(8, seed=0)
    first, second = disturbed(truth, 0.3, 1), disturbed(truth, 0.3, 2)
    turned = dict(reversed(first.items()))

    assert compare(first, second, truth, "iou", seed=1) == compare(
        turned, second, truth, "iou", seed=1
    )
    assert compare(first, second, truth, "iou", seed=1) != compare(
        first, second, truth, "iou", seed=2
    )


def test_methods_that_labelled_other_videos_are_refused():
    truth = draw(3, seed=0)
    fewer = {video: truth[video] for video in list(truth)[:2]}

    with pytest.raises(DataError, match="the same videos, got 3 and 2 with 2 in common"):
        compare(truth, fewer, truth, "accuracy")
    with pytest.raises(DataError, match="the same videos, got 0 and 0"):
        compare({}, {}, truth, "accuracy")


def test_one_video_has_an_interval_of_its_own_difference():
    truth = draw(1, seed=0)
    other = disturbed(truth, 0.5, 1)

    found = compare(truth, other, truth, "accuracy", resamples=10)

    assert found.low == found.difference == found.high > 0


def test_an_undefined_metric_has_no_interval():
    nothing = {"v": make([BACKGROUND] * 3)}

    assert all(map(math.isnan, compare(nothing, nothing, nothing, "accuracy")))


def test_a_mean_of_videos_lies_in_its_interval():
    found = bootstrap_mean([1, 0, 0, 1, 1, -1, 0, 1], resamples=500)

    assert found.difference == pytest.approx(3 / 8)
    assert found.low < found.difference < found.high
    assert tuple(bootstrap_mean([0.5])) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("wrong", [[], [[1.0]]])
def test_a_mean_must_be_of_numbers(wrong):
    with pytest.raises(DataError, match="one number a video"):
        bootstrap_mean(wrong)
    with pytest.raises(ConfigError, match="resamples must be at least 1, got 0"):
        bootstrap_mean([1.0], resamples=0)


def test_all_metrics_can_be_compared_at_once():
    truth = draw(4, seed=0)
    counts = [count_videos(disturbed(truth, 0.5, seed).values(), truth) for seed in (1, 2)]

    found = compare_counts(counts[:1], counts[1:], tuple(ALL_METRICS), resamples=20)

    assert set(found) == set(ALL_METRICS)
    for name, one in found.items():
        assert one.low <= one.high, name


def test_runs_of_several_seeds_are_averaged_in_every_resample():
    truth = draw(6, seed=0)
    one, *runs = (count_videos(disturbed(truth, 0.5, seed).values(), truth) for seed in range(4))

    found = compare_counts([one], runs, ["accuracy"], resamples=50)["accuracy"]
    alone = [compare_counts([one], [run], ["accuracy"], resamples=50)["accuracy"] for run in runs]

    assert found.difference == pytest.approx(np.mean([each.difference for each in alone]))
    assert compare_counts([one], [runs[0]] * 3, ["accuracy"], resamples=50)["accuracy"] == (
        pytest.approx(alone[0])
    )


# --- without the rows whose truth is background


def test_rows_of_true_background_can_be_left_out():
    truth, found = {"v": make([0, 0, -1, -1, 1])}, [make([0, 1, 1, 1, 1])]

    with_them, without = (evaluate(found, truth, background_rows=some) for some in (True, False))

    assert (with_them.iou, without.iou) == (2 / 6, 2 / 4)
    assert (with_them.accuracy, without.accuracy) == (2 / 3, 2 / 3)
    assert (with_them.rows, without.rows) == (5, 3)
    assert (with_them.background_rows, without.background_rows) == (True, False)
    assert with_them.f1 < without.f1


def test_leaving_rows_out_is_cutting_them_out_of_both():
    truth = draw(6, seed=0)
    labels = disturbed(truth, 0.5, 1)
    kept = {video: one.keysteps != BACKGROUND for video, one in truth.items()}
    cut = [
        {video: make(one.keysteps[kept[video]], video) for video, one in some.items()}
        for some in (truth, labels)
    ]

    left_out = evaluate(labels.values(), truth, background_rows=False)
    by_cutting = evaluate(cut[1].values(), cut[0])

    for name in ALL_METRICS:
        if name != "empty_chapters":  # chapters are made of the whole video
            np.testing.assert_equal(getattr(left_out, name), getattr(by_cutting, name), name)


def test_counts_of_videos_add_up():
    truth = draw(5, seed=0)
    labels = disturbed(truth, 0.5, 1)
    total = Counts.empty(len(WORDS))
    for video, one in labels.items():
        total += Counts.of(truth[video], one)

    report = evaluate(labels.values(), truth)

    for name, value in total.metrics().items():
        assert value == getattr(report, name), name


def test_a_report_of_an_older_release_is_over_all_rows(tmp_path):
    truth = draw(2, seed=0)
    sg.save(evaluate(truth.values(), truth, background_rows=False), tmp_path / "new.json")
    content = json.loads((tmp_path / "new.json").read_text("utf-8"))
    assert content.pop("background_rows") is False
    (tmp_path / "old.json").write_text(json.dumps(content), "utf-8")

    assert sg.load(tmp_path / "new.json").background_rows is False
    assert sg.load(tmp_path / "old.json").background_rows is True
