"""Frozen features, probed by small heads."""

import numpy as np
import pytest

from stepgraph.core import Dataset, Features, Labels, Segment, Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.experiments.downstream import divide, make_downstream_table
from stepgraph.experiments.probing import (
    Classes,
    Probed,
    ProbeOptions,
    examples,
    halves,
    probe,
    rows_of,
)

pytestmark = pytest.mark.usefixtures("one_thread")

TASKS = {"tea": (0, 1, 2), "coffee": (0, 3, 2)}
KITCHEN = Vocabulary(("boil", "steep", "pour", "grind"), TASKS)
ORDERS = {"tea": (0, 1, 2), "coffee": (0, 3, 2)}
QUICK = ProbeOptions(seeds=2, epochs=30)


def made(count, seed=0, *, signal=4.0):
    """Videos of two tasks whose features show keystep and task, with noise."""
    rng = np.random.default_rng(seed)
    videos, truth, features = [], {}, {}
    for number in range(count):
        task = ("tea", "coffee")[number % 2]
        name = f"{seed}-{number}"
        segments = [Segment(5.0 * at + 1, 5.0 * at + 4, k) for at, k in enumerate(ORDERS[task])]
        video = Video(name, 15.0, task=task)
        truth[name] = Labels.from_segments(name, segments, KITCHEN, duration=15.0)
        vectors = rng.normal(size=(15, 8)).astype(np.float32)
        for row, keystep in enumerate(truth[name].keysteps):
            if keystep >= 0:
                vectors[row, keystep] += signal
        vectors[:, 4 + number % 2] += signal / 2
        rows = np.arange(15.0)
        features[name] = Features(name, 15.0, vectors, np.stack([rows, rows + 1], 1))
        videos.append(video)
    return Dataset("kitchen", tuple(videos), KITCHEN, truth), features


@pytest.fixture(scope="module")
def parts():
    train, seen = made(24, 1)
    test, unseen = made(16, 2)
    return train, test, seen | unseen


def test_a_keystep_of_two_tasks_is_two_classes():
    classes = Classes(KITCHEN)

    assert classes.count("keystep") == 6
    assert classes.count("task") == 2
    assert classes.keystep_of("tea", 0) != classes.keystep_of("coffee", 0)
    assert classes.keystep_of("unknown task", 3) == classes.keystep_of("coffee", 3)


def test_a_vocabulary_without_tasks_has_its_keysteps_as_classes():
    classes = Classes(Vocabulary(("a", "b")))

    assert [classes.keystep_of(None, k) for k in (0, 1)] == [0, 1]
    assert classes.count("task") == 0


@pytest.mark.data
@pytest.mark.parametrize(
    ("source", "keysteps", "tasks"), [("crosstask", 133, 18), ("coin", 775, 180)]
)
def test_published_data_sets_have_as_many_classes_as_the_paper_says(
    real_data, source, keysteps, tasks
):
    from stepgraph import open_source

    classes = Classes(open_source(f"{source}:{real_data / source}").vocabulary)

    # COIN lists 778, but three names stand twice in one task under two numbers.
    assert (classes.count("keystep"), classes.count("task")) == (keysteps, tasks)


def test_examples_are_what_the_paper_says():
    dataset, features = made(1)
    classes = Classes(KITCHEN)
    vectors = features["0-0"].vectors

    regions = list(examples("keystep", dataset, features, classes))
    before = list(examples("forecast", dataset, features, classes))
    [whole] = examples("task", dataset, features, classes)

    assert [one.label for one in regions] == [classes.keystep_of("tea", k) for k in (0, 1, 2)]
    assert np.array_equal(regions[1].rows, vectors[6:9])
    assert [one.label for one in before] == [one.label for one in regions]
    assert [len(one.rows) for one in before] == [1, 6, 11]
    assert np.array_equal(before[1].rows, vectors[:6])
    assert np.array_equal(whole.rows, vectors)
    assert whole.label == classes.tasks["tea"]


def test_nothing_can_be_forecast_from_nothing():
    dataset, features = made(1)
    labels = np.array([0, 0, 1, 1])
    truth = {"0-0": Labels("0-0", labels, KITCHEN)}
    dataset = Dataset("k", dataset.videos, KITCHEN, truth)

    [only] = examples("forecast", dataset, features, Classes(KITCHEN))

    assert len(only.rows) == 2


def test_rows_without_features_are_no_part_of_an_example():
    features = Features("v", 4.0, np.eye(2, dtype=np.float32), np.array([[0.0, 1.0], [2.0, 3.0]]))

    rows, seen = rows_of(features, 1.0)

    assert seen.tolist() == [True, False, True, False]
    assert rows[2].tolist() == [0, 1]


def test_videos_without_features_or_truth_are_left_out():
    dataset, features = made(4)
    features.pop("0-1")
    truth = {video: labels for video, labels in dataset.truth.items() if video != "0-2"}
    dataset = Dataset("k", dataset.videos, KITCHEN, truth)

    assert len(list(examples("task", dataset, features, Classes(KITCHEN)))) == 2


@pytest.mark.parametrize(("head", "epochs"), [("mlp", 30), ("transformer", 10)])
def test_heads_learn_what_the_features_show(parts, head, epochs):
    train, test, features = parts

    options = ProbeOptions(seeds=1, epochs=epochs, heads=(head,))
    found = {one.probe: one for one in probe(train, test, features, options)}

    assert found["keystep"].accuracy > 0.8 > found["keystep"].chance
    assert found["task"].accuracy > 0.9
    assert found["forecast"].accuracy > 0.8
    assert found["keystep"].trained_on == 72


def test_features_that_show_nothing_are_worth_nothing():
    (train, seen), (test, unseen) = made(24, 1, signal=0.0), made(40, 2, signal=0.0)

    [found] = probe(
        train,
        test,
        seen | unseen,
        ProbeOptions(seeds=1, epochs=10, heads=("mlp",), probes=("task",)),
    )

    assert 0.2 < found.accuracy < 0.8


def test_a_seed_decides_all_that_is_random(parts):
    train, test, features = parts
    options = ProbeOptions(seeds=1, epochs=3)

    first, second = (list(probe(train, test, features, options)) for _ in range(2))

    assert first == second


def test_standard_error_over_seeds():
    probed = Probed("mlp", "task", (0.5, 0.7), 0.5, 2, 2, 2)

    assert probed.accuracy == pytest.approx(0.6)
    assert probed.error == pytest.approx(0.1)


@pytest.mark.parametrize(
    "options", [{"heads": ("svm",)}, {"probes": ()}, {"seeds": 0}, {"length": 0}]
)
def test_bad_options_are_refused(options):
    with pytest.raises(ConfigError, match=r"must be"):
        ProbeOptions(**options)


def test_parts_of_different_vocabularies_are_refused(parts):
    train, _, features = parts
    other = Dataset("other", (), Vocabulary(("a", "b")))

    with pytest.raises(DataError, match="must share one vocabulary"):
        list(probe(train, other, features, QUICK))


def test_a_part_without_examples_is_said(parts):
    train, _, features = parts

    with pytest.raises(
        DataError, match=r"kitchen: must hold examples to probe 'keystep', got none"
    ):
        list(probe(train, Dataset("kitchen", (), KITCHEN), features, QUICK))


def test_halves_divide_each_task_and_no_video_twice():
    dataset, _ = made(20)

    train, test = halves(dataset, share=0.7, seed=1)

    ids = [{video.id for video in part.videos} for part in (train, test)]
    assert [len(one) for one in ids] == [14, 6]
    assert not ids[0] & ids[1]
    assert {video.task for video in test.videos} == {"tea", "coffee"}


def of_tasks(*sizes):
    """A data set with so many videos of each task."""
    tasks = [f"task {number}" for number, size in enumerate(sizes) for _ in range(size)]
    videos = (Video(f"v{number}", 9.0, task=task) for number, task in enumerate(tasks))
    return Dataset("many", tuple(videos), KITCHEN)


def test_halves_leave_no_task_out_that_can_be_on_both_sides():
    for seed in range(20):
        sizes = np.random.default_rng(seed).integers(2, 9, 12).tolist()
        for share in (0.05, 0.5, 0.7, 0.95):
            train, test = halves(of_tasks(*sizes), share=share, seed=seed)

            assert {video.task for video in train.videos} == {video.task for video in test.videos}


def test_halves_keep_the_share_over_all_tasks():
    for seed in range(20):
        sizes = np.random.default_rng(seed).integers(5, 9, 12).tolist()
        for share in (0.3, 0.5, 0.7):
            train, _ = halves(of_tasks(*sizes), share=share, seed=seed)

            assert abs(len(train.videos) - share * sum(sizes)) <= 1


def test_halves_divide_tasks_of_a_single_video_together():
    train, test = halves(of_tasks(1, 1, 1, 1), share=0.7)

    assert (len(train.videos), len(test.videos)) == (3, 1)


def test_a_single_video_cannot_be_divided():
    with pytest.raises(DataError, match=r"^many: must hold at least 2 videos .*, got 1"):
        halves(of_tasks(1))


class Prepared:
    """Gives features that were made before."""

    options = EncoderOptions("colour:motion")

    def __init__(self, features):
        self.features = features

    def encode_videos(self, videos):
        return (self.features[video.id] for video in videos)


def test_the_table_has_the_papers_rows_and_ones_own(parts):
    train, test, features = parts
    options = ProbeOptions(seeds=2, epochs=2)
    backbone = Prepared(features)

    table = make_downstream_table(
        [divide("crosstask", train, test)], {"Ours": backbone, "mine": backbone}, options
    )

    shown = table.to_text()
    assert table.cell("mine", "task", section="CrossTask, MLP").value > 50
    assert table.cell("TSN", "task", section="CrossTask, MLP").value is None
    assert "59.5 ± 0.1" in shown
    assert "CrossTask, Transformer" in shown
    assert "trained on 72 examples, measured on 48, 6 classes" in shown


def test_a_video_on_both_sides_is_a_leak():
    dataset, _ = made(2)

    with pytest.raises(DataError, match=r"must have no video in common, got 2, such as '0-0'"):
        divide("kitchen", dataset, dataset)
