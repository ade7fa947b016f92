"""Order statistics of whole videos: counts against loops, sums, shares, and the edges."""

from dataclasses import replace
from itertools import pairwise, permutations, product

import numpy as np
import pytest

from reference import keysteps, make_graph, make_traces
from stepgraph.core import BACKGROUND, Labels, Vocabulary
from stepgraph.graph.order_statistics import END, START, TaskStatistics, order_statistics
from stepgraph.graph.shares import NEXT, PRECEDENCE, shares_of
from stepgraph.graph.traces import EmissionTrace

SIZE = 4

WORDS = Vocabulary(keysteps(SIZE).keysteps, {"tea": tuple(range(SIZE))})


def labelled(*rows, video="v", vocabulary=WORDS):
    return Labels(video, np.array(rows, np.int64), vocabulary)


def statistics_of(*videos, order=0.0, vocabulary=WORDS, **tasks):
    named = [replace(one, video=f"{n}") for n, one in enumerate(videos)]
    found = tasks or {"tea": named}
    size = len(vocabulary)
    graph = make_graph(np.zeros((size, size), np.int64), vocabulary)
    graph = replace(graph, traces=make_traces(found, vocabulary, order))
    return graph.statistics


def slow_counts(videos):
    """What labels that are plain on every row count as, with loops over rows."""
    found = {name: np.zeros(SIZE) for name in ("salient", "shown", "first", "seconds")}
    before, following = np.zeros((SIZE, SIZE)), np.zeros((SIZE, SIZE + 1), int)
    for labels in videos:
        rows = labels.keysteps.tolist()
        sequence = [k for place, k in enumerate(rows) if place == 0 or rows[place - 1] != k]
        for keystep in rows:
            found["seconds"][keystep] += labels.hop
        for keystep in set(rows):
            found["salient"][keystep] += 1
            found["shown"][keystep] += 1
        found["first"][sequence[0]] += 1
        for one, other in pairwise([*sequence, SIZE]):
            following[one, other] += 1
        for one, other in permutations(set(rows), 2):
            at = [[t for t, k in enumerate(rows) if k == keystep] for keystep in (one, other)]
            sooner = [first < second for first in at[0] for second in at[1]]
            before[one, other] += sum(sooner) / len(sooner)
    return found, before, following


def test_counts_of_plain_videos_are_those_of_loops_over_rows():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        videos = [
            replace(labelled(*np.repeat(rng.integers(0, SIZE, 6), 5)), video=f"{n}", hop=0.5)
            for n in range(int(rng.integers(1, 5)))
        ]

        found = statistics_of(*videos).of_task("tea")

        arrays, before, following = slow_counts(videos)
        for name, expected in arrays.items():
            assert getattr(found, name).tolist() == expected.tolist()
        assert found.following.tolist() == following.tolist()
        assert found.before == pytest.approx(before, abs=0.02)
        assert found.videos == len(videos)


def slow_due(traces):
    """When keysteps are due: ten videos spread evenly, and those of the corpus, smoothed."""
    times = sum(one.margin_timing() for one in traces.values())
    near = np.exp(-(np.arange(-4, 5) ** 2) / 2)
    table = np.zeros_like(times)
    for place in range(len(times)):
        for part in range(20):
            around = [times[place, min(19, max(0, part + n))] for n in range(-4, 5)]
            table[place, part] = 10 / 20 + near @ around / near.sum()
    return 20 * table / table.sum(axis=1, keepdims=True)


def slow_statistic(traces, transitions):
    """One pass over unclear videos, every sequence of keysteps weighed by itself."""
    size, due = len(transitions), slow_due(traces)
    chain = transitions + 100 / (size - 1)
    np.fill_diagonal(chain, 0)
    chain = 0.1 * chain / chain.sum(axis=1, keepdims=True) + 0.9 * np.eye(size)
    found = {name: np.zeros(size) for name in ("shown", "first", "seconds", "middle", "certain")}
    before, following = np.zeros((size, size)), np.zeros((size, size + 1), int)
    for trace in traces.values():
        said = np.exp(trace.log_emission())
        rows = len(said)
        share = np.zeros((rows, size))
        for way in product(range(size), repeat=rows):
            weight = np.prod([said[t, k] * due[k, t * 20 // rows] for t, k in enumerate(way)])
            weight *= np.prod([chain[pair] for pair in pairwise(way)])
            share[range(rows), way] += weight
        share /= share.sum(axis=1, keepdims=True)
        labels = share.argmax(axis=1).tolist()
        sequence = [k for t, k in enumerate(labels) if t == 0 or labels[t - 1] != k]
        found["first"][sequence[0]] += 1
        for one, other in pairwise([*sequence, size]):
            following[one, other] += 1
        for one in range(size):
            found["shown"][one] += one in labels
            found["seconds"][one] += labels.count(one) * trace.hop
            found["certain"][one] += (sure := share[:, one].max())
            when = sum((t + 0.5) / rows * share[t, one] for t in range(rows))
            found["middle"][one] += sure * when / share[:, one].sum()
            for other in {*range(size)} - {one}:
                sooner = sum(
                    share[s, one] * share[t, other] * (1.0 if s < t else 0.5)
                    for s in range(rows)
                    for t in range(s, rows)
                )
                sooner /= share[:, one].sum() * share[:, other].sum()
                before[one, other] += sure * share[:, other].max() * sooner
    return found, before, following


def test_counts_of_uncertain_videos_are_those_of_all_sequences_weighed_one_by_one():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        counts, traces = rng.integers(0, 200, (3, 3)), {}
        for n in range(3):
            said = rng.normal(0, 2.0, (3, 3))
            said -= np.logaddexp.reduce(said, axis=1, keepdims=True)
            salient = rng.random(3) < 0.5
            traces[f"{n}"] = EmissionTrace.of_runs(rng.integers(1, 4, 3), said, salient, 0.5)

        found = order_statistics((4, 5, 6), traces, counts.astype(np.int64), 0.25)

        _, _, following = slow_statistic(traces, counts)
        sums, before, following = slow_statistic(traces, following[:, :-1])
        assert (found.keysteps, found.videos, found.ordered) == ((4, 5, 6), 3, 0.25)
        assert (
            found.salient.tolist()
            == sum(one.salient.astype(int) for one in traces.values()).tolist()
        )
        for name in ("shown", "first", "seconds"):
            assert getattr(found, name).tolist() == sums[name].tolist()
        assert found.position == pytest.approx(sums["middle"] / sums["certain"])
        assert found.before == pytest.approx(before)
        assert found.following.tolist() == following.tolist()


def test_places_are_between_which_nine_of_ten_videos_have_them():
    statistic = statistics_of(labelled(*[0] * 9, *[1] * 9), order=0.5).of_task("tea")
    share = statistic.precedence()

    for at, (low, high) in enumerate(statistic.position_ranges().values()):
        others = [share[other, at] for other in range(SIZE) if other != at]
        middle, spread = 1 + sum(others), 1.6449 * sum(p * (1 - p) for p in others) ** 0.5
        assert low == round(max(1, middle - spread))
        assert high == round(min(SIZE, middle + spread))


def test_a_task_begins_with_what_comes_before_all_others():
    statistics = statistics_of(*[labelled(*[1] * 9, *[0] * 9)] * 3, labelled(*[0] * 9), order=0.5)
    share = statistics.of_task("tea").precedence()
    chances = [np.prod([share[one, other] for other in range(SIZE)]) for one in range(SIZE)]

    found = statistics.first_of("tea")

    assert {one.keystep: one.seen for one in found} == {0: 1, 1: 3, 2: 0, 3: 0}
    weights = NEXT.weigh(4 * np.array(chances) / sum(chances), np.zeros(SIZE))
    for keystep, share in enumerate(shares_of(weights)):
        [one] = [one for one in found if one.keystep == keystep]
        assert one[2:] == pytest.approx(share)


def test_a_keystep_is_done_where_it_is_in_the_mean():
    found = statistics_of(labelled(*[0] * 10, *[1] * 30)).of_task("tea")

    assert found.position[:2] == pytest.approx([5 / 40, 25 / 40], abs=0.01)


@pytest.mark.parametrize("rows", [[], [BACKGROUND] * 3])
def test_a_silent_video_has_no_salient_keysteps(rows):
    found = statistics_of(labelled(*rows)).of_task("tea")

    assert found.videos == 1
    assert not found.salient.any()
    assert found.precedence() == pytest.approx(np.full((SIZE, SIZE), 0.5), abs=0.02)


def test_a_task_of_one_keystep_has_an_order():
    vocabulary = Vocabulary(("boil", "pour"), {"tea": (1,)})
    statistics = statistics_of(tea=[labelled(1, 1, vocabulary=vocabulary)], vocabulary=vocabulary)

    assert statistics.of_task("tea").order() == [1]
    assert statistics.of_task("tea").position_ranges() == {1: (1.0, 1.0)}
    assert [(one.keystep, one.seen) for one in statistics.successors_of(1)] == [(END, 1)]


def test_a_second_pass_takes_the_transitions_that_the_first_recognised():
    """Seconds that say nothing are filled in by what usually comes between."""
    plain = [labelled(*[0] * 5, *[1] * 5, *[2] * 5) for _ in range(30)]
    gap = labelled(*[0] * 5, *[BACKGROUND] * 5, *[2] * 5)

    with_gap = statistics_of(*plain, gap).of_task("tea")

    assert with_gap.following[0].tolist() == [0, 31, 0, 0, 0]


def test_shares_are_those_of_the_counts():
    statistics = statistics_of(*[labelled(*[0] * 9, *[1] * 9)] * 7, labelled(*[1] * 9, *[0] * 9))

    [found] = statistics.precedences(0, 1)

    assert (found.before, found.after) == pytest.approx((7, 1), abs=0.05)
    [share, _] = shares_of(PRECEDENCE.weigh((found.before, found.after), (0, 0)))
    assert found[2:5] == share
    assert found.tasks == ("tea",)
    assert statistics.of_task("tea").precedence()[0, 1] == pytest.approx(found.share)
    first, *others = statistics.successors_of(0)
    counts = statistics.of_task("tea").following[0, 1:]
    assert (first.keystep, first.seen) == (1, 7)
    assert first[2:] == shares_of(NEXT.weigh(counts, np.zeros(SIZE)))[0]
    assert len(others) == 3


def test_what_never_met_is_as_likely_one_way_as_the_other():
    [found] = statistics_of(labelled(*[0] * 9)).precedences(1, 2)

    assert found.share == pytest.approx(0.5, abs=0.02)
    assert found.high - found.low > 0.8


def test_the_listed_order_counts_until_many_confident_videos_contradict_it():
    against = labelled(*[1] * 9, *[0] * 9)
    along = labelled(*[0] * 9, *[1] * 9)

    def share(*videos):
        return statistics_of(*videos, order=1.0).precedences(0, 1)[0].share

    assert share(along) > 0.9
    assert share(*[against] * 6, *[along] * 4) > 0.5
    assert share(*[against] * 30) < 0.4
    assert statistics_of(*[against] * 30, order=1.0).of_task("tea").order()[:2] == [1, 0]
    assert statistics_of(against, order=0.0).precedences(0, 1)[0].share < 0.1


def test_the_order_speaks_for_the_next_in_the_list_and_less_for_those_after_it():
    statistic = statistics_of(labelled(3), order=1.0).of_task("tea")

    assert statistic.next_weights(1).tolist() == [0, 0, 1, 0.5, 0.25]
    assert statistic.next_weights(-1).tolist() == [1, 0.5, 0.25, 0.125, 0.0625]
    assert replace(statistic, ordered=0.0).next_weights(1).tolist() == [0] * 5


def test_a_listed_order_speaks_for_what_stands_next_to_each_other_as_for_all_others():
    share = statistics_of(labelled(3), order=1.0).of_task("tea").precedence()

    assert share[0, 1] == pytest.approx(share[0, 2])
    assert share[0, 1] > 0.6
    assert share[1, 0] == pytest.approx(1 - share[0, 1])
    assert share[0, 0] == 0.5


def test_a_list_without_headings_has_no_order():
    vocabulary = keysteps(SIZE)
    video = labelled(*[2] * 9, *[0] * 9, vocabulary=vocabulary)

    statistics = statistics_of(everything=[video], vocabulary=vocabulary, order=1.0)

    assert statistics.of_task("everything").ordered == 0.0
    assert statistics.precedences(2, 0)[0].share > 0.9


def test_tasks_that_agree_are_put_together_and_others_kept_apart():
    members = (0, 1, 2)
    vocabulary = Vocabulary(WORDS.keysteps, {"tea": members, "soup": members, "stew": members})
    there, back = ([0] * 9 + [1] * 9, [1] * 9 + [0] * 9)
    tasks = {
        "tea": [labelled(*there, video=f"t{n}", vocabulary=vocabulary) for n in range(4)],
        "soup": [labelled(*back, video=f"s{n}", vocabulary=vocabulary) for n in range(2)],
        "stew": [labelled(*there, video="w", vocabulary=vocabulary)],
    }

    statistics = statistics_of(vocabulary=vocabulary, **tasks)
    agree, apart = statistics.precedences(0, 1)

    assert (agree.tasks, apart.tasks) == (("tea", "stew"), ("soup",))
    assert (agree.before, apart.after) == pytest.approx((5, 2), abs=0.1)
    assert agree.share > 0.9
    assert apart.share < 0.1
    assert statistics.precedences(0, 1, ["soup"]) == [apart]
    assert statistics.precedences(0, 3) == []
    assert [(n.keystep, n.seen) for n in statistics.successors_of(0)][:2] == [(1, 5), (END, 2)]
    assert [(n.keystep, n.seen) for n in statistics.successors_of(0, 1, tasks=["soup"])] == [
        (END, 2)
    ]
    assert statistics.successors_of(3) == []


def test_a_task_that_is_undecided_agrees_with_those_in_the_order_that_is_asked_about():
    members = (0, 1)
    vocabulary = Vocabulary(WORDS.keysteps, {"tea": members, "soup": members})
    tasks = {
        "tea": [labelled(*[0] * 9, *[1] * 9, video="t", vocabulary=vocabulary)],
        "soup": [labelled(*[2] * 9, video="s", vocabulary=vocabulary)],
    }
    statistics = statistics_of(vocabulary=vocabulary, **tasks)

    assert np.ptp(statistics.precedences(0, 1, ["soup"])[0][:2]) == 0
    assert [one.tasks for one in statistics.precedences(0, 1)] == [("tea", "soup")]
    assert {one.tasks for one in statistics.precedences(1, 0)} == {("tea",), ("soup",)}


def test_next_are_the_most_probable_first_and_so_many_as_asked_for():
    sequences = [(0, 1), (0, 2), (0, 2), (0, 3), (0,)]
    statistics = statistics_of(*(labelled(*np.repeat(one, 9)) for one in sequences))

    found = statistics.successors_of(0, 9)

    assert [(one.keystep, one.seen) for one in found] == [(2, 2), (1, 1), (3, 1), (END, 1)]
    assert statistics.successors_of(0, 1) == found[:1]
    assert sum(one.share for one in found) == pytest.approx(1)
    assert statistics.first_of("tea")[0][:2] == (0, 5)


def test_the_listed_order_speaks_for_what_comes_next_in_the_mean_of_the_tasks():
    members = (0, 1, 2, 3)
    vocabulary = Vocabulary(WORDS.keysteps, {"tea": members, "soup": members[::-1]})
    video = labelled(*[1] * 9, *[0] * 9, vocabulary=vocabulary)
    statistics = statistics_of(vocabulary=vocabulary, order=1.0, tea=[video], soup=[video])

    alone = {one.keystep: one[2:] for one in statistics.successors_of(1, tasks=["tea"])}
    both = {one.keystep: one[2:] for one in statistics.successors_of(1)}

    weights = NEXT.weigh(np.array([1, 0, 0, 0]), np.array([0, 1, 0.5, 0.25]))
    for keystep, share in zip((0, 2, 3, END), shares_of(weights), strict=True):
        assert alone[keystep] == pytest.approx(share)
    weights = NEXT.weigh(np.array([2, 0, 0, 0]), np.array([0.5, 0.5, 0.25, 0.375]))
    for keystep, share in zip((0, 2, 3, END), shares_of(weights), strict=True):
        assert both[keystep] == pytest.approx(share)


def test_four_are_told_unless_others_are_asked_for():
    vocabulary = Vocabulary(keysteps(7).keysteps, {"tea": tuple(range(7))})
    statistics = statistics_of(tea=[labelled(0, vocabulary=vocabulary)], vocabulary=vocabulary)

    assert len(statistics.successors_of(0)) == 4
    assert len(statistics.successors_of(0, 9)) == 7


def test_order_and_places_are_those_of_the_videos():
    statistic = statistics_of(*[labelled(*[3] * 9, *[1] * 9, *[2] * 9, *[0] * 9)] * 8).of_task(
        "tea"
    )

    assert statistic.order() == [3, 1, 2, 0]
    assert [statistic.position_ranges()[keystep] for keystep in (3, 1, 2, 0)] == [
        *((1.0, 2.0), (1.0, 3.0), (2.0, 4.0), (3.0, 4.0))
    ]
    unknown = statistics_of(labelled(-1)).of_task("tea")
    assert unknown.position_ranges()[0] == (1.0, 4.0)


def test_neither_end_of_a_video_is_a_keystep_or_the_other():
    assert len({START, END}) == 2
    assert max(START, END) < 0


def test_a_task_is_counted_once():
    statistics = statistics_of(labelled(0, 1))

    assert statistics.of_task("tea") is statistics.of_task("tea")
    assert isinstance(statistics, TaskStatistics)


def test_what_is_done_in_each_video_is_told_in_its_order():
    videos = [labelled(0, 0, 1, 1, 3, 3), labelled(2, 2, 2, 0, 0), labelled(1, 1, 0, 0, 1, 1)]

    found = statistics_of(*videos).sequences("tea")

    assert found == {"0": [0, 1, 3], "1": [2, 0], "2": [1, 0, 1]}


def test_the_listed_order_is_worth_half_as_many_executions_where_it_is_trusted():
    vocabulary = Vocabulary(WORDS.keysteps, {"tea": (0, 1, 2, 3)})
    videos = [labelled(0, 1, vocabulary=vocabulary)] * 3

    for order, executions in ((1.0, 2), (0.5, 1), (0.0, 0)):
        statistics = statistics_of(*videos, vocabulary=vocabulary, order=order)
        assert statistics.written("tea") == executions


def test_what_is_not_confident_in_a_video_is_what_follows_in_others():
    plain = [labelled(*[one] * 5, *[other] * 5) for one, other in ((0, 1), (3, 2))] * 5
    uncertain = [labelled(*[one] * 5, *[BACKGROUND] * 5) for one in (0, 3)]
    statistics = statistics_of(*plain, *uncertain)
    traces = statistics.traces.tasks["tea"]
    for video in ("10", "11"):
        traces[video].emissions[5:, [0, 3]] = -127  # either 1 or 2 is done

    found = statistics.sequences("tea")

    assert (found["10"], found["11"]) == ([0, 1], [3, 2])
