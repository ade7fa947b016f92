"""stepgraph's own recogniser: first the task, then one hidden Markov model of its keysteps.

Path search ignores all that lies under its threshold.  Here every row speaks: closeness is
softened into probabilities; the written order and what the corpus tells say when a keystep is
due; the graph says what follows what.  Labels are those by which most rows can be expected to be
right, and the beginning and the end of a video are left empty where it is more probably talk.
``docs/recognizer.md`` tells all of it on one page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit

from stepgraph.core import BACKGROUND, FREE, Alternatives, Labels, Scores
from stepgraph.decoders.hearing import Closeness, Heard, hear
from stepgraph.decoders.tasks import (
    cheapest_changes,
    task_evidence,
    task_posterior,
    task_stretches,
    tasks_of,
)
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError
from stepgraph.graph import TIMING_BINS, TaskGraph
from stepgraph.graph.chains import marginals
from stepgraph.graph.habits import Habits
from stepgraph.graph.layers import (
    IMAGINED_VIDEOS,
    IMAGINED_VOTES,
    STAY,
    blend_transitions,
    log_due,
)

Floats: TypeAlias = NDArray[np.float64]

_LEAST = -1e3
CLEAR = 0.4
"""A row whose own score reaches this was heard clearly; it decides nothing, it is only said."""

# Words of so many videos weigh half of what those of very many do.
_HALF = 50.0
_WORDS = 0.35


class _Decoded(NamedTuple):
    """Keystep of each row, how probable that is, and what else the row may show."""

    keysteps: NDArray[np.int64]
    probability: Floats
    others: Alternatives


class Expected(NamedTuple):
    """What is expected of a task before anything is heard.

    Attributes
    ----------
    log_timing : shape (n, 20)
    transitions : shape (n, n)
    """

    log_timing: Floats
    transitions: Floats


@dataclass(frozen=True)
class TaskMarkov:
    """Guess the task of a video, then label its rows with the keysteps that are most probable.

    Attributes
    ----------
    background
        Share of a video that introduction and farewell take in the mean; 0 labels every row.
    temperature
        Softness of the scores: a difference of this much is a factor of e.
    common
        Share of each keystep's mean score over the video that is taken away from it, since a
        keystep that always scores well says little.
    stay
        Probability that a keystep goes on for another row.
    spread
        How far from its place in the written order a keystep is done, as a share of the video.
    order
        How far the written order is believed: 0 where a list is in no order, up to 1.
    order_videos
        How many videos that belief counts as much as, beside those of the corpus.
    order_votes
        Transitions that are imagined so beside those of the graph.
    change_cost
        So many rows must be expected to be right thanks to it before a change of keystep is made.
    slope, bias, background_slope, background_bias
        Maps from the model's own probability of a keystep, and of background, to how often it is
        right, on the scale of log odds (Platt, 1999).
    """

    encoder: ClassVar[EncoderOptions] = EncoderOptions(context=1, task_names=True, blend=True)
    """What its scores should be made with."""

    background: float = 0.13
    temperature: float = 0.1
    common: float = 0.5
    stay: float = STAY
    spread: float = 0.25
    order: float = 1.0
    order_videos: float = IMAGINED_VIDEOS
    order_votes: float = IMAGINED_VOTES
    change_cost: float = 1.0
    slope: float = 0.4
    bias: float = -1.6
    background_slope: float = 0.55
    background_bias: float = 2.0

    def __post_init__(self) -> None:
        for name in ("temperature", "spread", "order_videos", "order_votes", "slope"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be more than 0, got {getattr(self, name)}")
        for one in fields(self):
            if not math.isfinite(getattr(self, one.name)) and one.name not in ("spread",):
                raise ConfigError(f"{one.name} must be finite, got {getattr(self, one.name)}")
        if not 0 < self.stay < 1:
            raise ConfigError(f"stay must be between 0 and 1, got {self.stay}")
        for name in ("background", "order"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.change_cost < 0:
            raise ConfigError(f"change_cost must be at least 0, got {self.change_cost}")

    def decode(self, scores: Scores, graph: TaskGraph) -> Labels:
        """See :class:`~stepgraph.decoders.Decoder`."""
        graph.require_vocabulary_of(scores)
        tasks, heard = tasks_of(graph), hear(scores)
        evidence = task_evidence(heard, tasks)
        posterior = task_posterior(tasks, evidence, graph.habits) if len(heard.said) else {}
        keysteps = np.full(len(scores), BACKGROUND, dtype=np.int64)
        confidence = np.zeros(len(scores))
        others = Alternatives.none(len(scores))
        stretches = task_stretches(heard, tasks, evidence) if posterior else []
        for rows in stretches:
            part, own = heard, posterior
            if len(stretches) > 1:
                # A stretch of its own task is judged by its own rows.
                part = hear(scores, rows)
                own = task_posterior(tasks, task_evidence(part, tasks), graph.habits)
            task = next(iter(own))
            found = self._decode_task(part, task, tasks[task], graph)
            keysteps[rows] = found.keysteps
            confidence[rows] = self._confidence(found, own[task])
            found.others.besides(*found[:2], confidence[rows]).put(others, rows)
        anchors = _heard_clearly(scores, keysteps)
        tracks = (anchors, confidence, posterior, others)
        return Labels(scores.video, keysteps, scores.vocabulary, scores.hop, *tracks)

    def confidence(self, keystep: int, probability: float, task: float) -> float:
        """How often a row like this one is right, given how probable the task is."""
        row = _Decoded(np.array([keystep]), np.array([probability]), Alternatives.none(1))
        return float(self._confidence(row, task)[0])

    def _confidence(self, found: _Decoded, task: float) -> Floats:
        """How often rows like these are right, given how probable the task is."""
        empty = found.keysteps == BACKGROUND
        own = np.where(empty, found.probability, task * found.probability)
        odds = logit(np.clip(own, 1e-6, 1 - 1e-6))
        slope = np.where(empty, self.background_slope, self.slope)
        bias = np.where(empty, self.background_bias, self.bias)
        return np.where(own > 0, expit(bias + slope * odds), 0.0)

    def _decode_task(
        self, heard: Heard, task: str, members: tuple[int, ...], graph: TaskGraph
    ) -> _Decoded:
        """Label the rows of one stretch with the keysteps of one task."""
        rows = len(heard.moment)
        close = heard.closeness(task, members)
        [possible] = np.nonzero(np.isfinite(close.keysteps).any(axis=0))
        if not possible.size:
            nothing = np.full(rows, BACKGROUND, dtype=np.int64)
            return _Decoded(nothing, np.zeros(rows), Alternatives.none(rows))
        words = self.log_words(heard.vectors(), task, graph.habits)
        probability = self.weigh(heard, close.keysteps, self.expect(task, graph), words)
        probability = probability[:, possible]
        talk = self._background(heard, close)
        talk = np.where(heard.fixed_rows == FREE, talk, heard.fixed_rows == BACKGROUND)[:, None]
        worth = np.concatenate([probability * (1 - talk), talk], axis=1)
        barred = ~np.isfinite(close.keysteps[:, possible])[heard.moment]
        worth[:, :-1][barred & (heard.moment >= 0)[:, None]] = -np.inf
        path = cheapest_changes(worth, self.change_cost)
        names = np.array([*(members[place] for place in possible), BACKGROUND], dtype=np.int64)
        every = np.arange(rows)
        return _Decoded(
            names[path], np.maximum(worth[every, path], 0.0), Alternatives.best_of(worth, names)
        )

    def expect(self, task: str, graph: TaskGraph) -> Expected:
        """When the keysteps of a task are due, and which follows which."""
        members = tasks_of(graph)[task]
        timing = self.log_timing(task, len(members), graph)
        return Expected(timing, self.transitions(members, graph))

    def weigh(self, heard: Heard, close: Floats, expected: Expected, words: Floats) -> Floats:
        """How probable each keystep of a task is on each row, given that one of them is done.

        Parameters
        ----------
        close : shape (N, n)
            How close each moment is to each keystep of the task.
        words : shape (N, n) or (N, 1)
            What the corpus' own words speak for.
        """
        emission = self.log_emission(close, heard.open_weight) + words
        rows = np.zeros((len(heard.moment), close.shape[1]))
        said = heard.moment >= 0
        rows[said] = emission[heard.moment[said]]
        when = np.arange(len(rows)) * TIMING_BINS // len(rows)
        rows += expected.log_timing[:, when].T
        rows[:, ~np.isfinite(close).any(axis=0)] = _LEAST
        return marginals(rows, expected.transitions)

    def log_emission(self, values: Floats, weight: Floats) -> Floats:
        """Log of the softmax within a task, moment by moment, shape (N, n).

        A keystep that may not be (minus infinity) is as improbable there as a number can say.
        """
        possible = np.isfinite(values)
        sums = weight @ np.where(possible, values, 0.0)
        return self.soften(values, sums / np.maximum(weight @ possible, 1))

    def soften(self, values: Floats, mean: Floats) -> Floats:
        """The same where each keystep's mean over the video is known, shape (n,)."""
        possible = np.isfinite(values)
        scaled = np.where(possible, (values - self.common * mean) / self.temperature, -np.inf)
        scaled[~possible.any(axis=1)] = 0.0
        softened: Floats = np.maximum(log_softmax(scaled, axis=1), _LEAST)
        return softened

    def log_timing(self, task: str, size: int, graph: TaskGraph) -> Floats:
        """Log of how much more a keystep is due in each twentieth than in the mean, (n, 20).

        The written order is imagined as some videos in which each keystep is done around its
        place, no order as some in which it is done anywhere.
        """
        place = (np.arange(size) + 0.5)[:, None] / size
        away = (np.arange(TIMING_BINS) + 0.5) / TIMING_BINS - place
        around = np.exp(log_softmax(-0.5 * (away / self.spread) ** 2, axis=1))
        due = self.order_videos * self._believed(graph, around, 1 / TIMING_BINS)
        timing = graph.habits.timing if graph.habits is not None else {}
        return log_due(due, timing.get(task, np.zeros_like(due)))

    def log_words(
        self, vectors: NDArray[np.float32] | None, task: str, habits: Habits | None
    ) -> Floats:
        """What the corpus' own words speak for in each moment, where it has enough of them."""
        if habits is None or vectors is None or task not in habits.words:
            return np.zeros(1)
        words, videos = habits.words[task], habits.videos[task]
        if words.vectors.shape[1] != vectors.shape[1]:
            return np.zeros(1)
        share = _WORDS * videos / (videos + _HALF)
        said: Floats = vectors.astype(np.float64) @ words.vectors.T.astype(np.float64)
        return share * (said + words.bias)

    def _background(self, heard: Heard, close: Closeness) -> Floats:
        """How probable it is that nothing is done yet, or no longer, on each row, shape (T,).

        It falls with the distance from the ends of the video; a row that is closer to the title
        than to any keystep, compared with the other rows, is rather talk about the task.
        """
        rows = len(heard.moment)
        if not self.background:
            return np.zeros(rows)
        odds = self.talk_odds((np.arange(rows) + 0.5) / rows)
        if close.title is not None:
            decided = heard.fixed != FREE
            ahead = np.where(decided, 0.0, close.title - close.keysteps.max(axis=1))
            weight = heard.open_weight if not decided.all() else heard.weight
            mean = np.average(ahead, weights=weight)
            spread = math.sqrt(np.average((ahead - mean) ** 2, weights=weight))
            said = heard.moment >= 0
            odds[said] += ((ahead - mean) / max(spread, 1e-9))[heard.moment[said]]
        talk: Floats = expit(odds)
        return talk

    def talk_odds(self, when: Floats) -> Floats:
        """Log odds of talk that a place in the video tells, from 0 to 1."""
        away = np.minimum(when, 1 - when) / (self.background / 2)
        odds: Floats = -np.log(np.expm1(away))
        return odds

    def _believed(self, graph: TaskGraph, ordered: Floats, even: float) -> Floats:
        """Mix what the written order says with what no order says; headings make an order."""
        share = self.order if any(graph.vocabulary.tasks.values()) else 0.0
        return share * ordered + (1 - share) * even

    def transitions(self, members: Sequence[int], graph: TaskGraph) -> Floats:
        """Probabilities between the keysteps of a task: the graph's counts and the order."""
        size = len(members)
        if size == 1:
            return np.ones((1, 1))
        ahead = _order_votes(size)
        ahead /= ahead.sum(axis=1, keepdims=True)
        imagined = self.order_votes * self._believed(graph, ahead, 1 / (size - 1))
        return blend_transitions(graph.counts_between(members), imagined, self.stay)


def _order_votes(size: int) -> Floats:
    """Prefer the next keystep of the order, then those near it; going back counts half."""
    ahead = np.arange(size)[None, :] - np.arange(size)[:, None]
    # Far away is all the same; without a limit it would round to never.
    near = np.minimum(np.abs(ahead - 1), 40)
    votes: Floats = np.exp(-near / 2) * np.where(ahead > 0, 1.0, 0.5 * (ahead < 0))
    return votes


def _heard_clearly(scores: Scores, keysteps: NDArray[np.int64]) -> NDArray[np.bool_]:
    clear = np.zeros(len(scores), dtype=bool)
    for segment in Labels(scores.video, keysteps, scores.vocabulary, 1.0).segments():
        rows = slice(int(segment.start), int(segment.end))
        clear[rows] = scores.at(rows, segment.keystep) >= CLEAR
    return scores.observed & clear
