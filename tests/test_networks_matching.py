"""Best keysteps of rows, against all scores in float64; the kernel needs a GPU."""

import pytest
import torch

from stepgraph.networks import matching

SHAPES = [(70, 300, 128), (1, 5, 64), (33, 512, 64)]


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("top", [1, 3])
def test_the_compiled_kernel_finds_the_same(top):
    # Compiled with a pipeline, a shorter kernel that packed numbers into scores found nothing.
    torch.manual_seed(0)
    rows, keysteps = (torch.randn(n, 768).cuda().bfloat16() / 28 for n in (4096, 10_588))

    scores, places = matching.match(rows, matching.padded(keysteps), len(keysteps), top=top)

    exact = (rows.double() @ keysteps.double().T).topk(top + 1, dim=1)
    clear = (exact.values[:, :-1] - exact.values[:, 1:]).amin(dim=1) > 1e-5
    assert clear.float().mean() > 0.9
    assert torch.equal(places[clear].long(), exact.indices[clear, :top])
    assert (scores - exact.values[:, :top]).abs().max() < 1e-5
