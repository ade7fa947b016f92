"""Folders of models in the format of the transformers library: finding and checking them."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from stepgraph.encoders import KINDS, WORDED, EncoderOptions
from stepgraph.errors import ConfigError, DataError, one_line
from stepgraph.files.addresses import is_offline
from stepgraph.files.disk import read_json

PUBLISHED = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
"""Facts on published models that their own files do not contain."""

# Weights as transformers looks for them: one file, or several with an index.
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_BESIDES = ("*.json", "*.txt", "*.model", "[0-9]_*/model*.safetensors")
_BUILT_IN = ("text:minilm", "ocr:minilm", "colour:motion")
_PATH = (".", "~", os.sep)  # what a path begins with, and no name of the hub
_PATHS = ("own", "s3d", "videoclip")  # kinds that are always files of this machine
_DEEPEST = 1000  # layers of a network
# Kind of encoder for model types of another name.
_OTHERS = {"bert": "text", "mpnet": "text"}


def require_named(options: EncoderOptions, whose: str, typed: Collection[str | None] = ()) -> None:
    """Refuse an encoder that only a file names: code to run, paths to open, models to download.

    Names that the user typed as well are allowed, and so are built-in and cached models.
    """
    for option, name in (("--encoder", options.name), ("--also", options.also)):
        if name is None or name in typed or name in _BUILT_IN:
            continue
        kind, _, model = name.partition(":")
        if kind not in KINDS:
            what = "a function"
        elif kind in _PATHS or model.startswith(_PATH) or os.path.exists(model):
            what = "a path"
        elif find_cached(kind, model) is None:
            what = "not in the local model cache"
        else:
            continue
        raise ConfigError(
            f"{whose} must be named explicitly if it is {what}, got {name!r}; to use it, add: "
            f"{option} {shlex.quote(name)}"
        )


def find_folder(kind: str, model: str) -> Path | None:
    """Return the folder of a model, or None for a name that the hub may resolve."""
    folder = os.path.expanduser(model)  # leaves an unknown ~user alone
    if os.path.isdir(folder):
        return Path(folder).resolve()
    if model.startswith(_PATH):
        raise ConfigError(
            f"{kind} encoder {model!r} must be the folder of a {kind} model, "
            f"got a path that is no folder{_remedy(kind)}"
        )
    return None


def fetch_folder(kind: str, model: str) -> Path:
    """Return the folder of a model: a local one, or in the user's hub cache, after download."""
    folder = find_folder(kind, model) or find_cached(kind, model)
    if folder is not None:
        return folder
    rule = f"{kind} encoder {model!r} must be a {kind} model that is a folder here"
    if is_offline():
        raise ConfigError(
            f"{rule} or lies in the local model cache; offline, nothing is downloaded"
            f"{_remedy(kind)}"
        )
    first: Exception | None = None
    for name in _names(kind, model):
        try:
            return _download(name)
        except (OSError, ValueError) as error:
            first = first or error
    raise ConfigError(
        f"{rule}, lies in the local model cache, or can be downloaded; got: {first_line(first)}"
        f"{_remedy(kind)}"
    ) from first


def _remedy(kind: str) -> str:
    """Remedy for a missing model: the files to copy, and the name to use."""
    if kind not in PUBLISHED["families"]:
        return ""
    return (
        f"; put config.json, model.safetensors, tokenizer.json and preprocessor_config.json of "
        f"one ({PUBLISHED['families'][kind]['example']}) into a folder and give it "
        f"as the encoder (--encoder {kind}:FOLDER)"
    )


def find_cached(kind: str, model: str) -> Path | None:
    """Return the folder of a model in the user's hub cache, if complete; use no network."""
    from huggingface_hub import snapshot_download

    for name in _names(kind, model):
        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError):
            continue
        if (folder / "config.json").is_file() and find_weights(folder):
            return folder
    return None


def _names(kind: str, model: str) -> tuple[str, ...]:
    """Possible names of a model on the hub; a bare one may be of sentence-transformers."""
    bare = kind in WORDED and "/" not in model
    return (f"sentence-transformers/{model}", model) if bare else (model,)


def _download(name: str) -> Path:
    import logging

    from huggingface_hub import snapshot_download

    # The client logs every attempt to reach the hub.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    folder = Path(snapshot_download(name, allow_patterns=[*_BESIDES, _WEIGHTS[0]]))
    if not find_weights(folder):
        snapshot_download(name, allow_patterns=_WEIGHTS[1])
    return folder


def quieten() -> None:
    """Silence progress bars and messages of transformers."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def find_weights(folder: Path) -> list[Path]:
    """List the files of weights in the folder of a model, safetensors if there are any."""
    found = (sorted(filter(Path.is_file, folder.glob(pattern))) for pattern in _WEIGHTS)
    return next((files for files in found if files), [])


def require_weights(folder: Path) -> None:
    """Refuse a config of a larger network than its files of weights, before making it."""
    import torch
    from transformers import AutoConfig, AutoModel

    path, held = folder / "config.json", sum(file.stat().st_size for file in find_weights(folder))
    try:
        # Layers are made one by one, however many there are.
        for number in re.findall(r'layers": (\d+)', json.dumps(read_json(path))):
            if int(number) > _DEEPEST:
                raise ValueError(f"more than {_DEEPEST} layers")
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with torch.device("meta"):
            network = AutoModel.from_config(config, trust_remote_code=False)
        count = sum(weight.numel() for weight in network.parameters())
        if count > held:
            raise ValueError(f"{count:,} numbers in {held:,} bytes")
    except Exception as error:  # whatever the library makes of numbers that make no sense
        raise DataError(
            f"{path}: must describe the network whose weights lie beside it, got: "
            f"{one_line(first_line(error), 200)}; copy the whole model again"
        ) from error


def first_line(error: BaseException | None) -> str:
    """First line of the error message of another library."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].removeprefix("Got: ") if lines else type(error).__name__


def read_config(kind: str, folder: Path) -> Mapping[str, Any]:
    """Read config.json; refuse the folder of another model, or an incomplete one."""
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
    """Convert a setting of an image processor to three numbers, one for each colour channel."""
    found = tuple(float(f"{value}") for value in values)  # also of a number beyond all bounds
    if len(found) != 3 or not all(above < value < math.inf for value in found):
        raise ValueError(f"{len(found)} colours {values!r} where there must be 3 numbers")
    return found


def read_pixel_settings(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Read the settings of the library's image processor, from the file of its version."""
    for path in (folder / "preprocessor_config.json", folder / "processor_config.json"):
        content = read_json(path) if path.is_file() else None
        whole = content if isinstance(content, dict) else {}
        for found in (whole.get("image_processor"), whole.get("video_processor"), whole):
            if isinstance(found, dict) and "image_mean" in found:
                return path, found
    return folder, {}
