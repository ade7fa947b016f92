"""Controls without a graph: what they share with path search, and what they leave out."""

import math

import numpy as np
import pytest

from stepgraph.core import BACKGROUND, Scores, Vocabulary
from stepgraph.decoders import DECODERS, PathSearch, load_decoder
from stepgraph.decoders.controls import AnchorsOnly, ArgmaxHold, HalvedGaps
from stepgraph.graph import TaskGraph

WORDS = Vocabulary(("boil", "pour", "stir"))
GRAPH = TaskGraph.from_order(WORDS, [(0, 1, 2)])


def scored(rows, observed=None):
    values = np.array(rows, dtype=np.float32).reshape(len(rows), 3)
    seen = np.ones(len(rows), dtype=bool) if observed is None else np.array(observed, dtype=bool)
    return Scores("v", values, seen, WORDS)


def halved(keysteps, anchors):
    """Give each row the nearer anchor, the earlier of two that are equally near."""
    rows = [row for row, anchor in enumerate(anchors) if anchor]
    found = []
    for row in range(len(keysteps)):
        before = [one for one in rows if one <= row]
        after = [one for one in rows if one >= row]
        if not before or not after:
            found.append(keysteps[(after or before)[0 if after else -1]])
            continue
        length = after[0] - before[-1] + 1
        first = (row - before[-1]) * 2 < length
        found.append(keysteps[before[-1] if first else after[0]])
    return found


def test_a_gap_is_halved_between_its_anchors_whatever_the_graph_knows():
    one = scored([[0.9, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0.3, 0.1], [0, 0, 0.8]])

    assert HalvedGaps(0.5).decode(one, GRAPH).keysteps.tolist() == [0, 0, 0, 2, 2]
    assert PathSearch(0.5).decode(one, GRAPH).keysteps.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_halved_gaps_agree_with_a_loop(seed):
    rng = np.random.default_rng(seed)
    one = scored(rng.random((30, 3)), rng.random(30) < 0.8)
    anchors = one.observed & (one.values.max(axis=1) >= 0.9)
    best = one.values.argmax(axis=1)
    if not anchors.any():
        return

    found = HalvedGaps(0.9).decode(one, GRAPH)

    assert found.keysteps.tolist() == halved(best.tolist(), anchors.tolist())
    assert found.anchors.tolist() == anchors.tolist()


def test_anchors_only_leaves_all_other_rows_background():
    one = scored([[0.9, 0, 0], [0.1, 0, 0], [0, 0, 0.8]])

    found = AnchorsOnly(0.5).decode(one, GRAPH)

    assert found.keysteps.tolist() == [0, BACKGROUND, 2]
    assert found.anchors.tolist() == [True, False, True]


def test_argmax_lasts_through_silence_and_begins_with_the_first_sentence():
    rows = [[0, 0, 0], [0.2, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0.1, 0]]
    one = scored(rows, [False, True, False, False, True])

    assert ArgmaxHold().decode(one, GRAPH).keysteps.tolist() == [BACKGROUND, 0, 0, 0, 1]


def test_a_row_on_which_nothing_is_possible_stays_background():
    never = [-math.inf] * 3
    one = scored([[0.9, 0, 0], never, [0, 0, 0], [0, 0, 0.8]], [True, True, False, True])

    for decoder in (HalvedGaps(0.5), AnchorsOnly(0.5), ArgmaxHold()):
        assert decoder.decode(one, GRAPH).keysteps[1] == BACKGROUND
    assert ArgmaxHold().decode(one, GRAPH).keysteps.tolist() == [0, BACKGROUND, 0, 2]


@pytest.mark.parametrize("name", ["halved-gaps", "anchors-only", "argmax-hold"])
@pytest.mark.parametrize("rows", [0, 1, 4])
def test_controls_take_few_rows_and_rows_without_narration(name, rows):
    silent = scored(np.zeros((rows, 3)), [False] * rows)

    assert name in DECODERS
    assert load_decoder(name).decode(silent, GRAPH).keysteps.tolist() == [BACKGROUND] * rows
