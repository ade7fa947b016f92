"""What recognised videos tell about order: counts against loops, sums, and the edges."""

import json
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.stats import beta

import stepgraph as sg
from reference import keysteps, make_graph
from stepgraph.cli import main
from stepgraph.core import BACKGROUND, Labels, Vocabulary
from stepgraph.errors import DataError
from stepgraph.export.terminal import describe_graph, describe_next, describe_relation
from stepgraph.graph.layers import Layers

SIZE = 5
WORDS = keysteps(SIZE)


def random_labels(rng, video="v"):
    rows = int(rng.integers(0, 30))
    return Labels(video, rng.integers(BACKGROUND, SIZE, rows), WORDS)


def counted(videos):
    return Layers.of_videos("task", videos)


def slow_counts(videos):
    """Every count with loops over rows."""
    found = {name: np.zeros(SIZE, int) for name in ("shown", "rows", "first", "last")}
    before, following = np.zeros((SIZE, SIZE), int), np.zeros((SIZE, SIZE), int)
    for labels in videos:
        rows = labels.keysteps.tolist()
        done = [keystep for keystep in rows if keystep >= 0]
        sequence = [k for place, k in enumerate(done) if place == 0 or done[place - 1] != k]
        for keystep in done:
            found["rows"][keystep] += 1
        for keystep in set(done):
            found["shown"][keystep] += 1
        for keystep in sequence[:1]:
            found["first"][keystep] += 1
        for keystep in sequence[-1:]:
            found["last"][keystep] += 1
        for one, other in pairwise(sequence):
            following[one, other] += 1
        middle = {k: np.median([t for t, one in enumerate(rows) if one == k]) for k in done}
        for one, other in permutations(middle, 2):
            before[one, other] += middle[one] < middle[other]
    return found, before, following


def test_counts_are_those_of_loops_over_rows():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        videos = [random_labels(rng, f"{n}") for n in range(int(rng.integers(1, 6)))]

        found = counted(videos)

        arrays, before, following = slow_counts(videos)
        for name, expected in arrays.items():
            assert getattr(found, name).tolist() == expected.tolist()
        assert found.before.toarray().tolist() == before.tolist()
        assert found.following.toarray().tolist() == following.tolist()
        assert dict(found.videos) == {"task": len(videos)}


def test_sums_do_not_depend_on_how_videos_are_grouped():
    videos = [random_labels(np.random.default_rng(seed), f"{seed}") for seed in range(9)]

    one, other = counted(videos), counted(videos[5:]) + counted(videos[:5])

    assert one.before.toarray().tolist() == other.before.toarray().tolist()
    assert one.following.toarray().tolist() == other.following.toarray().tolist()
    assert one.shown.tolist() == other.shown.tolist()


def test_a_share_has_the_interval_of_its_beta_distribution():
    videos = [Labels(f"{n}", np.array([0, 1]), WORDS) for n in range(7)]
    videos += [Labels("back", np.array([1, 0]), WORDS)]

    found = counted(videos).precedence(0, 1)

    assert (found.before, found.after, found.share) == (7, 1, 0.8)
    assert (found.low, found.high) == pytest.approx(beta.interval(0.9, 8, 2))


def test_keysteps_that_never_met_are_as_likely_one_way_as_the_other():
    found = counted([Labels("v", np.array([0]), WORDS)]).precedence(1, 2)

    assert found == pytest.approx((0, 0, 0.5, 0.05, 0.95))


def test_order_is_that_of_the_videos_and_of_the_list_where_they_are_silent():
    layers = counted([Labels(f"{n}", np.array([3, 1, 4]), WORDS) for n in range(4)])

    assert layers.order([4, 1, 3]) == [3, 1, 4]
    assert layers.order([2, 0]) == [2, 0]


def test_the_four_most_frequent_are_enough_where_nothing_else_is_said():
    vocabulary = Vocabulary(tuple("abcdefg"))
    videos = [Labels(f"{n}", np.array([0, n]), vocabulary) for n in range(1, 7)]

    assert len(counted(videos).next_after(0)) == 4


def test_next_are_the_most_frequent_first_and_only_those_asked_for():
    sequences = [[0, 1], [0, 2], [0, 2], [0, 3]]
    layers = counted([Labels(f"{n}", np.array(one), WORDS) for n, one in enumerate(sequences)])

    assert layers.next_after(0) == [(2, 2), (1, 1), (3, 1)]
    assert layers.next_after(0, limit=1) == [(2, 2)]
    assert layers.next_after(0, among=(1, 3)) == [(1, 1), (3, 1)]
    assert layers.next_after(4) == []


@pytest.mark.parametrize("rows", [[], [BACKGROUND] * 3])
def test_a_video_in_which_nothing_is_done_counts_as_a_video_only(rows):
    found = Layers.of_videos("task", [Labels("v", np.array(rows, np.int64), WORDS)])

    assert dict(found.videos) == {"task": 1}
    assert not found.shown.any()
    assert not found.before.nnz
    assert not found.following.nnz


def test_a_written_order_counts_as_some_videos_and_many_videos_overrule_it():
    tea = Vocabulary(WORDS.keysteps, {"tea": (0, 1, 2)})
    against = Labels("v", np.array([1, 0]), tea)

    few = Layers.of_videos("tea", [against], imagined=10.0)
    many = sum([few] * 29, few)

    assert (few.precedence(0, 1).before, few.precedence(0, 1).after) == (0, 1)
    assert few.precedence(0, 1).share > 0.8 > 0.5 > many.precedence(0, 1).share
    assert (few.order([0, 1]), many.order([0, 1])) == ([0, 1], [1, 0])
    assert (few.next_after(0), few.next_after(1)) == ([(1, 0)], [(2, 0), (0, 1)])
    assert many.next_after(1) == [(0, 30), (2, 0)]


def test_an_order_that_was_not_believed_counts_nothing():
    tea = Vocabulary(WORDS.keysteps, {"tea": (0, 1, 2)})
    layers = Layers.of_videos("tea", [Labels("v", np.array([1, 0]), tea)])

    assert layers.precedence(1, 2).share == 0.5
    assert layers.next_after(1) == [(0, 1)]


def graph_with_layers():
    vocabulary = Vocabulary(WORDS.keysteps, {"tea": (0, 1, 2)})
    videos = [Labels(f"{n}", np.array([2, 2, 0]), vocabulary) for n in range(3)]
    graph = make_graph(np.zeros((SIZE, SIZE), np.int64), vocabulary)
    return sg.TaskGraph(vocabulary, graph.counts, layers=Layers.of_videos("tea", videos))


def test_layers_are_saved_and_loaded(tmp_path):
    graph = graph_with_layers()

    sg.save(graph, tmp_path / "graph.json")
    found = sg.load(tmp_path / "graph.json").layers

    assert dict(found.videos) == {"tea": 3}
    assert found.rows.tolist() == graph.layers.rows.tolist()
    assert found.before.toarray().tolist() == graph.layers.before.toarray().tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shown", [1, 2]),
        ("rows", [-1] * 5),
        ("before", [[9, 0, 1]]),
        ("videos", {"tea": "x"}),
        ("imagined", -1),
    ],
)
def test_damaged_layers_are_refused(name, value, tmp_path):
    sg.save(graph_with_layers(), tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    content["layers"][name] = value
    (tmp_path / "graph.json").write_text(json.dumps(content), "utf-8")

    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as"):
        sg.load(tmp_path / "graph.json")


def test_the_order_of_a_task_is_shown_beside_how_many_videos_told_it():
    text = describe_graph(graph_with_layers(), top=10, as_json=False)
    content = json.loads(describe_graph(graph_with_layers(), top=10, as_json=True))

    assert "tea, as 3 videos do it (recognised, not true):" in text
    assert text.index("keystep 2") < text.index("keystep 0")
    [order] = content["orders"]
    assert [one["keystep"] for one in order["keysteps"]][:1] == ["keystep 2"]
    assert order["keysteps"][0] == {
        "keystep": "keystep 2",
        "videos": 3,
        "rows": 2.0,
        "next": [{"keystep": "keystep 0", "count": 3}],
    }


def test_relation_and_next_say_what_recognised_videos_do():
    graph = graph_with_layers()

    relation = describe_relation(graph, 2, 0, as_json=False)
    following = describe_next(graph, 2, top=4, as_json=True)

    assert "In 3 of 3 recognised videos that show both, 'keystep 2' is done before" in relation
    assert "80 %" in relation
    assert json.loads(following)["recognised"] == [{"keystep": "keystep 0", "count": 3}]


def test_a_graph_is_checked_against_the_truth_of_its_source(tmp_path, capsys):
    assert main(["mine", "demo", "-o", str(tmp_path / "graph.json")]) == 0
    capsys.readouterr()

    assert main(["graph", "check", str(tmp_path / "graph.json"), "demo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert [one["videos"] for one in found["tasks"]] == [6] * 6
    assert found["mean"]["next_share"] > 0.4
    assert found["mean"]["right_directions"] is None  # no pair is in ten videos


def test_a_graph_without_recognised_videos_cannot_be_checked(tmp_path, capsys):
    graph = make_graph(np.zeros((SIZE, SIZE), np.int64))
    sg.save(graph, tmp_path / "graph.json")

    assert main(["graph", "check", str(tmp_path / "graph.json"), "demo"]) == 1
    assert "must hold recognised videos to be checked, got none" in capsys.readouterr().err


def test_a_corpus_of_spoken_videos_tells_its_order():
    """The demo's pancakes, recognised: the batter is made before it is fried."""
    graph = sg.mine("demo")

    place = {
        k: n for n, k in enumerate(graph.layers.order(graph.vocabulary.tasks["Make pancakes"]))
    }
    names = (
        "sift the flour",
        "crack the eggs",
        "ladle the batter into the pan",
        "flip the pancake",
    )
    order = [place[graph.vocabulary.index(name)] for name in names]

    assert order == sorted(order)


def test_what_was_recognised_is_said_where_no_neighbouring_rows_were_counted():
    text = describe_next(graph_with_layers(), 2, top=4, as_json=False)

    assert text.splitlines()[0] == "After 'keystep 2', in recognised videos:"
    assert text.splitlines()[-1] == "By neighbouring rows. None was seen."
