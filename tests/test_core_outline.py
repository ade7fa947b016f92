"""Fewer, longer segments: against every possible outline of small problems, and by example."""

import re
from itertools import product

import numpy as np
import pytest

from reference import make_labels, make_scores, random_labels
from stepgraph.core import BACKGROUND, Chapter, Labels, Timeline, Video, runs
from stepgraph.errors import ConfigError
from stepgraph.evaluation.report import evaluate


def overlaps(labels, outline):
    """The overlap of each chapter of an outline with its keystep, by the definition."""
    sure = np.ones(len(labels)) if labels.confidence is None else labels.confidence
    found = []
    for first, last in runs(outline):
        if outline[first] != BACKGROUND:
            done = labels.keysteps == outline[first]
            told = np.zeros(len(labels), dtype=bool)
            told[first:last] = True
            found.append(sure[done & told].sum() / sure[done | told].sum())
    return found


def worth(labels, outline, overlap):
    return sum(overlaps(labels, outline)) - overlap * len(overlaps(labels, outline))


@pytest.mark.parametrize("seed", range(40))
def test_no_other_outline_is_worth_more(seed):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, 1 + seed % 7, 2)
    if seed % 2:
        labels = Labels(
            "v", labels.keysteps, labels.vocabulary, confidence=rng.random(len(labels))
        )
    overlap = rng.uniform(0, 0.9)

    best = max(
        worth(labels, np.array(outline), overlap)
        for outline in product((BACKGROUND, 0, 1), repeat=len(labels))
    )

    assert worth(labels, labels.outline(overlap).keysteps, overlap) == pytest.approx(best)


@pytest.mark.parametrize("overlap", [0.1, 0.4, 0.7])
def test_every_chapter_has_more_of_its_keystep_than_asked(overlap):
    for seed in range(20):
        labels = random_labels(np.random.default_rng(seed), 40, 4)

        assert min(overlaps(labels, labels.outline(overlap).keysteps), default=1) > overlap


def test_a_moment_is_left_out_or_passed_over():
    labels = make_labels([0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, -1, 1])

    # The first row announces 0, the last recalls 1, and 0 goes on around a moment of 1.
    assert labels.outline().keysteps.tolist() == [-1, 1, 1, 1, 1, *[0] * 8, -1, -1]


def test_of_two_visits_the_surer_one_is_kept():
    labels = make_labels([0, 0, 0, 1, 1, 1, 0, 0, 0])
    for surer, kept in ((slice(0, 3), 0), (slice(6, 9), 8)):
        confidence = np.full(9, 0.2)
        confidence[surer] = 0.9

        outline = Labels("v", labels.keysteps, labels.vocabulary, confidence=confidence).outline()

        assert (outline.keysteps[kept], outline.keysteps[8 - kept]) == (0, BACKGROUND)


def test_nothing_is_lost_where_all_is_wanted():
    for seed in range(20):
        labels = random_labels(np.random.default_rng(seed), 50, 3)

        assert labels.outline(0).keysteps.tolist() == labels.keysteps.tolist()


@pytest.mark.parametrize("done", [[], [-1], [0], [-1, -1, -1]])
def test_little_is_its_own_outline(done):
    labels = make_labels(done)

    assert labels.outline().keysteps.tolist() == done


def test_rows_that_nobody_is_sure_of_are_told_all_the_same():
    labels = Labels("v", np.array([0, 0]), make_labels([0]).vocabulary, confidence=np.zeros(2))

    assert labels.outline().keysteps.tolist() == [0, 0]


@pytest.mark.parametrize("overlap", [-0.1, 1.1, float("nan")])
def test_an_overlap_is_a_share(overlap):
    with pytest.raises(ConfigError, match=re.escape(f"must be between 0 and 1, got {overlap}")):
        make_labels([0]).outline(overlap)


# --- What is made of it


def told(overlap=0.3):
    labels = make_labels([0, 0, 0, 1, 0, 0, 1, 1, 1, 1], size=2)
    anchors = np.arange(10) == 3
    labels = Labels("v", labels.keysteps, labels.vocabulary, 1.0, anchors, np.full(10, 0.5))
    scores = make_scores(np.full((10, 2), 0.5), vocabulary=labels.vocabulary)
    return Timeline(Video("v", 10.0), labels, scores, overlap)


def test_a_timeline_tells_its_outline():
    names = told().labels.vocabulary.keysteps

    # A row inside a chapter that is labelled otherwise lends it neither confidence nor anchor.
    assert list(told(0.45)) == [
        Chapter(0, 6, names[0], 0.5, "path", pytest.approx(0.5 * 5 / 6)),
        Chapter(6, 10, names[1], 0.5, "path", 0.5),
    ]
    assert [(one.start, one.end) for one in told(0.0)] == [(0, 3), (3, 4), (4, 6), (6, 10)]


def test_empty_chapters_are_those_of_the_outline():
    labels = make_labels([0, 1, 1, 1, 0, 0, 0, 0])
    truth = {"video": make_labels([-1, 1, -1, -1, -1, 0, -1, -1])}

    report = evaluate([labels], truth)

    assert (report.empty_segments, report.empty_chapters) == (1 / 3, 0.0)
