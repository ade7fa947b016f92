"""CLIP, SigLIP and X-CLIP with published weights, through the transformers library.

Pictures are prepared here, in torch: the library's own processors would need torchvision.  The
frame reader scales and crops them; this module cuts out the centre and normalises colours.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.model_folders import (
    PUBLISHED,
    fetch_folder,
    find_folder,
    first_line,
    quieten,
    read_config,
    read_pixel_settings,
    require_weights,
    three_numbers,
)
from stepgraph.encoders.visual import VisualEncoder, as_array, pick_device
from stepgraph.errors import ConfigError, DataError, quoted
from stepgraph.ingest.frames import ClipOptions

if TYPE_CHECKING:
    import torch

# Frames of one row that are pooled, at most: a window of minutes must not fill the memory.
_MOST_FRAMES = 16
_MARGIN = 16  # times the input side of a network, at most, is read
_TOKENIZERS = ("tokenizer.json", "vocab.json", "spiece.model", "tokenizer.model")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


FAMILIES = PUBLISHED["families"]
"""Settings that models of one kind share, used where the folder of a model has none."""


@dataclass(frozen=True)
class Pixels:
    """Sizes and colour normalisation of the pictures for a model.

    Frames are scaled to ``read``, cropped rather than squeezed if ``crop`` is set; the network
    takes their centre of ``size`` (height and width).  A colour from 0 to 255 becomes
    ``(color * scale - mean) / std``.
    """

    size: tuple[int, int]
    read: tuple[int, int]
    crop: bool
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 1 / 255

    def prepare(self, frames: NDArray[np.uint8], device: str) -> torch.Tensor:
        """Cut out and normalise frames, from (B, F, H, W, 3) to (B, F, 3, height, width)."""
        import torch

        top, left = ((read - seen) // 2 for read, seen in zip(self.read, self.size, strict=True))
        seen = frames[:, :, top : top + self.size[0], left : left + self.size[1]]
        colors = torch.tensor(seen, device=device).permute(0, 1, 4, 2, 3).float()
        mean = torch.tensor(self.mean, device=device).view(3, 1, 1)
        std = torch.tensor(self.std, device=device).view(3, 1, 1)
        return (colors * self.scale - mean) / std


class PretrainedModel:
    """A model of the transformers library; see :class:`~stepgraph.encoders.visual.VisualModel`.

    The ``kind`` is one of :data:`FAMILIES`, whose window is the default.
    """

    def __init__(
        self, kind: str, network: Any, tokenizer: Any, pixels: Pixels, window: float | None = None
    ) -> None:
        self.kind = kind
        self.device = pick_device()
        self._network = network.eval().to(self.device)
        self._tokenizer = tokenizer
        self._pixels = pixels
        seconds = FAMILIES[kind]["window"] if window is None else window
        frames = min(_MOST_FRAMES, max(1, ceil(seconds)))
        if kind == "xclip":
            frames = network.config.vision_config.num_frames
        height, width = pixels.read
        self.clips = ClipOptions(frames, seconds, height=height, width=width, crop=pixels.crop)

    def encode_clips(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Embed clips: with X-CLIP as a whole, else as the mean of unit vectors of frames."""
        import torch

        with torch.inference_mode():
            pixels = self._pixels.prepare(frames, self.device)
            if self.kind == "xclip":
                return as_array(_pooled(self._network.get_video_features(pixels)))
            found = _pooled(self._network.get_image_features(pixels.flatten(0, 1))).float()
            found = found / found.norm(dim=1, keepdim=True)
            return as_array(found.unflatten(0, pixels.shape[:2]).mean(dim=1))

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; without X-CLIP's adaptation to a video, so that each has one vector."""
        import torch

        with torch.inference_mode():
            return as_array(_pooled(self._network.get_text_features(**self._tokens(texts))))

    def _tokens(self, texts: Sequence[str]) -> dict[str, torch.Tensor]:
        # SigLIP as it was trained and is evaluated: no capitals, no punctuation, always filled
        # up to its full length, and nothing of that masked.
        siglip, words = self.kind == "siglip", self._network.config.text_config
        if siglip:
            texts = [" ".join(text.lower().translate(_NO_PUNCTUATION).split()) for text in texts]
        tokens = self._tokenizer(
            list(texts),
            padding="max_length" if siglip else True,
            padding_side="right",
            truncation=True,
            max_length=words.max_position_embeddings,
            return_tensors="pt",
        )
        if tokens["input_ids"].max() >= words.vocab_size:
            raise DataError(
                f"tokens must be below the {words.vocab_size} of the {self.kind} model, got "
                f"{int(tokens['input_ids'].max())}; is its tokenizer that of another model?"
            )
        names = ("input_ids",) if siglip else ("input_ids", "attention_mask")
        return {name: tokens[name].to(self.device) for name in names}


def make_pretrained(options: EncoderOptions) -> VisualEncoder:
    """Make an encoder of a CLIP, X-CLIP or (of fixed resolution) SigLIP model."""
    kind, model = options.kind, options.model
    find_folder(kind, model)  # a path where nothing is must not wait for the first video
    return VisualEncoder(options, partial(load_model, kind, model, options.window))


def load_model(kind: str, model: str, window: float | None = None) -> PretrainedModel:
    """Load a model of a kind by its folder or name."""
    folder = fetch_folder(kind, model)
    read_config(kind, folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ConfigError(
            f"{folder}: must contain a tokenizer ({' or '.join(_TOKENIZERS)}), got none; "
            f"copy the whole model"
        )
    quieten()
    require_weights(folder)
    network = _load_network(kind, folder)
    tokenizer = _load_tokenizer(kind, folder, network.config.text_config.vocab_size)
    return PretrainedModel(kind, network, tokenizer, _read_pixels(kind, folder, network), window)


def _load_network(kind: str, folder: Path) -> Any:
    import torch
    import transformers

    name = FAMILIES[kind]["model"]
    try:
        network, report = getattr(transformers, name).from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # whatever the library and those below it make of a broken file
        raise DataError(
            f"{folder}: must hold the weights of a {name}, got: {first_line(error)}; "
            f"download or copy it again"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        # The library would fill them with random numbers and go on.
        raise DataError(
            f"{folder}: must hold all weights of a {name}, got none for {len(missing)} of them, "
            f"such as {missing[0]}; download or copy it again"
        )
    return network


def _load_tokenizer(kind: str, folder: Path, pieces: int) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    # The class that SigLIP names needs sentencepiece, and is not needed: the file is enough.
    whole = kind == "siglip" and (folder / "tokenizer.json").is_file()
    try:
        chosen = PreTrainedTokenizerFast if whole else AutoTokenizer
        # Else the library would prompt for permission to run code of the folder.
        how: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = chosen.from_pretrained(folder, **how)
        tokenizer(["boil", "boil water"], padding=True)
        if len(tokenizer) < pieces // 2:  # the library makes an empty one where a file is missing
            raise ValueError(f"{len(tokenizer)} pieces of {pieces}")
    except Exception as error:  # as above
        raise DataError(
            f"{folder}: must hold the tokenizer of a {kind} model, got: {first_line(error)}; "
            f"copy the whole model, tokenizer.json included"
        ) from error
    return tokenizer


def _read_pixels(kind: str, folder: Path, network: Any) -> Pixels:
    side = network.config.vision_config.image_size
    height, width = (side, side) if isinstance(side, int) else side
    path, settings = read_pixel_settings(folder)
    pixels = make_pixels(kind, (height, width), settings, str(path))
    if pixels.size != (height, width):
        raise DataError(
            f"{path}: pictures must be {height} x {width} as the weights require, "
            f"got {pixels.size[0]} x {pixels.size[1]}; are the files of one model?"
        )
    return pixels


def make_pixels(
    kind: str, size: tuple[int, int], given: Mapping[str, Any], where: str = "settings"
) -> Pixels:
    """Convert the settings of an image processor; missing ones are those of the kind.

    >>> make_pixels("clip", (224, 224), {"size": {"shortest_edge": 256}, "crop_size": 224}).read
    (256, 256)
    """
    family = FAMILIES[kind]
    try:
        resized, squeezed = _sides(given.get("size"), size)
        crop = not squeezed and (family["crop"] or "size" in given)
        cut, _ = _sides(given.get("crop_size"), size)
        if not given.get("do_center_crop", family["crop"]):
            cut = resized
        read = (max(resized[0], cut[0]), max(resized[1], cut[1]))
        if min(*resized, *cut) < 1 or max(read) > _MARGIN * max(size):
            raise ValueError(f"pictures of {quoted(read)} for a network of input {size}")
        if not given.get("do_normalize", True):
            given = {**given, "image_mean": (0, 0, 0), "image_std": (1, 1, 1)}
        return Pixels(
            size=cut,
            read=read,
            crop=crop,
            mean=three_numbers(given.get("image_mean", family["mean"])),
            std=three_numbers(given.get("image_std", family["std"]), above=0),
            scale=float(given.get("rescale_factor", 1 / 255)),
        )
    except (TypeError, ValueError, KeyError) as error:
        raise DataError(
            f"{where}: must be the settings of an image processor, got: {first_line(error)}; "
            f"copy the whole model again"
        ) from error


def _sides(given: Any, default: tuple[int, int]) -> tuple[tuple[int, int], bool]:
    """Height and width of a setting, and True if both are given, as for a squeezed picture."""
    if given is None:
        return default, False
    if isinstance(given, Mapping) and "height" in given:
        return (int(given["height"]), int(given["width"])), True
    side = int(given["shortest_edge"] if isinstance(given, Mapping) else given)
    return (side, side), False


def _pooled(output: Any) -> Any:
    """Unwrap the vectors, which some versions of the library wrap."""
    return getattr(output, "pooler_output", output)
