# mypy: ignore-errors
# (Triton reads these functions as a language of its own.)
"""A GPU kernel, in Triton, for attention within small groups of tokens.

It needs one pass over memory, forward and backward, where other code needs several.  It is an
operator of torch, so that ``torch.compile`` and autograd support it.  Its reference implementation
is in :mod:`stepgraph.networks.timesformer`, and is used on every other device.

A program computes one head for as many groups of tokens as fill a tile of the matrix units; a
mask separates the groups.  Only the inputs are kept for the backward pass.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor
from torch.library import triton_op, wrap_triton

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch for CPUs: this file can be imported, but nothing in it runs
    triton = SimpleNamespace(jit=lambda function: function)

_TILE = 16  # rows, the least that matrix units take


@triton.jit
def _rows_of(tile, groups, SIZE: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr):
    row = tl.arange(0, ROWS)
    group = tile * (ROWS // PADDED) + row // PADDED
    there = (row % PADDED < SIZE) & (group < groups)
    return group, group.to(tl.int64) * SIZE + row % PADDED, there


@triton.jit
def _load(table, row, there, width, HEAD: tl.constexpr):
    column = tl.arange(0, HEAD)
    return tl.load(table + row[:, None] * width + column, mask=there[:, None], other=0.0)


@triton.jit
def _store(table, row, there, width, values, HEAD: tl.constexpr):
    column = tl.arange(0, HEAD)
    tl.store(table + row[:, None] * width + column, values, mask=there[:, None])


@triton.jit
def _product(a, b):
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _softmax(query, key, group, there, scale):
    score = _product(query, tl.trans(key)) * scale
    score = tl.where((group[:, None] == group[None, :]) & there[None, :], score, -1e30)
    share = tl.exp(score - tl.max(score, 1)[:, None])
    return share / tl.sum(share, 1)[:, None]


@triton.jit
def _attend_kernel(  # noqa: PLR0913
    qkv, out, groups, scale,
    SIZE: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
    HEADS: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    width: tl.constexpr = HEADS * HEAD
    first = tl.program_id(0) % HEADS * HEAD
    group, row, there = _rows_of(tl.program_id(0) // HEADS, groups, SIZE, PADDED, ROWS)
    query = _load(qkv + first, row, there, 3 * width, HEAD)
    key = _load(qkv + width + first, row, there, 3 * width, HEAD)
    value = _load(qkv + 2 * width + first, row, there, 3 * width, HEAD)
    share = _softmax(query, key, group, there, scale)
    _store(out + first, row, there, width, _product(share.to(value.dtype), value), HEAD)


@triton.jit
def _attend_backward_kernel(  # noqa: PLR0913
    qkv, d_out, d_qkv, groups, scale,
    SIZE: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
    HEADS: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    width: tl.constexpr = HEADS * HEAD
    first = tl.program_id(0) % HEADS * HEAD
    group, row, there = _rows_of(tl.program_id(0) // HEADS, groups, SIZE, PADDED, ROWS)
    query = _load(qkv + first, row, there, 3 * width, HEAD)
    key = _load(qkv + width + first, row, there, 3 * width, HEAD)
    value = _load(qkv + 2 * width + first, row, there, 3 * width, HEAD)
    d_seen = _load(d_out + first, row, there, width, HEAD)
    share = _softmax(query, key, group, there, scale)
    d_value = _product(tl.trans(share.to(value.dtype)), d_seen)
    _store(d_qkv + 2 * width + first, row, there, 3 * width, d_value, HEAD)
    d_share = _product(d_seen, tl.trans(value))
    d_score = share * (d_share - tl.sum(share * d_share, 1)[:, None]) * scale
    d_score = d_score.to(key.dtype)
    _store(d_qkv + first, row, there, 3 * width, _product(d_score, key), HEAD)
    _store(d_qkv + width + first, row, there, 3 * width, _product(tl.trans(d_score), query), HEAD)


def _launch(kernel, qkv: Tensor, others: list[Tensor], heads: int) -> None:
    groups, size, width = qkv.shape
    padded = triton.next_power_of_2(size)
    rows = max(_TILE, padded)
    head = width // 3 // heads
    # Heads of the same tokens run together, since they lie together.
    kernel[(heads * triton.cdiv(groups, rows // padded),)](
        qkv, *others, groups, head**-0.5,
        SIZE=size, PADDED=padded, ROWS=rows, HEADS=heads, HEAD=head, num_warps=rows // 16,
    )  # fmt: skip


def can_attend(qkv: Tensor, heads: int) -> bool:
    """Check that the kernel supports a table: on a GPU, groups and heads that fit one tile."""
    head = qkv.shape[2] // 3 // heads
    return qkv.is_cuda and qkv.shape[1] <= 128 and head in (16, 32, 64, 128)


@triton_op("stepgraph::attend_within", mutates_args={})
def attend_within(qkv: Tensor, heads: int) -> Tensor:
    """Attention within each group, (groups, size, width), of packed (groups, size, 3 * width)."""
    out = qkv.new_empty(*qkv.shape[:2], qkv.shape[2] // 3)
    _launch(wrap_triton(_attend_kernel), qkv, [out], heads)
    return out


@triton_op("stepgraph::attend_within_backward", mutates_args={})
def _attend_within_backward(qkv: Tensor, d_out: Tensor, heads: int) -> Tensor:
    d_qkv = torch.empty_like(qkv)
    _launch(wrap_triton(_attend_backward_kernel), qkv, [d_out, d_qkv], heads)
    return d_qkv


def _keep_qkv(ctx, inputs, output) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.heads = inputs[1]


def _differentiate_attention(ctx, d_out: Tensor):
    (qkv,) = ctx.saved_tensors
    return _attend_within_backward(qkv, d_out.contiguous(), ctx.heads), None


attend_within.register_autograd(_differentiate_attention, setup_context=_keep_qkv)
