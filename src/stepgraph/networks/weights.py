"""Reading of weights from untrusted files, and networks made with them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from stepgraph.errors import DataError, reason
from stepgraph.files.arrays import ArrayContent
from stepgraph.files.arrays.checks import STATE, WEIGHTS, Wanted
from stepgraph.files.arrays.reader import READER
from stepgraph.files.disk import require_file

_WEIGHTS = ArrayContent(file="a whole file of weights (.safetensors, or written by torch.save)")
_WRAPPER = "module."  # what training on several GPUs puts before every name
Module = TypeVar("Module", bound=nn.Module)
_COUNTED = ("num_batches_tracked", "position_ids")


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read the named weights of a file, of safetensors or ``torch.save``.

    The weights are those at the top of the file or, in a checkpoint, under ``state_dict``,
    ``model``, ``model_state``, ``model_state_dict`` or ``weights``.  Everything else is left
    out, and so is ``module.`` before a name.  No code in the file is run.
    """
    require_file(path, "file of weights")
    if path.suffix == ".safetensors":
        found = _read_safetensors(path)
    else:
        found = _read_torch(path, WEIGHTS, _WEIGHTS)
    named = {name.removeprefix(_WRAPPER): weight for name, weight in found.items()}
    if len(named) < len(found):
        raise DataError(
            f"{path}: must be {_WEIGHTS.file}, got names that differ only by {_WRAPPER!r} before "
            f"them; rename them"
        )
    return named


def read_saved(path: Path, what: str) -> Any:
    """Read a ``torch.save`` file of tensors, on the CPU, and plain values."""
    require_file(path)
    return _read_torch(path, STATE, ArrayContent(file=what))


def _read_torch(path: Path, format: str, kind: ArrayContent) -> Any:
    """Read a file through another process, which saves only the required content again."""
    saved = READER.read(path, Wanted(str(path), kind, format=format))
    try:
        return torch.load(io.BytesIO(saved.data), weights_only=True)
    except Exception as error:  # of a tensor that claimed other numbers than there are
        raise DataError(f"{path}: must be {kind.file}, got an error ({reason(error)})") from None


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, LookupError, OSError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: must be {_WEIGHTS.file}, got one that is damaged or of another kind "
            f"({reason(error)}); fetch or write it again"
        ) from None


def make_filled(
    make: Callable[[], Module], weights: Mapping[str, torch.Tensor], path: Path
) -> Module:
    """Make a network and load these weights by name; surplus weights are left out.

    The weights are checked before it is made, since its sizes may come from an untrusted file.
    """
    try:
        with torch.device("meta"):
            blank = make()
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path}: must describe a network, got {str(error)[:120]}") from error
    # What a network only counts or can count again is not always saved.
    needed = {
        name: tuple(weight.shape)
        for name, weight in blank.state_dict().items()
        if not name.endswith(_COUNTED)
    }
    wrong = [f"no {name!r}" for name in needed if name not in weights]
    wrong += [
        f"{name!r} of shape {tuple(weights[name].shape)} instead of {shape}"
        for name, shape in needed.items()
        if name in weights and weights[name].shape != shape
    ]
    if wrong:
        more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
        raise DataError(
            f"{path}: must hold the {len(needed):,} weights of {type(blank).__name__}, got "
            f"{', '.join(wrong[:3])}{more}; is it the file of another network?"
        )
    module = make()
    module.load_state_dict({name: weights[name] for name in needed}, strict=False)
    return module
