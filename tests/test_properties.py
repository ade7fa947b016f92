"""What no number may depend on: names, the order of videos, silence, and how often all is said.

Each property is checked on random corpora, seed after seed.  Those that do not hold by design,
and are not tested:

- Means over videos (accuracy, IoU and edit distance of each video) change when a video is split,
  because each half is then a video; only what is pooled over rows or segments stays.
- The timing of a graph changes when a video is split or begins later: it is measured in parts of
  the whole video.
- Path search bridges a silence with a path, and Viterbi weighs a video as a whole, so that both
  label the two halves of a split video otherwise, but for a split between two anchors on adjacent
  rows.  Argmax looks at one row at a time.
- Viterbi keeps its labels in a longer silence only where every keystep has a way out: one that
  has none is certain to go on, so that silence speaks for it.  Where in a silence it moves from
  one keystep to the next is all the same to it, so that only rows where something is heard count.
- Detections that are equally sure are taken in the order in which they are given, so that the
  order of the videos matters to the mean average precision of those that are.
- task-markov expects each keystep at its place in the course of a video, and imagines a fixed
  number of transitions beside those of the graph, so that neither a shift nor a doubled corpus
  leaves it as it was.
"""

from dataclasses import replace

import numpy as np
import pytest

from reference import random_graph
from stepgraph.core import BACKGROUND, Labels, Scores, Video, Vocabulary
from stepgraph.decoders import Argmax, BayesFilter, PathSearch, TaskMarkov, Viterbi
from stepgraph.decoders.tasks import rank_tasks
from stepgraph.evaluation.entropy import accuracy_by_entropy
from stepgraph.evaluation.report import ALL_METRICS, calibration_error, evaluate, task_accuracy
from stepgraph.evaluation.segments import crosstask_recall, detections, mean_average_precision
from stepgraph.graph import TaskGraph, mine_graph

SEEDS = range(12)
SIZE = 7
TASKS = {"tea": (0, 4, 2), "soup": (3, 1), "eggs": (5, 0, 6)}
WORDS = Vocabulary(tuple(f"keystep {number}" for number in range(SIZE)), TASKS)
# Chapters are chosen among all that a video shows of a keystep.
PER_VIDEO = {"accuracy_per_video", "iou_per_video", "edit_distance", "empty_chapters"}
DECODERS = [Argmax(), PathSearch(0.8), Viterbi(), BayesFilter()]


def random_corpus(seed, videos=5, *, least=0):
    """Scores of some videos, their truth, and labels with all that labels can have."""
    rng = np.random.default_rng(seed)
    scores, truth, labels = [], {}, []
    for number in range(videos):
        rows, name = int(rng.integers(least, 40)), f"video {number}"
        values = rng.random((rows, SIZE)).astype(np.float32)
        scores.append(Scores(name, values, rng.random(rows) < 0.7, WORDS))
        truth[name] = Labels(name, in_runs(rng, rows), WORDS)
        guessed = np.where(rng.random(rows) < 0.6, truth[name].keysteps, in_runs(rng, rows))
        more = {"anchors": rng.random(rows) < 0.3, "confidence": rng.random(rows)}
        drawn = rng.permutation(list(TASKS)).tolist()
        tasks = dict(zip(drawn, (0.6, 0.3, 0.1), strict=True))
        labels.append(Labels(name, guessed, WORDS, tasks=tasks, **more))
    return scores, truth, labels


def in_runs(rng, rows):
    return np.repeat(rng.integers(BACKGROUND, SIZE, rows), rng.integers(1, 5, rows))[:rows]


def with_truth(corpus):
    """Videos and their tasks, as far as they are known."""
    return [
        Video(one.video, float(len(one)), task=list(TASKS)[number % 3])
        for number, one in enumerate(corpus)
    ]


def numbers(scores, truth, labels, graph):
    """Every number that the package has for labels of a corpus."""
    report = evaluate(labels, truth)
    tasks = {video.id: video.task for video in with_truth(sorted(scores, key=lambda s: s.video))}
    split = accuracy_by_entropy(labels, truth, graph)
    # All rows are observed here, so that no two detections are equally sure.
    by_video = {s.video: replace(s, observed=np.ones(len(s), bool)) for s in scores}
    found = {one.video: detections(one, by_video[one.video]) for one in labels}
    segments = {video: one.segments() for video, one in truth.items()}
    return {
        **{name: getattr(report, name) for name in ALL_METRICS},
        **{name: getattr(split, name) for name in ("low", "high", "threshold")},
        "calibration": calibration_error(labels, truth),
        "mean average precision": mean_average_precision(segments, found),
        "recall": crosstask_recall(scores, truth, tasks),
        "ordered recall": crosstask_recall(scores, truth, tasks, ordered=True),
    }


def same(one, other, digits=1e-12):
    assert one == pytest.approx(other, rel=digits, abs=digits, nan_ok=True)


# --- Other names


def renamed_words(order):
    """The vocabulary in another order, and where each keystep has gone."""
    place = np.argsort(order)
    tasks = {name: tuple(place[list(members)].tolist()) for name, members in TASKS.items()}
    return Vocabulary(tuple(WORDS.keysteps[old] for old in order), tasks), place


def renamed(one, order):
    words, place = renamed_words(order)
    if isinstance(one, Scores):
        return replace(one, values=np.ascontiguousarray(one.values[:, order]), vocabulary=words)
    # Background, the last of these, is called what it was called.
    keysteps = np.append(place, BACKGROUND)[one.keysteps]
    return replace(one, keysteps=keysteps, vocabulary=words)


def renamed_graph(graph, order):
    words, _ = renamed_words(order)
    timing = None if graph.timing is None else graph.timing[order]
    counts = graph.counts[order][:, order]
    return replace(graph, vocabulary=words, counts=counts, timing=timing)


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_do_not_depend_on_the_names_of_keysteps(seed):
    scores, truth, labels = random_corpus(seed, least=9)
    order = np.random.default_rng(seed).permutation(SIZE)
    graph = mine_graph(scores, WORDS)
    new_truth = {video: renamed(one, order) for video, one in truth.items()}
    new_scores, new_labels = ([renamed(one, order) for one in many] for many in (scores, labels))

    found = numbers(new_scores, new_truth, new_labels, renamed_graph(graph, order))

    same(found, numbers(scores, truth, labels, graph))


@pytest.mark.parametrize("seed", SEEDS)
def test_mining_does_not_depend_on_the_names_of_keysteps(seed):
    scores, _, _ = random_corpus(seed)
    order = np.random.default_rng(seed).permutation(SIZE)
    words, place = renamed_words(order)

    found = mine_graph([renamed(one, order) for one in scores], words)

    graph = mine_graph(scores, WORDS)
    expected = renamed_graph(graph, order)
    assert (found.counts != expected.counts).nnz == 0
    assert found.timing.tolist() == expected.timing.tolist()
    for first in range(SIZE):
        assert {(place[one.keystep], one.count) for one in graph.following(first, SIZE)} == {
            (one.keystep, one.count) for one in found.following(int(place[first]), SIZE)
        }
        for second in set(range(SIZE)) - {first}:
            new = found.relation(int(place[first]), int(place[second]))
            old = graph.relation(first, second)
            assert (new.kind, *new[3:]) == (old.kind, *old[3:])


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_do_not_depend_on_the_names_of_keysteps(seed):
    rng = np.random.default_rng(seed)
    graph, order = (
        replace(random_graph(rng, SIZE, density=0.4), vocabulary=WORDS),
        rng.permutation(SIZE),
    )
    _, place = renamed_words(order)

    found = renamed_graph(graph, order)

    for start in range(SIZE):
        for end in range(SIZE):
            path = graph.path(start, end)
            expected = None if path is None else tuple(place[list(path)].tolist())
            assert found.path(int(place[start]), int(place[end])) == expected


@pytest.mark.parametrize("decoder", [*DECODERS, TaskMarkov()], ids=repr)
@pytest.mark.parametrize("seed", SEEDS)
def test_labels_do_not_depend_on_the_names_of_keysteps(decoder, seed):
    scores, _, _ = random_corpus(seed, videos=3)
    rng = np.random.default_rng(seed)
    graph, order = replace(random_graph(rng, SIZE), vocabulary=WORDS), rng.permutation(SIZE)
    new_graph = renamed_graph(graph, order)

    for one in scores:
        found = decoder.decode(renamed(one, order), new_graph)

        labels = decoder.decode(one, graph)
        assert found.keysteps.tolist() == renamed(labels, order).keysteps.tolist()
        assert (found.anchors is None) == (labels.anchors is None)
        if labels.anchors is not None:
            assert found.anchors.tolist() == labels.anchors.tolist()
        if labels.confidence is not None:
            # Numbers of single precision are added in another order.
            same(found.confidence.tolist(), labels.confidence.tolist(), 1e-6)
            same(found.tasks, labels.tasks, 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ranking_of_tasks_does_not_depend_on_the_names_of_keysteps(seed):
    rng = np.random.default_rng(seed)
    # Rows enough that no two tasks have as many votes.
    labels = Labels("v", rng.choice(SIZE, 501, p=rng.dirichlet(np.ones(SIZE))), WORDS)

    ranked = {rank_tasks(renamed(labels, rng.permutation(SIZE))) for _ in range(10)}

    assert ranked == {rank_tasks(labels)}


# --- Another order of videos, and all of them twice


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_depends_on_the_order_of_the_videos(seed):
    scores, truth, labels = random_corpus(seed, least=9)
    order = np.random.default_rng(seed).permutation(len(scores))
    shuffled = [scores[at] for at in order], truth, [labels[at] for at in order]

    graph, other = mine_graph(scores, WORDS), mine_graph(shuffled[0], WORDS)

    assert (graph.counts != other.counts).nnz == 0
    assert graph.timing.tolist() == other.timing.tolist()
    assert set(graph.mined_on) == set(other.mined_on)
    same(numbers(*shuffled, other), numbers(scores, truth, labels, graph))
    for decoder in (*DECODERS, TaskMarkov()):
        for one in scores:
            found, expected = (decoder.decode(one, some).keysteps for some in (graph, other))
            assert found.tolist() == expected.tolist()


def again(one):
    return replace(one, video=f"{one.video} again")


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_of_a_doubled_corpus_are_those_of_the_corpus(seed):
    scores, truth, labels = random_corpus(seed, least=9)
    twice = truth | {f"{video} again": again(one) for video, one in truth.items()}
    graph, once = mine_graph(scores, WORDS), evaluate(labels, truth)

    report = evaluate([*labels, *map(again, labels)], twice)

    same([getattr(report, one) for one in ALL_METRICS], [getattr(once, n) for n in ALL_METRICS])
    sizes = [(one.videos, one.rows, one.keystep_rows) for one in (once, report)]
    assert [2 * number for number in sizes[0]] == list(sizes[1])
    found = accuracy_by_entropy([*labels, *map(again, labels)], twice, graph)
    split = accuracy_by_entropy(labels, truth, graph)
    same(found, split._replace(low_rows=2 * split.low_rows, high_rows=2 * split.high_rows))
    calibrated = calibration_error([*labels, *map(again, labels)], twice)
    same(calibrated, calibration_error(labels, truth))
    videos = with_truth(labels)
    again_videos = [replace(video, id=f"{video.id} again") for video in videos]
    same(
        task_accuracy([*labels, *map(again, labels)], [*videos, *again_videos]),
        task_accuracy(labels, videos),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_doubled_corpus_doubles_the_counts_and_keeps_the_probabilities(seed):
    scores, _, _ = random_corpus(seed)
    graph = mine_graph(scores, WORDS)

    twice = mine_graph([*scores, *map(again, scores)], WORDS)

    assert twice.counts.toarray().tolist() == (2 * graph.counts.toarray()).tolist()
    assert twice.timing.tolist() == (2 * graph.timing).tolist()
    assert twice.probabilities.toarray().tolist() == graph.probabilities.toarray().tolist()
    assert twice.mean_times.tolist() == graph.mean_times.tolist()
    for decoder in DECODERS:
        for one in scores:
            found, expected = (decoder.decode(one, some).keysteps for some in (twice, graph))
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_merged_graphs_are_those_of_all_videos(seed):
    scores, _, _ = random_corpus(seed)
    whole = mine_graph([*scores, *map(again, scores)], WORDS)

    merged = mine_graph(scores, WORDS).merge(mine_graph(map(again, scores), WORDS))

    assert merged.counts.toarray().tolist() == whole.counts.toarray().tolist()
    assert merged.timing.tolist() == whole.timing.tolist()
    assert (merged.mined_on, merged.mining) == (whole.mined_on, whole.mining)


def test_every_counted_row_is_timed_once():
    for seed in SEEDS:
        scores, _, _ = random_corpus(seed)

        graph = mine_graph(scores, WORDS, min_score=0.8)

        heard = [one.observed & (one.values.max(axis=1) >= np.float32(0.8)) for one in scores]
        assert graph.timing.sum() == sum(int(one.sum()) for one in heard)


def test_without_timing_there_is_none_after_merging():
    timed = mine_graph(random_corpus(0)[0], WORDS)
    untimed = replace(timed, timing=None, mined_on=("x",))

    assert timed.merge(untimed).timing is None
    assert untimed.merge(timed).timing is None


# --- Silence


def silent_row(scores, truth, labels, rng):
    """Make one row, nowhere at the ends, one of silence in all three; where it is."""
    at = int(rng.integers(1, len(scores) - 1))
    observed, true, found = scores.observed.copy(), truth.keysteps.copy(), labels.keysteps.copy()
    observed[at], true[at], found[at] = False, BACKGROUND, BACKGROUND
    return (
        at,
        replace(scores, observed=observed),
        replace(truth, keysteps=true),
        replace(labels, keysteps=found),
    )


def rows_of(one, rows, name):
    """Some rows of scores or labels, as a video of their own."""
    names = ("values", "observed", "keysteps", "anchors", "confidence")
    found = {key: value[rows] for key in names if (value := vars(one).get(key)) is not None}
    return replace(one, video=name, **found)


def halves(one, at):
    return [
        rows_of(one, slice(0, at), f"{one.video} a"),
        rows_of(one, slice(at, None), f"{one.video} b"),
    ]


def split_corpus(seed):
    """A corpus, and the same with each video split at a silence."""
    rng = np.random.default_rng(seed)
    whole, split = ([], {}, []), ([], {}, [])
    for scores, labels in zip(*random_corpus(seed, least=9)[::2], strict=True):
        truth = random_corpus(seed, least=9)[1][scores.video]
        at, *three = silent_row(scores, truth, labels, rng)
        # Before the silence or after it is all the same.
        cut = at + int(rng.integers(2))
        for (some, true, found), parts in (
            (whole, [[one] for one in three]),
            (split, [halves(one, cut) for one in three]),
        ):
            some.extend(parts[0])
            true.update({one.video: one for one in parts[1]})
            found.extend(parts[2])
    return whole, split


@pytest.mark.parametrize("seed", SEEDS)
def test_pooled_metrics_do_not_depend_on_where_silence_is_cut(seed):
    (_, truth, labels), (_, cut_truth, cut_labels) = split_corpus(seed)

    whole, split = evaluate(labels, truth), evaluate(cut_labels, cut_truth)

    for name in set(ALL_METRICS) - PER_VIDEO:
        assert getattr(split, name) == pytest.approx(getattr(whole, name), nan_ok=True), name
    assert (split.rows, split.keystep_rows) == (whole.rows, whole.keystep_rows)
    same(calibration_error(cut_labels, cut_truth), calibration_error(labels, truth))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_touches_does_not_depend_on_where_silence_is_cut(seed):
    (whole, _, _), (split, _, _) = split_corpus(seed)

    one, other = (mine_graph(some, WORDS, max_gap=0) for some in (whole, split))

    assert (one.counts != other.counts).nnz == 0
    for scores in whole:
        found = [
            keystep
            for half in split
            if half.video.startswith(scores.video)
            for keystep in Argmax().decode(half, one).keysteps.tolist()
        ]
        assert found == Argmax().decode(scores, one).keysteps.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_path_search_may_be_cut_between_two_anchors(seed):
    rng = np.random.default_rng(seed)
    graph = replace(random_graph(rng, SIZE), vocabulary=WORDS)
    search = PathSearch(0.8)
    for scores in random_corpus(seed)[0]:
        labels = search.decode(scores, graph)
        for at in np.flatnonzero(labels.anchors[:-1] & labels.anchors[1:]) + 1:
            found = [search.decode(half, graph).keysteps for half in halves(scores, at)]

            assert np.concatenate(found).tolist() == labels.keysteps.tolist()


def later(one, rows):
    """The same after so many rows of silence."""
    names = {"values": 0, "observed": False, "keysteps": BACKGROUND, "confidence": 0}
    found = {}
    for name, nothing in (names | {"anchors": False}).items():
        value = vars(one).get(name)
        if value is not None:
            before = np.full((rows, *value.shape[1:]), nothing, value.dtype)
            found[name] = np.concatenate([before, value])
    return replace(one, **found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rows", [1, 6])
def test_metrics_do_not_depend_on_the_silence_before(seed, rows):
    scores, truth, labels = random_corpus(seed, least=9)
    graph = mine_graph(scores, WORDS)
    new_truth = {video: later(one, rows) for video, one in truth.items()}
    new_scores, new_labels = ([later(one, rows) for one in many] for many in (scores, labels))

    found = numbers(new_scores, new_truth, new_labels, graph)

    # Rows of silence are rows of background, which some metrics count by design.
    counted = {"frame_accuracy", "background_share", "background_precision", "calibration"}
    expected = numbers(scores, truth, labels, graph)
    same(*({k: v for k, v in one.items() if k not in counted} for one in (found, expected)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("max_gap", [0.0, 2.0, np.inf])
def test_counts_do_not_depend_on_the_silence_before(seed, max_gap):
    scores, _, _ = random_corpus(seed)

    found = mine_graph([later(one, 4) for one in scores], WORDS, max_gap=max_gap)

    assert (found.counts != mine_graph(scores, WORDS, max_gap=max_gap).counts).nnz == 0


def test_a_gap_is_bridged_up_to_its_length_and_no_further():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        gap = int(rng.integers(1, 6))
        observed = np.array([True, *[False] * gap, True])
        one = Scores("v", rng.random((gap + 2, SIZE)).astype(np.float32), observed, WORDS)

        counted = [
            int(mine_graph([one], WORDS, max_gap=float(most)).counts.sum()) for most in range(8)
        ]

        assert counted == [int(most >= gap) for most in range(8)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "decoder", [Argmax(), PathSearch(0.8), Viterbi(), BayesFilter()], ids=repr
)
def test_labels_do_not_depend_on_the_silence_before(seed, decoder):
    rng = np.random.default_rng(seed)
    graph = replace(random_graph(rng, SIZE, density=0.9), vocabulary=WORDS)
    for scores in random_corpus(seed, least=9)[0]:
        found = decoder.decode(later(scores, 3), graph)

        labels = decoder.decode(scores, graph).keysteps
        # What nothing is heard before is what is done first, where the decoder looks ahead.
        first = BACKGROUND if isinstance(decoder, Argmax | BayesFilter) else labels[0]
        assert found.keysteps[:3].tolist() == [first] * 3
        heard = scores.observed if isinstance(decoder, Viterbi) else slice(None)
        assert found.keysteps[3:][heard].tolist() == labels[heard].tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_in_a_list_is_a_chain_whatever_its_keysteps_are_called(seed):
    order = np.random.default_rng(seed).permutation(SIZE)
    words, place = renamed_words(order)

    chains = TaskGraph.from_order(words, words.tasks.values())

    expected = renamed_graph(TaskGraph.from_order(WORDS, TASKS.values()), order)
    assert (chains.counts != expected.counts).nnz == 0
    assert chains.path(int(place[0]), int(place[2])) == tuple(place[[0, 4, 2]].tolist())
