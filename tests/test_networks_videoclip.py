"""VideoCLIP gives what its published architecture gives, weight for weight."""

import argparse
from collections import OrderedDict
from importlib import import_module

import pytest
import torch

import reference_networks as reference
from stepgraph.errors import DataError
from stepgraph.networks.weights import make_filled, read_weights

FEATURES = 24


def videoclip():
    """The module under test, which imports the transformers library: for those who need it."""
    return import_module("stepgraph.networks.videoclip")


def small():
    """Two heads, and as many layers as tell one from the other."""
    layers = {"video_layers": 2, "text_layers": 3}
    sizes = {"features": FEATURES, "width": 128, "inner": 96, "words": 130, "positions": 80}
    return videoclip().VideoClipOptions(**sizes, **layers)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    network = videoclip().VideoCLIP(small()).eval()
    for name, weight in network.named_parameters():
        # Larger than BERT begins with, so that attention is not all but uniform.
        scale = 1.5 / weight.shape[-1] ** 0.5 if weight.ndim > 1 else 0.3
        weight.data.normal_(1.0 if name.endswith("LayerNorm.weight") else 0.0, scale)
    return network


@pytest.fixture(scope="module")
def weights(network):
    return dict(network.state_dict())


@pytest.fixture(scope="module", autouse=True)
def _without_gradients():
    videoclip()  # what it imports is used by other tests, too
    with torch.inference_mode():
        yield


def features_of(seconds, seed=0):
    return torch.randn(seconds, FEATURES, generator=torch.Generator().manual_seed(seed)) * 3


@pytest.mark.parametrize("seconds", [1, 2, 7, 31, 32])
def test_a_second_is_its_own_token_and_nothing_looks_at_cls(network, weights, seconds):
    features = features_of(seconds)

    [found] = network.embed_seconds(features[None])

    outputs = reference.videoclip_video(weights, features, 2, look_at_first=False)
    assert found.shape == (seconds, 128)
    assert (found - outputs[1:-1]).abs().max() < 1e-4
    attentive = reference.videoclip_video(weights, features, 2, look_at_first=True)
    assert (found - attentive[1:-1]).abs().max() > 1e-3


TEXTS = [[7], [120, 8, 9, 9, 11], [], list(range(5, 100))]


def test_texts_are_the_mean_of_their_tokens_and_of_sep(network, weights):
    found = network.embed_texts(*videoclip().pad_tokens(TEXTS))

    assert found.shape == (4, 128)
    for row, pieces in zip(found, TEXTS, strict=True):
        expected = reference.videoclip_text(weights, pieces[: videoclip().MAX_TOKENS], 3)
        assert (row - expected).abs().max() < 1e-4


def windows(length, window):
    """All windows by hand: one after the other until one reaches the end."""
    starts = [0]
    while starts[-1] + window < length:
        starts.append(starts[-1] + max(1, window // 2))
    return [range(start, min(start + window, length)) for start in starts]


@pytest.mark.parametrize(
    ("length", "window"), [(1, 32), (32, 32), (33, 32), (50, 32), (11, 5), (9, 4), (4, 1)]
)
def test_a_row_is_averaged_over_the_windows_that_hold_it(network, weights, length, window):
    features = features_of(length)

    found = videoclip().embed_rows(network, features, window=window)

    said = [[] for _ in range(length)]
    for rows in windows(length, window):
        part = features[rows.start : rows.stop]
        outputs = reference.videoclip_video(weights, part, 2, look_at_first=False)
        for row, vector in zip(rows, outputs[1:-1], strict=True):
            said[row].append(vector)
    expected = torch.stack([torch.stack(vectors).mean(0) for vectors in said])
    assert (found - expected).abs().max() < 1e-4


def test_averaging_vectors_averages_the_scores_of_the_published_evaluation(network):
    features, text = features_of(40), torch.randn(128, generator=torch.manual_seed(0))

    scores = videoclip().embed_rows(network, features) @ text

    first = network.embed_seconds(features[None, :32])[0] @ text
    second = network.embed_seconds(features[None, 16:])[0] @ text
    assert torch.allclose(scores[16:32], (first[16:] + second[:16]) / 2, atol=1e-4)
    assert torch.allclose(scores[32:], second[16:], atol=1e-4)


def test_a_video_without_rows_has_no_vectors(network):
    assert videoclip().embed_rows(network, features_of(0)).shape == (0, 128)


def layer(width, inner):
    return 4 * (width + 1) * width + 2 * (width * inner) + inner + width + 4 * width


def test_it_has_as_many_parameters_as_published():
    with torch.device("meta"):
        network = videoclip().VideoCLIP()

    def count(module):
        return sum(parameter.numel() for parameter in module.parameters())

    embeddings = (30_522 + 512 + 2 + 2) * 768
    # bert-base-uncased is published with 109,482,240, among them a layer over [CLS] unused here.
    assert count(network.text_encoder) == 109_482_240 - 769 * 768 == 108_891_648
    assert count(network.text_encoder) == embeddings + 12 * layer(768, 3072)
    assert count(network.video_encoder.bert) == embeddings + 6 * layer(768, 3072)
    assert count(network.video_encoder.videomlp) == 513 * 768 + 2 * 768 + 769 * 768
    assert count(network) == 176_242_176


def test_weights_have_the_published_names_and_shapes():
    with torch.device("meta"):
        state = videoclip().VideoCLIP().state_dict()
    shapes = {name: tuple(weight.shape) for name, weight in state.items()}

    video, text = "video_encoder.bert.", "text_encoder."
    for tower, layers in ((video, 6), (text, 12)):
        assert shapes[tower + "embeddings.word_embeddings.weight"] == (30_522, 768)
        assert shapes[tower + "embeddings.position_embeddings.weight"] == (512, 768)
        assert shapes[tower + "embeddings.token_type_embeddings.weight"] == (2, 768)
        assert shapes[tower + "embeddings.LayerNorm.weight"] == (768,)
        for number in range(layers):
            at = f"{tower}encoder.layer.{number}."
            for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
                assert shapes[f"{at}{part}.weight"] == (768, 768)
            assert shapes[at + "attention.output.dense.weight"] == (768, 768)
            assert shapes[at + "attention.output.LayerNorm.bias"] == (768,)
            assert shapes[at + "intermediate.dense.weight"] == (3072, 768)
            assert shapes[at + "output.dense.weight"] == (768, 3072)
            assert shapes[at + "output.LayerNorm.weight"] == (768,)
        assert f"{tower}encoder.layer.{layers}.output.dense.weight" not in shapes
    assert shapes["video_encoder.videomlp.linear1.weight"] == (768, 512)
    assert shapes["video_encoder.videomlp.LayerNorm.weight"] == (768,)
    assert shapes["video_encoder.videomlp.linear2.weight"] == (768, 768)


def checkpoint_of(weights):
    """As its training framework writes it: another prefix, more layers, settings beside."""
    unused = {
        "video_encoder.bert.pooler.dense.weight": torch.zeros(128, 128),
        "text_encoder.pooler.dense.bias": torch.zeros(128),
        "text_encoder.embeddings.position_ids": torch.arange(80)[None],
        "video_encoder.cls.predictions.bias": torch.zeros(130),
    }
    model = OrderedDict((f"mmmodel.{name}", weight) for name, weight in (weights | unused).items())
    return {"args": argparse.Namespace(lr=[5e-5]), "cfg": {"fp16": True}, "model": model}


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_is_read_and_gives_the_same(tmp_path, network, weights, zipped):
    path = tmp_path / "checkpoint_best.pt"
    torch.save(checkpoint_of(weights), path, _use_new_zipfile_serialization=zipped)

    clip = videoclip()
    read = {name.removeprefix("mmmodel."): w for name, w in read_weights(path).items()}
    other = make_filled(lambda: clip.VideoCLIP(clip.options_of(read)), read, path).eval()

    assert other.options == small()
    features = features_of(5)
    assert torch.equal(clip.embed_rows(other, features), clip.embed_rows(network, features))
    tokens = clip.pad_tokens(TEXTS)
    assert torch.equal(other.embed_texts(*tokens), network.embed_texts(*tokens))


def test_half_precision_checkpoints_are_read(network, weights):
    halves = {name: weight.half() for name, weight in weights.items()}

    other = make_filled(lambda: videoclip().VideoCLIP(small()), halves, "here").eval()

    tokens = videoclip().pad_tokens(TEXTS)
    assert other.embed_texts(*tokens).dtype == torch.float32
    assert (other.embed_texts(*tokens) - network.embed_texts(*tokens)).abs().max() < 0.1


def test_sizes_are_those_published_where_a_file_does_not_tell():
    published = videoclip().VideoClipOptions(512, 768, 3072, 6, 12, 30_522, 512)

    assert videoclip().options_of({}) == published


def test_a_file_of_another_network_is_refused_by_name():
    with pytest.raises(
        DataError, match=r"a.pt: must hold the .* weights of VideoCLIP, got no 'vid"
    ):
        make_filled(
            lambda: videoclip().VideoCLIP(small()), {"fc.weight": torch.zeros(2, 2)}, "a.pt"
        )
