"""all-MiniLM-L6-v2, the built-in sentence model: six layers of BERT, and the mean over tokens.

It is implemented here because importing a library takes longer than encoding the transcript of a
video; it rounds where the libraries do, so that both agree.  On a CPU the embedding of a text
depends neither on other texts nor on the number of cores: no text is padded, every product has
one shape, and one thread computes all of it.  A GPU takes all texts of one length at once, and
its rounding depends on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby
from platform import machine
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load
from torch import Tensor
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from stepgraph.networks.word_pieces import WordPieces

_LAYERS, _HEADS, _SIZE = 6, 12, 384
_EPSILON = 1e-12
_TOGETHER = 1024  # tokens computed at once: rows of every product
_ALONE = 64  # of those of a text that is encoded alone
_ON_GPU = 2**17  # tokens computed at once there: enough to be busy, one to two GB
_AT_ONCE = 2**17  # texts that suffice there to have many of each length


class _Affine(NamedTuple):
    weight: Tensor
    bias: Tensor


_Product: TypeAlias = Callable[[Tensor], Tensor]


class _EncoderLayer(NamedTuple):
    projected: _Product  # queries, keys and values in one
    joined: _Product
    joined_norm: _Affine
    widened: _Product
    narrowed: _Product
    norm: _Affine


class _Alike(NamedTuple):
    """Consecutive texts of one length: their rows, number and length."""

    rows: slice
    texts: int
    length: int


class MiniLM:
    """The model, from the bytes of its two files."""

    def __init__(self, weights: bytes, tokenizer: bytes, dtype: torch.dtype) -> None:
        self._pieces = WordPieces(tokenizer)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = dtype
        named = {name: one.to(self._device) for name, one in load(weights).items()}
        self._words = named["embeddings.word_embeddings.weight"]
        self._kind = named["embeddings.token_type_embeddings.weight"][0].to(dtype)
        self._places = named["embeddings.position_embeddings.weight"].to(dtype)
        self._norm = _affine(named, "embeddings.LayerNorm", dtype)
        self._layers = [_layer(named, f"encoder.layer.{n}", dtype) for n in range(_LAYERS)]

    @property
    def at_once(self) -> int:
        """Number of texts in one call that makes it fast; 0 where few are as good."""
        return 0 if self._device == "cpu" else _AT_ONCE

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of any texts, shape (N, 384), not normalised."""
        tokens = self._pieces.of(texts)
        if self._device != "cpu":
            lengths = np.array([len(ids) for ids in tokens], np.int64)
            flat = np.fromiter(chain.from_iterable(tokens), np.int32, int(lengths.sum()))
            return self.embed(flat, lengths).cpu().numpy()
        vectors = np.zeros((len(texts), _SIZE), np.float32)

        def fill(chosen: list[int]) -> None:
            vectors[chosen] = self._embed([tokens[text] for text in chosen])

        threads = torch.get_num_threads()
        try:
            with ThreadPoolExecutor(threads, "", torch.set_num_threads, (1,)) as pool:
                list(pool.map(fill, _chunks([len(ids) for ids in tokens])))
        finally:
            torch.set_num_threads(threads)
        return vectors

    def encode_one(self, text: str) -> NDArray[np.float32]:
        """Embed one text in a tenth of the time; the last bits of its embedding may differ."""
        if self._device != "cpu":
            return cast(NDArray[np.float32], self.encode([text])[0])
        [tokens] = self._pieces.of([text])
        [found] = self._embed([tokens], -(-len(tokens) // _ALONE) * _ALONE)
        return cast(NDArray[np.float32], found)

    @torch.inference_mode()
    def embed(self, pieces: NDArray[np.integer], lengths: NDArray[np.integer]) -> Tensor:
        """Embeddings of tokenised texts, shape (N, 384), on the device.

        All texts of one length are computed at once, so that a GPU is busy.  The attention is
        torch's own, which rounds in other places than :meth:`encode` on a CPU does.

        Parameters
        ----------
        pieces
            Token ids of all texts, one text after the other.
        lengths : shape (N,)
            Number of tokens of each text.
        """
        flat = torch.from_numpy(pieces.astype(np.int32)).to(self._device)
        order = np.argsort(lengths, kind="stable")
        places = torch.from_numpy(order).to(self._device)
        starts = torch.from_numpy((np.cumsum(lengths) - lengths)[order]).to(self._device)
        found = torch.empty(len(order), _SIZE, device=self._device)
        sizes, counts = np.unique(lengths, return_counts=True)
        for length, last, count in zip(sizes.tolist(), np.cumsum(counts), counts, strict=True):
            inside, step = torch.arange(length, device=self._device), max(1, _ON_GPU // length)
            for begin in range(int(last - count), int(last), step):
                some = slice(begin, min(begin + step, int(last)))
                found[places[some]] = self._embed_alike(flat[starts[some, None] + inside])
        return found

    def _embed_alike(self, ids: Tensor) -> Tensor:
        """Embeddings of texts of one length, from their token ids, shape (N, length)."""
        texts, length = ids.shape
        found = self._words[ids].to(self._dtype) + self._kind + self._places[:length]
        rows = layer_norm(found.view(-1, _SIZE), (_SIZE,), *self._norm, _EPSILON)
        for layer in self._layers:
            projected = (
                layer.projected(rows).view(texts, length, 3, _HEADS, -1).permute(2, 0, 3, 1, 4)
            )
            seen = scaled_dot_product_attention(*projected).transpose(1, 2).reshape(-1, _SIZE)
            rows = _joined(layer, seen, rows)
        return rows.view(texts, length, _SIZE).float().mean(dim=1)

    @torch.inference_mode()
    def _embed(
        self, texts: Sequence[Sequence[int]], together: int = _TOGETHER
    ) -> NDArray[np.float32]:
        """Embeddings of texts that are sorted by length and fit into ``together`` tokens."""
        groups = list(_alike(texts))
        ids, places = torch.zeros((2, together), dtype=torch.int64)
        used = groups[-1].rows.stop
        ids[:used] = torch.tensor([token for text in texts for token in text])
        places[:used] = torch.cat([torch.arange(length).repeat(n) for _, n, length in groups])
        found = self._words[ids].to(self._dtype) + self._kind + self._places[places]
        rows = layer_norm(found, (_SIZE,), *self._norm, _EPSILON)
        for layer in self._layers:
            rows = _through(layer, rows, groups)
        means = [rows[one.rows].float().view(*one[1:], _SIZE).mean(dim=1) for one in groups]
        return torch.cat(means).numpy()


def _chunks(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of texts that fit into one batch, sorted by length, the longest first."""
    chunk: list[int] = []
    used = 0
    for text in sorted(range(len(lengths)), key=lambda text: -lengths[text]):
        if used + lengths[text] > _TOGETHER:
            yield chunk
            chunk, used = [], 0
        chunk.append(text)
        used += lengths[text]
    if chunk:
        yield chunk


def _alike(texts: Sequence[Sequence[int]]) -> Iterator[_Alike]:
    start = 0
    for length, same in groupby(map(len, texts)):
        number = len(list(same))
        yield _Alike(slice(start, start + number * length), number, length)
        start += number * length


def _through(layer: _EncoderLayer, rows: Tensor, groups: Sequence[_Alike]) -> Tensor:
    projected = layer.projected(rows)
    seen = torch.zeros_like(rows)
    for one in groups:
        seen[one.rows] = _attention(projected[one.rows], one)
    return _joined(layer, seen, rows)


def _joined(layer: _EncoderLayer, seen: Tensor, rows: Tensor) -> Tensor:
    rows = layer_norm(layer.joined(seen).add_(rows), (_SIZE,), *layer.joined_norm, _EPSILON)
    narrow = layer.narrowed(torch.ops.aten.gelu_(layer.widened(rows)))
    return layer_norm(narrow.add_(rows), (_SIZE,), *layer.norm, _EPSILON)


def _attention(projected: Tensor, alike: _Alike) -> Tensor:
    """Attention of the tokens within each text; heads first, so that all products are one call."""
    heads = projected.view(alike.texts, alike.length, 3 * _HEADS, -1).permute(2, 0, 1, 3)
    flat = heads.reshape(-1, alike.length, _SIZE // _HEADS).float()
    queries, keys, values = flat.chunk(3)
    products = torch.bmm(queries, keys.transpose(1, 2)).mul_((_SIZE // _HEADS) ** -0.5)
    shares = products.sub_(products.amax(dim=-1, keepdim=True)).exp_()
    total = shares.sum(dim=-1, keepdim=True)
    seen = torch.bmm(shares.to(projected.dtype).float(), values).div_(total)
    seen = seen.view(_HEADS, alike.texts, alike.length, -1)
    return seen.permute(1, 2, 0, 3).reshape(-1, _SIZE)


def _affine(named: Mapping[str, Tensor], name: str, dtype: torch.dtype = torch.float32) -> _Affine:
    return _Affine(named[f"{name}.weight"].to(dtype), named[f"{name}.bias"].to(dtype))


def _layer(named: Mapping[str, Tensor], name: str, dtype: torch.dtype) -> _EncoderLayer:
    parts = [
        _affine(named, f"{name}.attention.self.{part}", dtype)
        for part in ("query", "key", "value")
    ]
    projected = _Affine(*(torch.cat(both) for both in zip(*parts, strict=True)))
    return _EncoderLayer(
        _product(projected),
        _product(_affine(named, f"{name}.attention.output.dense", dtype)),
        _affine(named, f"{name}.attention.output.LayerNorm", dtype),
        _product(_affine(named, f"{name}.intermediate.dense", dtype)),
        _product(_affine(named, f"{name}.output.dense", dtype)),
        _affine(named, f"{name}.output.LayerNorm", dtype),
    )


def _product(affine: _Affine) -> _Product:
    """Make the function that multiplies rows by a weight and adds a bias.

    Where torch has the operator of its own compiler, the weight is packed once for the processor.
    """
    weight, bias = affine
    ours = torch.ops.mkldnn
    if weight.is_cpu and machine() in ("x86_64", "AMD64") and hasattr(ours, "_linear_pointwise"):
        packed = ours._reorder_linear_weight(weight, _TOGETHER)
        return lambda rows: cast(
            Tensor, ours._linear_pointwise(rows, packed, bias, "none", [], "")
        )
    return lambda rows: linear(rows, weight, bias)
