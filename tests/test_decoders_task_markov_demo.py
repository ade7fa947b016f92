"""The task-markov decoder on the embedded corpus."""

import numpy as np
import pytest

from stepgraph.core import BACKGROUND, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax, PathSearch, TaskMarkov
from stepgraph.decoders.learning import learn_graph
from stepgraph.encoders import load_encoder
from stepgraph.graph import mine_graph
from stepgraph.pipeline import run_evaluation
from stepgraph.scoring import score


@pytest.mark.slow
class TestDemo:
    """The embedded corpus, scored by the built-in model."""

    @pytest.fixture
    def dataset(self):
        return open_source("demo")

    def reports(self, dataset, options):
        rivals = {"argmax": Argmax(), "path-search": PathSearch(), "task-markov": TaskMarkov()}
        found = run_evaluation(dataset, rivals, encoder=load_encoder(options))
        return [one.report for one in found.measured]

    def test_it_beats_argmax_and_path_search_with_its_own_scores_and_with_theirs(self, dataset):
        own = self.reports(dataset, TaskMarkov.encoder)
        plain = self.reports(dataset, "text:minilm")

        for *rivals, mine in (own, plain, [*plain[:2], own[2]]):
            assert all(mine.accuracy > rival.accuracy + 0.05 for rival in rivals)
            assert all(mine.iou > rival.iou + 0.03 for rival in rivals)

    def test_it_tells_the_task_of_almost_every_video(self, dataset):
        report = self.reports(dataset, TaskMarkov.encoder)[2]

        assert report.videos == 36
        assert report.task_accuracy * 36 >= 33 - 1e-9

    def test_a_graph_of_other_videos_is_nearly_as_good(self, dataset):
        encoder = load_encoder(TaskMarkov.encoder)
        scores = list(score(dataset.videos, dataset.vocabulary, encoder))
        everything = mine_graph(scores, dataset.vocabulary)
        hits = {"transductive": 0, "inductive": 0}
        for part in (0, 1):
            rest = [one for at, one in enumerate(scores) if at % 2 != part]
            graphs = (everything, mine_graph(rest, dataset.vocabulary))
            for one in scores[part::2]:
                true = dataset.truth[one.video].keysteps
                for name, graph in zip(hits, graphs, strict=True):
                    found = TaskMarkov().decode(one, graph).keysteps
                    hits[name] += int(((found == true) & (true != BACKGROUND)).sum())
        rows = sum(int((one.keysteps != BACKGROUND).sum()) for one in dataset.truth.values())

        assert hits["inductive"] / rows > hits["transductive"] / rows - 0.02

    # Seen in 12 draws each: 33 to 36 of 36 with 5 keysteps, 31 to 34 with 3; 36 with whole lists.
    @pytest.mark.parametrize(("size", "least"), [(5, 32), (3, 30)])
    def test_it_tells_the_task_by_short_lists_as_well(self, dataset, size, least):
        encoder = load_encoder(TaskMarkov.encoder)
        tasks = {video.id: video.task for video in dataset.videos}
        for seed in range(6):
            vocabulary = cut_lists(dataset.vocabulary, [size] * 6, seed)
            scores = list(score(dataset.videos, vocabulary, encoder))
            graph = learn_graph(scores, vocabulary)

            found = {one.video: best_task(TaskMarkov().decode(one, graph)) for one in scores}

            right = sum(found[video] == task for video, task in tasks.items())
            assert len(found) == 36
            assert right >= least, seed

    # Seen: 15 to 18 of the 36 videos are said to be of a short list; 18 are.
    @pytest.mark.parametrize("turn", [0, 1])
    def test_a_list_is_not_preferred_because_it_is_longer_or_shorter(self, dataset, turn):
        """Half of the lists have 3 keysteps, the others all of theirs, and the other way round."""
        encoder = load_encoder(TaskMarkov.encoder)
        sizes = [3 if number % 2 == turn else 99 for number in range(6)]
        for seed in range(6):
            vocabulary = cut_lists(dataset.vocabulary, sizes, seed)
            short = {task for task, size in zip(vocabulary.tasks, sizes, strict=True) if size == 3}
            scores = list(score(dataset.videos, vocabulary, encoder))
            graph = learn_graph(scores, vocabulary)

            found = [best_task(TaskMarkov().decode(one, graph)) in short for one in scores]

            true = sum(video.task in short for video in dataset.videos)
            assert abs(sum(found) - true) <= 4, seed


def best_task(labels):
    return max(labels.tasks, key=labels.tasks.get)


def cut_lists(vocabulary, sizes, seed):
    """The vocabulary with so many keysteps of each task, drawn at random, in their order."""
    rng, lists = np.random.default_rng(seed), {}
    for (task, members), size in zip(vocabulary.tasks.items(), sizes, strict=True):
        kept = sorted(rng.permutation(len(members))[:size].tolist())
        lists[task] = [vocabulary.keysteps[members[place]] for place in kept]
    names = tuple(dict.fromkeys(name for one in lists.values() for name in one))
    return Vocabulary(names, {task: tuple(map(names.index, one)) for task, one in lists.items()})
