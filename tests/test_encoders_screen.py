"""The encoder that reads: its names, and text in the picture on the scale of what is said."""

from dataclasses import replace

import numpy as np
import pytest

from stepgraph.core import Sentence, Video, Vocabulary
from stepgraph.encoders import EncoderOptions, load_encoder, screen
from stepgraph.errors import ConfigError, DataError
from stepgraph.graph import TaskGraph
from stepgraph.pipeline import ScorerChoice, open_scorer, uses_speech, uses_vision
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.scoring.fusion import Fused, open_encoder

EGGS = Vocabulary(("crack the eggs", "whisk the milk", "fry the toast"))
SHOWN = (Sentence(0.0, 2.0, "whisk the milk well"), Sentence(3.0, 5.0, "fry your toast"))


@pytest.fixture
def films(tmp_path, monkeypatch):
    """Two videos; in the first one something is to be read."""
    files = {tmp_path / "a.mp4": SHOWN, tmp_path / "b.mp4": ()}
    monkeypatch.setattr(screen, "read_screen", files.__getitem__)
    said = (Sentence(0.0, 2.0, "crack the eggs"),)
    return [Video(path.stem, 6.0, said, path) for path in files]


def test_plain_ocr_is_read_by_the_built_in_text_encoder():
    options = EncoderOptions("ocr", context=1, blend=True)

    assert (options.name, options.kind, options.model) == ("ocr:minilm", "ocr", "minilm")
    assert (options.uses_screen_text, options.uses_vision, options.uses_speech) == (
        True,
        True,
        False,
    )
    assert EncoderOptions(also="ocr").also == "ocr:minilm"
    assert EncoderOptions(also="ocr").uses_speech
    assert not EncoderOptions().uses_screen_text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "ocr", "window": 2.0}, "window must be .* got 2.0 for 'ocr:minilm'"),
        ({"name": "ocr", "also": "ocr:minilm"}, "must be two, got 'ocr:minilm' twice"),
        ({"name": "ocr:"}, "encoder must be 'text:minilm', 'ocr' "),
    ],
)
def test_what_means_nothing_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        EncoderOptions(**options)


def test_text_in_the_picture_is_scored_as_if_it_were_said(films):
    said = [Video("a", 6.0, SHOWN)]

    (read,) = score(films[:1], EGGS, load_encoder("ocr"))
    (heard,) = score(said, EGGS, load_encoder("text:minilm"))

    np.testing.assert_array_equal(read.values, heard.values)
    assert read.observed.tolist() == [True, True, False, True, True, False]


def test_a_video_without_text_is_a_blemish_and_the_others_go_on(films):
    problems = Problems()

    read = list(score(films, EGGS, load_encoder("ocr"), problems=problems))

    assert [bool(one.observed.any()) for one in read] == [True, False]
    assert "b.mp4: must show text that can be read, got none" in problems.summary()
    assert not problems.failed


def test_a_transcript_alone_cannot_be_read():
    with pytest.raises(DataError, match="'t' must have a video file to be read, got a transcrip"):
        list(score([Video("t", 6.0, SHOWN)], EGGS, load_encoder("ocr")))


def test_what_is_heard_and_read_is_fused(films):
    both = open_encoder(EncoderOptions(context=1, task_names=True, blend=True, also="ocr"))
    assert isinstance(both, Fused)
    assert both.first.options.context == both.second.options.context == 1
    assert both.options == EncoderOptions(context=1, task_names=True, blend=True, also="ocr")

    heard = load_encoder(EncoderOptions(context=1, task_names=True, blend=True))
    (fused,) = score(films[:1], EGGS, both)
    (first,) = score(films[:1], EGGS, heard)

    np.testing.assert_allclose(fused.values[:2], first.values[:2], atol=1e-6)
    assert fused.observed.tolist() == [True, True, False, True, True, False]


def test_alone_it_is_as_the_decoder_likes_it_and_needs_no_narration():
    scorer = open_scorer(ScorerChoice({"name": "ocr"}))

    assert scorer.options == EncoderOptions("ocr", context=1, task_names=True, blend=True)
    assert uses_vision(scorer)
    assert not uses_speech(scorer)
    assert open_scorer(ScorerChoice({"name": "ocr", "context": 0})).options == EncoderOptions(
        "ocr"
    )


def test_a_graph_that_was_read_is_used_again_by_either_name():
    options = EncoderOptions("ocr", context=2)
    graph = replace(TaskGraph.from_order(EGGS, [(0, 1, 2)]), encoder=options)

    for given in ({}, {"name": "ocr"}, {"name": "ocr:minilm"}):
        assert open_scorer(ScorerChoice(given), graph=graph).options == options
