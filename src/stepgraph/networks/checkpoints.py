"""Checkpoints of trained networks: weights, shape, and names of their keysteps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from stepgraph.errors import DataError
from stepgraph.files.disk import parse_json, replacing, require_file
from stepgraph.files.headers import FileKind, as_list, as_text, reading_fields
from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions
from stepgraph.networks.weights import make_filled, read_weights

_FORMAT = "stepgraph-timesformer"
_VERSION = "1"
_KIND = FileKind(_FORMAT, 1, "checkpoint", "train it again")


class Header(NamedTuple):
    """Header of a checkpoint: shape of the network, its keysteps, and further fields."""

    options: TimeSformerOptions
    keysteps: tuple[str, ...]
    extra: dict[str, Any]


class Trained(NamedTuple):
    """Ids of the videos that a model was trained on; ``whole`` is True if these are all."""

    videos: frozenset[str]
    whole: bool


def save_checkpoint(
    path: Path,
    model: TimeSformer,
    keysteps: Sequence[str],
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a model and the names of its classes as one .safetensors file, atomically.

    ``extra`` is any JSON content, such as ``window``, the length of a clip in seconds.
    """
    from safetensors.torch import save

    if len(keysteps) != model.options.classes:
        raise DataError(
            f"keysteps of a checkpoint must have a name for each of {model.options.classes} "
            f"classes, got {len(keysteps)}"
        )
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "options": json.dumps(asdict(model.options)),
        "keysteps": json.dumps(list(keysteps)),
        "extra": json.dumps(dict(extra or {})),
    }
    state = {name: w.detach().cpu().contiguous() for name, w in model.state_dict().items()}
    data = memoryview(save(state))
    start = 8 + int.from_bytes(data[:8], "little")
    # The library would write the header in another order each time.
    whole = json.dumps({"__metadata__": header, **json.loads(bytes(data[8:start]))}).encode()
    whole += b" " * (-len(whole) % 8)
    with replacing(Path(path)) as partial, partial.open("wb") as file:
        file.write(len(whole).to_bytes(8, "little") + whole)
        file.write(data[start:])


def read_header(path: Path) -> Header:
    """Read the header of a checkpoint, without its weights."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    require_file(path, "checkpoint (.safetensors)")
    try:
        with safe_open(path, framework="pt") as file:
            said = file.metadata() or {}
            held = file.get_slice("head.bias").get_shape() if "head.bias" in file.keys() else []  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise DataError(
            f"{path}: must be a checkpoint of stepgraph, got a file that is no safetensors "
            f"({' '.join(str(error).split())[:80]})"
        ) from error
    if (said.get("format"), said.get("version")) != (_FORMAT, _VERSION):
        raise DataError(
            f"{path}: must be a checkpoint of stepgraph, version {_VERSION}, got a safetensors "
            f"file of another kind; a folder of the transformers library is 'timesformer:FOLDER'"
        )
    try:
        found = {name: parse_json(said[name], name) for name in ("options", "keysteps", "extra")}
        options = TimeSformerOptions(**found["options"])
        keysteps = tuple(map(as_text, as_list(found["keysteps"])))
        if not [len(keysteps)] == [options.classes] == held:
            raise ValueError(f"{len(keysteps)} keysteps for {options.classes} classes of {held}")
        return Header(options, keysteps, dict(found["extra"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: must have options, keysteps and extra in its header, got: {error!r}; "
            f"write it again"
        ) from error


def trained_videos(path: Path) -> Trained:
    """Read the ids of a checkpoint's training videos; those from before 0.3 have none."""
    extra = read_header(path).extra
    if "videos" not in extra:
        return Trained(frozenset(), whole=False)
    with reading_fields(Path(path), _KIND):
        videos = frozenset(map(as_text, as_list(extra["videos"])))
    return Trained(videos, whole=extra.get("videos_whole") is True)


def load_checkpoint(path: Path) -> tuple[TimeSformer, tuple[str, ...]]:
    """Read a model (on the CPU) and the names of its classes, as save_checkpoint wrote them."""
    options, keysteps, _ = read_header(path)
    weights = read_weights(Path(path))
    return make_filled(lambda: TimeSformer(options), weights, Path(path)), keysteps
