"""Labels with any encoder: as recognition would have them, and nothing encoded twice."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from conftest import WordEncoder
from stepgraph.core import Features
from stepgraph.decoders import PathSearch
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import DataError
from stepgraph.labelling.clips import label_clips
from stepgraph.labelling.folders import label_source, read_labels
from stepgraph.pipeline import mine, recognize_all
from stepgraph.problems import Problems
from stepgraph.scoring import StoredScores
from stepgraph.scoring.fusion import Fused


class Counting(WordEncoder):
    """Counts what it encodes, and cannot encode one video."""

    def __init__(self, bad=None):
        self.bad, self.keysteps, self.seen = bad, 0, []

    def encode_keysteps(self, vocabulary):
        self.keysteps += 1
        return super().encode_keysteps(vocabulary)

    def encode_videos(self, videos):
        for video in videos:
            self.seen.append(video.id)
            if video.id == self.bad:
                raise DataError(f"{video.id}.mp4: must be readable, got noise")
            yield from super().encode_videos([video])


class Looking(Counting):
    """Sees, second by second, vectors of its own."""

    options = EncoderOptions("colour:motion")

    def encode_videos(self, videos):
        for features in super().encode_videos(videos):
            rows = np.arange(np.ceil(features.duration))
            vectors = np.random.default_rng(len(rows)).random((len(rows), self.size))
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            intervals = np.stack([rows, rows + 1], axis=1)
            yield Features(
                features.video, features.duration, vectors.astype(np.float32), intervals
            )


@pytest.fixture
def graph(omelette, encoder):
    return mine(omelette, encoder=encoder)


@pytest.fixture
def many(videos):
    """More videos than are encoded together."""
    return [replace(videos[n % 3], id=f"video {n}") for n in range(70)]


def test_keysteps_are_encoded_once_and_every_video_once(tmp_path, graph, many):
    encoder = Counting()

    label_source(many, graph, tmp_path, decoder=PathSearch(), encoder=encoder)

    assert encoder.keysteps == 1
    assert encoder.seen == [video.id for video in many]


def test_a_bad_video_stops_no_other(tmp_path, graph, many):
    encoder, problems = Counting(bad="video 40"), Problems()

    labels = label_source(
        many, graph, tmp_path, decoder=PathSearch(), encoder=encoder, problems=problems
    )

    assert labels.failed == ("video 40",)
    assert dict(problems.counts) == {"video that cannot be encoded": 1}
    assert len(list(read_labels(tmp_path))) == 69


@pytest.mark.parametrize("kind", ["hearing", "looking", "both"])
def test_labels_are_those_that_recognition_gives(tmp_path, graph, videos, kind):
    made = {"hearing": Counting, "looking": Looking, "both": lambda: Fused(Looking(), Counting())}

    label_source(videos, graph, tmp_path, decoder=PathSearch(), encoder=made[kind]())

    timelines = recognize_all(videos, graph, decoder=PathSearch(), encoder=made[kind]())
    for found, timeline in zip(read_labels(tmp_path), timelines, strict=True):
        expected = label_clips(timeline)
        assert found.keystep.tolist() == expected.keystep.tolist()
        np.testing.assert_array_equal(found.top_scores, expected.top_scores)


def test_stored_scores_on_another_scale_are_other_labels(tmp_path, graph, videos):
    for video in videos:
        values = np.random.default_rng(0).random((20, len(graph.vocabulary)))
        (tmp_path / "scores").mkdir(exist_ok=True)
        np.save(tmp_path / "scores" / f"{video.id}.npy", values)
    stored = StoredScores(tmp_path / "scores")
    label = partial(label_source, videos, graph, tmp_path / "labels", decoder=PathSearch())
    label(encoder=stored, problems=Problems())

    with pytest.raises(DataError, match=r"labels made with encoder .*common.*, got .*raw"):
        label(encoder=replace(stored, scale="common"), problems=Problems())
