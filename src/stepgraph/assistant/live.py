"""Online recognition with a fixed delay: task, keystep, progress, successors, missing keysteps.

The emissions are those of :class:`~stepgraph.decoders.TaskMarkov`, computed as sentences arrive.
The state of a row depends on observations up to the delay after it, and on no later ones.
``docs/live.md`` gives the cost in accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stepgraph.assistant.live_following import Floats
from stepgraph.assistant.live_model import Likely, OnlineModel
from stepgraph.assistant.live_recognition import OnlineRecognizer
from stepgraph.core import BACKGROUND, Sentence
from stepgraph.core.videos import LONGEST
from stepgraph.errors import ConfigError
from stepgraph.graph.maps import START

LATEST = 30.0
"""Longest delay, in seconds."""
# Most tasks and keysteps in a state, and the least probability of a keystep that is missing.
_SHOWN, _RATHER = 5, 0.5


@dataclass(frozen=True)
class LiveOptions:
    """Options of online recognition.

    Attributes
    ----------
    delay
        Output delay in seconds, from 0 to 30: later speech that a label may use.
    length
        Total length of the narration in seconds, if known.
    """

    delay: float = 10.0
    length: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.delay <= LATEST:
            raise ConfigError(f"delay must be from 0 to {LATEST:.0f} seconds, got {self.delay}")
        if self.length is not None and not 1 <= self.length <= LONGEST:
            raise ConfigError(
                f"length must be between a second and a week, got {self.length}; omit it "
                f"if it is unknown"
            )


@dataclass(frozen=True)
class OnlineState:
    """Estimates for one row, given the observations up to some seconds later.

    Attributes
    ----------
    at
        Start of the row, in seconds.
    now
        End of the observations, in seconds.
    tasks
        Posteriors of tasks, given that it is one of the graph's.  The current task is first: the
        most probable one whose model has reached the last row.
    keystep
        Label of the row, a keystep of the current task; None for background.
    confidence
        Calibrated probability that the label is right; see :class:`~stepgraph.TaskMarkov`.
    keysteps
        The most probable keysteps of the current task, given that one of them is done.
    progress
        Expected share of the whole that is over, from 0 to 1.
    next
        The most probable successors of the last keystep.
    missing
        Keysteps that should have been done by now and were not.  Each has the product of three
        probabilities: it is done at all, it precedes the last keystep, and it was not done.
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
        """Current task, or None before there is one."""
        return next(iter(self.tasks), None)

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values, probabilities rounded to four decimals."""
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


class FixedLagOutput:
    """Fixed-lag output: one state for each row, ``delay`` rows late, never revised."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._previous: tuple[str, int] | None = None  # task and keystep of the row before
        self._last: tuple[str, int] | None = None  # those of the last row that is not background
        self._done: dict[int, float] = {}
        self._best = np.zeros(0)  # value of the best path to each label of the row before

    def emit(self, recognizer: OnlineRecognizer, delay: int | None = None) -> OnlineState | None:
        """Return the state of the row that lies ``delay`` rows back, or None before the first."""
        late = self.delay if delay is None else delay
        row = recognizer.rows - 1 - late
        if row < 0:
            return None
        if not recognizer.task or row < recognizer.origin:
            return self._nothing(recognizer, row)
        probability, background = recognizer.look_back(late + 1)
        members = recognizer.model.tasks[recognizer.task]
        place, sure = self._choose(recognizer, probability, background)
        keystep = BACKGROUND if place == len(members) else members[place]
        self._note(recognizer, members, keystep, probability)
        return self._state(recognizer, row, keystep, sure, probability[0])

    def _choose(
        self, recognizer: OnlineRecognizer, probability: Floats, background: Floats
    ) -> tuple[int, float]:
        """Choose the column of a row's label, the last one for background; return its probability.

        The path through all rows up to now maximises expected correct rows less costs of changes.
        """
        worth = np.concatenate(
            [probability * (1 - background[:, None]), background[:, None]], axis=1
        )
        cost = recognizer.model.decoder.change_cost
        if self._previous is None or self._previous[0] != recognizer.task:
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
        self,
        recognizer: OnlineRecognizer,
        members: tuple[int, ...],
        keystep: int,
        probability: Floats,
    ) -> None:
        """Keep the label of a row and the highest posterior of each keystep so far."""
        if self._previous is None or self._previous[0] != recognizer.task:
            # Rows before the task was recognised may be a part of it.
            assert recognizer.follower is not None, "there is a task"
            past = recognizer.follower.done(len(probability))
            self._done = dict(zip(members, past.tolist(), strict=True))
        for each, sure in zip(members, probability[0].tolist(), strict=True):
            self._done[each] = max(self._done[each], sure)
        self._previous = recognizer.task, keystep
        if keystep != BACKGROUND:
            self._last = self._previous

    def _nothing(self, recognizer: OnlineRecognizer, row: int) -> OnlineState:
        now, over = float(recognizer.rows), recognizer.progress(row)
        return OnlineState(float(row), now, {}, None, 0.0, (), over, (), ())

    def _state(
        self,
        recognizer: OnlineRecognizer,
        row: int,
        keystep: int,
        sure: float,
        probability: Floats,
    ) -> OnlineState:
        model, shares = recognizer.model, recognizer.shares
        members, names = model.tasks[recognizer.task], model.graph.vocabulary.keysteps
        best = [int(place) for place in np.argsort(-shares, kind="stable")[:_SHOWN]]
        current = recognizer.names.index(recognizer.task)
        first = dict.fromkeys([current, *best])
        tasks = {recognizer.names[place]: float(shares[place]) for place in [*first][:_SHOWN]}
        top = np.argsort(-probability, kind="stable")[:_SHOWN]
        return OnlineState(
            at=float(row),
            now=float(recognizer.rows),
            tasks=tasks,
            keystep=None if keystep == BACKGROUND else names[keystep],
            confidence=model.decoder.confidence(keystep, sure, tasks[recognizer.task]),
            keysteps=tuple(Likely(names[members[at]], float(probability[at])) for at in top),
            progress=recognizer.progress(row - recognizer.origin),
            next=self._next(recognizer),
            missing=self._missing(recognizer),
        )

    def _next(self, recognizer: OnlineRecognizer) -> tuple[Likely, ...]:
        following = recognizer.model.task_order(recognizer.task).following
        if self._last is None or self._last[0] != recognizer.task:
            return following[START]
        return following[self._last[1]]

    def _missing(self, recognizer: OnlineRecognizer) -> tuple[Likely, ...]:
        if self._last is None or self._last[0] != recognizer.task:
            return ()
        task_order, members = (
            recognizer.model.task_order(recognizer.task),
            recognizer.model.tasks[recognizer.task],
        )
        here = members.index(self._last[1])
        undone = np.array([1 - self._done[keystep] for keystep in members])
        undone[here] = 0.0
        chances = task_order.shown * task_order.before[:, here] * undone
        names = recognizer.model.graph.vocabulary.keysteps
        order = np.argsort(-chances, kind="stable")
        return tuple(
            Likely(names[members[at]], float(chances[at]))
            for at in order
            if chances[at] >= _RATHER
        )


class Live:
    """Online recogniser: takes sentences or scores, returns a state for each second.

    Parameters
    ----------
    model
        Graph and vectors of its keysteps.
    options
        Delay and length.

    Examples
    --------
    >>> from stepgraph import load_encoder, mine
    >>> graph = mine("demo")
    >>> live = Live(OnlineModel.of_graph(graph, load_encoder(graph.encoder)), LiveOptions(delay=2))
    >>> states = live.feed(9, [Sentence(4.0, 8.0, "turn the chair upside down on the blanket")])
    >>> states[-1].task, states[-1].at
    ('Repair a wobbly chair', 6.0)
    """

    def __init__(self, model: OnlineModel, options: LiveOptions | None = None) -> None:
        options = options or LiveOptions()
        self._recognizer = OnlineRecognizer(model, options.length)
        self._output = FixedLagOutput(round(options.delay))

    def feed(self, now: float, sentences: Iterable[Sentence] = ()) -> list[OnlineState]:
        """Advance to ``now``, and return the state of each second for which the delay is over.

        A sentence is observed at its end, or at ``now`` if that is sooner.  Time never goes back:
        an earlier ``now`` than the last one does not change the clock.
        """
        self._recognizer.take(now, sentences)
        states = []
        while self._recognizer.rows + 1 <= now:
            self._recognizer.listen()
            states.append(self._output.emit(self._recognizer))
        return [state for state in states if state is not None]

    def feed_scores(self, values: ArrayLike) -> list[OnlineState]:
        """Advance by the scores of the next seconds, from any encoder; otherwise as :meth:`feed`.

        Parameters
        ----------
        values : shape (k, K)
            Similarity of each second to each keystep; NaN where nothing was observed.
        """
        rows = np.asarray(values, dtype=np.float32)
        model = self._recognizer.model
        size = len(model.graph.vocabulary)
        if model.targets.vectors is not None:
            raise ConfigError("scores must be fed without an encoder; use OnlineModel.of_scores")
        if rows.ndim != 2 or rows.shape[1] != size:
            raise ConfigError(f"scores must have the shape (k, {size}), got {rows.shape}")
        if np.isinf(rows).any():
            raise ConfigError("scores must be finite, or NaN where nothing was observed, got inf")
        states = []
        for row in rows:
            if not np.isnan(row).any():
                self._recognizer.see(row)
            states += self.feed(self._recognizer.rows + 1)
        return states

    def finish(self) -> list[OnlineState]:
        """Return the states of the remaining seconds, at the end of the input."""
        current = self.feed(self._recognizer.until())
        for late in range(min(self._output.delay, self._recognizer.rows) - 1, -1, -1):
            state = self._output.emit(self._recognizer, late)
            assert state is not None, "these rows were observed"
            current.append(state)
        return current
