"""The stages in a straight line."""

import math
from dataclasses import replace

import numpy as np
import pytest

import stepgraph
from reference import make_graph
from stepgraph import pipeline
from stepgraph.core import Dataset, Sentence, Video, Vocabulary
from stepgraph.decoders import DEFAULT_DECODER, Argmax, PathSearch, encoder_for
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.export.artefacts import load, save
from stepgraph.graph import mine_graph
from stepgraph.pipeline import mine, recognize, recognize_all, run_evaluation
from stepgraph.scoring import score


@pytest.fixture
def graph(omelette, encoder):
    return mine(omelette, encoder=encoder)


# --- mine


def test_a_folder_is_mined(omelette_folder, encoder, vocabulary, videos):
    graph = mine(str(omelette_folder), encoder=encoder)

    expected = mine_graph(score(videos, vocabulary, encoder), vocabulary)
    assert graph.counts.toarray().tolist() == expected.counts.toarray().tolist()
    assert graph.vocabulary == vocabulary
    assert graph.mined_on == ("chatty", "hurried", "plain")


def test_mining_does_not_look_at_the_truth(omelette, encoder, graph):
    without = Dataset("omelette", omelette.videos, omelette.vocabulary)

    again = mine(without, encoder=encoder)

    assert again.counts.toarray().tolist() == graph.counts.toarray().tolist()


def test_graph_remembers_its_encoder(graph, encoder):
    assert graph.encoder == encoder.options


def test_vocabulary_may_be_a_vocabulary_names_or_a_file(omelette, omelette_folder, encoder):
    names = ["boil", "crack the eggs"]
    path = omelette_folder / "few.txt"
    path.write_text("\n".join(names))

    graphs = [
        mine(omelette, given, encoder=encoder)
        for given in (Vocabulary(tuple(names)), names, path, str(path))
    ]

    assert {graph.vocabulary for graph in graphs} == {Vocabulary(tuple(names))}


def test_a_source_without_vocabulary_needs_one(videos, encoder):
    with pytest.raises(DataError, match=r"^mine: must come with a vocabulary, got none; write"):
        mine(Dataset("mine", videos), encoder=encoder)


def test_limits_of_mining_are_passed_on(omelette, encoder):
    graph = mine(omelette, encoder=encoder, max_gap=0.0)

    # "chatty" is silent between whisking and heating.
    assert graph.counts[1, 2] == 1


def test_least_score_of_mining_is_passed_on(omelette, encoder):
    assert mine(omelette, encoder=encoder, min_score=1.5).counts.nnz == 0


def test_missing_source_is_refused(encoder):
    with pytest.raises(ConfigError, match="got 'nowhere', which does not exist"):
        mine("nowhere", encoder=encoder)


def test_videos_without_speech_make_no_graph(encoder, vocabulary):
    silent = [Video("a", 9.0), Video("b", 0.0)]

    with pytest.raises(DataError, match=r"^silent: must hold narration \(put trans"):
        mine(Dataset("silent", silent, vocabulary), encoder=encoder)

    streamed = mine(Dataset("silent", iter(silent), vocabulary), encoder=encoder)
    assert (streamed.counts.nnz, streamed.mined_on) == (0, ("a", "b"))


# --- recognize


def test_keysteps_of_a_transcript_file_are_recognised(omelette_folder, graph, encoder):
    timeline = recognize(str(omelette_folder / "plain.vtt"), graph, encoder=encoder)

    assert [(c.start, c.end, c.keystep) for c in timeline] == [
        (4.0 * n, 4.0 * n + 4, name) for n, name in enumerate(graph.vocabulary.keysteps)
    ]
    assert timeline.video.id == "plain"


def test_a_silent_part_is_filled_along_the_graph(graph, encoder):
    said = (Sentence(0, 2, "crack the eggs"), Sentence(4, 6, "heat a pan"))

    timeline = recognize(Video("v", 6.0, said), graph, decoder=PathSearch(), encoder=encoder)

    assert [(c.keystep, c.origin) for c in timeline] == [
        ("crack the eggs", "anchor"),
        ("whisk them", "path"),
        ("heat a pan", "anchor"),
    ]


def test_the_decoder_may_be_chosen(videos, graph, encoder):
    timeline = recognize(videos[1], graph, decoder=Argmax(), encoder=encoder)

    assert timeline.labels.anchors is None


@pytest.mark.parametrize("duration", [0.0, 12.5])
def test_a_video_without_speech_has_no_chapters(graph, encoder, duration):
    timeline = recognize(Video("silent", duration), graph, encoder=encoder)

    assert list(timeline) == []
    assert len(timeline.labels) == math.ceil(duration)


def test_each_timeline_has_its_own_video(videos, graph, encoder):
    silent = Video("silent", 3.0)

    timelines = list(recognize_all(iter([*videos, silent]), graph, encoder=encoder))

    assert [one.video.id for one in timelines] == ["plain", "chatty", "hurried", "silent"]
    assert all(one.video.id == one.labels.video == one.scores.video for one in timelines)


def test_the_encoder_of_the_graph_is_used(videos, graph, encoder, monkeypatch):
    asked = []
    monkeypatch.setattr(pipeline, "open_encoder", lambda options: asked.append(options) or encoder)

    graph = replace(graph, encoder=EncoderOptions("text:minilm", context=3))

    recognize(videos[0], graph)

    assert asked == [graph.encoder]


def test_a_graph_without_encoder_uses_the_one_that_the_decoder_is_made_for(
    videos, vocabulary, encoder, monkeypatch
):
    asked = []
    monkeypatch.setattr(pipeline, "open_encoder", lambda options: asked.append(options) or encoder)

    recognize(videos[0], make_graph(np.zeros((5, 5), np.int64), vocabulary))

    assert asked == [encoder_for(DEFAULT_DECODER)]


def test_a_graph_saved_and_loaded_recognises_the_same(tmp_path, videos, graph, encoder):
    save(graph, tmp_path / "graph.json")

    timeline = recognize(videos[1], load(tmp_path / "graph.json"), encoder=encoder)

    assert list(timeline) == list(recognize(videos[1], graph, encoder=encoder))


# --- run_evaluation


def test_evaluation_mines_from_all_videos_and_measures_those_with_truth(omelette, encoder):
    some = {name: labels for name, labels in omelette.truth.items() if name != "plain"}
    dataset = Dataset("omelette", omelette.videos, omelette.vocabulary, some)

    evaluation = run_evaluation(dataset, {"argmax": Argmax()}, encoder=encoder)

    [measured] = evaluation.measured
    assert evaluation.graph.mined_on == ("plain", "chatty", "hurried")
    assert [video.id for video in evaluation.dataset.videos] == ["chatty", "hurried"]
    assert set(measured.labels) == {"chatty", "hurried"}
    assert measured.report.videos == 2
    assert measured.report.graph_mined_on == "3 videos, 2 of them among the 2 evaluated"


def test_every_decoder_is_measured_under_its_name(omelette, encoder):
    decoders = {"argmax": Argmax(), "path-search": PathSearch()}

    evaluation = run_evaluation(omelette, decoders, encoder=encoder)

    assert [one.name for one in evaluation.measured] == ["argmax", "path-search"]
    assert [one.report.decoder for one in evaluation.measured] == ["argmax", "path-search"]


def test_the_omelette_is_recognised(omelette, encoder):
    evaluation = run_evaluation(omelette, {"path-search": PathSearch()}, encoder=encoder)

    assert evaluation.measured[0].report.accuracy > 0.9


def test_a_graph_mined_on_the_evaluated_videos_is_said_to_be(omelette, encoder):
    evaluation = run_evaluation(omelette, {"argmax": Argmax()}, encoder=encoder)

    assert evaluation.measured[0].report.graph_mined_on == (
        "the 3 evaluated videos, without their truth"
    )


def test_a_graph_mined_elsewhere_is_used_and_said_to_be(omelette, vocabulary, encoder):
    other = make_graph(np.zeros((5, 5), np.int64), vocabulary, mined_on=("x", "y"))

    evaluation = run_evaluation(omelette, {"argmax": Argmax()}, encoder=encoder, graph=other)

    assert evaluation.graph is other
    assert evaluation.measured[0].report.graph_mined_on == "2 other videos"


def test_a_graph_of_another_vocabulary_is_refused(omelette, encoder):
    other = make_graph(np.zeros((5, 5), np.int64))

    with pytest.raises(DataError, match="vocabulary"):
        run_evaluation(omelette, {"path": PathSearch()}, encoder=encoder, graph=other)


def test_a_data_set_without_truth_cannot_be_evaluated(videos, vocabulary):
    with pytest.raises(DataError, match=r"^mine: must hold a truth \(truth\.csv with video, "):
        run_evaluation(Dataset("mine", videos, vocabulary), {"argmax": Argmax()})


# --- The package


def test_every_public_name_can_be_imported():
    assert [getattr(stepgraph, name) for name in stepgraph.__all__]
    assert set(stepgraph.__all__) <= set(dir(stepgraph))


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'stepgraph' has no attribute 'nothing'"):
        stepgraph.nothing  # noqa: B018
