"""The picture of a task: what is drawn, in which order, and that it can be read."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from stepgraph.export.layout import (
    MOST,
    assign_ranks,
    box_size,
    drawn_arrows,
    drawn_steps,
    lay_out,
    text_width,
    wrap,
)
from stepgraph.graph.maps import END, START, Succession
from task_maps import chain, make_map, random_map


def ends(arrows):
    return {arrow[:2] for arrow in arrows}


def test_a_chain_is_drawn_from_start_at_the_top_to_end_at_the_bottom():
    layout = lay_out(make_map(chain(5)))

    assert [node.keystep for node in sorted(layout.nodes, key=lambda node: node.y)] == [
        *(START, 0, 1, 2, 3, 4, END)
    ]
    assert len({node.x for node in layout.nodes}) == 1
    assert not any(edge.back for edge in layout.edges)


@pytest.mark.parametrize("size", [1, 2, 12, 24, 60])
def test_boxes_do_not_overlap_and_arrows_end_at_them(size):
    layout = lay_out(random_map(size, names=("only", "other") if size == 1 else None))

    boxes = {node.keystep: node for node in layout.nodes}
    for one, two in combinations(layout.nodes, 2):
        apart_x = abs(one.x - two.x) >= (one.width + two.width) / 2
        apart_y = abs(one.y - two.y) >= (one.height + two.height) / 2
        assert apart_x or apart_y
    for node in layout.nodes:
        assert node.x - node.width / 2 >= 0
        assert node.x + node.width / 2 <= layout.width
        assert node.y + node.height / 2 <= layout.height
    for edge in layout.edges:
        assert on_border(edge.points[0], boxes[edge.arrow.first])
        assert on_border(edge.points[-1], boxes[edge.arrow.second])
        assert edge.back == (edge.points[0][1] > edge.points[-1][1])


def on_border(point, node):
    inside = abs(point[0] - node.x) <= node.width / 2
    return inside and abs(abs(point[1] - node.y) - node.height / 2) < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_no_keystep_stands_above_one_that_is_done_before_it(seed):
    found = random_map(30, seed)

    height = {node.keystep: node.y for node in lay_out(found).nodes}

    heights = [height[step.keystep] for step in found.steps]
    # Boxes of a layer have the same middle.
    assert heights == sorted(heights)


@pytest.mark.parametrize("seed", range(5))
def test_every_keystep_is_reached_from_start_and_leads_to_end(seed):
    found = random_map(40, seed, videos=3)
    place = {START: -1, END: 99} | {step.keystep: at for at, step in enumerate(found.steps)}

    onward = {pair for pair in ends(drawn_arrows(found)) if place[pair[0]] < place[pair[1]]}

    stops = {step.keystep for step in found.steps}
    assert {second for _, second in onward} == stops | {END}
    assert {first for first, _ in onward} == stops | {START}


def test_of_each_keystep_those_are_drawn_that_hold_most_of_what_comes_next():
    arrows = [*chain(5, 100), (0, 2, 90), (0, 3, 9), (0, 4, 1)]

    drawn = ends(drawn_arrows(make_map(arrows)))

    assert {(0, 1), (0, 2)} <= drawn  # 95 %
    assert not {(0, 3), (0, 4)} & drawn


def test_no_more_than_three_leave_a_keystep_and_none_of_small_share():
    even = [(0, 1, 25), (0, 2, 25), (0, 3, 25), (0, 4, 25), (START, 0, 1), (4, END, 1)]
    mixed = [(0, 1, 50), (0, 2, 11), (0, 3, 11), (0, 4, 28), *even[4:]]

    assert sum(first == 0 for first, _ in ends(drawn_arrows(make_map(even)))) == 3
    nearly = [(0, n, 24) for n in (1, 2, 3)] + [(0, 4, 22), (0, END, 6), *even[4:]]
    assert sum(first == 0 for first, _ in ends(drawn_arrows(make_map(nearly)))) == 3
    drawn = ends(drawn_arrows(make_map([*mixed, (1, 2, 9), (2, 3, 9), (3, 4, 9)])))
    assert {second for first, second in drawn if first == 0} == {1, 4}


def test_a_fifth_is_no_small_share():
    arrows = [(0, 1, 50), (0, 2, 20), (0, 3, 20), (0, 4, 10), *chain(5)[2:], (START, 0, 9)]

    assert {(0, 1), (0, 2), (0, 3)} <= ends(drawn_arrows(make_map(arrows)))


def test_of_keysteps_in_as_many_videos_those_with_most_arrows_are_drawn():
    rare = [(3, 4, 1), (4, 5, 1)]
    often = [one for one in chain(MOST + 1) if one[:2] not in {(3, 4), (4, 5)}]

    kept = drawn_steps(make_map([*often, *rare], names=[f"{n}" for n in range(MOST + 1)]))

    assert {step.keystep for step in kept} == {*range(MOST + 1)} - {4}


def test_what_leads_to_a_keystep_that_is_reached_anyway_is_not_drawn_beside_it():
    mostly, evenly = [(0, 1, 76), (0, 4, 24)], [(2, 4, 23), (2, 3, 22), (2, END, 20)]
    back, last = [(2, 0, 18), (2, 1, 17)], [(3, END, 9), (4, END, 9)]

    arrows = [(START, 0, 9), *mostly, (1, 2, 9), *evenly, *back, *last]
    drawn = ends(drawn_arrows(make_map(arrows)))

    assert (2, 4) in drawn
    assert (0, 4) not in drawn  # although it holds the greater share


def test_an_arrow_that_leads_back_is_drawn_only_where_it_is_surely_common():
    common = [*chain(5, 60), (3, 1, 40)]
    rare = [*chain(5, 75), (3, 1, 25)]  # surely no more than 15 %

    assert (3, 1) in ends(drawn_arrows(make_map(common)))
    assert (3, 1) not in ends(drawn_arrows(make_map(rare)))
    assert [edge.arrow[:2] for edge in lay_out(make_map(common)).edges if edge.back] == [(3, 1)]
    found = make_map(common)
    sure = [one._replace(low=0.2) if one[:2] == (3, 1) else one for one in found.successions]
    assert (3, 1) in ends(drawn_arrows(replace(found, successions=tuple(sure))))


def test_what_was_never_seen_is_joined_by_arrows_that_were_not_counted():
    drawn = drawn_arrows(make_map([(0, 1, 5)]))

    assert {arrow[:3] for arrow in drawn} == {
        *((START, 0, 0), (0, 1, 5), (1, 2, 0), (2, 3, 0), (3, 4, 0), (4, END, 0))
    }
    assert {arrow[2:] for arrow in drawn if not arrow.seen} == {(0, 0.0, 0.0, 0.0)}


def test_a_keystep_that_is_only_come_to_from_later_ones_is_joined_to_the_one_before_it():
    arrows = [(START, 0, 9), (0, 2, 9), (2, 1, 1), (2, 3, 8), (1, 3, 1), (3, 4, 9), (4, END, 9)]

    assert Succession(0, 1, 0, 0.0, 0.0, 0.0) in drawn_arrows(make_map(arrows))


def test_what_forks_and_meets_again_is_drawn_as_a_diamond():
    arrows = [(START, 0, 20), (0, 1, 10), (0, 2, 10), (1, 3, 10), (2, 3, 10), (3, END, 20)]

    layout = lay_out(make_map(arrows, names=("a", "b", "c", "d")))

    place = {node.keystep: node for node in layout.nodes}
    assert place[1].y == place[2].y
    assert place[0].x == pytest.approx((place[1].x + place[2].x) / 2)
    assert place[0].x == pytest.approx(place[3].x)


def test_what_is_usual_runs_straight_down_past_what_is_not():
    arrows = [*chain(3, 5), (0, 2, 95), (START, 0, 95), (2, END, 95)]

    place = {node.keystep: node.x for node in lay_out(make_map(arrows, names="abc")).nodes}

    assert abs(place[0] - place[2]) < 5
    assert abs(place[1] - place[0]) > 30


def test_at_most_two_stand_side_by_side_and_only_neighbours_of_the_order():
    fork = [(0, 1, 5), (0, 2, 5), (0, 3, 5), (1, 4, 5), (2, 4, 5), (3, 4, 5)]
    fan = drawn_arrows(make_map([(START, 0, 1), *fork, (4, END, 1)]))

    layers = assign_ranks([START, 0, 1, 2, 3, 4, END], fan)

    assert layers == sorted(layers)
    assert [layers.count(layer) for layer in range(max(layers) + 1)] == [1, 1, 2, 1, 1, 1]


def test_what_no_arrow_parts_stands_in_pairs():
    assert assign_ranks([START, 0, 1, 2, END], []) == [0, 0, 1, 1, 2]


def test_layout_is_deterministic():
    assert lay_out(random_map(40)) == lay_out(random_map(40))


def test_only_the_keysteps_of_most_videos_are_drawn_of_a_task_of_hundreds():
    found = random_map(200)

    kept = drawn_steps(found)

    fewest = min(step.videos for step in kept)
    assert len(kept) == MOST == len(lay_out(found).nodes) - 2
    assert all(step.videos <= fewest for step in found.steps if step not in kept)
    assert [step.keystep for step in kept] == sorted(step.keystep for step in kept)


@pytest.mark.parametrize(
    "name",
    [
        *("whisk the eggs with the milk and the sugar until it is smooth", "x" * 200, "", " "),
        *("牛乳をボウルに注いでダマがなくなるまでよくかき混ぜる", "שפכו את החלב לקערה ובחשו היטב"),
    ],
)
def test_a_name_is_wrapped_and_nothing_of_it_is_lost(name):
    lines = wrap(name)

    assert "".join("".join(lines).split()) == "".join(name.split())
    assert all(text_width(line) <= 22 for line in lines)


def test_letters_wider_than_a_line_stand_alone_and_no_line_is_empty():
    assert wrap("牛乳 茶", 1.0) == ("牛", "乳", "茶")


def test_a_name_without_end_is_cut_after_sixteen_lines():
    lines = wrap("stir " * 400)

    assert len(lines) == 16
    assert lines[-1].endswith("…")
    assert len(wrap("stir it well " * 28)) <= 16


def test_wide_letters_take_more_room():
    assert text_width("茶") == 2 * text_width("茶"[:0] + "a") - 0.1
    assert text_width("WWW") > text_width("AAA") > text_width("aaa") > text_width("iii")
    assert text_width("e\u0301") == text_width("e")


def test_a_box_holds_its_name_and_the_note_beneath():
    plain, noted = box_size(("pour",)), box_size(("pour",), "188 of 241 videos")

    assert noted[0] > plain[0]
    assert noted[1] == pytest.approx(plain[1] + 0.9 * 16)
    assert box_size(("pour", "it"))[1] == plain[1] + 16
