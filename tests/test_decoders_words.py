"""How words are told apart: few sentences are treated as many are."""

import numpy as np
import pytest

from stepgraph.decoders.learning import _whitening


@pytest.mark.parametrize("sentences", [3, 5, 9, 40])
def test_few_sentences_are_divided_by_the_same_scatter_as_many(sentences):
    rng = np.random.default_rng(sentences)
    tasks = [rng.normal(size=(sentences - 1, 9)), rng.normal(size=(1, 9))]
    means = rng.normal(size=(2, 9))

    found = _whitening([one.astype(np.float32) for one in tasks])(means)

    around = [one - one.mean(axis=0) for one in tasks]
    scatter = sum(one.T @ one for one in around) / sentences
    shrunk = 0.9 * scatter + 0.1 * (np.trace(scatter) / 9) * np.eye(9)
    assert found == pytest.approx(means @ np.linalg.inv(shrunk), rel=1e-4, abs=1e-4)
