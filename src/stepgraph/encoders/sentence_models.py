"""Sentence models that are not built in, run by the sentence-transformers library."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepgraph.encoders import Precision
from stepgraph.encoders.model_folders import first_line, quieten, require_weights
from stepgraph.errors import ConfigError

_BATCH = 64


class SentenceModel:
    """A sentence model, loaded from a folder."""

    def __init__(self, name: str, folder: Path, precision: Precision = "float32") -> None:
        import torch
        from sentence_transformers import SentenceTransformer

        quieten()
        how = {"dtype": getattr(torch, precision)}
        if (folder / "config.json").is_file():
            require_weights(folder)
        try:
            self._model = SentenceTransformer(str(folder), model_kwargs=how, local_files_only=True)
        except Exception as error:  # whatever those below it make of a broken file
            raise ConfigError(
                f"text encoder {name!r} must be a sentence-transformers model that "
                f"can be loaded, got: {first_line(error)}"
            ) from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts of equal length together, so that nothing is padded.

        Padding changes the last bits of what a model computes; without it a text has one
        embedding, whatever else is encoded with it and however often a run was interrupted.
        """
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for position, ids in enumerate(self._model.tokenizer(list(texts))["input_ids"]):
            by_length[len(ids)].append(position)
        vectors: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(texts)
        for positions in by_length.values():
            encoded = self._model.encode(
                [texts[position] for position in positions],
                batch_size=_BATCH,
                show_progress_bar=False,
                convert_to_tensor=True,
            )
            for position, vector in zip(positions, encoded.float().cpu().numpy(), strict=True):
                vectors[position] = vector
        return np.stack(vectors)
