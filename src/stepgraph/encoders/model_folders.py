"""Folders of models as the transformers library writes them: where they are, what they say."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from stepgraph.encoders import KINDS
from stepgraph.errors import ConfigError
from stepgraph.files.disk import read_json

PUBLISHED = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
"""What published models are, as far as their own files do not tell."""

# Weights as transformers looks for them: one file, or several with an index.
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_BESIDES = ("*.json", "*.txt", "*.model", "[0-9]_*/*")
# Which kind of encoder takes models of a type that is named otherwise.
_OTHERS = {"bert": "text", "mpnet": "text"}


def find_folder(kind: str, model: str) -> Path | None:
    """Folder of a model, or None for a name under which the hub may have one."""
    folder = Path(os.path.expanduser(model))  # leaves an unknown ~user alone
    if folder.is_dir():
        return folder.resolve()
    if model.startswith((".", "~", os.sep)):
        raise ConfigError(
            f"{kind} encoder {model!r} must be the folder of a {kind} model, "
            f"got a path where no folder is"
        )
    return None


def fetch_folder(kind: str, model: str) -> Path:
    """Folder of a model: a folder here, the user's hub cache, or downloaded into that."""
    folder = find_folder(kind, model)
    if folder is not None:
        return folder
    import logging

    # The client says much about every attempt to reach the hub.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    # Of some models of its own, sentence-transformers takes the bare names.
    bare = kind == "text" and "/" not in model
    names = (f"sentence-transformers/{model}", model) if bare else (model,)
    for find, name in product((_find_cached, _download), names):
        try:
            return find(name)
        except (OSError, ValueError) as error:
            said = error
    raise ConfigError(
        f"{kind} encoder {model!r} must be a {kind} model that is a folder here, lies in the "
        f"local model cache, or can be downloaded; got: {first_line(said)}"
    ) from said


def _find_cached(name: str) -> Path:
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(name, local_files_only=True))
    if not (folder / "config.json").is_file() or not find_weights(folder):
        raise FileNotFoundError(f"{folder} is not whole")
    return folder


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(name, allow_patterns=[*_BESIDES, _WEIGHTS[0]]))
    if not find_weights(folder):
        snapshot_download(name, allow_patterns=_WEIGHTS[1])
    return folder


def find_weights(folder: Path) -> list[Path]:
    """Files of weights in the folder of a model, those that are preferred alone."""
    found = (sorted(folder.glob(pattern)) for pattern in _WEIGHTS)
    return next((files for files in found if files), [])


def first_line(error: BaseException) -> str:
    """What another library says in many lines, in its first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("Got: ") if lines else type(error).__name__


def read_config(kind: str, folder: Path) -> Mapping[str, Any]:
    """Read config.json; refuse a folder of another model, or half of one."""
    path = folder / "config.json"
    if not path.is_file():
        raise ConfigError(
            f"{folder}: must be the folder of a {kind} model, got one without config.json; "
            f"give the folder that save_pretrained or the hub's download has written"
        )
    content = read_json(path)
    config: Mapping[str, Any] = content if isinstance(content, dict) else {}
    if (found := config.get("model_type")) != kind:
        other = found if str(found) in KINDS else _OTHERS.get(str(found))
        hint = f"use {other}:{folder}" if other else f"give the folder of a {kind} model"
        if found == "siglip2":
            hint = "it takes pictures of any shape; use one of fixed resolution"
        raise ConfigError(f"{path}: model_type must be {kind!r}, got {found!r}; {hint}")
    if not find_weights(folder):
        raise ConfigError(
            f"{folder}: must contain weights (model.safetensors or pytorch_model.bin), got none; "
            f"copy the whole model"
        )
    return config


def three_numbers(values: Any, above: float = -math.inf) -> tuple[float, ...]:
    """A number for each colour, as an image processor has them."""
    found = tuple(float(value) for value in values)
    if len(found) != 3 or not all(above < value < math.inf for value in found):
        raise ValueError(f"{len(found)} colours {values!r} where there must be 3 numbers")
    return found


def read_pixel_settings(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Settings of the library's image processor, wherever its version keeps them."""
    for path in (folder / "preprocessor_config.json", folder / "processor_config.json"):
        content = read_json(path) if path.is_file() else None
        whole = content if isinstance(content, dict) else {}
        for found in (whole.get("image_processor"), whole.get("video_processor"), whole):
            if isinstance(found, dict) and "image_mean" in found:
                return path, found
    return folder, {}
