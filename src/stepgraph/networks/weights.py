"""Read the weights of a network from a file that nobody need trust.

A file of ``torch.save`` is a pickle, a program, with the numbers behind it.  It is not run here.
Its instructions are followed by a machine that knows lists, tuples, dicts and texts, and that
takes down what a tensor is described by; whatever else the program asks for (settings, an
optimizer, a call of the shell) is a blank that takes any argument, does nothing and is dropped.
So a checkpoint full of another project's objects gives its weights, and can do nothing else.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stepgraph.errors import DataError
from stepgraph.files.disk import require_file
from stepgraph.networks.pickled import Machine, Refusal, Storage, TensorView, follow

# Under which names checkpoints keep their weights, besides keeping nothing else.
_HOLDERS = ("state_dict", "model", "model_state", "model_state_dict", "weights")
_WRAPPER = "module."  # what training on several GPUs puts before every name

# What a torch file before 1.6 begins with, as three pickles: a number, a version, the machine.
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001

_COUNTED = ("num_batches_tracked", "position_ids")

# How an archive that is damaged, encrypted or none fails in the library.
_BROKEN = (zipfile.BadZipFile, RuntimeError, LookupError, ValueError, EOFError, struct.error)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Read the named weights of a file: safetensors, or what ``torch.save`` wrote.

    The weights are those at the top of the file or, in a checkpoint, under ``state_dict``,
    ``model``, ``model_state``, ``model_state_dict`` or ``weights``.  What is no weight is left
    out, and so is ``module.`` before a name.  Nothing in the file is run.

    Raises
    ------
    DataError
        For a file that is missing, cut off, of another kind, or without any weights.
    """
    path = Path(path)
    require_file(path, "file of weights")
    try:
        with path.open("rb") as file:
            start = file.read(16)
        if path.suffix == ".safetensors":
            found = _read_safetensors(path)
        elif start.startswith(b"PK\x03\x04"):
            found = _read_archive(path)
        elif start.startswith(b"\x80"):
            found = _read_legacy(path)
        else:
            raise Refusal(f"got {_kind_of(start)}")
        return _without_wrapper(found)
    except Refusal as refusal:
        raise DataError(
            f"{path}: must be a whole file of weights (.safetensors, or written by torch.save), "
            f"{refusal}; fetch or write it again"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path}: must be readable, got {error.strerror or error}; check its permissions"
        ) from error


def fill(module: nn.Module, weights: Mapping[str, torch.Tensor], source: Path) -> None:
    """Copy weights into a network by name; those that it has no place for are left out.

    Raises
    ------
    DataError
        If one that it needs is missing or has another shape; ``source`` begins the message.
    """
    # What a network only counts or can count again is not always saved.
    needed = {
        name: tuple(weight.shape)
        for name, weight in module.state_dict().items()
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
            f"{source}: must hold the {len(needed):,} weights of {type(module).__name__}, got "
            f"{', '.join(wrong[:3])}{more}; is it the file of another network?"
        )
    module.load_state_dict({name: weights[name] for name in needed}, strict=False)


def _kind_of(start: bytes) -> str:
    if not start:
        return "an empty file"
    if start.startswith(b"version https://"):
        return "a Git LFS pointer, which only names the file"
    if start.lstrip().startswith(b"<"):
        return "a web page"
    return f"something that begins {start[:8]!r}"


def _without_wrapper(found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    named = {name.removeprefix(_WRAPPER): weight for name, weight in found.items()}
    if len(named) < len(found):
        raise Refusal(f"got names that differ only by {_WRAPPER!r} before them")
    return named


def _read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except SafetensorError as error:
        said = " ".join(str(error).split())[:120]
        raise Refusal(f"got one that is damaged or of another kind ({said})") from None


def _read_archive(path: Path) -> dict[str, torch.Tensor]:
    """Read a file of torch 1.6 or newer: a zip archive that holds a pickle and the numbers."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path.stat().st_size)
            described = _weights_in(follow(archive.read(members["data.pkl"])))
            if "byteorder" in members and archive.read(members["byteorder"]) != b"little":
                raise Refusal("got numbers in the byte order of another machine")

            def read(storage: Storage) -> bytearray:
                member = members.get(f"data/{storage.key}")
                size = storage.length * storage.dtype.itemsize
                if member is None or member.file_size != size:
                    held = member.file_size if member else 0
                    raise Refusal(f"got {held:,} bytes where it says {size:,}")
                return bytearray(archive.read(member))

            return _tensors(described, read)
    except _BROKEN as error:
        said = " ".join(str(error).split())[:80]
        raise Refusal(f"got an archive that is cut off or damaged ({said})") from None


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Files of the archive by name, without the folder that all lie in."""
    infos = archive.infolist()
    packed = any(info.compress_type != zipfile.ZIP_STORED for info in infos)
    if packed or sum(info.file_size for info in infos) > size:
        raise Refusal("got content that is compressed or claims to be larger than the file")
    members = {info.filename.partition("/")[2]: info for info in infos}
    if "data.pkl" not in members:
        raise Refusal("got an archive of something else (without data.pkl)")
    return members


def _read_legacy(path: Path) -> dict[str, torch.Tensor]:
    """Read a file of torch before 1.6: five pickles, and then the numbers."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if follow(content) != _MAGIC or follow(content) != _VERSION:
            raise Refusal("got a pickle that is no file of torch")
        system = follow(content)
        if type(system) is not dict or system.get("little_endian") is not True:
            raise Refusal("got numbers in the byte order of another machine")
        machine = Machine()
        described = _weights_in(follow(content, machine))
        places = _places(content, follow(content), machine.storages)

        def read(storage: Storage) -> bytearray:
            if machine.storages[storage.key] != storage or storage.key not in places:
                raise Refusal(f"got two descriptions of the numbers {storage.key[:20]!r}")
            start = places[storage.key]
            return bytearray(content[start : start + storage.length * storage.dtype.itemsize])

        return _tensors(described, read)


def _places(content: mmap.mmap, keys: Any, storages: dict[str, Storage]) -> dict[str, int]:
    """Where the numbers of each storage begin: one after the other, each behind their count."""
    places: dict[str, int] = {}
    start = content.tell()
    for key in keys if type(keys) is list else []:
        if type(key) is not str or key not in storages:
            raise Refusal("got numbers of a kind that is not known here")
        storage = storages[key]
        places[key] = start + 8
        start += 8 + storage.length * storage.dtype.itemsize
        if start > len(content):
            raise Refusal(f"got {len(content):,} bytes where it says {start:,} or more")
        if content[places[key] - 8 : places[key]] != struct.pack("<q", storage.length):
            raise Refusal(f"got another count of numbers than the {storage.length:,} it says")
    return places


def _weights_in(content: Any) -> dict[str, TensorView]:
    """Find the descriptions of weights at the top, or where checkpoints keep them."""
    held = [content.get(name) for name in _HOLDERS] if type(content) is dict else []
    for part in (*held, content):
        if type(part) is dict:
            found = {n: t for n, t in part.items() if type(n) is str and type(t) is TensorView}
            if found:
                return found
    raise Refusal(
        "got one without any named weights, plain or under "
        f"{', '.join(map(repr, _HOLDERS))} (a whole pickled model cannot be read: "
        "save its state_dict())"
    )


def _tensors(
    described: dict[str, TensorView], read: Callable[[Storage], bytearray]
) -> dict[str, torch.Tensor]:
    """Make the tensors; those that share a storage share it here, too."""
    for tensor in described.values():
        tensor.check()
    storages = dict.fromkeys(tensor.storage for tensor in described.values())
    flat = {storage: _numbers(read(storage), storage.dtype) for storage in storages}
    return {name: _view(flat[tensor.storage], tensor) for name, tensor in described.items()}


def _view(numbers: torch.Tensor, tensor: TensorView) -> torch.Tensor:
    if 0 in tensor.shape:
        return torch.empty(tensor.shape, dtype=numbers.dtype)
    return numbers.as_strided(tensor.shape, tensor.strides, tensor.offset)


def _numbers(content: bytearray, dtype: torch.dtype) -> torch.Tensor:
    if not content:
        return torch.empty(0, dtype=dtype)
    if dtype is torch.bool:  # which torch trusts to be 0 or 1
        return torch.frombuffer(content, dtype=torch.uint8) != 0
    return torch.frombuffer(content, dtype=dtype)
