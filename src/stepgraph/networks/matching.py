# mypy: ignore-errors
# (Triton reads these functions as a language of its own.)
"""Search for the best keysteps of many rows, without storing all scores.

On a GPU a program takes some rows and scores all keysteps block by block, keeping the best so
far; on every other device a part of the scores is in memory at a time.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch for CPUs: this file can be imported, but nothing in it runs
    triton = SimpleNamespace(jit=lambda function: function)

BLOCK = 256  # keysteps of a block
TILE = {"ROWS": 128, "WIDTH": 64, "num_warps": 8, "num_stages": 3}
_PIECE = 2**26  # scores held at a time where there is no kernel


@triton.jit
def _insert(value, place, first, second, third, at_first, at_second, at_third):  # noqa: PLR0913
    """Insert a score into the three best of each row."""
    one, two, three = value > first, value > second, value > third
    third = tl.where(two, second, tl.where(three, value, third))
    at_third = tl.where(two, at_second, tl.where(three, place, at_third))
    second = tl.where(one, first, tl.where(two, value, second))
    at_second = tl.where(one, at_first, tl.where(two, place, at_second))
    return (
        tl.where(one, value, first), second, third,
        tl.where(one, place, at_first), at_second, at_third,
    )  # fmt: skip


@triton.jit
def _match_kernel(  # noqa: PLR0913
    rows, keysteps, scores, places, count, size,
    DEPTH: tl.constexpr, TOP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column, depth = tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    # Rows past the end are computed as the last one, and not written.
    ours = rows + tl.minimum(row, count - 1)[:, None] * DEPTH + depth[None, :]
    first = tl.full((ROWS,), -float("inf"), tl.float32)
    second, third = first, first
    at_first = tl.zeros((ROWS,), tl.int32)
    at_second, at_third = at_first, at_first
    for start in range(0, size, BLOCK):
        theirs = keysteps + (start + column)[None, :] * DEPTH + depth[:, None]
        found = tl.zeros((ROWS, BLOCK), tl.float32)
        for done in range(0, DEPTH, WIDTH):
            found = tl.dot(tl.load(ours + done), tl.load(theirs + done), found)
        found = tl.where((start + column < size)[None, :], found, -float("inf"))
        best, at = tl.max(found, 1, return_indices=True)  # of equal ones the first
        if TOP == 1:
            better = best > first
            first = tl.where(better, best, first)
            at_first = tl.where(better, start + at, at_first)
        else:
            for _ in tl.static_range(3):
                first, second, third, at_first, at_second, at_third = _insert(
                    best, start + at, first, second, third, at_first, at_second, at_third
                )
                found = tl.where(column[None, :] == at[:, None], -float("inf"), found)
                best, at = tl.max(found, 1, return_indices=True)
    there = row < count
    tl.store(scores + row * TOP, first, mask=there)
    tl.store(places + row * TOP, at_first, mask=there)
    if TOP == 3:
        tl.store(scores + row * TOP + 1, second, mask=there)
        tl.store(places + row * TOP + 1, at_second, mask=there)
        tl.store(scores + row * TOP + 2, third, mask=there)
        tl.store(places + row * TOP + 2, at_third, mask=there)


def padded(keysteps: Tensor) -> Tensor:
    """Pad keysteps with zeros to whole blocks."""
    behind = -len(keysteps) % BLOCK
    return torch.cat([keysteps, keysteps.new_zeros(behind, keysteps.shape[1])])


def match(rows: Tensor, keysteps: Tensor, size: int, *, top: int = 1, **tile: int) -> tuple:
    """Compute scores and indices of the best keysteps of each row by the kernel, (N, top) each.

    Parameters
    ----------
    rows : shape (N, D)
        In bfloat16 or float16, D a multiple of 64.
    keysteps : shape (B, D)
        Result of :func:`padded`, whose first ``size`` vectors are keysteps.
    top
        1 or 3.
    tile
        Other sizes than :data:`TILE`.
    """
    scores = torch.empty(len(rows), top, dtype=torch.float32, device=rows.device)
    places = torch.empty(len(rows), top, dtype=torch.int32, device=rows.device)
    if not len(rows):
        return scores, places
    sizes = TILE | tile
    _match_kernel[(triton.cdiv(len(rows), sizes["ROWS"]),)](
        rows, keysteps, scores, places, len(rows), size,
        DEPTH=rows.shape[1], TOP=top, BLOCK=BLOCK, **sizes,
    )  # fmt: skip
    return scores, places


def match_plainly(rows: Tensor, keysteps: Tensor, *, top: int = 1) -> tuple:
    """Compute the same by products and sorting, on any device and in any precision.

    >>> scores, places = match_plainly(torch.eye(2), torch.tensor([[0.1, 0.2], [0.3, 0.1]]))
    >>> places[:, 0].tolist()
    [1, 0]
    """
    step = 1 + _PIECE // (1 + len(keysteps))
    found = [
        torch.sort(piece @ keysteps.T, dim=1, descending=True, stable=True)
        if top > 1
        else torch.max(piece @ keysteps.T, dim=1, keepdim=True)
        for piece in rows.split(step)
    ]
    scores = [one.values[:, :top].float() for one in found]
    return torch.cat(scores), torch.cat([one.indices[:, :top].int() for one in found])
