"""Best keysteps of rows, against all scores in float64; the kernel needs Triton."""

import os
import subprocess
import sys

import pytest
import torch

from stepgraph.networks import matching

SHAPES = [(70, 300, 128), (1, 5, 64), (33, 512, 64)]

# Triton decides when it is imported whether it interprets, so this is a program of its own.
INTERPRETED = """
import torch
from stepgraph.networks.matching import match, padded
torch.manual_seed(0)
for count, size, width in {shapes}:
    rows, keysteps = (torch.randn(n, width).half() / width for n in (count, size))
    exact = (rows.double() @ keysteps.double().T).sort(dim=1, descending=True, stable=True)
    for top in (1, 3):
        scores, places = match(rows, padded(keysteps), size, top=top, ROWS=32)
        assert torch.equal(places, exact.indices[:, :top].int()), (size, top)
        assert (scores / exact.values[:, :top] - 1).abs().max() < 2**-14, (size, top)
assert len(match(rows[:0], padded(keysteps), size)[0]) == 0
"""


def drawn(count, size, width):
    torch.manual_seed(0)
    return torch.randn(count, width), torch.randn(size, width)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("top", [1, 3])
def test_best_keysteps_are_those_of_all_scores(shape, top, monkeypatch):
    monkeypatch.setattr(matching, "_PIECE", 2000)  # several pieces
    rows, keysteps = drawn(*shape)

    scores, places = matching.match_plainly(rows, keysteps, top=top)

    exact = (rows.double() @ keysteps.double().T).sort(dim=1, descending=True)
    assert torch.equal(places, exact.indices[:, :top].int())
    assert torch.allclose(scores, exact.values[:, :top].float(), atol=1e-4)


def test_no_rows_have_no_best_keystep():
    scores, places = matching.match_plainly(*drawn(0, 5, 64), top=3)

    assert scores.shape == places.shape == (0, 3)


def test_keysteps_are_padded_to_whole_blocks():
    keysteps = drawn(1, 300, 64)[1]

    found = matching.padded(keysteps)

    assert found.shape == (512, 64)
    assert torch.equal(found[:300], keysteps)
    assert not found[300:].any()


def test_the_kernel_finds_the_same():
    pytest.importorskip("triton", reason="the kernel needs Triton")
    code, interpreted = INTERPRETED.format(shapes=SHAPES), {"TRITON_INTERPRET": "1"}

    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | interpreted)
