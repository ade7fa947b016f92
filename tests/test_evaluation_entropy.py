"""Accuracy by the entropy of what comes next, against a loop over rows."""

import math
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from reference import make_graph, make_labels, random_graph, random_labels
from stepgraph.errors import DataError
from stepgraph.evaluation import entropy


def slow_entropy(counts, *, self_loop):
    found = []
    for keystep, row in enumerate(counts):
        kept = [n for target, n in enumerate(row) if n and (self_loop or target != keystep)]
        terms = [n / sum(kept) * math.log2(sum(kept) / n) for n in kept]
        found.append(sum(terms) if kept else math.nan)
    return found


def slow_split(predicted, truth, graph, starts, *, self_loop=False):
    """Rows as tuples; the last anchor is looked for backwards from each of them."""
    entropies = slow_entropy(graph.counts.toarray().tolist(), self_loop=self_loop)
    rows = []
    for labels, true, anchored in zip(predicted, truth, starts, strict=True):
        for row in range(len(labels)):
            before = [at for at in range(row) if anchored.anchors[at]]
            if anchored.anchors[row] or not before:
                continue
            entropy = entropies[anchored.keysteps[before[-1]]]
            if not math.isnan(entropy):
                hit = labels.keysteps[row] == true.keysteps[row]
                rows.append((entropy, true.keysteps[row] >= 0, hit))
    # Of all thresholds, the one that makes the halves most equal; of two such, the higher.
    values = [round(entropy, 9) for entropy, _, _ in rows]
    sizes = {one: sum(other <= one for other in values) for one in set(values)}
    best = min(sizes, key=lambda one: (abs(sizes[one] - len(rows) / 2), -one), default=math.nan)
    low = [hit for entropy, known, hit in rows if known and round(entropy, 9) <= best]
    high = [hit for entropy, known, hit in rows if known and round(entropy, 9) > best]
    means = (fmean(half) if half else math.nan for half in (low, high))
    return (*means, best, len(low), len(high))


def anchored_labels(rng, rows, size, video):
    """Anchors of any keystep, as path search would leave them."""
    labels = make_labels(rng.integers(0, size, rows), size, video=video)
    return replace(labels, anchors=rng.random(rows) < 0.3)


@pytest.mark.parametrize("self_loop", [False, True])
def test_entropy_is_that_of_the_counted_transitions(self_loop):
    for seed in range(10):
        graph = random_graph(np.random.default_rng(seed), 6, density=0.4)

        found = entropy.transition_entropy(graph, self_loop=self_loop)

        expected = slow_entropy(graph.counts.toarray().tolist(), self_loop=self_loop)
        assert found.tolist() == pytest.approx(expected, nan_ok=True)


def test_a_keystep_that_was_left_once_has_no_entropy_and_staying_is_no_outcome():
    graph = make_graph([[9, 1, 0], [0, 5, 0], [0, 0, 0]])

    found = entropy.transition_entropy(graph)

    assert found.tolist() == pytest.approx([0, math.nan, math.nan], nan_ok=True)


def test_entropy_agrees_with_scipy():
    for seed in range(10):
        from scipy.stats import entropy as scipy_entropy

        graph = random_graph(np.random.default_rng(seed), 6, density=1)

        found = entropy.transition_entropy(graph, self_loop=True)

        assert found == pytest.approx(scipy_entropy(graph.counts.toarray(), base=2, axis=1))


@pytest.mark.parametrize("self_loop", [False, True])
def test_split_by_entropy_is_that_of_a_loop_over_rows(self_loop):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 5, density=0.4)
        names = [f"{n}" for n in range(3)]
        predicted = [anchored_labels(rng, int(rng.integers(0, 30)), 5, name) for name in names]
        truth = [random_labels(rng, len(one), 5, video=one.video) for one in predicted]

        by_video = dict(zip(names, truth, strict=True))
        found = entropy.accuracy_by_entropy(predicted, by_video, graph, self_loop=self_loop)

        expected = slow_split(predicted, truth, graph, predicted, self_loop=self_loop)
        assert tuple(found) == pytest.approx(expected, nan_ok=True)


# Keystep 0 is always followed by 1; 1 by 2 or 0, evenly; 2 was never left.
SPLIT_GRAPH = make_graph([[9, 3, 0], [2, 5, 2], [0, 0, 7]])
SPLIT_ROWS = [1, 0, 0, 1, 1, 2, 2, 2]
SPLIT_ANCHORS = np.array([False, True, False, True, False, False, True, False])
SPLIT_LABELS = replace(make_labels(SPLIT_ROWS, 3), anchors=SPLIT_ANCHORS)


def test_worked_example_of_the_split_by_entropy():
    truth = {"video": make_labels([1, 0, 0, 1, 0, 2, 2, 2], 3)}

    found = entropy.accuracy_by_entropy([SPLIT_LABELS], truth, SPLIT_GRAPH)

    # Row 2 starts from keystep 0 (0 bits), rows 4 and 5 from 1 (1 bit); row 7 from nothing.
    assert found == (1.0, 0.5, 0.0, 1, 2)


def test_rows_of_one_entropy_stay_together():
    even = make_graph([[0, 1, 1], [1, 0, 1], [1, 1, 0]])

    found = entropy.accuracy_by_entropy([SPLIT_LABELS], {"video": SPLIT_LABELS}, even)

    assert (found.low, found.threshold, found.low_rows, found.high_rows) == (1.0, 1.0, 4, 0)
    assert math.isnan(found.high)


def test_methods_without_anchors_are_split_by_those_of_another():
    truth = {"video": make_labels([1, 0, 0, 1, 0, 2, 2, 2], 3)}
    plain = make_labels([0, 0, 0, 0, 0, 2, 0, 0], 3)

    found = entropy.accuracy_by_entropy(
        [plain], truth, SPLIT_GRAPH, starts={"video": SPLIT_LABELS}
    )

    assert (found.low, found.high, found.low_rows, found.high_rows) == (1.0, 1.0, 1, 2)


@pytest.mark.parametrize("anchors", [[False] * 3, [True] * 3])
def test_without_rows_between_anchors_the_split_is_undefined(anchors):
    labels = replace(make_labels([0, 1, 1], 3), anchors=np.array(anchors))

    for predicted in ([labels], []):
        found = entropy.accuracy_by_entropy(predicted, {"video": labels}, SPLIT_GRAPH)
        assert all(map(math.isnan, found[:3]))
        assert found[3:] == (0, 0)


def test_renaming_keysteps_changes_no_split():
    rng = np.random.default_rng(0)
    graph, renamed = random_graph(rng, 5), rng.permutation(5)
    labels = anchored_labels(rng, 40, 5, "video")
    true = rng.integers(0, 5, 40)
    back = np.argsort(renamed)
    other = make_graph(graph.counts.toarray()[np.ix_(back, back)])
    relabelled = replace(labels, keysteps=renamed[labels.keysteps])

    found = entropy.accuracy_by_entropy([relabelled], {"video": make_labels(renamed[true])}, other)

    expected = entropy.accuracy_by_entropy([labels], {"video": make_labels(true)}, graph)
    assert tuple(found) == pytest.approx(tuple(expected))


def test_labels_without_anchors_are_not_split():
    labels = make_labels([0, 1], 3)

    with pytest.raises(DataError, match="'video' must have anchors to be split by entropy"):
        entropy.accuracy_by_entropy([labels], {"video": labels}, SPLIT_GRAPH)


def test_videos_missing_among_the_starts_are_refused():
    with pytest.raises(DataError, match="'video' must have labels among starts, got none"):
        entropy.accuracy_by_entropy([SPLIT_LABELS], {}, SPLIT_GRAPH, starts={})


@pytest.mark.parametrize(
    ("rows", "size", "why"), [([0], 3, "equal length"), ([0, 1], 4, "share one vocabulary")]
)
def test_starts_that_do_not_belong_to_the_truth_are_refused(rows, size, why):
    labels, true = make_labels([0, 1], 3), make_labels([0, 1], 3)
    starts = replace(make_labels(rows, size), anchors=np.ones(len(rows), bool))

    with pytest.raises(DataError, match=why):
        entropy.accuracy_by_entropy(
            [labels], {"video": true}, SPLIT_GRAPH, starts={"video": starts}
        )


def test_one_row_has_nothing_between_anchors():
    labels = replace(make_labels([1], 3), anchors=np.array([False]))

    found = entropy.accuracy_by_entropy([labels], {"video": labels}, SPLIT_GRAPH)

    assert found[3:] == (0, 0)


def test_labels_of_another_vocabulary_than_the_graph_are_refused():
    labels = replace(make_labels([0, 1], 4), anchors=np.array([True, False]))

    with pytest.raises(DataError, match="labels and the graph must share one vocabulary"):
        entropy.accuracy_by_entropy([labels], {"video": labels}, SPLIT_GRAPH)
