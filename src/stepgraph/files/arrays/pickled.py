"""Arrays in pickles: an array, or a list of arrays, one a row."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import Wanted
from stepgraph.files.disk import MIB
from stepgraph.files.pickles import Refusal, StandIn, unpickle

_LARGEST = 256 * MIB
# No bool, which numpy trusts to be 0 or 1; no object, no text, no date, no record.
_NUMBERS = re.compile(r"[iu][1248]|f[248]")
_LONGEST = 1 << 40  # of any side of an array

_CONVERT = "if you trust the file, load it with pickle and save its arrays with numpy.save"


class _Dtype:
    """What stands in for a numpy dtype while a pickle describes it."""

    def __init__(self, code: Any, *_: Any) -> None:
        if type(code) is not str or not _NUMBERS.fullmatch(code):
            said = repr(code[:20]) if type(code) is str else "none"
            raise Refusal(f"an array of type {said}, not of real numbers")
        self.code = code
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        match state:
            case (3, ("<" | ">" | "=" | "|") as order, None, None, None, *_):
                self.order = order
            case _:
                raise Refusal("an array of a strange type")

    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


@dataclass(eq=False)
class _Array:
    """What stands in for an array: what it is described by, and its content as it lies there."""

    shape: tuple[int, ...] = ()
    dtype: _Dtype | None = None
    fortran: bool = False
    data: Any = None

    def __setstate__(self, state: Any) -> None:
        match state:
            case (1, tuple(shape), _Dtype() as dtype, 0 | 1 as fortran, data):
                sane = all(type(side) is int and 0 <= side < _LONGEST for side in shape)
                if sane and type(data) in (bytes, bytearray, str):
                    self.shape, self.dtype, self.data = shape, dtype, data
                    self.fortran = bool(fortran)
                    return
        raise Refusal("an array that is strangely described")

    def values(self) -> NDArray[Any]:
        """The array: a view of its content, which no other array need share."""
        assert self.dtype is not None
        data = self.data.encode("latin1") if type(self.data) is str else self.data
        order: Literal["F", "C"] = "F" if self.fortran else "C"
        found: NDArray[Any] = np.ndarray(self.shape, self.dtype.numpy(), data, order=order)
        if found.nbytes != len(data):
            raise Refusal(f"an array of {found.nbytes:,} bytes with {len(data):,} of content")
        return found


def _restored(data: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    found = _Array()
    found.__setstate__((1, shape, dtype, {"C": False, "F": True}.get(order), data))
    return found


def _spelt(text: Any, encoding: Any) -> str:
    """How protocols 0 to 2 spell bytes; they stay text until they are the content of an array."""
    if type(text) is not str or encoding != "latin1":
        raise Refusal("bytes that are strangely spelt")
    return text


_KNOWN: dict[str, Any] = {
    "numpy.ndarray": None,
    "numpy.dtype": StandIn(_Dtype),
    "_codecs.encode": StandIn(_spelt),
    "__builtin__.bytes": StandIn(lambda: b""),
    "builtins.bytes": StandIn(lambda: b""),
}
for _core in ("core", "_core"):  # before numpy 2, and since
    _KNOWN[f"numpy.{_core}.multiarray._reconstruct"] = StandIn(lambda *_: _Array())
    _KNOWN[f"numpy.{_core}.numeric._frombuffer"] = StandIn(_restored)


def _find(name: str) -> Any:
    if name not in _KNOWN:
        raise Refusal(f"a call for {name[:80]!r}, which was not made", _CONVERT)
    return _KNOWN[name]


def read_pkl(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a pickle of an array, or of a list of arrays, one a row."""
    if (size := path.stat().st_size) > _LARGEST:
        raise DataError(
            f"{wanted.where}: must be a pickle of at most {_LARGEST / MIB:,.0f} MiB, "
            f"got {size / MIB:,.0f} MiB; {_CONVERT}"
        )
    data = io.BytesIO(path.read_bytes())
    content = unpickle(data, _find)
    if data.read(1):
        raise Refusal("a second pickle behind the first")
    if isinstance(content, _Array) and content.dtype is not None:
        wanted.check(content.shape, content.dtype.numpy())
        return content.values()
    if not isinstance(content, list):
        kind = type(content).__name__.strip("_").lower()
        raise DataError(f"{wanted.where}: must hold a list of arrays, one a row, got a {kind}")
    return _stacked(content, wanted)


def _stacked(rows: list[Any], wanted: Wanted) -> NDArray[Any]:
    """Rows as one array; one row may be named a million times, so they are measured first."""
    first = rows[0] if rows and isinstance(rows[0], _Array) else _Array()
    width = wanted.width or max(first.shape, default=1)
    wanted.check_memory((len(rows), width), 8)
    for number, row in enumerate(rows):
        if not isinstance(row, _Array) or row.shape not in ((1, width), (width,)):
            got = row.shape if isinstance(row, _Array) else f"a {type(row).__name__}"
            raise DataError(
                f"{wanted.where}: row {number} must be an array of shape (1, {width}), got {got}; "
                f"{wanted.kind.hint.replace('were they', 'was it')}"
            )
    return np.array([row.values().ravel() for row in rows]).reshape(-1, width)
