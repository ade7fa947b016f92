"""Habits of a corpus: how common tasks are, adding up, and the way to disk and back."""

import json
import math
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import stepgraph as sg
from reference import make_graph
from stepgraph.errors import DataError
from stepgraph.graph.parameters import RecognizerParameters, SentenceClassifier, learn_prior
from stepgraph.graph.traces import first_by_hash

VOCABULARY = sg.Vocabulary(tuple("abcde"), {"tea": (0, 1, 2), "söup": (3, 4)})
TASKS = tuple(VOCABULARY.tasks)


def random_evidence(rng, videos, tasks=2):
    return {
        f"{n}": row.astype(np.float32) for n, row in enumerate(rng.normal(0, 9, (videos, tasks)))
    }


def random_parameters(rng, *, first=0, videos=5, width=4):
    """What could have been learned from some videos."""
    sizes = {task: len(members) for task, members in VOCABULARY.tasks.items()}
    evidence = {f"{first + int(n)}": one for n, one in random_evidence(rng, videos).items()}
    words = {
        task: SentenceClassifier(
            rng.normal(size=(size, width)).astype(np.float32), rng.normal(size=size)
        )
        for task, size in sizes.items()
    }
    timing = {task: rng.exponential(1, (size, 20)) for task, size in sizes.items()}
    videos = dict(zip(TASKS, rng.random(2).tolist(), strict=True))
    return RecognizerParameters(TASKS, evidence, videos, timing, words)


def test_the_prior_of_parameters_is_learned_from_their_evidence():
    parameters = random_parameters(np.random.default_rng(0), videos=30)

    expected = learn_prior(np.stack([*parameters.log_evidence.values()]).astype(float))
    assert parameters.log_prior.tolist() == expected.tolist()


def test_where_there_is_one_task_or_no_video_no_task_is_second_best():
    parameters = random_parameters(np.random.default_rng(0), videos=3)
    one = {video: evidence[:1] for video, evidence in parameters.log_evidence.items()}

    assert parameters.best_two.shape == (3, 2)
    assert replace(parameters, tasks=TASKS[:1], log_evidence=one).best_two.shape == (0, 2)
    assert replace(parameters, log_evidence={}).best_two.shape == (0, 2)


# --- The sample of videos


def test_a_sample_is_the_same_in_whatever_order_videos_came():
    rng = np.random.default_rng(0)
    evidence = random_evidence(rng, 50)
    for size in (0, 1, 10, 50, 99):
        expected = first_by_hash(evidence, size)
        for _ in range(5):
            turned = [*evidence.items()]
            rng.shuffle(turned)

            assert [*first_by_hash(dict(turned), size)] == [*expected]


def test_a_sample_is_that_of_the_smallest_hashes():
    evidence = random_evidence(np.random.default_rng(0), 30)

    found = first_by_hash(evidence, 7)

    by_hash = sorted(evidence, key=lambda video: sha256(video.encode()).hexdigest())
    assert set(found) == set(by_hash[:7])
    assert all(found[video] is evidence[video] for video in found)


def test_samples_of_parts_sampled_together_are_the_sample_of_the_whole():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        evidence = random_evidence(rng, 60)
        side = dict(zip(evidence, rng.integers(0, 2, 60), strict=True))
        parts = [{v: one for v, one in evidence.items() if side[v] == n} for n in (0, 1)]

        found = first_by_hash(first_by_hash(parts[0], 9) | first_by_hash(parts[1], 9), 9)

        assert [*found] == [*first_by_hash(evidence, 9)]


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_sample_of_nothing_is_nothing(size):
    assert first_by_hash({}, size) == {}


# --- Adding up


def test_merged_parameters_are_the_sum_of_both():
    rng = np.random.default_rng(0)
    one, other = random_parameters(rng), random_parameters(rng, first=5)

    found = one.merge(other)

    assert [*found.log_evidence] == [f"{n}" for n in range(10)]
    for task in TASKS:
        assert found.videos[task] == one.videos[task] + other.videos[task]
        assert found.timing[task].tolist() == (one.timing[task] + other.timing[task]).tolist()


def test_merged_words_weigh_as_much_as_they_have_videos_behind_them():
    rng = np.random.default_rng(0)
    one, other = random_parameters(rng), random_parameters(rng, first=5)

    found = one.merge(other).classifiers

    for task in TASKS:
        mine, theirs = one.videos[task], other.videos[task]
        for name in ("vectors", "bias"):
            first, second = (getattr(h.classifiers[task], name) for h in (one, other))
            expected = (mine * first + theirs * second) / (mine + theirs)
            assert getattr(found[task], name) == pytest.approx(expected, abs=1e-6)
        assert found[task].vectors.dtype == np.float32


def test_what_only_one_of_two_has_met_is_kept_as_it_is():
    rng = np.random.default_rng(0)
    whole = random_parameters(rng)
    tea, soup = (
        RecognizerParameters(
            TASKS,
            {},
            {task: whole.videos[task]},
            {task: whole.timing[task]},
            {task: whole.classifiers[task]},
        )
        for task in TASKS
    )

    for found in (tea.merge(soup), soup.merge(tea)):
        assert found.videos == whole.videos
        assert all(np.array_equal(found.timing[task], whole.timing[task]) for task in TASKS)
        assert all(found.classifiers[task] is whole.classifiers[task] for task in TASKS)


def test_merging_with_nothing_changes_nothing():
    whole, nothing = (
        random_parameters(np.random.default_rng(0)),
        RecognizerParameters(TASKS, {}, {}, {}, {}),
    )

    for found in (whole.merge(nothing), nothing.merge(whole)):
        assert_same(found, whole)


def test_graphs_of_which_one_has_no_parameters_have_none_together():
    parameters = random_parameters(np.random.default_rng(0))
    one = make_graph(np.eye(5, dtype=np.int64), VOCABULARY, mined_on=("a",), parameters=parameters)
    other = make_graph(np.eye(5, dtype=np.int64), VOCABULARY, mined_on=("b",))

    assert one.merge(other).parameters is None
    assert other.merge(one).parameters is None


# --- To disk and back


def assert_same(found, expected):
    """Equal bit for bit."""
    assert (found.tasks, dict(found.videos)) == (expected.tasks, dict(expected.videos))
    for name in ("log_evidence", "timing"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert [*ours] == [*theirs]
        for key, one in ours.items():
            assert (one.dtype, one.shape) == (theirs[key].dtype, theirs[key].shape)
            assert np.array_equal(one, theirs[key])
    assert [*found.classifiers] == [*expected.classifiers]
    for task, words in found.classifiers.items():
        for one, other in zip(words, expected.classifiers[task], strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def saved(parameters, path):
    graph = make_graph(np.eye(5, dtype=np.int64), VOCABULARY, parameters=parameters)
    sg.save(graph, path)
    return path


def test_parameters_are_loaded_as_they_were_saved(tmp_path):
    for seed in range(10):
        parameters = random_parameters(np.random.default_rng(seed))

        loaded = sg.load(saved(parameters, tmp_path / "graph.json")).parameters

        assert_same(loaded, parameters)


@pytest.mark.parametrize("videos", [0, 1])
def test_parameters_of_hardly_any_video_are_loaded_as_they_were_saved(videos, tmp_path):
    evidence = random_evidence(np.random.default_rng(0), videos)
    parameters = RecognizerParameters(TASKS, evidence, {}, {}, {})

    assert_same(sg.load(saved(parameters, tmp_path / "graph.json")).parameters, parameters)


def test_a_task_that_may_not_be_is_saved_as_such(tmp_path):
    parameters = RecognizerParameters(
        TASKS, {"v": np.array([-np.inf, 2.0], np.float32)}, {}, {}, {}
    )

    assert_same(sg.load(saved(parameters, tmp_path / "graph.json")).parameters, parameters)


def test_merged_parameters_are_loaded_as_they_were_saved(tmp_path):
    rng = np.random.default_rng(0)
    parameters = random_parameters(rng).merge(random_parameters(rng, first=5))

    assert_same(sg.load(saved(parameters, tmp_path / "graph.json")).parameters, parameters)


def test_a_graph_without_parameters_and_one_of_an_older_version_have_none(tmp_path):
    path = saved(None, tmp_path / "graph.json")
    assert sg.load(path).parameters is None

    content = json.loads(path.read_text("utf-8"))
    del content["parameters"]
    path.write_text(json.dumps(content), "utf-8")
    assert sg.load(path).parameters is None


# --- Damage


def nodes(value, path=()):
    """Every place in nested fields."""
    yield path, value
    entries = value.items() if isinstance(value, dict) else ()
    entries = enumerate(value) if isinstance(value, list) else entries
    for key, one in entries:
        yield from nodes(one, (*path, key))


def changed(content, path, change):
    """A copy of nested fields in which one place is changed, or taken away (...)."""
    copy = json.loads(json.dumps(content))
    *above, last = ("parameters", *path)
    place = copy
    for key in above:
        place = place[key]
    value = change(place[last])
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy


def assert_refused(content, path, why):
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError, match=r"graph\.json: must be a task graph as") as said:
        sg.load(path)
    assert "\n" not in str(said.value), why


@pytest.fixture
def whole(tmp_path):
    """A saved graph with habits: its path and its content."""
    path = saved(random_parameters(np.random.default_rng(0), videos=2), tmp_path / "graph.json")
    return path, json.loads(path.read_text("utf-8"))


def test_a_value_of_another_kind_anywhere_in_parameters_is_refused(whole):
    path, content = whole
    for place, value in nodes(content["parameters"]):
        for other in (None, True, 7, 0.5, "", [], {}):
            number = isinstance(value, float) and type(other) in (int, float)
            if type(other) is type(value) or number or (not place and other is None):
                continue
            assert_refused(changed(content, place, lambda _, o=other: o), path, (place, other))


def test_parameters_of_which_a_field_is_missing_are_refused(whole):
    path, content = whole
    for field in content["parameters"]:
        assert_refused(changed(content, (field,), lambda _: ...), path, field)
    for task in TASKS:
        for place in (
            ("timing", task),
            ("classifiers", task, "bias"),
            ("classifiers", task, "vectors"),
        ):
            assert_refused(changed(content, place, lambda _: ...), path, place)


def test_a_task_that_is_missing_from_parameters_is_refused(whole):
    path, content = whole
    for number in range(len(TASKS)):
        assert_refused(changed(content, ("tasks", number), lambda _: ...), path, number)
        assert_refused(changed(content, ("tasks", number), lambda _: "tee"), path, number)


def texts(content):
    return [place for place, value in nodes(content["parameters"]) if isinstance(value, str)][2:]


def test_text_that_is_not_base_64_is_refused(whole):
    path, content = whole
    damages = (lambda t: t[:-1], lambda t: "!" + t[1:], lambda t: t[:8] + "\n" + t[8:])
    for place in texts(content):
        for damage in damages:
            assert_refused(changed(content, place, damage), path, place)


def test_arrays_that_lack_a_byte_or_a_number_are_refused(whole):
    path, content = whole
    for place in texts(content):
        width = 8 if place[0] == "timing" or place[-1] == "bias" else 4
        for cut in (1, width):
            lacking = changed(
                content, place, lambda text, c=cut: b64encode(b64decode(text)[:-c]).decode()
            )
            assert_refused(lacking, path, (place, cut))


@pytest.mark.parametrize("number", [math.nan, -0.5, 1.5e12, math.inf, -math.inf])
def test_times_that_cannot_be_are_refused(number, whole):
    path, content = whole
    for task in TASKS:
        assert_refused(changed(content, ("timing", task), _with(number, "f8")), path, task)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_words_that_cannot_be_are_refused(number, whole):
    path, content = whole
    for task in TASKS:
        for name, kind in (("vectors", "f4"), ("bias", "f8")):
            place = ("classifiers", task, name)
            assert_refused(changed(content, place, _with(number, kind)), path, place)


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_evidence_that_is_no_number_is_refused(number, whole):
    path, content = whole
    assert_refused(changed(content, ("log_evidence", "1"), _with(number, "f4")), path, number)


@pytest.mark.parametrize("number", [0, 0.0, 1e12])
def test_any_number_of_videos_there_could_be_is_loaded(number, whole):
    path, content = whole
    content = changed(content, ("videos", "tea"), lambda _: number)
    path.write_text(json.dumps(changed(content, ("timing", "tea"), _with(number, "f8"))), "utf-8")

    found = sg.load(path).parameters

    assert found.videos["tea"] == found.timing["tea"][0, 1] == number


@pytest.mark.parametrize("number", [-1, -0.5, 1.5e12, 10**400, True])
def test_numbers_of_videos_that_cannot_be_are_refused(number, whole):
    path, content = whole
    assert_refused(changed(content, ("videos", "tea"), lambda _: number), path, number)


def _with(number, kind):
    """Put a number into a packed array."""

    def damaged(text):
        array = np.frombuffer(b64decode(text), kind).copy()
        array[1] = number
        return b64encode(array.tobytes()).decode()

    return damaged


def test_more_videos_than_a_number_can_say_are_refused(whole):
    path, content = whole
    for task in TASKS:
        many = json.dumps(changed(content, ("videos", task), lambda _: "many"))
        path.write_text(many.replace('"many"', "1e999"), "utf-8")
        with pytest.raises(DataError, match=r"graph\.json: must be"):
            sg.load(path)
