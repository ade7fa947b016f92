"""Encoders from published files: S3D of MIL-NCE, and VideoCLIP on features of S3D.

Each is a folder with the files as their authors publish them; nothing is downloaded.  The networks
are in :mod:`stepgraph.networks`, imported when the first text or clip must be encoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.model_folders import PUBLISHED, find_folder
from stepgraph.encoders.visual import VisualEncoder, as_array, pick_device
from stepgraph.errors import ConfigError, DataError, one_line
from stepgraph.files.disk import read_text
from stepgraph.ingest.frames import ClipOptions

if TYPE_CHECKING:
    from stepgraph.networks.s3d import S3D
    from stepgraph.networks.videoclip import VideoCLIP

# 10 frames a second, as S3D was trained and evaluated; 30, as VideoCLIP was trained on it.
_S3D_CLIPS = ClipOptions(frames=16, window=1.6)
_VIDEOCLIP_CLIPS = ClipOptions(frames=30, window=1.0)
_WRAPPER = "mmmodel."  # what VideoCLIP's training framework puts before every name
_LONGEST = 32  # seconds; networks.videoclip.LONGEST, without importing torch


def make_s3d(options: EncoderOptions) -> VisualEncoder:
    """Make the encoder ``s3d:FOLDER``."""
    files = _find_files(options, "s3d", "words")
    return VisualEncoder(options, lambda: _load_s3d(*files))


def make_videoclip(options: EncoderOptions) -> VisualEncoder:
    """Make the encoder ``videoclip:FOLDER``."""
    window = options.window
    if window is not None and (not 1 <= window <= _LONGEST or window % 1):
        raise ConfigError(
            f"window must be a whole number of seconds from 1 to {_LONGEST} for VideoCLIP, "
            f"which reads one feature a second, got {window!r}"
        )
    files = _find_files(options, "videoclip", "s3d", "tokenizer")
    return VideoClipEncoder(options, lambda: _load_videoclip(*files))


def _find_files(options: EncoderOptions, *names: str) -> list[Path]:
    """Find the files of a folder by their names in published.toml."""
    files = [PUBLISHED["files"][name] for name in names]
    folder = find_folder(options.kind, options.model)
    where = f"{options.kind} encoder {options.model!r} must be a folder that holds"
    where = f"{folder}: must hold" if folder else where
    found = []
    for file in files:
        globs = (sorted(folder.glob(pattern)) for pattern in file["patterns"]) if folder else ()
        path = next((paths[0] for paths in globs if paths), None)
        if path is None:
            raise ConfigError(
                f"{where} {file['what']} ({' or '.join(file['patterns'])}), got none; "
                f"it is published by {file['publisher']}"
            )
        found.append(path)
    return found


class VideoClipEncoder(VisualEncoder):
    """Encoder that embeds each second of a video together with its neighbours.

    The window of the options is the number of seconds embedded together; see
    :func:`~stepgraph.networks.videoclip.embed_rows`.
    """

    @property
    def clips(self) -> ClipOptions:
        """Clip that S3D takes for one row: always a second."""
        return self.model.clips

    def _finish(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        # VideoCLIP was trained on what S3D gives, of any length, and not on unit vectors.
        window = int(self.options.window or _LONGEST)
        return cast("_VideoClip", self.model).embed_rows(vectors, window)


@dataclass(frozen=True)
class _S3DModel:
    """S3D with the positions of its words."""

    network: S3D
    positions: dict[str, int]
    device: str
    clips: ClipOptions = _S3D_CLIPS

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        return _look(self.network, frames, self.device)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        from stepgraph.networks.s3d import find_words

        words = find_words(texts, self.positions)
        with torch.inference_mode():
            vectors = self.network.embed_words(words.to(self.device))
        # Without a listed word, the network embeds padding only, which has no meaning.
        has_words = (words > 0).any(dim=1)
        return as_array(vectors * has_words[:, None].to(self.device))


@dataclass(frozen=True)
class _VideoClip:
    """VideoCLIP on features of S3D; see :class:`~stepgraph.encoders.visual.VisualModel`."""

    network: VideoCLIP
    s3d: S3D
    tokenizer: Any
    device: str
    clips: ClipOptions = _VIDEOCLIP_CLIPS

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features of S3D, which are not yet vectors of the space of texts."""
        return _look(self.s3d, frames, self.device)

    def embed_rows(self, features: NDArray[np.float32], window: int) -> NDArray[np.float32]:
        """Vectors of all seconds of a video, from the features of S3D."""
        import torch

        from stepgraph.networks.videoclip import embed_rows

        with torch.inference_mode():
            given = torch.from_numpy(features).to(self.device)
            return as_array(embed_rows(self.network, given, window=window))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        from stepgraph.networks.videoclip import pad_tokens

        pieces = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        tokens, present = pad_tokens([piece.ids for piece in pieces])
        with torch.inference_mode():
            return as_array(
                self.network.embed_texts(tokens.to(self.device), present.to(self.device))
            )


def _look(network: S3D, frames: NDArray[np.uint8], device: str) -> NDArray[np.float32]:
    import torch

    with torch.inference_mode():
        clips = torch.from_numpy(frames).to(device).permute(0, 4, 1, 2, 3)
        return as_array(network(clips.float() / 255))


def _load_s3d(weights: Path, words: Path) -> _S3DModel:
    from stepgraph.networks.s3d import PUBLISHED_WORDS, S3D
    from stepgraph.networks.weights import make_filled, read_weights

    content = read_weights(weights)
    table = content.get("text_module.word_embd.weight")
    rows = table.shape[0] if table is not None and table.ndim else PUBLISHED_WORDS
    network = make_filled(lambda: S3D(rows), content, weights)
    positions = _positions(_read_words(words), rows, words)
    device = pick_device()
    return _S3DModel(network.to(device).eval(), positions, device)


def _load_videoclip(checkpoint: Path, weights: Path, tokenizer: Path) -> _VideoClip:
    from stepgraph.networks.s3d import S3D
    from stepgraph.networks.videoclip import VideoCLIP, options_of
    from stepgraph.networks.weights import make_filled, read_weights

    s3d = make_filled(lambda: S3D(words=None), read_weights(weights), weights)
    content = {name.removeprefix(_WRAPPER): w for name, w in read_weights(checkpoint).items()}
    options = options_of(content)
    network = make_filled(lambda: VideoCLIP(options), content, checkpoint)
    read = _read_tokenizer(tokenizer, network.options.words)
    device = pick_device()
    return _VideoClip(network.to(device).eval(), s3d.to(device).eval(), read, device)


def _read_words(path: Path) -> list[str]:
    """Read the words of S3D in order: an array of texts, or text split at white space."""
    if path.suffix != ".npy":
        return read_text(path).split()
    try:
        # Mapped, an array that claims more than its file holds is refused before it is made.
        with warnings.catch_warnings(action="ignore"):  # of strange escapes in a header
            words = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # foreign files fail in any way there is
        said = one_line(str(error), 120)
        raise DataError(f"{path}: must be a whole npy file of words, got: {said}") from error
    if words.ndim != 1 or words.dtype.kind != "U":
        raise DataError(
            f"{path}: must be a list of words, got shape {words.shape} of {words.dtype}; "
            f"is it the file of another network?"
        )
    return [str(word) for word in words]


def _positions(words: Sequence[str], rows: int, path: Path) -> dict[str, int]:
    """Map each word to its row in a table of word vectors whose first row is padding."""
    # The published number of rows may or may not count the first.
    if not rows - 1 <= len(words) <= rows:
        raise DataError(
            f"{path}: must list {rows - 1:,} words, one for each word vector, got {len(words):,}; "
            f"take the list that was published with the weights"
        )
    return {word: position for position, word in enumerate(words[: rows - 1], start=1)}


def _read_tokenizer(path: Path, words: int) -> Any:
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    make: Callable[[str], Any] = Tokenizer.from_file
    if path.suffix == ".txt":
        make = BertWordPieceTokenizer  # in lower case, unless set otherwise
    try:
        tokenizer = make(str(path))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as error:  # the library raises bare ones
        raise DataError(
            f"{path}: must be a tokenizer file of bert-base-uncased, got one that cannot be read "
            f"({one_line(str(error), 80)}); fetch it again"
        ) from error
    marks = [tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]")]
    size = tokenizer.get_vocab_size()
    if marks != [101, 102] or size > words:
        raise DataError(
            f"{path}: must be the tokenizer of bert-base-uncased, with {words:,} pieces and [CLS] "
            f"and [SEP] at 101 and 102, got {size:,} pieces and {marks}"
        )
    return tokenizer
