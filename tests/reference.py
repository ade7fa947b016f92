"""Slow, obvious twins of every kernel, and the random problems they are compared on.

Nothing here is shared with the package but its types: loops, sets and enumeration only.
"""

from fractions import Fraction
from itertools import pairwise
from math import nan

import numpy as np
from scipy.sparse import csr_array

from stepgraph.core import BACKGROUND, Labels, Scores, Vocabulary
from stepgraph.files.arrays import ArrayContent, read_array
from stepgraph.graph import TaskGraph
from stepgraph.graph.traces import EmissionTrace, EmissionTraces
from stepgraph.scoring import StoredScores


def keysteps(number):
    """A vocabulary of so many keysteps without meaning."""
    return Vocabulary(tuple(f"keystep {position}" for position in range(number)))


def make_scores(values, observed=None, *, video="video", hop=1.0, vocabulary=None):
    values = np.asarray(values, dtype=np.float32)
    observed = np.ones(len(values), bool) if observed is None else np.asarray(observed, bool)
    return Scores(video, values, observed, vocabulary or keysteps(values.shape[1]), hop)


def make_labels(values, size=5, *, video="video", hop=1.0, vocabulary=None):
    keysteps_of_rows = np.asarray(values, dtype=np.int64)
    return Labels(video, keysteps_of_rows, vocabulary or keysteps(size), hop)


def make_graph(counts, vocabulary=None, **fields):
    counts = np.asarray(counts)
    return TaskGraph(vocabulary or keysteps(len(counts)), csr_array(counts), **fields)


def make_traces(tasks, vocabulary, order=0.0):
    """Emission traces of videos in which every row says plainly what is done on it."""
    found = {}
    for task, videos in tasks.items():
        members = np.array((vocabulary.tasks or {task: range(len(vocabulary))})[task])
        found[task] = {}
        for one in videos:
            said = one.keysteps[:, None] == members
            emission = np.where(said | (one.keysteps < 0)[:, None], 0, -127).astype(np.int8)
            rows, salient = np.ones(len(said), np.int64), said.any(axis=0)
            found[task][one.video] = EmissionTrace(rows, emission, salient, one.hop)
    return EmissionTraces(found, {task: len(videos) for task, videos in found.items()}, order)


def random_scores(rng, rows, size, *, video="video", hop=1.0, spoken=0.6):
    values = rng.random((rows, size))
    return make_scores(values, rng.random(rows) < spoken, video=video, hop=hop)


def random_graph(rng, size, *, density=0.5):
    """Large counts, so that no two paths are equally probable by chance."""
    counts = rng.integers(1, 1_000_000, (size, size))
    return make_graph(counts * (rng.random((size, size)) < density))


def random_labels(rng, rows, size, *, video="video"):
    return make_labels(rng.integers(BACKGROUND, size, rows), size, video=video)


def part_of_row(intervals, rows, hop):
    """For each row the interval that covers most of it, or -1; of equals the first."""
    parts = []
    for row in range(rows):
        best, most = -1, 0.0
        for part, (start, end) in enumerate(intervals):
            covered = min(end, (row + 1) * hop) - max(start, row * hop)
            if covered > most:
                best, most = part, covered
        parts.append(best)
    return parts


def transitions(scores, min_score=float("-inf"), max_gap=float("inf")):
    """Pairs of best keysteps of one counted row and the next."""
    pairs = []
    last_row = last_keystep = None
    for row in range(len(scores)):
        values = [float(value) for value in scores.values[row]]
        if not scores.observed[row] or max(values) < min_score:
            continue
        keystep = values.index(max(values))
        if last_row is not None and (row - last_row - 1) * scores.hop <= max_gap:
            pairs.append((last_keystep, keystep))
        last_row, last_keystep = row, keystep
    return pairs


def count(pairs, size):
    counts = [[0] * size for _ in range(size)]
    for first, second in pairs:
        counts[first][second] += 1
    return counts


def simple_paths(graph, start, end):
    """Every path along edges that were seen, without meeting a keystep twice."""
    counts = graph.counts.toarray()

    def onward(path):
        if path[-1] == end:
            yield tuple(path)
            return
        for following in range(len(counts)):
            if counts[path[-1], following] and following not in path:
                yield from onward([*path, following])

    return list(onward([start]))


def path_probability(graph, path):
    """Product of the shares that the transitions have among all out of their keystep."""
    counts = graph.counts.toarray().tolist()
    probability = Fraction(1)
    for first, second in pairwise(path):
        probability *= Fraction(counts[first][second], sum(counts[first]))
    return probability


def best_path(graph, start, end):
    paths = simple_paths(graph, start, end)
    return max(paths, key=lambda path: path_probability(graph, path), default=None)


def path_search(scores, graph, threshold):
    """Section 3 of the paper, one row at a time, with what it leaves open settled."""
    rows = range(len(scores))
    best = [max(range(scores.values.shape[1]), key=lambda k: scores.values[t, k]) for t in rows]
    anchors = [t for t in rows if scores.observed[t] and scores.values[t].max() >= threshold]
    labels = []
    for t in rows:
        before = [anchor for anchor in anchors if anchor <= t]
        after = [anchor for anchor in anchors if anchor >= t]
        if before and after:
            labels.append(_between(t, before[-1], after[0], best, graph))
        elif before or after:
            labels.append(best[before[-1] if before else after[0]])
        else:
            labels.append(best[t] if scores.observed[t] else BACKGROUND)
    return labels


def _between(t, before, after, best, graph):
    if before == after:
        return best[t]
    found = best_path(graph, best[before], best[after])
    path = found or (best[before], best[after])
    rows = after - before + 1
    if len(path) <= rows:
        # Share number n begins n/len(path) of the way; the row is in the last one begun.
        begun = [n for n in range(len(path)) if Fraction(n * rows, len(path)) <= t - before]
        return path[begun[-1]]
    return path[round(Fraction((t - before) * (len(path) - 1), rows - 1))]


def dense(chain):
    """All log-probabilities of a chain, read edge by edge."""
    size = len(chain.stay)
    table = np.full((size, size), chain.floor)
    np.fill_diagonal(table, chain.stay)
    for source in range(size):
        for edge in range(chain.out.first[source], chain.out.first[source + 1]):
            target = chain.out.state[edge]
            table[source, target] = max(table[source, target], chain.out.log_p[edge])
    return table


def sequence_score(path, emission, transition):
    """Log-probability of one sequence of states, but for how it begins."""
    steps = sum(transition[i, j] for i, j in pairwise(path))
    return sum(emission[t, k] for t, k in enumerate(path)) + steps


def most_likely_path(emission, transition):
    """Viterbi with a full matrix, row by row; of equals the lowest state."""
    best, before = [emission[0]], []
    for row in emission[1:]:
        arriving = best[-1][:, None] + transition
        before.append(arriving.argmax(axis=0))
        best.append(arriving.max(axis=0) + row)
    path = [int(best[-1].argmax())]
    for sources in reversed(before):
        path.append(int(sources[path[-1]]))
    return path[::-1]


def metrics(truths, predictions):
    """The four metrics from sets of (video, row) of each keystep."""
    true, predicted = _rows_by_keystep(truths), _rows_by_keystep(predictions)
    hits = {k: len(true[k] & predicted.get(k, set())) for k in true}
    unions = {k: len(true[k] | predicted.get(k, set())) for k in true}
    return {
        "accuracy": _ratio(sum(hits.values()), sum(map(len, true.values()))),
        "accuracy_per_keystep": _mean([hits[k] / len(true[k]) for k in true]),
        "iou": _ratio(sum(hits.values()), sum(unions.values())),
        "iou_per_keystep": _mean([hits[k] / unions[k] for k in true]),
    }


def _rows_by_keystep(many_labels):
    rows = {}
    for labels in many_labels:
        for row, keystep in enumerate(labels.keysteps.tolist()):
            if keystep != BACKGROUND:
                rows.setdefault(keystep, set()).add((labels.video, row))
    return rows


def _ratio(part, whole):
    return part / whole if whole else nan


def _mean(values):
    return sum(values) / len(values) if values else nan


def read_scores(videos, vocabulary, folder, *, hop=1.0, seconds_per_row=1.0, problems):
    """Stored scores of all videos, those without any unobserved."""
    stored = StoredScores(folder, seconds_per_row=seconds_per_row, all_videos=True)
    return [scores for _, scores in stored.read_each(videos, vocabulary, hop, problems)]


def read_stored(path, vocabulary):
    """The stored scores of one file, whatever it is called."""
    hint = "were they computed with another vocabulary?"
    kind = ArrayContent("scores", "keystep", vocabulary.keysteps, hint)
    return read_array(path, kind=kind, width=len(vocabulary))
