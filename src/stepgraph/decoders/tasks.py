"""Which task a video shows, told from the scores of its keysteps.

The vocabulary says which keysteps belong to which task; a row speaks for a task by the share of
its softmax that falls on that task's keysteps.  No label is needed, and nothing here decides
which keystep is done when.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stepgraph.core import Labels, Scores
from stepgraph.decoders.chains import Chain, most_likely_path
from stepgraph.graph import TaskGraph

# Keysteps without tasks up to this number are one task; the model's cost grows as its square.
_ONE_TASK = 400
# A row never speaks against a task with more than this weight: small talk must not outvote.
_FLOOR = 1e-3
# Neighbouring rows repeat one another; a whole video weighs like so many independent ones.
_INDEPENDENT_ROWS = 20.0
# Evidence that must be lost before a video is taken to have changed its task.
SWITCH_COST = 60.0
# A video is about the vocabulary at all when the best tenth of its rows scores around this.
_RELATED_SCORE, _RELATED_SPREAD, _BEST_SHARE = 0.46, 0.03, 0.1


def tasks_of(graph: TaskGraph) -> dict[str, tuple[int, ...]]:
    """Tasks of the vocabulary, with their keysteps in the written order.

    Where it has none, all keysteps are one task; more of them than one model can hold are cut
    into communities of the graph, each named after the keystep that is done first.
    """
    size = len(graph.vocabulary)
    tasks = {name: members for name, members in graph.vocabulary.tasks.items() if members}
    if tasks:
        # Keysteps above the first heading of a list belong to no task; they are one of their own.
        loose = tuple(sorted({*range(size)}.difference(*tasks.values())))
        return tasks | ({"other keysteps": loose} if loose else {})
    if size > _ONE_TASK:
        for community in graph.communities:
            ordered = sorted(community, key=graph.mean_times.__getitem__)
            tasks[f"around {graph.vocabulary.keysteps[ordered[0]]!r}"] = tuple(ordered)
    return tasks or {"everything": tuple(range(size))}


def task_evidence(
    scores: Scores, tasks: Mapping[str, tuple[int, ...]], temperature: float
) -> NDArray[np.float64]:
    """How strongly each row speaks for each task, shape (T, Z); unobserved rows say nothing."""
    best = scores.values.max(axis=1, initial=-np.inf)
    rows = np.flatnonzero(scores.observed & (best > -np.inf))
    evidence = np.zeros((len(scores), len(tasks)))
    if rows.size:
        values = scores.values[rows]
        shares = np.exp((values - values.max(axis=1, keepdims=True)) / np.float32(temperature))
        members = [keystep for ks in tasks.values() for keystep in ks]
        sizes = np.array([len(ks) for ks in tasks.values()])
        borders = (np.cumsum(sizes) - sizes)[sizes > 0]
        by_task = np.zeros((len(rows), len(tasks)))
        by_task[:, sizes > 0] = np.add.reduceat(shares[:, members], borders, axis=1)
        evidence[rows] = np.log(_FLOOR + by_task / shares.sum(axis=1, keepdims=True))
    return evidence


def task_posterior(
    scores: Scores, tasks: Mapping[str, tuple[int, ...]], evidence: NDArray[np.float64]
) -> dict[str, float]:
    """Probability of each task for the whole video, the most probable first.

    They add up to the probability that the video is about any of them.
    """
    rows = max(1, int(scores.observed.sum()))
    weights = evidence.sum(axis=0) / rows * _INDEPENDENT_ROWS
    weights = np.exp(weights - weights.max())
    weights *= _related(scores, tasks, int(weights.argmax())) / weights.sum()
    named = zip(tasks, weights.tolist(), strict=True)
    return dict(sorted(named, key=lambda pair: -pair[1]))


def _related(scores: Scores, tasks: Mapping[str, tuple[int, ...]], best: int) -> float:
    """Probability that a video is about the vocabulary at all, from its clearest rows."""
    members = list(list(tasks.values())[best])
    if not scores.observed.any() or not members:
        return 0.0
    clear = np.sort(scores.values[scores.observed][:, members].max(axis=1))
    clearest = clear[-max(3, int(_BEST_SHARE * len(clear))) :].mean()
    exceeds = (float(clearest) - _RELATED_SCORE) / _RELATED_SPREAD
    return 1 / (1 + math.exp(min(-exceeds, 700.0)))


def task_sequence(evidence: NDArray[np.float64], switch_cost: float) -> NDArray[np.int64]:
    """The task of each row: the sequence of most evidence, each change paid for.

    Most videos show one task and come out as one; a video of several is cut where the
    evidence turns for good.
    """
    tasks = evidence.shape[1]
    chain = Chain.of_edges(np.zeros(tasks), csr_array((tasks, tasks)), -switch_cost)
    return most_likely_path(evidence, chain)


def rank_tasks(labels: Labels) -> tuple[str, ...]:
    """Map labelled keysteps back to tasks, the most probable first: the paper's way.

    Each row votes for the tasks that list its keystep, a keystep of several tasks for each of
    them in part; tasks without any vote are left out.

    >>> from stepgraph import Vocabulary
    >>> tea = Vocabulary(("boil", "pour", "whisk"), {"tea": (0, 1), "eggs": (0, 2)})
    >>> rank_tasks(Labels("v", np.array([0, 2, -1]), tea))
    ('eggs', 'tea')
    """
    tasks = labels.vocabulary.tasks
    belongs = np.zeros((len(tasks), len(labels.vocabulary)))
    for number, members in enumerate(tasks.values()):
        belongs[number, list(members)] = 1.0
    belongs /= np.maximum(belongs.sum(axis=0), 1.0)
    done = labels.keysteps[labels.keysteps >= 0]
    votes = belongs @ np.bincount(done, minlength=len(labels.vocabulary))
    order = np.argsort(-votes, kind="stable")
    names = tuple(tasks)
    return tuple(names[number] for number in order if votes[number] > 0)
