"""Recognise while somebody speaks: which task, which keystep, how far, what next, what is missing.

The evidence is that of :class:`~stepgraph.decoders.TaskMarkov`, taken as it comes: nothing that is
told depends on what is said later.  A delay lets the next seconds speak before a row is told.
``docs/live.md`` says what that costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stepgraph.assistant.live_following import Floats
from stepgraph.assistant.live_ground import Ground, Likely
from stepgraph.assistant.live_listening import Listener
from stepgraph.core import BACKGROUND, Sentence
from stepgraph.core.videos import LONGEST
from stepgraph.errors import ConfigError
from stepgraph.graph.maps import START

LATEST = 30.0
"""Seconds of the longest delay."""
# Tasks and keysteps that are told, and from which chance on something is rather missing than not.
_SHOWN, _RATHER = 5, 0.5


@dataclass(frozen=True)
class LiveOptions:
    """How to listen.

    Attributes
    ----------
    delay
        Seconds that are heard before it is told what was done, from 0 to 30.
    length
        Seconds that all of it will take, where that is known.
    """

    delay: float = 10.0
    length: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.delay <= LATEST:
            raise ConfigError(f"delay must be from 0 to {LATEST:.0f} seconds, got {self.delay}")
        if self.length is not None and not 1 <= self.length <= LONGEST:
            raise ConfigError(
                f"length must be between a second and a week, got {self.length}; leave it out "
                f"where it is not known"
            )


@dataclass(frozen=True)
class State:
    """What is believed of one second, by all that was said up to some seconds later.

    Attributes
    ----------
    at
        Where the second begins that is told of.
    now
        Up to when was listened.
    tasks
        How probable they are, given that it is one of those known: first the one that is told,
        the most probable but for the seconds in which another is caught up with, then others.
    keystep
        What is done, of the task that is told; None where it is rather talk.
    confidence
        How often that is right, as :class:`~stepgraph.TaskMarkov` says it.
    keysteps
        The most probable keysteps of that task, as far as one of them is done.
    progress
        How much of the whole is over, from 0 to 1.
    next
        What most probably comes next after what was done last.
    missing
        What should have been done by now, and was not heard: each with the probability that it is
        done in such a video at all, comes before what is done now, and was not done.
    """

    at: float
    now: float
    tasks: Mapping[str, float]
    keystep: str | None
    confidence: float
    keysteps: tuple[Likely, ...]
    progress: float
    next: tuple[Likely, ...]
    missing: tuple[Likely, ...]

    @property
    def task(self) -> str | None:
        """The task that is told, where anything was heard."""
        return next(iter(self.tasks), None)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON has it, in round numbers."""
        likely = {
            name: [{"keystep": k, "probability": round(p, 4)} for k, p in getattr(self, name)]
            for name in ("keysteps", "next", "missing")
        }
        return {
            "at": self.at,
            "now": self.now,
            "task": self.task,
            "tasks": {task: round(share, 4) for task, share in self.tasks.items()},
            "keystep": self.keystep,
            "confidence": round(self.confidence, 4),
            "progress": round(self.progress, 4),
            **likely,
        }


class Teller:
    """Tells of each row once, so many rows late; what was told is never taken back."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._told: tuple[str, int] | None = None  # task and keystep of the row before
        self._last: tuple[str, int] | None = None  # those that were done last
        self._done: dict[int, float] = {}
        self._best = np.zeros(0)  # what the best way to each label of the row before is worth

    def tell(self, listener: Listener, delay: int | None = None) -> State | None:
        """Tell of the row that is as old as the delay; None while there is none yet."""
        late = self.delay if delay is None else delay
        row = listener.rows - 1 - late
        if row < 0:
            return None
        if not listener.task or row < listener.origin:
            return self._nothing(listener, row)
        probability, talk = listener.look_back(late + 1)
        members = listener.ground.tasks[listener.task]
        place, sure = self._choose(listener, probability, talk)
        keystep = BACKGROUND if place == len(members) else members[place]
        self._note(listener, members, keystep, probability)
        return self._state(listener, row, keystep, sure, probability[0])

    def _choose(self, listener: Listener, probability: Floats, talk: Floats) -> tuple[int, float]:
        """The column of a row's label, the last one for talk, and how probable that is.

        It lies on the best way through all rows up to now, by which a change must bring some rows.
        """
        worth = np.concatenate([probability * (1 - talk[:, None]), talk[:, None]], axis=1)
        cost = listener.ground.decoder.change_cost
        if self._told is None or self._told[0] != listener.task:
            self._best = np.zeros(worth.shape[1])
        arriving = np.maximum(self._best, self._best.max() - cost)
        self._best = arriving + worth[0]
        self._best -= self._best.max()
        ahead = np.zeros(worth.shape[1])
        for row in worth[:0:-1]:
            ahead = row + ahead
            ahead = np.maximum(ahead, ahead.max() - cost)
        column = int((self._best + ahead).argmax())
        return column, float(worth[0, column])

    def _note(
        self, listener: Listener, members: tuple[int, ...], keystep: int, probability: Floats
    ) -> None:
        """Remember what was told and what is done by now."""
        if self._told is None or self._told[0] != listener.task:
            # What was heard before the task was known was perhaps a part of it.
            assert listener.follower is not None, "there is a task"
            past = listener.follower.done(len(probability))
            self._done = dict(zip(members, past.tolist(), strict=True))
        for each, sure in zip(members, probability[0].tolist(), strict=True):
            self._done[each] = max(self._done[each], sure)
        self._told = listener.task, keystep
        if keystep != BACKGROUND:
            self._last = self._told

    def _nothing(self, listener: Listener, row: int) -> State:
        now, over = float(listener.rows), listener.progress(row)
        return State(float(row), now, {}, None, 0.0, (), over, (), ())

    def _state(
        self, listener: Listener, row: int, keystep: int, sure: float, probability: Floats
    ) -> State:
        ground, shares = listener.ground, listener.shares
        members, names = ground.tasks[listener.task], ground.graph.vocabulary.keysteps
        best = [int(place) for place in np.argsort(-shares, kind="stable")[:_SHOWN]]
        told = listener.names.index(listener.task)
        first = dict.fromkeys([told, *best])
        tasks = {listener.names[place]: float(shares[place]) for place in [*first][:_SHOWN]}
        top = np.argsort(-probability, kind="stable")[:_SHOWN]
        return State(
            at=float(row),
            now=float(listener.rows),
            tasks=tasks,
            keystep=None if keystep == BACKGROUND else names[keystep],
            confidence=ground.decoder.confidence(keystep, sure, tasks[listener.task]),
            keysteps=tuple(Likely(names[members[at]], float(probability[at])) for at in top),
            progress=listener.progress(row - listener.origin),
            next=self._next(listener),
            missing=self._missing(listener),
        )

    def _next(self, listener: Listener) -> tuple[Likely, ...]:
        following = listener.ground.way(listener.task).following
        if self._last is None or self._last[0] != listener.task:
            return following[START]
        return following[self._last[1]]

    def _missing(self, listener: Listener) -> tuple[Likely, ...]:
        if self._last is None or self._last[0] != listener.task:
            return ()
        way, members = listener.ground.way(listener.task), listener.ground.tasks[listener.task]
        here = members.index(self._last[1])
        undone = np.array([1 - self._done[keystep] for keystep in members])
        undone[here] = 0.0
        chances = way.shown * way.before[:, here] * undone
        names = listener.ground.graph.vocabulary.keysteps
        order = np.argsort(-chances, kind="stable")
        return tuple(
            Likely(names[members[at]], float(chances[at]))
            for at in order
            if chances[at] >= _RATHER
        )


class Live:
    """Listens second by second, and tells of each second.

    Parameters
    ----------
    ground
        What is known before.
    options
        How to listen.

    Examples
    --------
    >>> from stepgraph import load_encoder, mine
    >>> graph = mine("demo")
    >>> live = Live(Ground.of_graph(graph, load_encoder(graph.encoder)), LiveOptions(delay=2))
    >>> states = live.feed(9, [Sentence(4.0, 8.0, "turn the chair upside down on the blanket")])
    >>> states[-1].task, states[-1].at
    ('Repair a wobbly chair', 6.0)
    """

    def __init__(self, ground: Ground, options: LiveOptions | None = None) -> None:
        options = options or LiveOptions()
        self._listener = Listener(ground, options.length)
        self._teller = Teller(round(options.delay))

    def feed(self, now: float, sentences: Iterable[Sentence] = ()) -> list[State]:
        """Listen on until ``now``, and tell of each second for which the delay is over.

        A sentence counts from its end on, or from ``now`` on if that is sooner.  Time never goes
        back: a ``now`` that is earlier than the last one changes nothing.
        """
        self._listener.take(now, sentences)
        states = []
        while self._listener.rows + 1 <= now:
            self._listener.listen()
            states.append(self._teller.tell(self._listener))
        return [state for state in states if state is not None]

    def feed_scores(self, values: ArrayLike) -> list[State]:
        """Take the scores of the next seconds from any encoder, and tell what :meth:`feed` does.

        Parameters
        ----------
        values : shape (k, K)
            How close each second is to each keystep; NaN where nothing was observed.
        """
        rows = np.asarray(values, dtype=np.float32)
        ground = self._listener.ground
        size = len(ground.graph.vocabulary)
        if ground.targets.vectors is not None:
            raise ConfigError("scores must be fed without an encoder; use Ground.of_scores")
        if rows.ndim != 2 or rows.shape[1] != size:
            raise ConfigError(f"scores must have the shape (k, {size}), got {rows.shape}")
        if np.isinf(rows).any():
            raise ConfigError("scores must be finite, or NaN where nothing was observed, got inf")
        states = []
        for row in rows:
            if not np.isnan(row).any():
                self._listener.see(row)
            states += self.feed(self._listener.rows + 1)
        return states

    def finish(self) -> list[State]:
        """Tell of the seconds for which the delay is not over, since nothing more will come."""
        told = self.feed(self._listener.until())
        for late in range(min(self._teller.delay, self._listener.rows) - 1, -1, -1):
            state = self._teller.tell(self._listener, late)
            assert state is not None, "so many rows were heard"
            told.append(state)
        return told
