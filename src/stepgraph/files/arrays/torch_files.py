"""Reader of untrusted ``torch.save`` files, for the process that reads arrays.

Objects in such a file besides tensors and plain values (settings, an optimizer, a shell command)
become empty placeholders.  So a checkpoint full of another project's objects, which
``torch.load(weights_only=True)`` refuses, gives its tensors and runs no code.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepgraph.errors import DataError
from stepgraph.files.arrays.pickles import Refusal, StandIn, unpickler

# Under which names checkpoints keep their weights, besides keeping nothing else.
_HOLDERS = ("state_dict", "model", "model_state", "model_state_dict", "weights")


class Blank:
    """Placeholder for anything that is neither a plain value nor a tensor."""

    __slots__ = ()
    dump_patches = False  # torch reads it for a network whose source was saved with it

    def __new__(cls, *_: Any, **__: Any) -> Blank:  # noqa: D102
        return super().__new__(cls)

    def __setstate__(*_: Any) -> None:
        """Drop the content of an object, a list or a dict."""

    __setitem__ = append = extend = add = __setstate__


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Any:
    found = torch._utils._rebuild_tensor(storage, offset, shape, strides)  # type: ignore[no-untyped-call]
    # Numbers repeated by a stride of 0 would be a tensor larger than its file.
    return found if found.nbytes <= found.untyped_storage().nbytes() else Blank


def _parameter(tensor: Any, *_: Any) -> Any:
    return tensor if isinstance(tensor, Tensor) else Blank


_ALLOWED: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor": StandIn(_tensor),
    "torch._utils._rebuild_tensor_v2": StandIn(_tensor),
    "torch._utils._rebuild_parameter": StandIn(_parameter),
    "torch._utils._rebuild_parameter_with_state": StandIn(_parameter),
}


def _blanked(name: str) -> Any:
    return _ALLOWED.get(name, Blank)


def _plain(name: str) -> Any:
    if name not in _ALLOWED:
        raise Refusal("more than plain values and tensors")
    return _ALLOWED[name]


def _load(path: Path, find: Callable[[str], Any], *, whole: bool) -> Any:
    """Load a saved object; an archive is checked for damage only if ``whole`` is set."""
    restricted = unpickler(find)
    module = SimpleNamespace(
        __name__="pickle",
        Unpickler=restricted,
        UnpicklingError=pickle.UnpicklingError,
        load=lambda file, **_: restricted(file).load(),
    )
    with path.open("rb") as file:
        start = file.read(16)
    how: dict[str, Any] = {"map_location": "cpu", "weights_only": False, "pickle_module": module}
    if start.startswith(b"PK\x03\x04"):
        _check_archive(path, whole)
        return torch.load(path, mmap=True, **how)
    if not start.startswith(b"\x80"):
        raise Refusal(_kind_of(start))
    # From a path, torch would first try to unpack the file as a tar archive.
    return torch.load(io.BytesIO(path.read_bytes()), **how)


def _check_archive(path: Path, whole: bool) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            damaged = archive.testzip() if whole else None
    except zipfile.BadZipFile:
        damaged = path.name
    if damaged is not None:
        raise Refusal("an archive that is cut off or damaged")
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise Refusal("content that is compressed", "load it with torch and save it again")
    # Torch lists the records, since it is torch that would load such a file in another way.
    if "constants.pkl" in torch._C.PyTorchFileReader(str(path)).get_all_records():
        raise Refusal("a program of TorchScript", "save its state_dict()")


def _kind_of(start: bytes) -> str:
    if not start:
        return "an empty file"
    if start.startswith(b"version https://"):
        return "a Git LFS pointer, which only names the file"
    if start.lstrip().startswith(b"<"):
        return "a web page"
    return f"something that begins {start[:8]!r}"


def open_pt(path: Path, *, alone: bool = False) -> dict[str, Callable[[], NDArray[Any]]]:
    """Open a file of named tensors; with ``alone``, a single tensor without a name is allowed."""
    content = _load(path, _blanked, whole=alone)
    if alone and isinstance(content, Tensor):
        content = {"": content}
    if not isinstance(content, dict):
        foreign = content is Blank or isinstance(content, Blank)
        got = "something that is no dense tensor of real numbers"
        got = got if foreign else f"a {type(content).__name__.lower()}"
        if alone:
            raise DataError(f"must hold one tensor, alone or in a dict, got {got}")
        raise DataError(
            f"must hold a dict of tensors, one a video, got {got}; "
            f"put the file of one video into a folder, and give the folder"
        )
    return {
        str(key): partial(_numbers, tensor)
        for key, tensor in content.items()
        if isinstance(key, str | int) and isinstance(tensor, Tensor)
    }


def _numbers(tensor: Tensor) -> NDArray[Any]:
    found: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return found


def read_weights(path: Path) -> NDArray[np.uint8]:
    """Extract the named weights of a checkpoint, saved again as bytes."""
    content = _load(path, _blanked, whole=True)
    held = [content.get(name) for name in _HOLDERS] if isinstance(content, dict) else []
    for part in (*held, content):
        if isinstance(part, dict):
            found = {n: t for n, t in part.items() if type(n) is str and isinstance(t, Tensor)}
            if found:
                return _saved({name: _with_truths(tensor) for name, tensor in found.items()})
    raise Refusal(
        "one without any named weights, plain or under "
        f"{', '.join(map(repr, _HOLDERS))} (a whole pickled model cannot be read: "
        "save its state_dict())"
    )


def _with_truths(tensor: Tensor) -> Tensor:
    # Torch trusts the bytes of a bool to be 0 or 1.
    return tensor.view(torch.uint8) != 0 if tensor.dtype == torch.bool else tensor


def read_state(path: Path) -> NDArray[np.uint8]:
    """Read a file of plain values and tensors only, saved again as bytes."""
    return _saved(_load(path, _plain, whole=True))


def _saved(content: Any) -> NDArray[np.uint8]:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return np.frombuffer(buffer.getbuffer(), np.uint8)
