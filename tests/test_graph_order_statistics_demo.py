"""Order statistics of the demo: in parts, against a wrong list, without any list."""

import numpy as np
import pytest

import stepgraph as sg
from stepgraph.core import Vocabulary
from stepgraph.decoders import TaskMarkov
from stepgraph.decoders.learning import learn_graph


@pytest.fixture(scope="module")
def demo_scores():
    dataset = sg.open_source("demo")
    encoder = sg.load_encoder(TaskMarkov.encoder)
    return list(sg.score(dataset.videos, dataset.vocabulary, encoder)), dataset.vocabulary


def test_parts_of_a_corpus_add_up_to_exactly_what_it_tells_at_once(demo_scores):
    scores, vocabulary = demo_scores
    whole = learn_graph(scores, vocabulary)
    parts = [learn_graph(scores[start::3], vocabulary) for start in (2, 0, 1)]

    merged = parts[0].merge(parts[1]).merge(parts[2])

    for task in vocabulary.tasks:
        one, other = whole.statistics.of_task(task), merged.statistics.of_task(task)
        for name in ("salient", "shown", "first", "seconds", "position", "before", "following"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_two_swapped_steps_of_a_list_are_put_back(demo_scores):
    """A list has two neighbours the wrong way round; the videos say so clearly."""
    _, words = demo_scores
    members = words.tasks["Make pancakes"]
    place = members.index(words.index("flip the pancake"))
    swapped = [*members]
    swapped[place : place + 2] = swapped[place + 1], swapped[place]
    vocabulary = Vocabulary(words.keysteps, {**words.tasks, "Make pancakes": tuple(swapped)})

    statistics = sg.mine("demo", vocabulary).statistics

    order = statistics.of_task("Make pancakes").order()
    assert order.index(members[place]) < order.index(members[place + 1])
    assert statistics.precedences(*members[place : place + 2])[0].share > 0.5


def test_a_corpus_of_spoken_videos_tells_its_order_without_any_list(demo_scores):
    """The demo's pancakes: the batter is made before it is fried."""
    scores, vocabulary = demo_scores
    graph = learn_graph(scores, vocabulary, decoder=TaskMarkov(order_weight=0.0))
    names = ("sift the flour", "crack the eggs", "ladle the batter into the pan")

    order = graph.statistics.of_task("Make pancakes").order()

    places = [order.index(vocabulary.index(name)) for name in (*names, "flip the pancake")]
    assert places == sorted(places)
