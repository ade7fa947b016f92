"""stepgraph's own recogniser: first the task, then one hidden Markov model of its keysteps.

Path search ignores all rows under its threshold.  Here every row counts: a softmax turns
similarities into emissions; the listed order and the corpus give the timing; the graph gives the
transitions.  The labels maximise the expected number of correct rows; the beginning and the end
of a video are background where that is more probable.  ``docs/recognizer.md`` explains the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit

from stepgraph.core import BACKGROUND, UNANNOTATED, Alternatives, Labels, Scores
from stepgraph.decoders.observations import Observations, TaskSimilarity, observe
from stepgraph.decoders.tasks import (
    cheapest_changes,
    task_log_evidence,
    task_posterior,
    task_segments,
    tasks_of,
)
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.graph import TIMING_BINS, TaskGraph
from stepgraph.graph.chains import marginals
from stepgraph.graph.order_statistics import (
    PRIOR_TRANSITIONS,
    PRIOR_VIDEOS,
    SELF_TRANSITION,
    blend_transitions,
    log_due,
)
from stepgraph.graph.parameters import RecognizerParameters

Floats: TypeAlias = NDArray[np.float64]

_LEAST = -1e3
CONFIDENT = 0.4
"""Least score of a confident row, which is marked as an anchor; it does not affect decoding."""

# Videos at which a sentence classifier has half of its largest weight, and this weight.
_HALF = 50.0
_WORDS = 0.35


class _Decoded(NamedTuple):
    """Keystep of each row, its probability, and the alternatives."""

    keysteps: NDArray[np.int64]
    probability: Floats
    others: Alternatives


class Expected(NamedTuple):
    """Prior of a task, before any observation: timing and transitions of its keysteps.

    Attributes
    ----------
    log_timing : shape (n, 20)
    transitions : shape (n, n)
    """

    log_timing: Floats
    transitions: Floats


@dataclass(frozen=True)
class TaskMarkov:
    """Find the task of a video, then label its rows with the most probable keysteps.

    Attributes
    ----------
    background
        Expected share of introduction and farewell in a video, 0 to label every row.
    temperature
        Temperature of the softmax of the scores: a difference of this much is a factor of e.
    mean_subtraction
        Share of the mean score of a keystep over the video to subtract from its scores, since a
        keystep that scores well on every row discriminates little.
    self_transition
        Probability that a keystep goes on for another row.
    order_sigma
        Standard deviation of the time of a keystep around its listed place, in shares of a video.
    order_weight
        Weight of the listed order, from 0 (the list is no order) to 1.
    order_prior_videos
        Weight of the prior timing, from the listed order, as a number of videos of the corpus.
    order_prior_transitions
        Weight of the prior transitions, from the listed order, as a number of counts of each
        keystep beside those of the graph.
    change_cost
        Least gain, in expected correct rows, that a change of keystep must bring.
    calibration_slope, calibration_intercept, background_slope, background_intercept
        Calibration (Platt, 1999) of the probability of a label to the share of correct labels:
        slope and intercept of its log odds, for a keystep and for background.
    """

    encoder: ClassVar[EncoderOptions] = EncoderOptions(context=1, task_names=True, blend=True)
    """Options of the encoder that its scores should be made with."""

    background: float = 0.13
    temperature: float = 0.1
    mean_subtraction: float = 0.5
    self_transition: float = SELF_TRANSITION
    order_sigma: float = 0.25
    order_weight: float = 1.0
    order_prior_videos: float = PRIOR_VIDEOS
    order_prior_transitions: float = PRIOR_TRANSITIONS
    change_cost: float = 1.0
    calibration_slope: float = 0.4
    calibration_intercept: float = -1.6
    background_slope: float = 0.55
    background_intercept: float = 2.0

    def __post_init__(self) -> None:
        for name in (
            "temperature",
            "order_sigma",
            "order_prior_videos",
            "order_prior_transitions",
            "calibration_slope",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be more than 0, got {getattr(self, name)}")
        for one in fields(self):
            if not math.isfinite(getattr(self, one.name)) and one.name != "order_sigma":
                raise ConfigError(f"{one.name} must be finite, got {getattr(self, one.name)}")
        if not 0 < self.self_transition < 1:
            raise ConfigError(
                f"self_transition must be between 0 and 1, got {self.self_transition}"
            )
        for name in ("background", "order_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.change_cost < 0:
            raise ConfigError(f"change_cost must be at least 0, got {self.change_cost}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        tasks, observations = tasks_of(graph), observe(scores)
        log_evidence = task_log_evidence(observations, tasks)
        posterior = (
            task_posterior(tasks, log_evidence, graph.parameters)
            if len(observations.sources)
            else {}
        )
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        confidence = np.zeros(len(scores))
        others = Alternatives.none(len(scores))
        segments = task_segments(observations, tasks, log_evidence) if posterior else []
        for rows in segments:
            part, own = observations, posterior
            if len(segments) > 1:
                # The posterior of a task segment is that of its own rows.
                part = observe(scores, rows)
                own = task_posterior(tasks, task_log_evidence(part, tasks), graph.parameters)
            task = next(iter(own))
            found = self._decode_task(part, task, tasks[task], graph)
            keysteps[rows] = found.keysteps
            confidence[rows] = self._confidence(found, own[task])
            found.others.besides(*found[:2], confidence[rows]).put(others, rows)
        anchors = _confident_rows(scores, keysteps)
        tracks = (anchors, confidence, posterior, others)
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop, *tracks)

    def confidence(self, keystep: int, probability: float, task: float) -> float:
        """Calibrated probability that a label is right, given the posterior of the task."""
        row = _Decoded(np.array([keystep]), np.array([probability]), Alternatives.none(1))
        return float(self._confidence(row, task)[0])

    def _confidence(self, found: _Decoded, task: float) -> Floats:
        """Calibrated probability that each label is right, given the posterior of the task."""
        empty = found.keysteps == BACKGROUND
        own = np.where(empty, found.probability, task * found.probability)
        odds = logit(np.clip(own, 1e-6, 1 - 1e-6))
        slope = np.where(empty, self.background_slope, self.calibration_slope)
        bias = np.where(empty, self.background_intercept, self.calibration_intercept)
        return np.where(own > 0, expit(bias + slope * odds), 0.0)

    def _decode_task(
        self, observations: Observations, task: str, members: tuple[int, ...], graph: TaskGraph
    ) -> _Decoded:
        """Label the rows of one task segment with the keysteps of its task."""
        rows = len(observations.index)
        similarity = observations.similarity(task, members)
        [possible] = np.nonzero(np.isfinite(similarity.keysteps).any(axis=0))
        if not possible.size:
            nothing = np.full(rows, BACKGROUND, dtype=np.int64)
            return _Decoded(nothing, np.zeros(rows), Alternatives.none(rows))
        class_scores = self.log_classifier(observations.vectors(), task, graph.parameters)
        probability = self.weigh(
            observations, similarity.keysteps, self.expect(task, graph), class_scores
        )
        probability = probability[:, possible]
        background = self._background(observations, similarity)
        background = np.where(
            observations.row_annotation == UNANNOTATED,
            background,
            observations.row_annotation == BACKGROUND,
        )[:, None]
        worth = np.concatenate([probability * (1 - background), background], axis=1)
        barred = ~np.isfinite(similarity.keysteps[:, possible])[observations.index]
        worth[:, :-1][barred & (observations.index >= 0)[:, None]] = -np.inf
        path = cheapest_changes(worth, self.change_cost)
        names = np.array([*(members[place] for place in possible), BACKGROUND], dtype=np.int64)
        every = np.arange(rows)
        return _Decoded(
            names[path], np.maximum(worth[every, path], 0.0), Alternatives.best_of(worth, names)
        )

    def expect(self, task: str, graph: TaskGraph) -> Expected:
        """Compute the prior timing and the transitions of the keysteps of a task."""
        members = tasks_of(graph)[task]
        timing = self.log_timing(task, len(members), graph)
        return Expected(timing, self.transitions(members, graph))

    def weigh(
        self,
        observations: Observations,
        similarity: Floats,
        expected: Expected,
        class_scores: Floats,
    ) -> Floats:
        """Posterior of each keystep of a task on each row, given that one is done, shape (T, n).

        Parameters
        ----------
        similarity : shape (N, n)
            Similarity of each observation to each keystep of the task.
        class_scores : shape (N, n) or (N, 1)
            Weighted scores of the sentence classifier, in nats.
        """
        emission = self.log_emission(similarity, observations.unannotated_weight) + class_scores
        rows = np.zeros((len(observations.index), similarity.shape[1]))
        observed = observations.index >= 0
        rows[observed] = emission[observations.index[observed]]
        when = np.arange(len(rows)) * TIMING_BINS // len(rows)
        rows += expected.log_timing[:, when].T
        rows[:, ~np.isfinite(similarity).any(axis=0)] = _LEAST
        return marginals(rows, expected.transitions)

    def log_emission(self, values: Floats, weight: Floats) -> Floats:
        """Log-emission of each observation: a log-softmax within the task, in nats, shape (N, n).

        A keystep that is excluded there (minus infinity) gets -1000 nats.
        """
        possible = np.isfinite(values)
        sums = weight @ np.where(possible, values, 0.0)
        return self.soften(values, sums / np.maximum(weight @ possible, 1))

    def soften(self, values: Floats, mean: Floats) -> Floats:
        """Log-emission, given the mean score of each keystep over the video, shape (n,)."""
        possible = np.isfinite(values)
        scaled = np.where(
            possible, (values - self.mean_subtraction * mean) / self.temperature, -np.inf
        )
        scaled[~possible.any(axis=1)] = 0.0
        softened: Floats = np.maximum(log_softmax(scaled, axis=1), _LEAST)
        return softened

    def log_timing(self, task: str, size: int, graph: TaskGraph) -> Floats:
        """Log-ratio of the rate of each keystep in each twentieth to its mean rate, (n, 20).

        The prior is a number of videos: with a listed order, each keystep is done around its
        place in them; without one, it is uniform.
        """
        place = (np.arange(size) + 0.5)[:, None] / size
        away = (np.arange(TIMING_BINS) + 0.5) / TIMING_BINS - place
        around = np.exp(log_softmax(-0.5 * (away / self.order_sigma) ** 2, axis=1))
        due = self.order_prior_videos * self._mix_prior(graph, around, 1 / TIMING_BINS)
        timing = graph.parameters.timing if graph.parameters is not None else {}
        return log_due(due, timing.get(task, np.zeros_like(due)))

    def log_classifier(
        self,
        vectors: NDArray[np.float32] | None,
        task: str,
        parameters: RecognizerParameters | None,
    ) -> Floats:
        """Weighted scores of the sentence classifier, in nats, shape (N, n); 0 without one."""
        if parameters is None or vectors is None or task not in parameters.classifiers:
            return np.zeros(1)
        classifier, videos = parameters.classifiers[task], parameters.videos[task]
        if classifier.vectors.shape[1] != vectors.shape[1]:
            return np.zeros(1)
        share = _WORDS * videos / (videos + _HALF)
        found: Floats = vectors.astype(np.float64) @ classifier.vectors.T.astype(np.float64)
        return share * (found + classifier.bias)

    def _background(self, observations: Observations, similarity: TaskSimilarity) -> Floats:
        """Probability of background, before the first keystep or after the last, shape (T,).

        It falls with the distance from the ends of the video.  It rises where a row is more
        similar to the title than to any keystep, relative to the other rows.
        """
        rows = len(observations.index)
        if not self.background:
            return np.zeros(rows)
        odds = self.background_odds((np.arange(rows) + 0.5) / rows)
        if similarity.title is not None:
            annotated = observations.annotation != UNANNOTATED
            ahead = np.where(annotated, 0.0, similarity.title - similarity.keysteps.max(axis=1))
            weight = (
                observations.unannotated_weight if not annotated.all() else observations.weight
            )
            mean = np.average(ahead, weights=weight)
            spread = math.sqrt(np.average((ahead - mean) ** 2, weights=weight))
            observed = observations.index >= 0
            odds[observed] += ((ahead - mean) / max(spread, 1e-9))[observations.index[observed]]
        background: Floats = expit(odds)
        return background

    def background_odds(self, when: Floats) -> Floats:
        """Log odds of background, given positions in the video from 0 to 1."""
        away = np.minimum(when, 1 - when) / (self.background / 2)
        odds: Floats = -np.log(np.expm1(away))
        return odds

    def _mix_prior(self, graph: TaskGraph, ordered: Floats, even: float) -> Floats:
        """Mix a prior of the listed order with a uniform one; without headings it is uniform."""
        share = self.order_weight if any(graph.vocabulary.tasks.values()) else 0.0
        return share * ordered + (1 - share) * even

    def transitions(self, members: Sequence[int], graph: TaskGraph) -> Floats:
        """Transition probabilities of a task, from the graph's counts and the listed order."""
        size = len(members)
        if size == 1:
            return np.ones((1, 1))
        ahead = _order_weights(size)
        ahead /= ahead.sum(axis=1, keepdims=True)
        pseudo_counts = self.order_prior_transitions * self._mix_prior(
            graph, ahead, 1 / (size - 1)
        )
        return blend_transitions(
            graph.counts_between(members), pseudo_counts, self.self_transition
        )


def _order_weights(size: int) -> Floats:
    """Weights of transitions by the listed order: the next keystep most, backward ones half."""
    ahead = np.arange(size)[None, :] - np.arange(size)[:, None]
    # The distance is limited, so that no weight rounds to zero.
    near = np.minimum(np.abs(ahead - 1), 40)
    votes: Floats = np.exp(-near / 2) * np.where(ahead > 0, 1.0, 0.5 * (ahead < 0))
    return votes


def _confident_rows(scores: Scores, keysteps: NDArray[np.int64]) -> NDArray[np.bool_]:
    confident = np.zeros(len(scores), dtype=bool)
    for segment in Labels(scores.video, keysteps, scores.vocabulary, 1.0).segments():
        rows = slice(int(segment.start), int(segment.end))
        confident[rows] = scores.at(rows, segment.keystep) >= CONFIDENT
    return scores.observed & confident
