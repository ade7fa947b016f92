"""Unpickling of untrusted files, with Python's own unpickler and a short list of names.

A pickle is a program that calls objects by name.  Here the caller resolves every name, and gives
harmless replacements only: no module is imported, and no foreign function is called.  A pickle
can still take all memory or time.  It is therefore only loaded in the process that reads arrays,
which limits both.  This module also reads pickles of an array, or of a list of arrays, one a row.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.disk import MIB

_LARGEST = 256 * MIB
# No bool, which numpy trusts to be 0 or 1; no object, no text, no date, no record.
_NUMBERS = re.compile(r"[iu][1248]|f[248]")

_CONVERT = "if you trust the file, load it with pickle and save its arrays with numpy.save"


class Refusal(Exception):
    """Refusal of a file; its text is the end of a message: what the file has, and a remedy."""

    def __init__(self, got: str, remedy: str = "fetch or write it again") -> None:
        super().__init__(f"got {got}; {remedy}")


class StandIn:
    """Replacement for a function that a pickle names; the pickle can call but not change it."""

    __slots__ = ("_play",)

    def __init__(self, play: Callable[..., Any]) -> None:
        self._play = play

    def __call__(self, *arguments: Any) -> Any:  # noqa: D102
        return self._play(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise Refusal("a pickle that changes a StandIn")


def unpickler(find: Callable[[str], Any]) -> type[pickle.Unpickler]:
    """Make an unpickler; ``find`` returns the replacement for a name such as ``os.system``."""

    class Restricted(pickle.Unpickler):
        def __init__(self, file: Any, **_: Any) -> None:
            super().__init__(file, encoding="latin1")  # of the texts of Python 2

        def find_class(self, module: str, name: str) -> Any:
            return find(f"{module}.{name}")

    return Restricted


class _Dtype:
    """Replacement for a numpy dtype, limited to real numbers; numpy's own does not check."""

    def __init__(self, code: Any, *_: Any) -> None:
        if type(code) is not str or not _NUMBERS.fullmatch(code):
            shown = repr(code[:20]) if type(code) is str else "none"
            raise Refusal(f"an array of type {shown}, not of real numbers")
        self.numpy = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        match state:
            case (3, ("<" | ">" | "=" | "|") as order, None, None, None, *_):
                self.numpy = self.numpy.newbyteorder(order)
            case _:
                raise Refusal("an array of an unsupported type")


class _Array:
    """Replacement for a numpy array, which checks its description."""

    values: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        match state:
            case (1, tuple(shape), _Dtype() as dtype, 0 | 1 as fortran, data):
                if type(data) is str:  # as Python 2 writes bytes
                    data = data.encode("latin1")
                order: Literal["F", "C"] = "F" if fortran else "C"
                with suppress(TypeError, ValueError):  # of impossible shapes
                    self.values = np.ndarray(shape, dtype.numpy, data, order=order)
                    if self.values.nbytes == len(data):
                        return
        raise Refusal("an array with an invalid description")


def _restored(data: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    found = _Array()
    found.__setstate__((1, shape, dtype, {"C": 0, "F": 1}.get(order), data))
    return found


def _spelt(text: Any, encoding: Any) -> bytes:
    """Decode bytes as pickle protocols 0 to 2 write them."""
    if type(text) is not str or encoding != "latin1":
        raise Refusal("bytes in an unsupported encoding")
    return text.encode("latin1")


_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": None,
    "numpy.dtype": StandIn(_Dtype),
    "_codecs.encode": StandIn(_spelt),
    "__builtin__.bytes": StandIn(lambda: b""),
    "builtins.bytes": StandIn(lambda: b""),
}
for _core in ("core", "_core"):  # before numpy 2, and since
    _ALLOWED[f"numpy.{_core}.multiarray._reconstruct"] = StandIn(lambda *_: _Array())
    _ALLOWED[f"numpy.{_core}.numeric._frombuffer"] = StandIn(_restored)


def _find(name: str) -> Any:
    if name not in _ALLOWED:
        raise Refusal(f"a call of {name[:80]!r}, which was refused", _CONVERT)
    return _ALLOWED[name]


def read_pkl(path: Path) -> NDArray[Any]:
    """Read a pickle of an array, or of a list of arrays, one a row."""
    if (size := path.stat().st_size) > _LARGEST:
        raise DataError(
            f"must be a pickle of at most {_LARGEST / MIB:,.0f} MiB, got {size / MIB:,.0f} MiB; "
            f"{_CONVERT}"
        )
    data = io.BytesIO(path.read_bytes())
    content = unpickler(_find)(data).load()
    if data.read(1):
        raise Refusal("a second pickle behind the first")
    if isinstance(content, _Array) and content.values is not None:
        return content.values
    if not isinstance(content, list):
        kind = type(content).__name__.strip("_").lower()
        raise DataError(f"must hold a list of arrays, one a row, got a {kind}")
    rows: list[Any] = [row.values if isinstance(row, _Array) else row for row in content]
    first = rows[0] if rows and isinstance(rows[0], np.ndarray) else np.empty((0, 0))
    width = (0, *first.shape)[-1]
    for number, row in enumerate(rows):
        if not isinstance(row, np.ndarray) or row.shape not in ((1, width), (width,)):
            got = row.shape if isinstance(row, np.ndarray) else f"a {type(row).__name__}"
            raise DataError(
                f"row {number} must be an array of shape (1, {width}), got {got}; "
                f"save one array of all rows"
            )
    return np.array([row.ravel() for row in rows] or first)
