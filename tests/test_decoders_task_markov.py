"""The task-markov decoder: its kernel against every sequence, and what its labels promise."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from reference import keysteps, make_graph, make_scores, random_graph, sequence_score
from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.decoders import TaskMarkov, load_decoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph

NAMES = tuple("abcdefg")
# The last keystep is of no task.
VOCABULARY = Vocabulary(NAMES, {"tea": (0, 1, 2), "soup": (3, 4, 5)})
GRAPH = make_graph(np.eye(7, k=1, dtype=np.int64), VOCABULARY)
# Confidence as the model itself has it, before it is mapped to how often it is right.
RAW = {
    "calibration_slope": 1,
    "calibration_intercept": 0,
    "background_slope": 1,
    "background_intercept": 0,
}


def confident_scores(keysteps_of_rows, *, observed=None, high=0.9, low=0.1):
    """One keystep of each row scores well, all others badly."""
    values = np.full((len(keysteps_of_rows), len(VOCABULARY)), low)
    values[np.arange(len(values)), keysteps_of_rows] = high
    return make_scores(values, observed, vocabulary=VOCABULARY)


def random_scored(rng, rows, *, spoken=0.7, vocabulary=VOCABULARY):
    values = rng.uniform(-0.2, 0.9, (rows, len(vocabulary)))
    return make_scores(values, rng.random(rows) < spoken, vocabulary=vocabulary)


def labels_of(scores, graph=GRAPH, **options):
    return TaskMarkov(**options).decode(scores, graph).keysteps.tolist()


# --- The model


def slow_emission(scores, decoder, members):
    """What speaks for each keystep of a task on each row, one cell at a time."""
    rows, size, values = len(scores), len(members), scores.values.astype(float)
    observed = [t for t in range(rows) if scores.observed[t]]
    common = [
        decoder.mean_subtraction * sum(values[t, k] for t in observed) / len(observed)
        for k in members
    ]
    emission = np.zeros((rows, size))
    for t, place in product(range(rows), range(size)):
        soft = [(values[t, k] - common[n]) / decoder.temperature for n, k in enumerate(members)]
        if t in observed:
            emission[t, place] = soft[place] - math.log(sum(math.exp(one) for one in soft))
        away = [((b + 0.5) / 20 - (place + 0.5) / size) / decoder.order_sigma for b in range(20)]
        due = [math.exp(-(one**2) / 2) for one in away]
        emission[t, place] += math.log(20 * due[t * 20 // rows] / sum(due))
    return emission


def slow_marginals(emission, transition):
    """How probable each state is on each row: the weight of all sequences through it."""
    rows, size = emission.shape
    through = np.zeros((rows, size))
    for one in product(range(size), repeat=rows):
        weight = math.exp(sequence_score(one, emission, np.log(transition)))
        through[np.arange(rows), one] += weight
    return through / through.sum(axis=1, keepdims=True)


def slow_background(rows, background):
    """How probable it is that a row is before the introduction's end, or after the farewell's."""
    ends = [min(t + 0.5, rows - t - 0.5) / rows for t in range(rows)]
    return np.array([math.exp(-2 * end / background) if background else 0.0 for end in ends])


def expected_right(sequence, worth, change_cost):
    """Rows that a sequence of labels can be expected to get right, less what changes cost."""
    changes = sum(first != second for first, second in pairwise(sequence))
    return sum(worth[t, k] for t, k in enumerate(sequence)) - change_cost * changes


def small_problem(rng):
    size = int(rng.integers(2, 4))
    members = tuple(rng.permutation(size).tolist())
    vocabulary = Vocabulary(keysteps(size).keysteps, {"task": members})
    graph = make_graph(rng.integers(0, 50, (size, size)), vocabulary)
    scores = random_scored(rng, int(rng.integers(1, 6)), vocabulary=vocabulary)
    scores.observed[0] = True
    decoder = TaskMarkov(
        background=float(rng.choice([0.0, 0.3, 1.0])),
        temperature=rng.uniform(0.05, 0.5),
        self_transition=rng.uniform(0.2, 0.95),
        order_sigma=rng.uniform(0.1, 1),
        change_cost=float(rng.choice([0.0, 0.1, 1.0])),
        **RAW,
    )
    return scores, graph, members, decoder


def test_labels_are_those_by_which_most_rows_can_be_expected_to_be_right():
    for seed in range(100):
        scores, graph, members, decoder = small_problem(np.random.default_rng(seed))

        labels = decoder.decode(scores, graph)

        emission = slow_emission(scores, decoder, members)
        sure = slow_marginals(emission, decoder.transitions(members, graph))
        background = slow_background(len(scores), decoder.background)[:, None]
        worth = np.concatenate([sure * (1 - background), background], axis=1)
        names = [*members, BACKGROUND]
        path = [names.index(keystep) for keystep in labels.keysteps.tolist()]
        every = product(range(len(names)), repeat=len(scores))
        best = max(expected_right(one, worth, decoder.change_cost) for one in every)
        assert expected_right(path, worth, decoder.change_cost) == pytest.approx(best, abs=1e-5)
        own = worth[np.arange(len(path)), path]
        task = np.where(labels.keysteps == BACKGROUND, 1.0, labels.tasks["task"])
        assert labels.confidence == pytest.approx(task * own, abs=1e-5)


@pytest.mark.parametrize("stay", [0.1, 0.95])
def test_transitions_add_up_to_one_with_stay_on_the_diagonal(stay):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        members = tuple(rng.permutation(6)[: int(rng.integers(2, 7))].tolist())

        table = TaskMarkov(self_transition=stay).transitions(members, random_graph(rng, 6))

        assert table.shape == (len(members), len(members))
        assert table.sum(axis=1) == pytest.approx(1)
        assert np.diag(table) == pytest.approx(stay)
        assert (table > 0).all()


def test_the_graph_shifts_transitions_and_few_counts_shift_them_little():
    counts = np.zeros((7, 7), np.int64)
    counts[0, 2] = 10_000
    much = TaskMarkov().transitions((0, 1, 2), make_graph(counts, VOCABULARY))
    counts[0, 2] = 1
    little = TaskMarkov().transitions((0, 1, 2), make_graph(counts, VOCABULARY))

    assert much[0, 2] > 10 * much[0, 1]
    assert little[0, 1] > little[0, 2]


@pytest.mark.parametrize("size", [900, 1600])
def test_transitions_of_a_very_long_task_are_all_possible(size):
    table = TaskMarkov().transitions(tuple(range(size)), make_graph(np.zeros((size, size))))

    assert (table > 0).all()


# --- Labels


def test_a_confident_video_is_labelled_with_what_is_observed():
    observed = [0] * 8 + [1] * 8 + [2] * 8

    labels = TaskMarkov().decode(confident_scores(observed), GRAPH)

    assert labels.keysteps.tolist() == observed
    assert next(iter(labels.tasks)) == "tea"
    assert labels.tasks["tea"] > 0.95 * sum(labels.tasks.values())


def test_labels_are_of_one_task_where_the_evidence_is_confident():
    """A stray row that sounds like another task does not bring that task in."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        observed = np.sort(rng.integers(3, 6, 50))
        observed[rng.integers(0, 50, 3)] = 0

        assert set(labels_of(confident_scores(observed))) <= {BACKGROUND, 3, 4, 5}


def test_two_videos_joined_are_labelled_with_both_their_tasks():
    observed = [0] * 12 + [1] * 12 + [2] * 12 + [3] * 12 + [4] * 12 + [5] * 12

    assert labels_of(confident_scores(observed)) == observed


def test_the_shorter_of_two_joined_videos_has_confidence_of_its_own():
    """The whole video is mostly of the first task; its clear end is of the second."""
    observed = [0] * 24 + [1] * 24 + [2] * 24 + [3] * 10 + [4] * 10 + [5] * 10

    labels = TaskMarkov(background=0, **RAW).decode(confident_scores(observed), GRAPH)

    assert labels.keysteps.tolist() == observed
    assert labels.confidence[80:].mean() > 0.5


def test_a_keystep_late_in_the_listed_order_wins_late_in_the_video():
    """All keysteps of the task score the same on every row."""
    values = np.full((30, 7), 0.1)
    values[:, :3] = 0.8

    labels = labels_of(make_scores(values, vocabulary=VOCABULARY))

    assert labels == sorted(labels)
    assert (labels[0], labels[-1]) == (0, 2)


def test_rows_without_speech_take_part_in_what_goes_on_around_them():
    keysteps = [0] * 10 + [6] * 5 + [0] * 5 + [2] * 10
    observed = np.ones(30, bool)
    observed[10:15] = False

    assert labels_of(confident_scores(keysteps, observed=observed))[10:15] == [0] * 5


@pytest.mark.parametrize("ignored", [0.0, 9.0, -9.0, np.inf, -np.inf, np.nan])
def test_values_of_rows_without_speech_are_ignored(ignored):
    keysteps, observed = [0] * 10 + [1] * 10 + [2] * 10, np.arange(30) % 4 > 0
    scores, others = (confident_scores(keysteps, observed=observed) for _ in range(2))
    others.values[~observed] = ignored

    one, other = (TaskMarkov().decode(s, GRAPH) for s in (scores, others))

    assert one.keysteps.tolist() == other.keysteps.tolist()
    assert one.confidence.tolist() == other.confidence.tolist()


def test_a_keystep_that_may_not_be_is_never_predicted():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        allowed = rng.choice(6, int(rng.integers(1, 6)), replace=False).tolist()
        scores = random_scored(rng, 40).restrict(allowed)

        labels = TaskMarkov().decode(scores, GRAPH)

        assert set(labels.keysteps.tolist()) <= {BACKGROUND, *allowed}
        assert np.isfinite(labels.confidence).all()


@pytest.mark.parametrize("allowed", [[], [6]])
def test_where_no_keystep_of_any_task_may_be_none_of_them_is_predicted(allowed):
    labels = TaskMarkov().decode(confident_scores([0] * 9).restrict(allowed), GRAPH)

    assert set(labels.keysteps.tolist()) <= {BACKGROUND, *allowed}


def test_a_keystep_of_no_task_can_be_recognised():
    """Such as one that stands before the first heading of steps.txt."""
    assert 6 in labels_of(confident_scores([6] * 20))


def test_a_task_of_one_keystep_is_that_keystep_throughout():
    vocabulary = Vocabulary(NAMES, {"pour": (3,), "tea": (0, 1, 2)})
    scores = make_scores(confident_scores([3] * 9).values, vocabulary=vocabulary)

    graph = make_graph(np.zeros((7, 7)), vocabulary)
    labels = TaskMarkov(background=0, **RAW).decode(scores, graph)

    assert labels.keysteps.tolist() == [3] * 9
    assert labels.confidence.min() == labels.confidence.max() > 0.85


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_where_nothing_is_observed_all_is_background_without_confidence(rows):
    labels = TaskMarkov().decode(confident_scores([0] * rows, observed=[False] * rows), GRAPH)

    assert labels.keysteps.tolist() == [BACKGROUND] * rows
    assert labels.confidence.tolist() == [0.0] * rows
    assert labels.anchors.tolist() == [False] * rows
    assert labels.tasks == {}


def test_a_vocabulary_without_tasks_is_one_task_without_order():
    counts = np.zeros((6, 6), np.int64)
    counts[0, 1] = counts[1, 2] = counts[3, 4] = counts[4, 5] = 9
    observed = [5] * 8 + [4] * 8 + [3] * 8
    values = confident_scores(observed).values[:, :6]

    labels = TaskMarkov().decode(make_scores(values), make_graph(counts))

    assert labels.keysteps.tolist() == observed
    assert list(labels.tasks) == ["everything"]


@pytest.mark.parametrize("tasks", [{"tea": ()}, {"tea": (), "soup": ()}])
def test_tasks_without_keysteps_are_as_good_as_none(tasks):
    observed = [5] * 8 + [4] * 8 + [3] * 8
    scores, graph = (
        make_scores(confident_scores(observed).values, vocabulary=Vocabulary(NAMES, tasks)),
        make_graph(np.eye(7, k=-1, dtype=np.int64), Vocabulary(NAMES, tasks)),
    )

    labels = TaskMarkov().decode(scores, graph)

    assert labels.keysteps.tolist() == observed
    assert list(labels.tasks) == ["everything"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_task_without_keysteps_does_not_alter_the_labels(place):
    tasks = [*VOCABULARY.tasks.items()]
    tasks.insert(place, ("nothing", ()))
    vocabulary = Vocabulary(NAMES, dict(tasks))
    scores = random_scored(np.random.default_rng(0), 60)

    labels = TaskMarkov().decode(
        make_scores(scores.values, scores.observed, vocabulary=vocabulary),
        make_graph(GRAPH.counts.toarray(), vocabulary),
    )

    assert labels.keysteps.tolist() == labels_of(scores)
    assert "nothing" not in labels.tasks


def test_a_graph_of_another_vocabulary_is_refused():
    with pytest.raises(DataError, match=r"scores of video 'video' and the graph must share one"):
        TaskMarkov().decode(confident_scores([0]), make_graph(np.eye(7, dtype=np.int64)))


def test_without_background_every_row_of_a_video_is_labelled():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = random_scored(rng, int(rng.integers(1, 60)), spoken=0.5)
        scores.observed[0] = True

        assert BACKGROUND not in labels_of(scores, background=0)


@pytest.mark.parametrize("high", [0.9, 0.2, 0.1, -5.0])
def test_a_video_that_scores_low_is_labelled_all_the_same(high):
    labels = labels_of(confident_scores([0] * 20, high=high, low=high - 0.05))

    assert set(labels[5:15]) <= {0, 1, 2}


def test_the_beginning_and_the_end_are_left_empty_where_they_are_more_probably_background():
    labels = labels_of(confident_scores([0] * 40 + [1] * 40 + [2] * 40), background=0.2)

    empty = [t for t, keystep in enumerate(labels) if keystep == BACKGROUND]
    middle = [t for t, keystep in enumerate(labels) if keystep != BACKGROUND]
    assert {0, 119} <= set(empty)
    assert middle == list(range(middle[0], middle[-1] + 1))


def test_a_change_that_costs_too_much_is_not_made():
    scores = confident_scores([0] * 8 + [1] * 8 + [2] * 8)

    assert len(set(labels_of(scores, change_cost=100.0))) == 1


# --- Confidence, anchors and options


def test_confidence_is_a_probability():
    for seed in range(30):
        rng = np.random.default_rng(seed)

        confidence = TaskMarkov().decode(random_scored(rng, 1 + 2 * seed), GRAPH).confidence

        assert ((confidence >= 0) & (confidence <= 1)).all()


def test_confident_rows_have_more_confidence_than_vague_ones():
    observed = [0] * 10 + [1] * 10 + [2] * 10
    confident, vague = confident_scores(observed), confident_scores(observed, high=0.5, low=0.45)

    sure, unsure = (TaskMarkov().decode(one, GRAPH).confidence for one in (confident, vague))
    raw, vague_raw = (
        TaskMarkov(**RAW).decode(one, GRAPH).confidence for one in (confident, vague)
    )

    assert sure.mean() > unsure.mean()
    assert raw.mean() > vague_raw.mean() + 0.1


def test_rows_that_are_left_empty_have_confidence_too():
    labels = TaskMarkov(background=0.2).decode(confident_scores([0] * 60 + [2] * 60), GRAPH)

    empty = labels.keysteps == BACKGROUND
    assert empty.any()
    assert (labels.confidence[empty] > 0).all()


@pytest.mark.parametrize("empty", [False, True])
def test_calibration_keeps_the_order_of_confidence(empty):
    """Among the rows with a keystep, and among those without."""
    scores = random_scored(np.random.default_rng(0), 80)
    raw = TaskMarkov(**RAW, background=0.4).decode(scores, GRAPH)
    rows = np.flatnonzero((raw.keysteps == BACKGROUND) == empty)
    order = rows[np.argsort(raw.confidence[rows])]

    for decoder in (TaskMarkov(background=0.4), TaskMarkov(background=0.4, calibration_slope=500)):
        assert (np.diff(decoder.decode(scores, GRAPH).confidence[order]) >= -1e-9).all()
    assert len(rows) > 5


@pytest.mark.parametrize("spread", [1e-4, 0.001, 0.01])
def test_confidence_is_a_probability_where_places_are_strict(spread):
    labels = TaskMarkov(order_sigma=spread).decode(confident_scores([0] * 20 + [2] * 40), GRAPH)

    assert ((labels.confidence >= 0) & (labels.confidence <= 1)).all()


def test_anchors_are_the_observed_rows_whose_own_score_is_confident():
    rng = np.random.default_rng(0)
    scores = random_scored(rng, 80)

    labels = TaskMarkov().decode(scores, GRAPH)

    expected = [
        bool(scores.observed[t]) and k != BACKGROUND and bool(scores.values[t, k] >= 0.4)
        for t, k in enumerate(labels.keysteps.tolist())
    ]
    assert labels.anchors.tolist() == expected
    assert 0 < labels.anchors.sum() < 80


def test_the_same_input_gives_the_same_labels():
    rng = np.random.default_rng(0)
    scores, graph = random_scored(rng, 60), make_graph(rng.integers(0, 9, (7, 7)), VOCABULARY)

    one, _, again = (
        TaskMarkov().decode(s, graph) for s in (scores, random_scored(rng, 30), scores)
    )

    assert one.keysteps.tolist() == again.keysteps.tolist()
    assert one.confidence.tolist() == again.confidence.tolist()


def test_two_graphs_of_one_vocabulary_are_not_confused():
    counts = np.zeros((7, 7), np.int64)
    counts[0, 2] = counts[2, 1] = 10**6
    scores = confident_scores([0] * 5 + [6] * 16 + [1] * 5, observed=[1] * 5 + [0] * 16 + [1] * 5)

    plain, other = (labels_of(scores, graph) for graph in (GRAPH, make_graph(counts, VOCABULARY)))

    assert 2 not in plain
    assert labels_of(scores) == plain
    assert 2 in other


PRIORS = ("order_prior_transitions", "order_prior_videos", "calibration_slope")


@pytest.mark.parametrize("name", ["temperature", "order_sigma", *PRIORS])
@pytest.mark.parametrize("value", [0, -1.5, math.nan])
def test_options_that_must_be_positive_are_checked(name, value):
    with pytest.raises(ConfigError, match=f"^{name} must be more than 0, got {value}"):
        TaskMarkov(**{name: value})


@pytest.mark.parametrize("name", [*PRIORS, "mean_subtraction", "calibration_intercept"])
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_options_must_be_numbers_to_reckon_with(name, value):
    with pytest.raises(ConfigError, match=f"^{name} must be .*, got {value}"):
        TaskMarkov(**{name: value})


@pytest.mark.parametrize("stay", [0, 1, -0.5, 1.5, math.nan])
def test_stay_must_be_between_0_and_1(stay):
    with pytest.raises(
        ConfigError, match=f"^self_transition must be (between 0 and 1|finite), got {stay}"
    ):
        TaskMarkov(self_transition=stay)


@pytest.mark.parametrize("background", [-0.1, 1.1, math.nan, math.inf])
def test_background_must_be_a_share(background):
    with pytest.raises(ConfigError, match=r"^background must be (between 0 and 1|finite), got"):
        TaskMarkov(background=background)


@pytest.mark.parametrize("change_cost", [-1.0, math.nan, math.inf])
def test_a_change_must_not_be_worth_anything_by_itself(change_cost):
    with pytest.raises(ConfigError, match=r"^change_cost must be (at least 0|finite), got"):
        TaskMarkov(change_cost=change_cost)


def test_decoder_is_loaded_by_name_and_is_the_default():
    assert load_decoder() == TaskMarkov()
    assert load_decoder("task-markov", self_transition=0.9, mean_subtraction=0) == TaskMarkov(
        self_transition=0.9, mean_subtraction=0
    )


def test_a_long_video_of_ten_thousand_keysteps_is_decoded():
    size = 10_588
    tasks = {f"task {n}": tuple(range(n, min(n + 10, size))) for n in range(0, size, 10)}
    vocabulary = Vocabulary(keysteps(size).keysteps, tasks)
    graph = TaskGraph.from_order(vocabulary, tasks.values())
    rng = np.random.default_rng(0)
    values = rng.uniform(-0.1, 0.6, (600, size)).astype(np.float32)
    values[:, 50:60] += 0.3

    labels = TaskMarkov().decode(
        make_scores(values, rng.random(600) < 0.8, vocabulary=vocabulary), graph
    )

    assert next(iter(labels.tasks)) == "task 50"
    assert set(labels.keysteps.tolist()) <= {BACKGROUND, *range(50, 60)}
