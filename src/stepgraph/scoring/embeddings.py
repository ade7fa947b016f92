"""Embeddings of a vocabulary, computed once and shared by all shards of a source."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import Vocabulary
from stepgraph.encoders import Encoder, EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import TaskVectors


class VocabularyEmbeddings(NamedTuple):
    """Embeddings of a vocabulary: vectors of its keysteps, also within each task."""

    keysteps: NDArray[np.float32]
    tasks: TaskVectors | None
    encoder: EncoderOptions


def embed_vocabulary(encoder: Encoder, vocabulary: Vocabulary) -> VocabularyEmbeddings:
    """Embed a vocabulary."""
    tasks = encoder.encode_tasks(vocabulary) if isinstance(encoder, TextEncoder) else None
    return VocabularyEmbeddings(encoder.encode_keysteps(vocabulary), tasks, encoder.options)
