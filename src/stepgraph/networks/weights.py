"""Read the weights of a network from a file that nobody need trust, and put them into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from stepgraph.errors import DataError
from stepgraph.files.disk import reading
from stepgraph.files.pickles import Refusal
from stepgraph.files.tensors import BFLOAT16, Tensor, TensorFile

# Under which names checkpoints keep their weights, besides keeping nothing else.
_HOLDERS = ("state_dict", "model", "model_state", "model_state_dict", "weights")
_FILE = "a whole file of weights (.safetensors, or written by torch.save)"
_WRAPPER = "module."  # what training on several GPUs puts before every name
Module = TypeVar("Module", bound=nn.Module)
_COUNTED = ("num_batches_tracked", "position_ids")


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read the named weights of a file: safetensors, or what ``torch.save`` wrote.

    The weights are those at the top of the file or, in a checkpoint, under ``state_dict``,
    ``model``, ``model_state``, ``model_state_dict`` or ``weights``.  What is no weight is left
    out, and so is ``module.`` before a name.  Nothing in the file is run.
    """
    with _explaining(path, _FILE):
        if path.suffix == ".safetensors":
            found = _read_safetensors(path)
        else:
            file = TensorFile(path)
            tensors = _weights_in(file.content)
            found = {name: _as_torch(file, tensor) for name, tensor in tensors.items()}
        named = {name.removeprefix(_WRAPPER): weight for name, weight in found.items()}
        if len(named) < len(found):
            raise Refusal(f"names that differ only by {_WRAPPER!r} before them")
    return named


def read_saved(path: Path, what: str) -> Any:
    """Read all that ``torch.save`` wrote: tensors on the CPU, and plain values."""
    with _explaining(path, what):
        file, known = TensorFile(path), dict[int, Any]()

        def with_numbers(value: Any) -> Any:
            # Each part once, however many others hold it.
            if id(value) not in known:
                if type(value) is Tensor:
                    known[id(value)] = _as_torch(file, value)
                elif isinstance(value, dict):
                    known[id(value)] = {key: with_numbers(each) for key, each in value.items()}
                elif isinstance(value, list | tuple):
                    known[id(value)] = type(value)(map(with_numbers, value))
                elif not isinstance(value, str | int | float | None):
                    raise Refusal("more than plain values and tensors")
            return known.get(id(value), value)

        try:
            return with_numbers(file.content)
        except RecursionError:
            raise Refusal("values inside one another without end") from None


@contextmanager
def _explaining(path: Path, what: str) -> Iterator[None]:
    try:
        with reading(path, "file of weights"):
            yield
    except Refusal as refusal:
        raise DataError(f"{path}: must be {what}, {refusal}") from None


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())[:120]
        raise Refusal(f"one that is damaged or of another kind ({said})") from None


def _as_torch(file: TensorFile, tensor: Tensor) -> torch.Tensor:
    try:
        found = torch.from_numpy(file.read(tensor))
    except (OSError, Refusal):
        raise
    except Exception as error:  # numbers that do not have their checksum, among others
        raise Refusal(f"numbers that are damaged ({str(error)[:80]})") from None
    return found.view(torch.bfloat16) if tensor.storage.kind == BFLOAT16 else found


def _weights_in(content: Any) -> dict[str, Tensor]:
    """Find the descriptions of weights at the top, or where checkpoints keep them."""
    held = [content.get(name) for name in _HOLDERS] if isinstance(content, dict) else []
    for part in (*held, content):
        if isinstance(part, dict):
            found = {n: t for n, t in part.items() if type(n) is str and type(t) is Tensor}
            if found:
                return found
    raise Refusal(
        "one without any named weights, plain or under "
        f"{', '.join(map(repr, _HOLDERS))} (a whole pickled model cannot be read: "
        "save its state_dict())"
    )


def make_filled(
    make: Callable[[], Module], weights: Mapping[str, torch.Tensor], path: Path
) -> Module:
    """Make a network with these weights by name; those that it has no place for are left out.

    Nothing is made before the weights are known to be there: its sizes may be a file's claims.
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
