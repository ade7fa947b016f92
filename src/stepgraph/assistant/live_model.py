"""Context of online recognition: a graph, and vectors of all its keysteps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepgraph.assistant.live_following import Floats, Lengths, likely_lengths
from stepgraph.core import Features, Scores
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.observations import Targets, targets_of
from stepgraph.decoders.task_markov import Expected
from stepgraph.decoders.tasks import tasks_of
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, procedure_of
from stepgraph.scoring.lazy import LazyScores

_Made = TypeVar("_Made")

# Most successors of a keystep in a state.
_SHOWN = 4


class Likely(NamedTuple):
    """Keystep and its probability."""

    keystep: str
    probability: float


class TaskOrder(NamedTuple):
    """Order statistics of a task, its keysteps in the listed order.

    Attributes
    ----------
    shown : shape (n,)
        Probability that each keystep is done at all.
    before : shape (n, n)
        Probability that one keystep is done before another.
    following
        The most probable successors of each keystep, and of the start.
    """

    shown: Floats
    before: Floats
    following: dict[int, tuple[Likely, ...]]


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """Context of online recognition: the graph, and vectors of all its keysteps.

    Attributes
    ----------
    encode
        Function that computes unit vectors of sentences.
    context, blend
        See :class:`~stepgraph.encoders.EncoderOptions`.
    """

    graph: TaskGraph
    tasks: Mapping[str, tuple[int, ...]]
    targets: Targets
    encode: Callable[[Sequence[str]], NDArray[np.float32]]
    context: int
    blend: bool
    decoder: TaskMarkov = field(default_factory=TaskMarkov)
    _made: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_graph(cls, graph: TaskGraph, encoder: TextEncoder) -> OnlineModel:
        """Encode the keysteps and task titles of a graph."""
        vocabulary, options = graph.vocabulary, encoder.options
        keysteps, tasks = encoder.encode_keysteps(vocabulary), tasks_of(graph)
        nothing = Features("", 0.0, np.zeros((0, keysteps.shape[1]), np.float32), np.zeros((0, 2)))
        silent = LazyScores(nothing, keysteps, vocabulary, tasks=encoder.encode_tasks(vocabulary))
        targets = targets_of(silent, tasks)
        return cls(graph, tasks, targets, encoder.encode_texts, options.context, options.blend)

    @classmethod
    def of_scores(cls, graph: TaskGraph) -> OnlineModel:
        """Use no encoder but given scores: see :meth:`~.live.Live.feed_scores`."""

        def refuse(texts: Sequence[str]) -> NDArray[np.float32]:
            raise ConfigError("sentences require an encoder; use OnlineModel.of_graph")

        nothing = np.zeros((0, len(graph.vocabulary)), np.float32)
        scores = Scores("", nothing, np.zeros(0, dtype=bool), graph.vocabulary)
        tasks = tasks_of(graph)
        return cls(graph, tasks, targets_of(scores, tasks), refuse, 0, False)

    def prepare(self) -> None:
        """Compute the priors and statistics of all tasks in advance."""
        for task in self.tasks:
            self.expected(task), self.lengths(task), self.task_order(task)

    def expected(self, task: str) -> Expected:
        """Timing prior and transitions of the keysteps of a task."""
        return self._once("expected", task, lambda: self.decoder.expect(task, self.graph))

    def lengths(self, task: str) -> Lengths:
        """Prior of the video lengths of a task; of all tasks if it has fewer than two videos."""
        return self._once("lengths", task, lambda: self._lengths(task))

    def _lengths(self, task: str) -> Lengths:
        traces = self.graph.traces.tasks if self.graph.traces is not None else {}
        own = traces.get(task, {})
        every = [own] if len(own) > 1 else traces.values()
        return likely_lengths(c.rows.sum() * c.hop for some in every for c in some.values())

    def task_order(self, task: str) -> TaskOrder:
        """Order statistics of a task, from recognised videos or else from transitions."""
        return self._once("task order", task, lambda: self._task_order(task))

    def _once(self, what: str, task: str, make: Callable[[], _Made]) -> _Made:
        """Compute a value of a task on first use and keep it."""
        if (what, task) not in self._made:
            self._made[what, task] = make()
        made: _Made = self._made[what, task]
        return made

    def _task_order(self, task: str) -> TaskOrder:
        names, members = self.graph.vocabulary.keysteps, self.tasks[task]
        procedure = procedure_of(self.graph, task, members)
        steps = {step.keystep: step for step in procedure.steps}
        shown = np.array([steps[keystep].share for keystep in members])
        if procedure.videos and self.graph.statistics is not None:
            before = self.graph.statistics.of_task(task).precedence()
        else:
            places = np.array([steps[keystep].position for keystep in members])
            before = (places[:, None] < places).astype(np.float64)
        following = {
            keystep: tuple(
                Likely("(the end)" if one.second == END else names[one.second], one.share)
                for one in procedure.successions_from(keystep)[:_SHOWN]
            )
            for keystep in (START, *members)
        }
        return TaskOrder(shown, before, following)
