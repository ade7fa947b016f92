"""Tables in the files of ``torch.save``, of which nothing but plain tensors is believed."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.errors import DataError
from stepgraph.files.arrays.checks import Wanted
from stepgraph.files.disk import MIB

if TYPE_CHECKING:
    from torch import Tensor

# What the pickle in a file of torch.save asks for if all it holds is tensors.
_TENSOR = re.compile(
    r"torch \w+Storage|torch\._utils _rebuild_(tensor_v2|parameter)|collections OrderedDict"
)
# Bytes of the pickle beside the tensors: a million of them take about 200 MB.
_PICKLE = 256 * MIB


def read_pt(path: Path, wanted: Wanted) -> NDArray[Any]:
    """Read a file that holds one tensor, alone or in a dict."""
    content = _load(path)
    if isinstance(content, dict):
        tensors = _tensors(content)
        several = f"a dict with {len(tensors)} tensors"
        content = next(iter(tensors.values())) if len(tensors) == 1 else several
    import torch

    if not isinstance(content, torch.Tensor):
        got = content if isinstance(content, str) else f"a {type(content).__name__}"
        raise DataError(f"{path}: must hold one tensor of {wanted.kind.noun}, got {got[:60]}")
    return as_table(content, wanted, path.stat().st_size)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Load a dict of tensors by name; their content stays on disk until it is looked at."""
    content = _load(path)
    if not isinstance(content, dict):
        raise DataError(
            f"{path}: must hold a dict of tensors, one a video, got a {type(content).__name__}; "
            f"put the file of one video into a folder, and give the folder"
        )
    return _tensors(content)


def _tensors(content: dict[Any, Any]) -> dict[str, Tensor]:
    import torch

    return {str(key): value for key, value in content.items() if isinstance(value, torch.Tensor)}


def as_table(tensor: Tensor, wanted: Wanted, size: int) -> NDArray[Any]:
    """A tensor as an array of its own, if it is a table in a file of ``size`` bytes."""
    import torch

    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise DataError(
            f"{wanted.where}: must hold a dense tensor, got a sparse, quantized or empty one"
        )
    shape = tuple(tensor.shape)
    # numpy has no bfloat16; whatever is a float in torch is a float here.
    dtype = "f4" if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
    wanted.check(shape, dtype)
    wanted.check_size(shape, tensor.element_size(), size)
    # A copy: what is mapped from a file ends the process if the file is cut off meanwhile.
    return np.array(tensor.detach().to(torch.float32).numpy())


def _load(path: Path) -> Any:
    _check_archive(path)
    import torch

    return torch.load(path, weights_only=True, map_location="cpu", mmap=True)


def _check_archive(path: Path) -> None:
    """Refuse what torch.save does not write for a tensor, before torch sees it."""
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path}: must be a file of torch.save (1.6 or newer), got something else or a part "
            f"of one; fetch it again, or load it with torch and save it again"
        )
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if packed or sum(member.file_size for member in members) > path.stat().st_size:
            raise DataError(
                f"{path}: must be as torch.save writes it, got content that is compressed or "
                f"larger than the file; load it with torch and save it again"
            )
        for member in members:
            if member.filename.endswith(".pkl"):
                if member.file_size > _PICKLE:
                    raise DataError(
                        f"{path}: must name its tensors in at most 256 MiB, "
                        f"got {member.file_size / MIB:,.0f} MiB"
                    )
                _check_names(path, archive.read(member))


def _check_names(path: Path, pickled: bytes) -> None:
    # torch refuses names, too, but knows a hundred, among them some that take memory at will.
    from pickletools import genops

    for opcode, argument, _ in genops(pickled):
        plain = opcode.name not in ("STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4")
        if not plain or (opcode.name == "GLOBAL" and not _TENSOR.fullmatch(str(argument))):
            asked = str(argument or opcode.name).replace(" ", ".")[:80]
            raise DataError(
                f"{path}: must hold a plain tensor, got a call for {asked!r}, which could run "
                f"code, and was not run; if you trust the file, save its numbers with numpy.save"
            )
