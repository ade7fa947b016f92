"""The task-markov decoder on the embedded corpus."""

import pytest

from stepgraph.core import BACKGROUND
from stepgraph.datasets import open_source
from stepgraph.decoders import Argmax, PathSearch, TaskMarkov
from stepgraph.encoders import load_encoder
from stepgraph.graph import mine_graph
from stepgraph.pipeline.measuring import run_evaluation
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
