"""stepgraph's own recogniser: first the task, then one hidden Markov model of its keysteps.

Path search ignores all that lies under its threshold.  Here every row speaks: the scores are
softened into probabilities, the graph and the written order say what follows what, and each
keystep has its place in the course of a video.  The most probable sequence is the labels, and
the probability of each row's label given the whole video is its confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import BACKGROUND, Labels, Scores, runs
from stepgraph.decoders.chains import Chain, most_likely_path, path_probability
from stepgraph.decoders.tasks import (
    SWITCH_COST,
    task_evidence,
    task_posterior,
    task_sequence,
    tasks_of,
)
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph

_LEAST = -1e3
UNRELATED = 0.1
"""A video that is less probably about any of the tasks has no keysteps at all."""

CLEAR = 0.4
"""A row whose own score reaches this was heard clearly; it decides nothing, it is only said."""


@dataclass(frozen=True)
class TaskMarkov:
    """Guess the task of a video, then find the most probable sequence of its keysteps.

    Attributes
    ----------
    temperature
        Softness of the scores: a difference of this much is a factor of e.
    common
        Share of each keystep's mean score over the video that is taken away from it, since a
        keystep that always scores well says little.
    stay
        Probability that a keystep goes on for another row.
    spread
        How far from its place a keystep is done, as a share of the video's length.
    order_votes
        Transitions in the written order that are imagined beside those of the graph.
    certainty
        How much of the evidence counts for the confidence: neighbouring rows repeat one another.
    slope, bias
        Map from the model's own probability to how often it is right, on the scale of log odds
        (Platt, 1999).
    """

    encoder: ClassVar[EncoderOptions] = EncoderOptions(context=1, task_names=True, blend=True)
    """What its scores should be made with."""

    temperature: float = 0.1
    common: float = 0.5
    stay: float = 0.95
    spread: float = 0.25
    order_votes: float = 100.0
    certainty: float = 0.1
    slope: float = 0.37
    bias: float = -0.38

    def __post_init__(self) -> None:
        for name in ("temperature", "spread", "order_votes", "certainty", "slope"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be more than 0, got {getattr(self, name)}")
        for name in ("order_votes", "certainty", "slope", "common", "bias"):
            if not math.isfinite(getattr(self, name)):
                raise ConfigError(f"{name} must be finite, got {getattr(self, name)}")
        if not 0 < self.stay < 1:
            raise ConfigError(f"stay must be between 0 and 1, got {self.stay}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        tasks = tasks_of(graph)
        evidence = task_evidence(scores, tasks, self.temperature)
        posterior = task_posterior(scores, tasks, evidence) if scores.observed.any() else {}
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        confidence = np.zeros(len(scores))
        # Nothing is done in a video that is about none of the tasks.
        related = posterior and sum(posterior.values()) >= UNRELATED
        for first, last in runs(task_sequence(evidence, SWITCH_COST)) if related else ():
            part = slice(first, last)
            task = list(tasks)[int(evidence[part].sum(axis=0).argmax())]
            # A stretch of its own task is judged by its own rows.
            own = posterior
            if last - first < len(scores):
                own = task_posterior(_stretch(scores, part), tasks, evidence[part])
            keysteps[part], sure = self._decode_task(scores, part, tasks[task], graph)
            confidence[part] = self._calibrated(sure * own[task])
        confidence[keysteps == BACKGROUND] = 0.0
        heard = scores.values[np.arange(len(scores)), np.maximum(keysteps, 0)] >= CLEAR
        anchors = scores.observed & (keysteps != BACKGROUND) & heard
        return Labels(
            scores.video, keysteps, scores.vocabulary, scores.hop, anchors, confidence, posterior
        )

    def _calibrated(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        odds = np.clip(probability, 1e-6, 1 - 1e-6)
        logit = self.bias + self.slope * np.log(odds / (1 - odds))
        calibrated: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(logit, -700, 700)))
        return calibrated

    def _decode_task(
        self, scores: Scores, part: slice, members: tuple[int, ...], graph: TaskGraph
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Label the rows of one stretch with the keysteps of one task."""
        observed = scores.observed[part]
        judged = scores.values[part][observed] if observed.any() else scores.values[part]
        allowed = [k for k in members if judged[:, k].max() > -math.inf]
        if not allowed:
            return np.full(len(observed), BACKGROUND, dtype=np.int64), np.zeros(len(observed))
        values = scores.values[part][:, allowed].astype(np.float64)
        log_emission = self._log_emission(values, observed)
        if _is_ordered(graph):
            log_emission += self._log_place(len(values), len(allowed))
        transition = self.transitions(allowed, graph)
        path = most_likely_path(log_emission, Chain.of_all(np.log(transition)))
        sure = path_probability(self.certainty * log_emission, transition, path)
        return np.asarray(allowed, dtype=np.int64)[path], sure

    def _log_emission(
        self, values: NDArray[np.float64], observed: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Log of the softmax within the task; unobserved rows carry no evidence.

        A keystep that may not be on a row (minus infinity) is as improbable there as a number
        can say.
        """
        log_emission = np.zeros_like(values)
        heard = values[observed]
        if not len(heard):
            return log_emission
        possible = np.isfinite(heard)
        sums = np.where(possible, heard, 0).sum(axis=0)
        heard = heard - self.common * sums / np.maximum(possible.sum(axis=0), 1)
        heard = np.where(possible, heard / self.temperature, -np.inf)
        best = heard.max(axis=1, keepdims=True)
        heard = np.where(possible, heard - np.where(np.isfinite(best), best, 0), _LEAST)
        log_emission[observed] = heard - np.log(np.exp(heard).sum(axis=1, keepdims=True))
        return log_emission

    def _log_place(self, rows: int, keysteps: int) -> NDArray[np.float64]:
        """Log of how well each row fits each keystep's place in the order."""
        when = (np.arange(rows) + 0.5)[:, None] / rows
        place = (np.arange(keysteps) + 0.5) / keysteps
        log_place: NDArray[np.float64] = -0.5 * ((when - place) / self.spread) ** 2
        return log_place

    def transitions(self, members: Sequence[int], graph: TaskGraph) -> NDArray[np.float64]:
        """Probabilities between the keysteps of a task: the graph's counts and the order."""
        size = len(members)
        if size == 1:
            return np.ones((1, 1))
        imagined = _order_votes(size) if _is_ordered(graph) else 1.0 - np.eye(size)
        imagined = self.order_votes * imagined / imagined.sum(axis=1, keepdims=True)
        votes: NDArray[np.float64] = graph.counts_between(members) + imagined
        np.fill_diagonal(votes, 0)
        votes *= (1 - self.stay) / votes.sum(axis=1, keepdims=True)
        np.fill_diagonal(votes, self.stay)
        return votes


def _is_ordered(graph: TaskGraph) -> bool:
    """Whether somebody wrote an order of keysteps."""
    return any(graph.vocabulary.tasks.values())


def _order_votes(size: int) -> NDArray[np.float64]:
    """Prefer the next keystep of the order, then those near it; going back counts half."""
    ahead = np.arange(size)[None, :] - np.arange(size)[:, None]
    # Far away is all the same; without a limit it would round to never.
    near = np.minimum(np.abs(ahead - 1), 40)
    votes: NDArray[np.float64] = np.exp(-near / 2) * np.where(ahead > 0, 1.0, 0.5)
    np.fill_diagonal(votes, 0)
    return votes


def _stretch(scores: Scores, part: slice) -> Scores:
    return replace(scores, values=scores.values[part], observed=scores.observed[part])
