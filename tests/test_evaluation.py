"""Reports: the numbers, and what they were measured on."""

import json
import math

import pytest

import reference
from reference import make_labels
from stepgraph.core import Vocabulary
from stepgraph.decoders import Argmax
from stepgraph.errors import DataError
from stepgraph.evaluation import METRICS, Report, evaluate
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
