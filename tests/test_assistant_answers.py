"""What executions teach: next, missing, mistakes, plans, each beside counting by hand."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from stepgraph.assistant import Execution, Experience, make_plans
from stepgraph.assistant.answers import Assistant
from stepgraph.errors import ConfigError, DataError

BOIL, LEAVES, STEEP, POUR, CHOP, FRY = range(6)
NAMES = ("boil", "add leaves", "steep", "pour", "chop", "fry")
RUNS = [
    *[("tea", (BOIL, LEAVES, STEEP, POUR))] * 8,
    *[("tea", (LEAVES, BOIL, STEEP, POUR))] * 4,
    *[("soup", (CHOP, FRY, BOIL, POUR))] * 6,
]


@pytest.fixture
def experience():
    return Experience.of(RUNS, len(NAMES))


@pytest.fixture
def assistant():
    runs = enumerate(RUNS)
    return Assistant(
        tuple(Execution(str(n), t, "", tuple(NAMES[s] for s in steps)) for n, (t, steps) in runs)
    )


@pytest.mark.parametrize("past", [[], [BOIL], [CHOP, FRY], [BOIL, LEAVES, STEEP, POUR], [POUR]])
@pytest.mark.parametrize("task", [None, "tea", "soup"])
def test_what_comes_next_are_shares(experience, past, task):
    shares = experience.next(past, task)

    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()
    assert not shares[past[-1:]].any()


def test_the_whole_past_tells_what_comes_next(experience):
    assert experience.next([BOIL, LEAVES]).argmax() == STEEP
    assert experience.next([LEAVES, BOIL]).argmax() == STEEP
    assert experience.next([CHOP, FRY, BOIL]).argmax() == POUR
    assert experience.next([]).argmax() == BOIL
    assert experience.next([BOIL], "soup").argmax() == POUR


def test_tasks_are_weighed_by_what_was_done(experience):
    assert experience.task_shares([]) == pytest.approx([12 / 18, 6 / 18])
    assert experience.task_shares([LEAVES])[0] > 0.99
    assert experience.task_shares([LEAVES], "soup").tolist() == [0.0, 1.0]


def test_what_was_left_out_is_missing(experience):
    assert experience.missing([BOIL, LEAVES, POUR]).argmax() == STEEP
    assert experience.missing([BOIL, LEAVES, POUR])[STEEP] > 0.9
    assert experience.missing([BOIL, LEAVES, POUR])[CHOP] < 0.1
    assert not experience.missing([BOIL, LEAVES, STEEP, POUR])[:4].any()
    assert not experience.missing([]).any()


def test_counts_of_what_came_before_are_those_by_hand(experience):
    counts, shown = experience.before("tea")

    assert counts[BOIL, LEAVES] == 8
    assert counts[LEAVES, BOIL] == 4
    assert counts[BOIL, POUR] == shown[POUR] == 12


@pytest.mark.parametrize("seed", range(10))
def test_too_early_is_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    runs = [rng.permutation(5)[: rng.integers(1, 6)].tolist() for _ in range(6)]
    past, step = rng.permutation(5)[:2].tolist(), 4
    experience = Experience.of([("it", run) for run in runs], 5)

    found = experience.too_early(past, step, "it")
    score = experience.unready(past, step, "it")

    begun = [{*run[: run.index(step)]} for run in runs if step in run]
    if step in past or not begun:
        assert not found.any()
        assert score == 0
        return
    alike = [(len(one & {*past}) + 0.5) / (len(one | {*past}) + 0.5) for one in begun]
    weight = [each / max(alike) for each in alike]
    for other in range(5):
        share = sum(w for w, one in zip(weight, begun, strict=True) if other in one)
        expected = 0 if other in (*past, step) else share / (sum(weight) + 0.5)
        assert found[other] == pytest.approx(expected)
    least = np.quantile([len(one - {*past}) / (len(one) + 1) for one in begun], 0.1)
    assert score == pytest.approx((found.max() + least) / 2)


def test_a_finished_execution_tells_what_came_too_early(experience):
    found = experience.out_of_order([BOIL, POUR, LEAVES, STEEP], "tea")

    assert found.argmax() == 1
    assert found[1] == pytest.approx(12.5 / 13)


def test_answers_have_names_and_evidence(assistant):
    assert assistant.next(["chop", "fry"])[0].step == "boil"
    [missing] = assistant.missing(["boil", "add leaves", "pour"], threshold=0.8)
    assert missing.step == "steep"
    assert missing.why == "in 12 of 12 executions 'steep' comes before 'pour'"


def test_mistakes_are_told_with_their_kind(assistant):
    steps = ["boil", "pour", "juggle", "add leaves", "boil"]

    found = {one.kind: one for one in assistant.mistakes(steps, task="tea")}

    assert found["too early"].step == "pour"
    assert found["too early"].why == "in 12 of 12 executions 'add leaves' comes before 'pour'"
    assert found["unknown"].step == "juggle"
    assert found["unknown"].score == 1
    assert found["repeated"].why == "0 of 12 executions do it more than once"


def test_a_listed_order_teaches_and_is_no_evidence():
    seen = [Execution(str(n), "tea", "", ("boil", "pour", "steep")) for n in range(4)]
    list_ = [Execution(f"w{n}", "tea", "", NAMES[:4], written=True) for n in range(2)]

    assistant = Assistant((*seen, *list_))

    assert assistant.mistakes(["boil", "add leaves"]) == []
    [told] = assistant.mistakes(["pour"], threshold=0.4)
    assert told.why == "in 4 of 4 executions 'boil' comes before 'pour', as in the listed order"
    [told] = assistant.mistakes(["add leaves"], threshold=0.4)
    assert told.why == (
        "in 0 of 0 executions 'boil' comes before 'add leaves', as in the listed order"
    )
    found = assistant.mistakes(["boil", "pour", "steep", "boil"], threshold=0.4)
    assert [one.why for one in found] == ["0 of 4 executions do it more than once"]
    assert assistant.threshold == Assistant((*list_, *seen)).threshold


def test_what_all_do_is_no_mistake(assistant):
    for task, steps in RUNS:
        assert assistant.mistakes([NAMES[step] for step in steps], task=task) == []


def test_the_threshold_is_the_users(assistant):
    steps = ["boil", "steep"]

    assert assistant.mistakes(steps, task="tea", threshold=0.0)
    assert not assistant.mistakes(steps, task="tea", threshold=0.99)


def test_the_default_threshold_is_met_by_few_correct_steps():
    rng = np.random.default_rng(0)
    runs = [Execution(str(n), "it", "", tuple(rng.permutation(list("abcd")))) for n in range(60)]
    loose = Assistant(tuple(runs))
    strict = Assistant((Execution("a", "it", "", tuple("abcd")),) * 60)

    alarms = [
        score >= loose.threshold for one in runs for _, score, _ in loose.judge(one.steps, "it")
    ]
    assert strict.threshold == pytest.approx(0.2)
    assert loose.threshold > strict.threshold
    assert sum(alarms) <= 0.12 * len(alarms)


def test_alternatives_are_no_prerequisites():
    ways = [("a", "b", "z"), ("c", "d", "z")]
    both = Assistant(tuple(Execution(str(n), "it", "", ways[n % 2]) for n in range(10)))

    scores = {past: both.judge([*past, "z"], "it")[-1][1] for past in ("ab", "cd", "")}

    assert scores["ab"] < both.threshold
    assert scores["cd"] < both.threshold
    assert scores[""] >= both.threshold


def test_a_task_nobody_knows_is_taken_for_all_together(assistant):
    found = assistant.judge(["boil", "add leaves", "steep"], "coffee")

    assert [score for _, score, _ in found][-1] < assistant.threshold


def test_another_vocabulary_tells_nothing(assistant):
    assert [one.kind for one in assistant.mistakes(["x", "y"])] == ["unknown", "unknown"]
    assert assistant.missing(["x", "y"]) == []
    assert assistant.next(["x"])[0] == assistant.next([])[0]


def test_an_unknown_task_is_refused(assistant):
    with pytest.raises(
        ConfigError, match=r"task must be a task of the executions .*, got 'coffee'"
    ):
        assistant.next([], task="coffee")


@pytest.mark.parametrize("runs", [(), (Execution("a", "", "", ("boil",)),)])
def test_fewer_than_two_steps_teach_nothing(runs):
    with pytest.raises(DataError, match="executions must show at least 2 steps, got"):
        Assistant(runs).next([])


def plan_by_hand(experience, first, last, length, task):
    """The best of all sequences, scored one by one."""
    place, runs = experience.names.index(task), experience.tasks[task]
    counts, _ = experience.before(task)
    starts = sum(first in run for run in runs)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    best = None
    for between in product(range(experience.size), repeat=length - 2):
        plan = (first, *between, last)
        repeated = [a for a, b in pairwise(plan) if a == b]
        if not experience.shown[place, list(plan)].all() or any(
            (a, a) not in pairs for a in repeated
        ):
            continue
        score = starts * math.prod(
            experience.after(place, plan[at - 1 : at])[plan[at]] for at in range(1, length)
        )
        score += 3 * sum(run[at : at + length] == plan for run in runs for at in range(len(run)))
        for at, early in enumerate(plan):
            for late in plan[at + 1 :]:
                so = any(
                    early in run[: run[::-1].index(late) * -1 - 1] for run in runs if late in run
                )
                score *= 1e-3 if not so and counts[late, early] >= 3 else 1
        best = max(best or (0, ()), (score, plan))
    return best[1] if best else ()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("length", [2, 3, 4])
def test_plans_are_the_best_of_all_sequences(seed, length):
    rng = np.random.default_rng(seed)
    runs = [("it", rng.permutation(5)[: rng.integers(3, 6)].tolist()) for _ in range(7)]
    experience = Experience.of(runs, 5)

    found = make_plans(experience, 0, 1, steps=length, task="it", top=3)

    assert (found[0].keysteps if found else ()) == plan_by_hand(experience, 0, 1, length, "it")
    assert sum(one.probability for one in found) <= 1 + 1e-9
    assert [one.probability for one in found] == sorted(
        (one.probability for one in found), reverse=True
    )


def test_the_shortest_plan_goes_only_where_somebody_went(experience):
    [best, *_] = make_plans(experience, LEAVES, POUR)

    assert best.keysteps == (LEAVES, STEEP, POUR)
    assert best.task == "tea"


def test_tasks_that_do_not_show_both_ends_make_no_plan(experience):
    assert make_plans(experience, CHOP, STEEP) == []
    assert make_plans(experience, CHOP, POUR, task="tea", steps=3) == []
    assert make_plans(experience, CHOP, POUR)[0].task == "soup"
