"""Read files of ``torch.save`` that nobody need trust, without torch.

Such a file is a pickle, which describes its tensors, and their numbers.  What the pickle describes
is taken down; whatever else it asks for (settings, an optimizer, a call of the shell) becomes a
blank that does and holds nothing.  So a checkpoint full of another project's objects gives its
tensors, and can do nothing else.

``torch.load(weights_only=True)`` runs no foreign code, either.  But it lets a file of a kilobyte
take all memory, and refuses a checkpoint for one object of another project beside its weights.
"""

from __future__ import annotations

import io
import mmap
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.files.pickles import Fixed, Refusal, StandIn, unpickle

BFLOAT16 = "bfloat16"
"""The kind of numbers that numpy lacks; it sees their bits."""

_KINDS = {
    "torch.FloatStorage": "<f4",
    "torch.DoubleStorage": "<f8",
    "torch.HalfStorage": "<f2",
    "torch.BFloat16Storage": BFLOAT16,
    "torch.LongStorage": "<i8",
    "torch.IntStorage": "<i4",
    "torch.ShortStorage": "<i2",
    "torch.CharStorage": "i1",
    "torch.ByteStorage": "u1",
    "torch.BoolStorage": "?",
}
_LARGEST = 1 << 40  # of any number that describes a tensor
# What a torch file before 1.6 begins with, as three pickles: a number, a version, the machine.
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001


class Blank:
    """What stands for anything that is neither a plain value nor a tensor."""

    __slots__ = ()

    def __new__(cls, *_: Any, **__: Any) -> Blank:  # noqa: D102
        return super().__new__(cls)

    def __setstate__(*_: Any) -> None:
        """Drop what an object, a list or a dict would be filled with."""

    __setitem__ = append = extend = add = __setstate__


class _Dict(dict[Any, Any]):
    """What stands for an ordered dict."""

    def __setstate__(self, state: Any) -> None:
        """Drop its attributes."""


@dataclass(frozen=True, eq=False)
class _Kind(Fixed):
    """What stands for the type of a storage."""

    name: str


@dataclass(frozen=True, eq=False)
class Storage(Fixed):
    """A run of numbers behind the pickle."""

    key: str
    kind: str
    count: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """How numpy sees the numbers."""
        return np.dtype("<u2" if self.kind == BFLOAT16 else self.kind)


@dataclass(frozen=True, eq=False)
class Tensor(Fixed):
    """What a tensor is described by: a view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TensorFile:
    """An open file of torch.save.

    Attributes
    ----------
    content
        What was saved, with a :class:`Tensor` for each tensor; their numbers stay in the file.
    """

    def __init__(self, path: Path) -> None:
        self._storages: dict[str, Storage] = {}
        self._last: tuple[str, bytearray] = "", bytearray()
        self.content: Any = None
        with path.open("rb") as file:
            start = file.read(16)
            if start.startswith(b"\x80"):
                self._load = self._open_legacy(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                )
            elif start.startswith(b"PK\x03\x04"):
                self._load = self._open_archive(path)
            else:
                raise Refusal(f"{_kind_of(start)}")

    def _open_archive(self, path: Path) -> Callable[[Storage], bytes]:
        """Open a file of torch 1.6 or newer: a zip archive of a pickle and the numbers."""
        try:
            archive = zipfile.ZipFile(path)
            members = _members(archive, path.stat().st_size)
            pickled = io.BytesIO(archive.read(members["data.pkl"]))
            if "byteorder" in members and archive.read(members["byteorder"]) != b"little":
                raise Refusal("numbers in the byte order of another machine")
        except (OSError, Refusal):
            raise
        except Exception as error:  # one that is damaged, encrypted or none fails in any way
            said = " ".join(str(error).split())[:80]
            raise Refusal(f"an archive that is cut off or damaged ({said})") from None
        self.content = unpickle(pickled, _find, self._refer)
        return lambda storage: archive.read(members[f"data/{storage.key}"])

    def _open_legacy(self, file: mmap.mmap) -> Callable[[Storage], bytes]:
        """Open a file of torch before 1.6: five pickles, and then the numbers."""
        if unpickle(file, _find) != _MAGIC or unpickle(file, _find) != _VERSION:
            raise Refusal("a pickle that is no file of torch")
        system = unpickle(file, _find)
        if type(system) is not dict or system.get("little_endian") is not True:
            raise Refusal("numbers in the byte order of another machine")
        self.content = unpickle(file, _find, self._refer)
        keys = unpickle(file, _find)
        places: dict[str, slice] = {}
        start = file.tell()
        for key in keys if type(keys) is list else []:
            if type(key) is not str or key not in self._storages:
                raise Refusal("numbers of a kind that is not known here")
            count, size = self._storages[key].count, self._storages[key].dtype.itemsize
            # One after the other, each behind their count.
            if file[start : start + 8] != struct.pack("<q", count):
                raise Refusal(f"another count of numbers than the {count:,} it says")
            places[key] = slice(start + 8, start + 8 + count * size)
            start = places[key].stop
        return lambda storage: file[places[storage.key]]

    def _refer(self, reference: Any) -> Any:
        """Take down which numbers are meant by what torch calls a persistent id."""
        match reference:
            case ("storage", _Kind() as kind, str(key), str(), int(count), *rest):
                # More would be a view of another storage, not written since torch 0.4.
                if 0 <= count < _LARGEST and rest in ([], [None]):
                    found = self._storages.setdefault(key, Storage(key, kind.name, count))
                    if (found.kind, found.count) != (kind.name, count):
                        raise Refusal(f"two descriptions of the numbers {key[:20]!r}")
                    return found
        return Blank

    def read(self, tensor: Tensor) -> NDArray[Any]:
        """The numbers of a tensor."""
        storage, size = tensor.storage, tensor.storage.dtype.itemsize
        numbers = self._numbers(storage)
        strides = [stride * size for stride in tensor.strides]
        found: NDArray[Any] | None = None
        with suppress(ValueError):  # past the end of its numbers
            found = np.ndarray(tensor.shape, storage.dtype, numbers, tensor.offset * size, strides)
        # Numbers repeated by a stride of 0 would be a tensor larger than its file.
        if found is None or found.nbytes > len(numbers):
            raise Refusal(f"a tensor of shape {tensor.shape} in {storage.count:,} numbers")
        # A truth is trusted to be 0 or 1.
        return found.view("u1") != 0 if storage.kind == "?" else found

    def _numbers(self, storage: Storage) -> bytearray:
        """The numbers of a storage; the last are kept, since tensors in a row may share them."""
        if storage.key != self._last[0]:
            try:
                found = bytearray(self._load(storage))
            except KeyError:
                found = bytearray()
            if len(found) != storage.count * storage.dtype.itemsize:
                raise Refusal(
                    f"{len(found):,} bytes where it says "
                    f"{storage.count * storage.dtype.itemsize:,}"
                )
            self._last = storage.key, found
        return self._last[1]


def _kind_of(start: bytes) -> str:
    if not start:
        return "an empty file"
    if start.startswith(b"version https://"):
        return "a Git LFS pointer, which only names the file"
    if start.lstrip().startswith(b"<"):
        return "a web page"
    return f"something that begins {start[:8]!r}"


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Files of the archive by name, without the folder that all lie in."""
    infos = archive.infolist()
    packed = any(info.compress_type != zipfile.ZIP_STORED for info in infos)
    if packed or sum(info.file_size for info in infos) > size:
        raise Refusal(
            "content that is compressed or claims to be larger than the file",
            "load it with torch and save it again",
        )
    members = {info.filename.partition("/")[2]: info for info in infos}
    if "data.pkl" not in members:
        raise Refusal("an archive of something else (without data.pkl)")
    return members


def _ordered(pairs: Any = (), *_: Any) -> _Dict:
    """An ordered dict, empty or (as Python 2 wrote it) of a list of pairs."""
    found = _Dict()
    for pair in pairs if type(pairs) is list else []:
        if type(pair) in (list, tuple) and len(pair) == 2 and type(pair[0]) is str:
            found[pair[0]] = pair[1]
    return found


def _tensor(*parts: Any) -> Any:
    match parts:
        case (Storage() as storage, int(offset), tuple(shape), tuple(strides), *_):
            numbers = (offset, *shape, *strides)
            sane = all(type(number) is int and 0 <= number < _LARGEST for number in numbers)
            if not sane or len(shape) != len(strides):
                raise Refusal("a tensor that is strangely described")
            return Tensor(storage, offset, shape, strides)
    return Blank


def _parameter(*parts: Any) -> Any:
    # Nothing else is handed back, as its size would be lost to who looked through the pickle.
    return parts[0] if parts and isinstance(parts[0], Tensor) else Blank


_KNOWN: dict[str, Any] = {name: _Kind(kind) for name, kind in _KINDS.items()} | {
    "collections.OrderedDict": StandIn(_ordered),
    "torch._utils._rebuild_tensor": StandIn(_tensor),
    "torch._utils._rebuild_tensor_v2": StandIn(_tensor),
    "torch._utils._rebuild_parameter": StandIn(_parameter),
    "torch._utils._rebuild_parameter_with_state": StandIn(_parameter),
}


def _find(name: str) -> Any:
    return _KNOWN.get(name, Blank)
