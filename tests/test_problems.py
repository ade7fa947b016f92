"""Mistakes are counted, kept up to a bound, and those that lose an input are told apart."""

import pytest

from stepgraph.errors import DataError
from stepgraph.problems import Problems


def made(*, fatal: int, blemishes: int) -> Problems:
    problems = Problems()
    for number in range(fatal):
        problems.add(f"{number}.vtt", "unreadable transcript", "must be text", fatal=True)
    for number in range(blemishes):
        problems.add(f"a.csv:{number}", "reversed segment", "must end after its start")
    return problems


def test_only_a_lost_input_counts_as_failed():
    problems = made(fatal=2, blemishes=3)

    assert len(problems) == 5
    assert problems.failed.counts == {"unreadable transcript": 2}
    assert [problem.where for problem in problems.failed.found] == ["0.vtt", "1.vtt"]
    assert not made(fatal=0, blemishes=3).failed


def test_one_kind_may_be_lost_in_one_place_and_a_blemish_in_another():
    problems = Problems()
    for number in range(30):
        problems.add(f"{number}", "missing file", "must be a file")
    problems.add("x", "missing file", "must be a file", fatal=True)

    assert problems.counts == {"missing file": 31}
    assert problems.failed.summary() == "1 missing file (x: must be a file)"


def test_the_summary_names_every_lost_input_up_to_a_bound():
    assert made(fatal=3, blemishes=2).summary() == (
        "3 × unreadable transcript (0.vtt: must be text; also 1.vtt, 2.vtt); "
        "2 × reversed segment (a.csv:0: must end after its start)"
    )
    assert "18.vtt, 19.vtt and 1,980 more)" in made(fatal=2000, blemishes=0).summary()


def test_a_problem_of_many_things_says_of_how_many():
    problems = Problems()
    problems.add("list.csv", "without narration", "must be", scope="2,401 of 2,750 videos")

    assert len(problems) == 1
    assert problems.summary() == "2,401 of 2,750 videos without narration (list.csv: must be)"


def test_problems_of_another_are_added_with_their_counts():
    problems = made(fatal=1, blemishes=1)
    problems.take(made(fatal=30, blemishes=2).failed)
    problems.take(made(fatal=5, blemishes=2), "reversed segment")

    assert problems.counts == {"unreadable transcript": 31, "reversed segment": 3}
    assert len(problems.failed) == 31


def test_a_strict_one_stops_at_the_first():
    with pytest.raises(DataError, match=r"^a\.csv:7: end must be after start$"):
        Problems(strict=True).add("a.csv:7", "reversed segment", "end must be after start")
