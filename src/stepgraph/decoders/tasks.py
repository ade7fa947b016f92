"""Recognition of the task of a video, from the similarities of its observations.

The vocabulary lists the keysteps of each task.  No label is needed, and no row is labelled with
a keystep here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from stepgraph.core import Labels
from stepgraph.decoders.observations import Observations, Tasks
from stepgraph.graph import TaskGraph
from stepgraph.graph.chains import Chain, Edges, most_likely_path
from stepgraph.graph.parameters import RecognizerParameters, listed_tasks

Floats: TypeAlias = NDArray[np.float64]

# Keysteps without tasks up to this number are one task; the model's cost grows as its square.
_ONE_TASK = 400
# Similarity that is worth one nat of log-evidence.  The sentences of a video are correlated, so
# that log-evidence is computed from means, not from sums over rows.
NAT = 0.03
# Prior probability that a video shows any of the tasks, and the least number of videos whose
# log-evidence is used to estimate it.
_RELATED, _FEW = 0.9, 20
# Cost of a change of task in nats, least probability of a task on a row, temperature of the
# softmax of a row; and the number of tasks, the likeliest, that are considered.
SWITCH_COST, FLOOR, SOFTNESS, CANDIDATES = 120.0, 1e-3, 0.1, 20


def tasks_of(graph: TaskGraph) -> dict[str, tuple[int, ...]]:
    """Return the tasks of the vocabulary, with their keysteps in listed order.

    Where it has none, all keysteps are one task; more of them than one model can hold are cut
    into communities of the graph, each named after the keystep that is done first.
    """
    tasks = listed_tasks(graph.vocabulary)
    if any(graph.vocabulary.tasks.values()) or len(graph.vocabulary) <= _ONE_TASK:
        return tasks
    found = {}
    for community in graph.communities:
        ordered = sorted(community, key=graph.mean_times.__getitem__)
        found[f"around {graph.vocabulary.keysteps[ordered[0]]!r}"] = tuple(ordered)
    return found or tasks


def task_log_evidence(observations: Observations, tasks: Tasks) -> Floats:
    """Log-evidence of each task for a video, in nats, shape (Z,)."""
    if not len(observations.sources):
        return np.full(len(tasks), -np.inf)
    return observations.task_similarity(tasks) / NAT


def task_posterior(
    tasks: Tasks, log_evidence: Floats, parameters: RecognizerParameters | None
) -> dict[str, float]:
    """Posterior of each task for the whole video, the most probable first.

    They add up to the probability that the video shows any of the tasks.
    """
    if not np.isfinite(log_evidence).any():
        return dict.fromkeys(tasks, 0.0)
    fitting = parameters if parameters is not None and parameters.tasks == tuple(tasks) else None
    shares = _related(log_evidence.max(), fitting) * task_shares(log_evidence, fitting)
    named = zip(tasks, shares.tolist(), strict=True)
    return dict(sorted(named, key=lambda pair: -pair[1]))


def task_shares(log_evidence: Floats, parameters: RecognizerParameters | None) -> Floats:
    """Posterior of each task, given that the video shows one of them, shape (Z,)."""
    weighted = log_evidence if parameters is None else log_evidence + parameters.log_prior
    shares: Floats = np.exp(weighted - np.logaddexp.reduce(weighted[np.isfinite(log_evidence)]))
    return shares


def _related(highest: float, parameters: RecognizerParameters | None) -> float:
    """Probability that a video shows any task at all, given the log-evidence of its best task.

    In a corpus, the log-evidence of the best task of a video is usually higher than that of the
    second best.  The probability depends on the place of ``highest`` between the two means.
    """
    if parameters is None or len(parameters.best_two) < _FEW:
        return _RELATED
    ranked = parameters.best_two
    low, high = ranked.mean(axis=0)
    spread = max(float(ranked.var(axis=0).mean()), 1e-6)
    odds = np.log(_RELATED / (1 - _RELATED))
    return float(expit(odds + (highest - (low + high) / 2) * (high - low) / spread))


def task_segments(observations: Observations, tasks: Tasks, log_evidence: Floats) -> list[slice]:
    """Cut a video into task segments at lasting changes of task; most videos stay whole."""
    names = list(tasks)
    likely = [names[place] for place in np.argsort(-log_evidence, kind="stable")[:CANDIDATES]]
    if not len(observations.sources):
        return [slice(0, len(observations.index))]
    closest = observations.closest({task: tasks[task] for task in names if task in likely})
    best = closest.max(axis=1, keepdims=True, initial=np.finfo(closest.dtype).min)
    shares = np.exp((closest - best) / SOFTNESS)
    rows = np.zeros((len(observations.index), len(likely)))
    observed = observations.index >= 0
    # The best task adds 1; only an observation that excludes all tasks adds up to less.
    speaks = np.log(FLOOR + shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0))
    rows[observed] = speaks[observations.index[observed]]
    borders = np.flatnonzero(np.diff(cheapest_changes(rows, SWITCH_COST))) + 1
    return [slice(first, last) for first, last in pairwise([0, *borders.tolist(), len(rows)])]


def cheapest_changes(worth: Floats, cost: float) -> NDArray[np.int64]:
    """Find the sequence of columns of largest total worth, where each change has a cost.

    >>> cheapest_changes(np.array([[3.0, 0], [0, 1], [3, 0], [0, 9]]), 2.0).tolist()
    [0, 0, 0, 1]
    """
    columns = worth.shape[1]
    none = Edges(np.zeros(columns + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return most_likely_path(worth, Chain(np.zeros(columns), none, none, -cost))


def rank_tasks(labels: Labels) -> tuple[str, ...]:
    """Rank tasks by the votes of labelled rows, the most probable first: the paper's method.

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
        belongs[number, list(members)] = True
    belongs /= np.maximum(belongs.sum(axis=0), 1.0)
    done = labels.keysteps[labels.keysteps >= 0]
    votes = belongs @ np.bincount(done, minlength=len(labels.vocabulary))
    order = np.argsort(-votes, kind="stable")
    names = tuple(tasks)
    return tuple(names[number] for number in order if votes[number] > 0)
