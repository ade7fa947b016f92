"""The built-in model of sentences, against the library that has it too."""

import os
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
import torch

from stepgraph.encoders import EncoderOptions, Precision, text
from stepgraph.encoders.sentence_models import SentenceModel
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import unit
from stepgraph.networks import minilm

pytestmark = pytest.mark.slow

FOLDER = text._find_folder(text.MINILM)
LEAST_COSINE = {"float32": 0.999999, "bfloat16": 0.9995}
LONG = "whisk the eggs with half a cup of milk, then soak each slice " * 40
ODD = [
    "",
    "   ",
    "🦄",
    "文字 を 読む",
    "\u200b\u0000",
    "\ud800 half a pair",
    "[CLS] [SEP]",
    "x" * 900,
]
SAID = [
    "crack two eggs into a bowl",
    "so today we're gonna be making some french toast",
    "1/2 cup of milk & a pinch of salt...",
    "jack the car up until the tire is off the ground",
    "Café au lait, naïvely stirred",
    "stir",
]


@pytest.fixture(scope="module", params=get_args(Precision))
def precision(request):
    return request.param


@pytest.fixture(scope="module")
def model(precision):
    return text._load_minilm(FOLDER, precision)


def test_vectors_are_those_of_the_library(model, precision):
    texts = [*SAID, LONG, *(one for one in ODD if "\ud800" not in one)]
    library = SentenceModel("minilm", FOLDER, precision)

    cosines = (unit(model.encode(texts)) * unit(library.encode(texts))).sum(axis=1)

    assert cosines.min() >= LEAST_COSINE[precision]


def test_other_processors_compute_the_same(model, precision, monkeypatch):
    monkeypatch.setattr(minilm, "machine", lambda: "another")

    other = text._load_minilm(FOLDER, precision).encode(SAID)

    cosines = (unit(model.encode(SAID)) * unit(other)).sum(axis=1)
    assert cosines.min() >= LEAST_COSINE[precision]


def test_a_text_has_one_embedding_whatever_else_is_encoded(model):
    texts = [*SAID[:3], *ODD[:3], LONG, " ".join(SAID)]
    others = [f"{one} and {number}" for number in range(15) for one in SAID]

    together = model.encode([*others[:40], *texts, *others[40:]])[40 : 40 + len(texts)]
    backwards = model.encode(texts[::-1])[::-1]
    alone = np.concatenate([model.encode([one]) for one in texts])

    assert together.tolist() == backwards.tolist() == alone.tolist()


def test_a_text_has_one_embedding_on_any_number_of_cores(model):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = model.encode(SAID * 20)
        torch.set_num_threads(3)
        three = model.encode(SAID * 20)

        assert one.tolist() == three.tolist()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)


def test_a_text_alone_has_nearly_the_same_embedding(model):
    texts = [*SAID, *ODD, LONG]

    alone = unit(np.stack([model.encode_one(one) for one in texts]))

    assert (alone * unit(model.encode(texts))).sum(axis=1).min() >= 0.9999


def test_what_a_gpu_computes_is_nearly_the_same(model, precision, monkeypatch):
    texts = [*SAID, *ODD[:4], LONG, *(f"{one} {n}" for n in range(4) for one in SAID)]
    tokens = model._pieces.of(texts)
    monkeypatch.setattr(minilm, "_ON_GPU", 20)  # so that one length takes several batches

    found = model.embed(
        np.array([piece for ids in tokens for piece in ids]), np.array([*map(len, tokens)])
    )

    cosines = (unit(found.numpy()) * unit(model.encode(texts))).sum(axis=1)
    assert cosines.min() >= LEAST_COSINE[precision]


def test_on_a_gpu_all_of_one_length_are_computed_together(model, monkeypatch):
    seen = []

    def embed_alike(ids):
        seen.append(tuple(ids.shape))
        return torch.zeros(len(ids), 384) + ids[:, 1:2]

    monkeypatch.setattr(model, "_device", torch.device("cpu"))  # another than its name
    monkeypatch.setattr(model, "_embed_alike", embed_alike)
    texts = ["stir", "mix the eggs", "pour", "", "cut the bread"]

    found = model.encode(texts)

    assert seen == [(1, 2), (2, 3), (2, 5)]
    assert found[:, 0].tolist() == [ids[1] for ids in model._pieces.of(texts)]
    assert model.encode_one("pour").tolist() == found[2].tolist()
    assert model.encode([]).shape == (0, 384)
    assert model.at_once > 1000


def test_nothing_has_no_embeddings(model):
    assert model.encode([]).shape == (0, 384)


def test_odd_characters_have_finite_embeddings(model):
    vectors = model.encode(ODD)

    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) > 0.1).all()


def test_what_follows_256_tokens_is_not_read(model):
    # 254 words of one token each, and the two tokens around them.
    full = " ".join(["stir"] * 254)

    longer, shorter, same = model.encode([f"{full} tighten the nuts", full[:-5], full])

    assert longer.tolist() == same.tolist() != shorter.tolist()


@pytest.mark.own_cache
def test_recognize_of_a_new_transcript_imports_no_library_of_models(tmp_path):
    """Neither does it wait for the compiler: both take longer than all the rest."""
    (tmp_path / "talk.srt").write_text(
        "\n".join(
            f"{n + 1}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{one}\n"
            for n, one in enumerate(SAID)
        )
    )
    (tmp_path / "steps.txt").write_text("crack the eggs\nwhisk the eggs\njack up the car\n")
    script = """
import sys
from stepgraph.cli import main
assert main(["mine", "talk.srt", "--vocabulary", "steps.txt", "-o", "graph.json"]) == 0
assert main(["recognize", "talk.srt", "--graph", "graph.json", "-o", "found"]) == 0
print(sorted({"sentence_transformers", "transformers", "numba", "sklearn"} & set(sys.modules)))
"""
    environment = {**os.environ, "STEPGRAPH_CACHE": str(tmp_path / "cache")}

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "found").is_dir()
    assert list((tmp_path / "cache").rglob("minilm-*"))


@pytest.mark.own_cache
def test_the_built_in_encoder_is_this_model(precision, monkeypatch, tmp_path, model):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path))

    found = TextEncoder(EncoderOptions(precision=precision)).encode_texts(SAID)

    assert found.tolist() == unit(model.encode(SAID)).tolist()
