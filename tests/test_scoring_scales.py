"""Stored scores on the scale of the paper: the extremes of each table become minus one and one."""

import numpy as np
import pytest
from scipy.special import ndtri

from stepgraph.core import Scores, Vocabulary
from stepgraph.errors import ConfigError
from stepgraph.scoring.fusion import EXTREMA, rescale, standardize

TABLE = np.random.default_rng(3).normal(size=(6, 5)).astype(np.float32)


def scores_of(values):
    values = np.asarray(values, np.float32)
    vocabulary = Vocabulary(tuple("abcde"[: values.shape[1]]))
    return Scores("talk", values, np.array([True, False]), vocabulary, 0.5)


def test_rescaling_maps_the_extremes_to_one_and_is_not_clipped():
    scores = scores_of([[-10.0, 30.0], [10.0, 50.0]])

    scaled = rescale(scores, -10, 30)

    assert scaled.values.tolist() == [[-1.0, 1.0], [0.0, 2.0]]
    assert scaled.values.dtype == np.float32
    assert (scaled.video, scaled.hop, scaled.vocabulary) == ("talk", 0.5, scores.vocabulary)
    assert scaled.observed is scores.observed


def test_rescaling_of_text_changes_no_bit():
    for name in ("coin-text", "crosstask-text"):
        scaled = rescale(scores_of(TABLE[:2]), *EXTREMA[name])
        np.testing.assert_array_equal(scaled.values, TABLE[:2])


def test_the_extremes_are_those_of_the_scripts():
    assert EXTREMA == {
        "coin-video": (-23.83, 24.12),
        "crosstask-video": (-63.42, 58.8),
        "coin-text": (-1, 1),
        "crosstask-text": (-1, 1),
    }


def test_scores_that_are_all_alike_have_no_scale_to_change():
    alike = scores_of([[0.7, 0.7], [0.1, 0.2]])

    assert standardize(alike) is alike


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (np.nan, 1), (0, np.inf), (-np.inf, 0)])
def test_extremes_that_are_none_are_refused(low, high):
    with pytest.raises(ConfigError, match="low must be below high, both finite, got"):
        rescale(scores_of(TABLE[:2]), low, high)


def test_the_better_of_two_is_as_far_from_their_mean_as_the_best_of_fifty():
    scores = standardize(scores_of([[1.0, 3.0], [0.0, 0.0]]))

    # Blom: the best of 50 normal numbers is 2.24 deviations from their mean, of 2 it is 0.59.
    far = 0.1 * ndtri(49.625 / 50.25) / ndtri(1.625 / 2.25)
    assert scores.values[0] == pytest.approx([0.15 - far, 0.15 + far], abs=1e-6)
