"""Scores that were computed elsewhere, one file a video.

The authors of the paper publish theirs as tensors (``<video>.pt``) and as pickles
(``<video>.pkl``); anybody can bring their own as ``.npy`` or ``.npz``.  All are tables of rows by
keysteps whose columns stand in the order of the vocabulary: the files do not say, so only their
number can be checked.  No file is trusted: none can run code, and none can claim more memory than
it has content.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stepgraph.core import LONGEST, Scores, Video, Vocabulary, rows_in
from stepgraph.disk import MIB
from stepgraph.errors import ConfigError, DataError, StepgraphError
from stepgraph.pickles import read_numbers
from stepgraph.problems import Problems

EXTREMA = {
    "coin-video": (-23.83, 24.12),
    "crosstask-video": (-63.42, 58.8),
    "coin-text": (-1.0, 1.0),
    "crosstask-text": (-1.0, 1.0),
}
"""Lowest and highest score to :func:`rescale` from: fixed numbers in the authors' scripts, by
data set and by what was scored.  The paper does not mention them."""

# What the pickle in a file of torch.save asks for if all it holds is tensors.
_TENSOR = re.compile(
    r"torch \w+Storage|torch\._utils _rebuild_(tensor_v2|parameter)|collections OrderedDict"
)
# Bytes of the largest table: an hour of the 10,588 keysteps of HowTo100M takes 152 MB.
_LARGEST = 1024 * MIB


def read_scores(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    folder: Path,
    *,
    hop: float = 1.0,
    seconds_per_row: float = 1.0,
    problems: Problems,
) -> Iterator[Scores]:
    """Read the stored scores of each video, one at a time.

    Row ``t`` takes the stored row that covers its middle.  A video without a file is unobserved,
    as is its end where the file is shorter; what a file has past the end of its video is left
    out.  Both are noted in ``problems`` where they are more than a row.

    Parameters
    ----------
    folder
        Holds ``<video>.npy``, ``.npz``, ``.pt`` or ``.pkl``; of several the first is taken.
    seconds_per_row
        How much time one row of the files covers.

    Raises
    ------
    DataError
        For a file that cannot be used: a single table of finite numbers, with as many columns as
        the vocabulary has keysteps, is what it must hold.
    """
    for name, seconds in (("hop", hop), ("seconds_per_row", seconds_per_row)):
        if not 1e-3 <= seconds <= LONGEST:
            raise ConfigError(f"{name} must be between 0.001 seconds and a week, got {seconds!r}")
    if not folder.is_dir():
        raise DataError(
            f"{folder}: must be a folder of stored scores, got no folder; check the path"
        )
    return _read_each(videos, vocabulary, folder, (hop, seconds_per_row), problems)


def _read_each(
    videos: Iterable[Video],
    vocabulary: Vocabulary,
    folder: Path,
    rates: tuple[float, float],
    problems: Problems,
) -> Iterator[Scores]:
    hop, seconds_per_row = rates
    for video in videos:
        path = _find(video.id, folder, problems)
        stored = np.zeros((0, len(vocabulary)), np.float32)
        if path is not None:
            stored = read_table(path, vocabulary)
            _compare_lengths(path, len(stored), video, seconds_per_row, problems)
        yield _resampled(stored, video, vocabulary, hop, seconds_per_row)


def _find(video: str, folder: Path, problems: Problems) -> Path | None:
    # An id may name a folder below this one, but not lead out of it.
    inside = not Path(video).is_absolute() and ".." not in Path(video).parts
    paths = [folder / f"{video}{suffix}" for suffix in _READERS if inside]
    found = [path for path in paths if _is_file(path)]
    if not found:
        what = f"must be a file of stored scores ({', '.join(_READERS)}), got none"
        problems.add(str(folder / video), "video without stored scores", what)
        return None
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        what = f"must be the only file of its video, got {names}; this one is read"
        problems.add(str(found[0]), "several files of stored scores", what)
    return found[0]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for a file
        return False


def _compare_lengths(
    path: Path, rows: int, video: Video, seconds_per_row: float, problems: Problems
) -> None:
    expected = rows_in(video.duration, seconds_per_row)
    if abs(rows - expected) <= 1:
        return
    short = rows < expected
    problems.add(
        str(path),
        f"scores {'shorter' if short else 'longer'} than the video",
        f"must have {expected:,} rows of {seconds_per_row:g} s, got {rows:,}; "
        f"{'the rest of the video is unobserved' if short else 'those past its end are left out'}",
    )


def _resampled(
    stored: NDArray[np.float32],
    video: Video,
    vocabulary: Vocabulary,
    hop: float,
    seconds_per_row: float,
) -> Scores:
    middle = (np.arange(rows_in(video.duration, hop)) + 0.5) * hop
    # Times carry float noise; a middle on a border belongs to the later row.
    position = np.floor(middle / seconds_per_row + 1e-9)
    observed = position < len(stored)
    values = np.zeros((len(middle), len(vocabulary)), np.float32)
    values[observed] = stored[position[observed].astype(np.int64)]
    return Scores(video.id, values, observed, vocabulary, hop)


def read_table(path: Path, vocabulary: Vocabulary) -> NDArray[np.float32]:
    """Read the rows by keysteps of one file, whatever it is called; see :func:`read_scores`."""
    try:
        if (size := path.stat().st_size) > _LARGEST:
            raise DataError(f"{path}: must be at most 1 GiB, got {size / MIB:,.0f} MiB")
        values = _READERS[path.suffix](path, len(vocabulary))
        with np.errstate(over="ignore"):  # what overflows is infinite, and found below
            values = values.astype(np.float32, copy=False)
    except StepgraphError:
        raise
    except Exception as error:  # foreign files fail in the libraries in any way there is
        kind = path.suffix.removeprefix(".")
        said = " ".join(str(error).split())[:120]
        raise DataError(
            f"{path}: must be a whole {kind} file of stored scores, got one that cannot be read "
            f"({type(error).__name__}: {said}); fetch or write it again"
        ) from error
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise DataError(
            f"{path}: scores must be finite, got {values[row, column]} in row {row} for keystep "
            f"{column} ({vocabulary.keysteps[column]!r}); compute them again"
        )
    return values


def _check(path: Path, shape: tuple[int, ...], dtype: Any, keysteps: int) -> None:
    """Refuse a table by its description, before its content takes memory."""
    if np.dtype(dtype).kind not in "fiu":
        raise DataError(f"{path}: scores must be real numbers, got values of type {dtype}")
    if len(shape) != 2 or shape[1] != keysteps:
        raise DataError(
            f"{path}: scores must have shape (rows, {keysteps}), got {shape}; "
            f"were they computed with another vocabulary?"
        )


def _read_npy(path: Path, keysteps: int) -> NDArray[Any]:
    with path.open("rb") as file:
        return _read_npy_stream(file, path.stat().st_size, path, keysteps)


def _read_npz(path: Path, keysteps: int) -> NDArray[Any]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) != 1:
            names = [member.filename for member in members[:5]]
            raise DataError(f"{path}: must hold one array, got {len(members)}: {names}")
        if members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{path}: must be as numpy.savez writes it, got another compression")
        if (size := members[0].file_size) > _LARGEST:
            raise DataError(
                f"{path}: must hold an array of at most 1 GiB, got {size / MIB:,.0f} MiB"
            )
        with archive.open(members[0]) as file:
            return _read_npy_stream(file, size, path, keysteps)


def _read_npy_stream(file: IO[bytes], size: int, path: Path, keysteps: int) -> NDArray[Any]:
    version = np.lib.format.read_magic(file)
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in headers:
        raise DataError(f"{path}: must be in version 1 or 2 of its format, got {version}")
    shape, _, dtype = headers[version](file)
    _check(path, shape, dtype, keysteps)
    _check_size(path, shape, dtype.itemsize, size - file.tell())
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _check_size(path: Path, shape: tuple[int, ...], itemsize: int, size: int) -> None:
    if min(shape) < 0 or math.prod(shape) * itemsize > size:
        raise DataError(
            f"{path}: must be as large as it says, got a table of shape {tuple(shape)} in "
            f"{size:,} bytes; it is cut off, or a view that was saved without copying it"
        )


def _read_pt(path: Path, keysteps: int) -> NDArray[Any]:
    _check_archive(path)
    import torch

    content = torch.load(path, weights_only=True, map_location="cpu")
    if isinstance(content, dict):
        tensors = [value for value in content.values() if isinstance(value, torch.Tensor)]
        content = tensors[0] if len(tensors) == 1 else f"a dict with {len(tensors)} tensors"
    if not isinstance(content, torch.Tensor):
        got = content if isinstance(content, str) else f"a {type(content).__name__}"
        raise DataError(f"{path}: must hold one tensor of scores, got {got[:60]}")
    if content.layout is not torch.strided or content.device.type != "cpu" or content.is_quantized:
        raise DataError(f"{path}: must hold a dense tensor, got a sparse, quantized or empty one")
    shape = tuple(content.shape)
    # numpy has no bfloat16; whatever is a float in torch is a float here.
    dtype = "f4" if content.is_floating_point() else str(content.dtype).removeprefix("torch.")
    _check(path, shape, dtype, keysteps)
    _check_size(path, shape, content.element_size(), path.stat().st_size)
    return np.asarray(content.detach().to(torch.float32).numpy())


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
                f"code, and was not run; if you trust the file, save its scores with numpy.save"
            )


def _read_pkl(path: Path, keysteps: int) -> NDArray[Any]:
    content = read_numbers(path)
    if isinstance(content, np.ndarray):
        _check(path, content.shape, content.dtype, keysteps)
        return content
    if not isinstance(content, list):
        raise DataError(
            f"{path}: must hold a list of arrays, one a row, got a {type(content).__name__}"
        )
    for row, part in enumerate(content):
        if not isinstance(part, np.ndarray) or part.shape not in ((1, keysteps), (keysteps,)):
            got = part.shape if isinstance(part, np.ndarray) else f"a {type(part).__name__}"
            raise DataError(
                f"{path}: row {row} must be an array of shape (1, {keysteps}), got {got}; "
                f"was it computed with another vocabulary?"
            )
    return np.array([part.ravel() for part in content]).reshape(-1, keysteps)


_READERS: dict[str, Callable[[Path, int], NDArray[Any]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".pkl": _read_pkl,
}


def rescale(scores: Scores, low: float, high: float) -> Scores:
    """Map scores linearly so that ``low`` becomes -1 and ``high`` 1; others go beyond.

    The authors do this before they compare scores with a threshold: see :data:`EXTREMA`.
    """
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"low must be below high, both finite, got {low!r} and {high!r}")
    middle, half = (low + high) / 2, (high - low) / 2
    values = (scores.values.astype(np.float64) - middle) / half
    return replace(scores, values=values.astype(np.float32))
