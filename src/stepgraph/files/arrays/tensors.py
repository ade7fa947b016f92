"""Arrays in the files of ``torch.save``: a tensor, alone or in a dict, or a dict of all."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import Reader, Wanted
from stepgraph.files.tensors import BFLOAT16, Blank, Tensor, TensorFile


def read_pt(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file that holds one tensor, alone or in a dict."""
    file = TensorFile(path)
    content = file.content
    tensors = [content] if isinstance(content, Tensor) else list(_tensors(content).values())
    if len(tensors) != 1:
        got = f"a dict with {len(tensors)}" if isinstance(content, dict) else _kind_of(content)
        raise DataError(f"{path}: must hold one tensor of {wanted.kind.noun}, got {got}")
    return _as_array(file, tensors[0], wanted)


def open_pt(path: Path) -> dict[str, Reader]:
    """Open a dict of tensors by video; their numbers stay in the file until they are read."""
    file = TensorFile(path)
    if not isinstance(file.content, dict):
        raise DataError(
            f"{path}: must hold a dict of tensors, one a video, got {_kind_of(file.content)}; "
            f"put the file of one video into a folder, and give the folder"
        )
    return {name: partial(_as_array, file, one) for name, one in _tensors(file.content).items()}


def _tensors(content: Any) -> dict[str, Tensor]:
    held = content.items() if isinstance(content, dict) else ()
    named = ((key, value) for key, value in held if isinstance(key, str | int))
    return {str(key): value for key, value in named if isinstance(value, Tensor)}


def _kind_of(content: Any) -> str:
    if content is Blank or isinstance(content, Blank):
        return "something that is no dense tensor of real numbers"
    return f"a {type(content).__name__.lower()}"


def _as_array(file: TensorFile, tensor: Tensor, wanted: Wanted) -> NDArray[Any]:
    storage = tensor.storage
    half = storage.kind == BFLOAT16
    wanted.check(tensor.shape, np.float32 if half else storage.dtype)
    wanted.check_size(tensor.shape, storage.dtype.itemsize, storage.count * storage.dtype.itemsize)
    values = file.read(tensor)
    # A float of 16 bits of this kind is the first half of one of 32.
    return (values.astype("<u4") << 16).view("<f4") if half else values
