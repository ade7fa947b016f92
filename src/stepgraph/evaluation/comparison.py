"""Paired comparison of two methods on the same videos, by a bootstrap over videos.

Videos are drawn with replacement, the same ones for both methods.  The difference of a metric is
computed anew for each draw (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993).  A
difference whose interval contains zero may be chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepgraph.core import Labels
from stepgraph.errors import ConfigError, DataError
from stepgraph.evaluation.counts import Counts, weighted_sums
from stepgraph.evaluation.metrics import true_labels

RESAMPLES = 1000
INTERVAL = 0.95


class PairedDifference(NamedTuple):
    """Difference of a metric, first method minus second, with the ends of its 95 % interval."""

    difference: float
    low: float
    high: float


def count_videos(
    labels: Iterable[Labels], truth: Mapping[str, Labels], *, background_rows: bool = True
) -> dict[str, Counts]:
    """Count each video by itself, so that metrics of any resample can be computed."""
    return {
        one.video: Counts.of(true_labels(truth, one.video), one, background_rows=background_rows)
        for one in labels
    }


def compare_counts(
    first: Sequence[Mapping[str, Counts]],
    second: Sequence[Mapping[str, Counts]],
    metrics: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, PairedDifference]:
    """Compare two methods by several metrics.

    Parameters
    ----------
    first, second
        Counts of the same videos: one mapping, or one for each seed of a random method, whose
        metrics are averaged.
    """
    videos = sorted(first[0])
    for run in (*first, *second):
        if run.keys() != first[0].keys() or not run:
            raise DataError(
                f"methods to compare must have labelled the same videos, got {len(videos)} and "
                f"{len(run)} with {len(run.keys() & first[0].keys())} in common"
            )
    drawn = _draws(len(videos), resamples, seed)
    weights = np.concatenate([np.ones((1, len(videos)), dtype=np.int64), drawn])
    means = (
        np.mean([_measure([run[video] for video in videos], weights, metrics) for run in runs], 0)
        for runs in (first, second)
    )
    found = next(means) - next(means)
    return {name: _interval(found[0, at], found[1:, at]) for at, name in enumerate(metrics)}


def _measure(
    counts: Sequence[Counts], weights: NDArray[np.int64], metrics: Sequence[str]
) -> NDArray[np.float64]:
    """Compute metrics for each row of weights, shape (R, metrics)."""
    measured = (one.metrics() for one in weighted_sums(counts, weights))
    return np.array([[one[name] for name in metrics] for one in measured])


def paired_bootstrap(
    first: Mapping[str, Labels],
    second: Mapping[str, Labels],
    truth: Mapping[str, Labels],
    metric: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Compare two methods by one metric: that of the first minus that of the second.

    Examples
    --------
    >>> from stepgraph.core import Vocabulary
    >>> tea = Vocabulary(("boil", "pour"))
    >>> true, right, wrong = (
    ...     {video: Labels(video, np.array([keystep]), tea) for video in "abc"}
    ...     for keystep in (0, 0, 1)
    ... )
    >>> tuple(paired_bootstrap(right, wrong, true, "accuracy", resamples=100))
    (1.0, 1.0, 1.0)
    """
    one, other = (count_videos(labels.values(), truth) for labels in (first, second))
    return compare_counts([one], [other], [metric], resamples=resamples, seed=seed)[metric]


def bootstrap_mean(
    differences: ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0
) -> PairedDifference:
    """Average one difference a video, such as 1 for a recognised task, with its interval."""
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise DataError(f"differences must be one number a video, got shape {values.shape}")
    weights = _draws(len(values), resamples, seed)
    return _interval(float(values.mean()), weights @ values / len(values))


def compare_ratios(
    first: Sequence[NDArray[np.int64]],
    second: Sequence[NDArray[np.int64]],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Compare two methods by the share of rows that are right, from 0 to 1.

    Parameters
    ----------
    first, second
        Right rows and counted rows of the same videos, each of shape (V, 2): one array, or one
        for each seed of a random method.
    """
    videos = len(first[0])
    drawn = _draws(videos, resamples, seed)
    weights = np.concatenate([np.ones((1, videos), dtype=np.int64), drawn])
    shares = []
    for runs in (first, second):
        sums = np.stack([weights @ run for run in runs])
        rows = np.where(sums[..., 1] > 0, sums[..., 1], math.nan)
        shares.append((sums[..., 0] / rows).mean(axis=0))
    found = shares[0] - shares[1]
    return _interval(float(found[0]), found[1:])


def _draws(videos: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """Draw V of V videos with replacement, R times; return the count of each, shape (R, V)."""
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, got {resamples}")
    rng = np.random.default_rng(seed)
    return rng.multinomial(videos, np.full(videos, 1 / videos), size=resamples)


def _interval(value: float, drawn: NDArray[np.float64]) -> PairedDifference:
    """Add the bootstrap interval to a value; nan where the metric is undefined for all."""
    drawn = drawn[~np.isnan(drawn)]
    if not drawn.size:
        return PairedDifference(float(value), math.nan, math.nan)
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return PairedDifference(float(value), float(low), float(high))
