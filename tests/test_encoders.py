"""Encoders by name, and the text encoder around its model."""

import json
import zlib

import numpy as np
import pytest

from stepgraph.core import Sentence, Video, Vocabulary
from stepgraph.encoders import EncoderOptions, encoding, load_encoder, text
from stepgraph.encoders.text import TextEncoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.export.artefacts import load, save
from stepgraph.graph import mine_graph

TEXTS = [f"sentence number {number}" for number in range(300)]


class FakeModel:
    """Stands in for a model of sentences: one direction a word, and a diary."""

    def __init__(self, calls_before_interrupt=None):
        self.seen = []
        self.calls_left = calls_before_interrupt

    def encode(self, texts):
        if self.calls_left == 0:
            raise KeyboardInterrupt
        self.calls_left = None if self.calls_left is None else self.calls_left - 1
        self.seen += texts
        vectors = np.zeros((len(texts), 64), dtype=np.float32)
        for row, one in enumerate(texts):
            for word in one.split():
                vectors[row, zlib.crc32(word.encode()) % 64] += 1
        return vectors


@pytest.fixture
def cache_home(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fake_encoder(model=None, **options):
    encoder = TextEncoder(EncoderOptions(**options))
    encoder._model = model or FakeModel()
    return encoder


def direction(*texts):
    """What the fake model makes of the sum of some texts."""
    total = FakeModel().encode([" ".join(texts)])[0]
    return total / np.linalg.norm(total)


@pytest.mark.parametrize("name", ["", "minilm", "text:", "text", "video:clip", "TEXT:minilm"])
def test_bad_encoder_names_are_refused(name):
    with pytest.raises(ConfigError, match=rf"encoder must be 'text:minilm', .*, got '{name}'"):
        load_encoder(name)


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/model", "~/nowhere/model"])
def test_a_path_where_no_model_is_is_refused(model):
    with pytest.raises(ConfigError, match=rf"'{model}' must be the folder of a .*, got a path"):
        load_encoder(f"text:{model}")


def test_the_home_of_nobody_is_refused_in_words():
    with pytest.raises(ConfigError, match="~nobody-of-that-name/model"):
        load_encoder("text:~nobody-of-that-name/model")


def test_context_must_not_be_negative():
    with pytest.raises(ConfigError, match="context must be at least 0 sentences, got -1"):
        load_encoder(context=-1)


def test_encoder_is_made_from_all_its_options():
    options = EncoderOptions("text:minilm", context=2, task_names=True)

    assert load_encoder(options).options == options
    assert load_encoder("text:minilm", context=2, task_names=True).options == options


@pytest.mark.own_cache
def test_vectors_have_unit_length_and_the_order_of_the_texts(cache_home):
    texts = ["pour a lot of tea now", "stir", "pour a lot of tea now", "boil water"]

    vectors = fake_encoder().encode_texts(texts)

    assert vectors == pytest.approx(np.stack([direction(one) for one in texts]))
    assert vectors.dtype == np.float32


@pytest.mark.own_cache
def test_a_text_that_occurs_twice_is_encoded_once(cache_home):
    model = FakeModel()

    fake_encoder(model).encode_texts(["stir", "pour", "stir"])

    assert sorted(model.seen) == ["pour", "stir"]


@pytest.mark.own_cache
@pytest.mark.parametrize(("at_once", "parts"), [(0, [2, 1]), (1, [2, 1]), (3, [3])])
def test_a_model_is_given_as_many_texts_as_it_wants_at_once(
    cache_home, monkeypatch, at_once, parts
):
    monkeypatch.setattr(text, "_SENTENCES", 2)
    model = FakeModel()
    model.at_once = at_once
    encoder, given = fake_encoder(model), []
    encode = model.encode
    model.encode = lambda texts: given.append(len(texts)) or encode(texts)

    encoder.encode_texts(["stir", "pour", "whisk"])

    assert given == parts


def test_no_texts_need_no_model():
    encoder = TextEncoder(EncoderOptions())

    assert len(encoder.encode_texts([])) == 0
    assert "_model" not in vars(encoder)


@pytest.mark.own_cache
def test_a_second_run_encodes_nothing(cache_home):
    first = fake_encoder().encode_texts(TEXTS)
    model = FakeModel()

    second = fake_encoder(model).encode_texts(TEXTS[::-1])

    assert model.seen == []
    assert second[::-1].tolist() == first.tolist()


@pytest.mark.own_cache
def test_after_an_interruption_only_what_is_missing_is_encoded(cache_home, monkeypatch):
    monkeypatch.setattr(text, "_SENTENCES", 100)
    first, second = FakeModel(calls_before_interrupt=2), FakeModel()
    with pytest.raises(KeyboardInterrupt):
        fake_encoder(first).encode_texts(TEXTS)

    fake_encoder(second).encode_texts(TEXTS)

    assert (len(first.seen), len(second.seen)) == (200, 100)
    assert sorted(first.seen + second.seen) == sorted(TEXTS)


@pytest.mark.own_cache
@pytest.mark.parametrize(
    ("context", "texts"),
    [
        (0, ["boil", "pour", "stir", "drink"]),
        (1, ["boil pour", "boil pour stir", "pour stir drink", "stir drink"]),
        (9, ["boil pour stir drink"] * 4),
    ],
)
def test_context_joins_neighbouring_sentences(cache_home, context, texts):
    said = [Sentence(n, n + 1, one) for n, one in enumerate(["boil", "pour", "stir", "drink"])]

    [features] = fake_encoder(context=context).encode_videos([Video("v", 4.0, tuple(said))])

    assert features.vectors == pytest.approx(np.stack([direction(one) for one in texts]))
    assert features.intervals.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


@pytest.mark.own_cache
def test_context_does_not_reach_into_another_video(cache_home):
    model = FakeModel()
    videos = [Video(name, 1.0, (Sentence(0, 1, name),)) for name in ("boil", "pour")]

    features = list(fake_encoder(model, context=3).encode_videos(videos))

    assert sorted(model.seen) == ["boil", "pour"]
    assert [one.video for one in features] == ["boil", "pour"]


@pytest.mark.own_cache
def test_videos_are_encoded_alike_in_small_blocks(cache_home, monkeypatch, videos):
    monkeypatch.setattr(encoding, "_TOGETHER", 2)
    silent = Video("silent", 5.0)

    encoded = encoding.encode_each(iter([silent, *videos, silent]), fake_encoder())
    features = [found for _, found in encoded]

    assert [one.video for one in features] == ["silent", "plain", "chatty", "hurried", "silent"]
    assert [len(one.vectors) for one in features] == [0, 5, 6, 4, 0]
    assert features[2].vectors[1] == pytest.approx(direction("crack the eggs"))


@pytest.mark.own_cache
def test_task_names_are_averaged_with_the_plain_names(cache_home):
    vocabulary = Vocabulary(("boil", "pour", "stir"), {"tea": (0, 1), "soup": (0,)})

    vectors = fake_encoder(task_names=True).encode_keysteps(vocabulary)

    boil_within = direction("tea: boil") + direction("soup: boil")
    boil = direction("boil") + boil_within / np.linalg.norm(boil_within)
    pour = direction("pour") + direction("tea: pour")
    assert vectors[0] == pytest.approx(boil / np.linalg.norm(boil))
    assert vectors[1] == pytest.approx(pour / np.linalg.norm(pour))
    assert vectors[2] == pytest.approx(direction("stir"))  # of no task


@pytest.mark.own_cache
@pytest.mark.parametrize("tasks", [{}, {"tea": (0, 1)}])
def test_without_task_names_only_the_plain_names_are_encoded(cache_home, tasks):
    model = FakeModel()

    fake_encoder(model).encode_keysteps(Vocabulary(("boil", "pour"), tasks))

    assert sorted(model.seen) == ["boil", "pour"]


@pytest.mark.own_cache
def test_another_version_of_a_model_folder_does_not_share_its_cache(cache_home, tmp_path):
    weights = tmp_path / "model" / "weights"
    weights.parent.mkdir()
    weights.write_text("old")
    fake_encoder(name=f"text:{weights.parent}").encode_texts(["stir"])
    weights.write_text("newer")
    model = FakeModel()

    fake_encoder(model, name=f"text:{weights.parent}").encode_texts(["stir"])

    assert model.seen == ["stir"]


@pytest.mark.own_cache
@pytest.mark.parametrize("altered", ["model.safetensors", "tokenizer.json"])
def test_an_altered_file_of_the_built_in_model_is_refused(cache_home, tmp_path, altered):
    encoder = TextEncoder(EncoderOptions())
    for name in text._MINILM_SHA256:
        (tmp_path / name).symlink_to(encoder._folder / name)
    (tmp_path / altered).unlink()
    (tmp_path / altered).write_bytes(b"altered")
    encoder._folder = tmp_path
    rule = f"must have sha256 {text._MINILM_SHA256[altered]}, got [0-9a-f]+; reinstall: pip"

    with pytest.raises(DataError, match=rf"{altered}: a file of all-MiniLM-L6-v2 {rule}"):
        encoder.encode_texts(["stir"])


@pytest.mark.own_cache
def test_embeddings_made_in_another_way_are_not_mixed(cache_home, monkeypatch):
    fake_encoder().encode_texts(["stir"])
    monkeypatch.setattr(text, "_MINILM_VERSION", 99)
    model = FakeModel()

    fake_encoder(model).encode_texts(["stir"])

    assert model.seen == ["stir"]


def test_word_encoder_of_the_tests_is_an_encoder(encoder, vocabulary, videos):
    [features] = encoder.encode_videos(videos[:1])

    assert np.linalg.norm(encoder.encode_keysteps(vocabulary), axis=1) == pytest.approx(1.0)
    assert features.vectors.shape == (5, encoder.size)


@pytest.mark.slow
@pytest.mark.own_cache
class TestMiniLM:
    """The real model, with a cache of its own."""

    @pytest.fixture(autouse=True)
    def _own_cache(self, cache_home):
        pass

    def test_sentences_alike_are_closer_than_others(self):
        vectors = load_encoder().encode_texts(
            ["crack the eggs", "break two eggs into a bowl", "tighten the wheel nuts"]
        )

        assert vectors[0] @ vectors[1] > 0.5 > 0.3 > vectors[0] @ vectors[2]

    def test_half_precision_agrees_with_full(self, videos, vocabulary):
        texts = [sentence.text for video in videos for sentence in video.transcript]
        texts += vocabulary.keysteps

        half = load_encoder(EncoderOptions(precision="bfloat16")).encode_texts(texts)
        full = load_encoder().encode_texts(texts)

        assert half.tolist() != full.tolist()

        assert (half * full).sum(axis=1).min() >= 0.999

    def test_the_second_run_needs_no_model(self):
        first = load_encoder().encode_texts(["crack the eggs"])
        encoder = load_encoder()

        second = encoder.encode_texts(["crack the eggs"])

        assert second.tolist() == first.tolist()
        assert "_model" not in vars(encoder)

    def test_a_folder_without_a_model_is_refused_in_one_line(self, tmp_path):
        (tmp_path / "empty").mkdir()
        encoder = load_encoder(f"text:{tmp_path / 'empty'}")

        with pytest.raises(ConfigError, match=r"must be a sentence-transformers model .* got"):
            encoder.encode_texts(["crack the eggs"])


# --- sentences alone and with their neighbours, averaged


def test_blend_without_neighbours_is_refused():
    with pytest.raises(ConfigError, match="blend requires a context of at least 1 sentence, got"):
        EncoderOptions(blend=True)


@pytest.mark.own_cache
def test_blended_features_are_the_mean_of_both_embeddings(cache_home):
    said = [Sentence(n, n + 1, one) for n, one in enumerate(["boil", "pour", "stir now"])]

    [features] = fake_encoder(context=1, blend=True).encode_videos([Video("v", 3.0, tuple(said))])

    alone = [direction("boil"), direction("pour"), direction("stir now")]
    wide = [direction("boil pour"), direction("boil pour stir now"), direction("pour stir now")]
    assert features.vectors == pytest.approx((np.stack(alone) + np.stack(wide)) / 2)
    assert features.vectors.dtype == np.float32
    assert features.intervals.tolist() == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.own_cache
def test_blended_features_of_many_videos_are_those_of_each(cache_home, videos):
    encoder = fake_encoder(context=1, blend=True)
    several = [Video("silent", 5.0), *videos, Video("silent", 5.0)]

    together = list(encoder.encode_videos(several))

    for video, features in zip(several, together, strict=True):
        [single] = encoder.encode_videos([video])
        assert features.video == video.id
        assert features.vectors.shape[0] == len(video.transcript)
        assert features.vectors.tolist() == single.vectors.tolist()


@pytest.mark.own_cache
def test_a_video_of_one_sentence_has_nothing_to_blend(cache_home):
    video = Video("v", 1.0, (Sentence(0, 1, "stir it well"),))

    one, other = (
        next(fake_encoder(**options).encode_videos([video])).vectors
        for options in ({}, {"context": 1, "blend": True})
    )

    assert one == pytest.approx(other)


@pytest.mark.own_cache
def test_blending_does_not_alter_keysteps(cache_home, vocabulary):
    one, other = (
        fake_encoder(**options).encode_keysteps(vocabulary)
        for options in ({}, {"context": 1, "blend": True})
    )

    assert one.tolist() == other.tolist()


def test_a_saved_graph_remembers_that_its_encoder_blends(tmp_path, vocabulary):
    options = EncoderOptions("text:minilm", context=1, task_names=True, blend=True)
    save(mine_graph([], vocabulary, encoder=options), tmp_path / "graph.json")

    remembered = load(tmp_path / "graph.json").encoder

    assert remembered == options
    assert load_encoder(remembered).options == options


def test_a_graph_saved_before_there_was_blending_is_of_an_encoder_that_does_not(
    tmp_path, vocabulary
):
    path = tmp_path / "graph.json"
    save(mine_graph([], vocabulary, encoder=EncoderOptions(context=1)), path)
    content = json.loads(path.read_text("utf-8"))
    del content["encoder"]["blend"]
    path.write_text(json.dumps(content), "utf-8")

    assert load(path).encoder == EncoderOptions(context=1, blend=False)
