"""Where names are best said, and what recurs by meaning though not in the same words."""

from types import SimpleNamespace

import numpy as np
import pytest

from stepgraph.datasets import open_source
from stepgraph.pipeline.checking import _unmentioned, check_steps
from stepgraph.pipeline.name_matches import NameMatches

# Said once in six videos, and nothing to do with coffee.
CHATTER = {"cut the cake", "train a new starter", "roast barley", "leave the building"}


@pytest.fixture(scope="module")
def coffee():
    task, demo = "Make pour over coffee", open_source("demo")
    videos = [video for video in demo.videos if video.task == task]
    return videos, [demo.vocabulary.keysteps[step] for step in demo.vocabulary.tasks[task]]


@pytest.mark.parametrize("taken", ["throw away the filter", "fold the paper filter"])
def test_what_few_videos_say_in_different_words_is_missing(taken, coffee):
    videos, names = coffee

    found = check_steps([name for name in names if name != taken], videos).of("missing")

    told = {one.keysteps[0]: one for one in found}
    assert not CHATTER & {*told}
    [phrase] = [one for name, one in told.items() if name.split()[0] == taken.split()[0]]
    assert 2 <= phrase.videos <= phrase.of == 6
    assert len({said.video for said in phrase.examples}) == min(3, phrase.videos)


def test_little_is_missing_of_a_whole_list(coffee):
    assert len(check_steps(coffee[1], coffee[0]).of("missing")) <= 2


def test_one_video_repeats_nothing(coffee):
    assert not check_steps(coffee[1][1:], coffee[0][:1]).of("missing")


def spoken(moment, salient):
    return NameMatches((), np.array(moment), np.array(salient, dtype=bool), np.zeros(len(moment)))


def test_a_name_covers_what_is_best_said_at_its_moment_in_half_of_the_videos():
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = (
            spoken(rng.integers(3, size=(5, n)), rng.integers(2, size=(5, n))) for n in (2, 4)
        )
        for number, covered in enumerate(one.covers(other).tolist()):
            where = [v for v in range(5) if other.salient[v, number]]
            times = [
                sum(
                    one.salient[v, n] and one.sentence[v, n] == other.sentence[v, number]
                    for v in where
                )
                for n in range(2)
            ]
            assert covered == any(t and 2 * t >= len(where) for t in times)


def test_a_step_is_unheard_in_the_mean_of_both_ways():
    layer = SimpleNamespace(salient=np.array([3, 3, 20]), videos=20)
    both = spoken(np.zeros((20, 3), int), [[0, 1, 0]] * 2 + [[0, 0, 0]] * 18)

    names = [one.keysteps[0] for one in _unmentioned("Tea", ["a", "b", "c"], layer, both)]

    assert names == ["a"]
    silent = both._replace(level=np.full(20, np.inf))
    assert not _unmentioned("Tea", ["a", "b", "c"], layer, silent)
