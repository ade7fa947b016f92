"""The transformer that revises labels from their context."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reference import make_graph, make_scores
from stepgraph.core import BACKGROUND
from stepgraph.decoders import Argmax
from stepgraph.decoders.auto_regressive import (
    AutoRegressive,
    _hide,
    train_auto_regressive,
    without_repetitions,
)
from stepgraph.errors import ConfigError, DataError

SIZE = 8
GRAPH = make_graph(np.ones((SIZE, SIZE), np.int64))
# Two recipes that share their middle: only the context tells what comes first and last.
RECIPES = ((0, 2, 3, 4, 6), (1, 2, 3, 5, 7))


def corpus(videos=64, *, wrong=0.05):
    """Sequences of either recipe, some labels of which are any other keystep."""
    rng = np.random.default_rng(0)
    for video in range(videos):
        labels = np.repeat(RECIPES[video % 2], 2)
        yield np.where(rng.random(len(labels)) < wrong, rng.integers(0, SIZE, len(labels)), labels)


def heard(recipe, *, unclear, instead):
    """Scores of a recipe, one row a keystep, on one row of which another is a little better."""
    values = np.full((len(recipe), SIZE), 0.1)
    values[np.arange(len(recipe)), recipe] = 0.6
    values[unclear, recipe[unclear]] = 0.3
    values[unclear, instead] = 0.32
    return make_scores(values)


@pytest.fixture(scope="module")
def trained():
    return train_auto_regressive(corpus(), SIZE, seed=0, epochs=80)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("unclear", range(5))
def test_an_unclear_label_is_corrected_from_its_context(trained, recipe, unclear):
    other = next(one for one in RECIPES if one != recipe)
    instead = other[unclear] if other[unclear] != recipe[unclear] else other[-1]
    scores = heard(recipe, unclear=unclear, instead=instead)

    labels = trained.decode(scores, GRAPH)

    assert Argmax().decode(scores, GRAPH).keysteps.tolist() != list(recipe)
    assert labels.keysteps.tolist() == list(recipe)


def test_revising_a_noisy_corpus_brings_it_nearer_to_the_truth(trained):
    rng = np.random.default_rng(1)
    before = after = 0
    for video in range(40):
        truth = np.array(RECIPES[video % 2])
        values = np.eye(SIZE)[truth] * 0.15 + rng.random((5, SIZE)) * 0.3
        scores = make_scores(values)
        before += (scores.values.argmax(axis=1) == truth).sum()
        after += (trained.decode(scores, GRAPH).keysteps == truth).sum()

    assert after > before + 10


def test_a_clear_label_stays_whatever_the_context(trained):
    values = np.zeros((3, SIZE))
    values[[0, 1, 2], [0, 7, 3]] = 1

    assert trained.decode(make_scores(values), GRAPH).keysteps.tolist() == [0, 7, 3]


def test_without_weight_the_labels_are_the_best_keysteps(trained):
    scores = make_scores(np.random.default_rng(2).random((30, SIZE)))

    labels = replace(trained, weight=0.0).decode(scores, GRAPH)

    assert (labels.keysteps == scores.values.argmax(axis=1)).all()


def test_forbidden_keysteps_and_silence_are_respected(trained):
    scores = heard(RECIPES[0], unclear=0, instead=1).restrict([1, 2, 3])
    scores = replace(scores, observed=np.array([True, True, False, True, True]))

    labels = trained.decode(scores, GRAPH).keysteps.tolist()

    assert labels[2] == BACKGROUND
    assert set(labels[:2] + labels[3:]) <= {1, 2, 3}


def test_a_row_that_allows_nothing_is_background(trained):
    values = np.zeros((2, SIZE))
    values[0] = -math.inf

    assert trained.decode(make_scores(values), GRAPH).keysteps[0] == BACKGROUND


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_video_without_speech_is_all_background(trained, rows):
    scores = make_scores(np.ones((rows, SIZE)), [False] * rows)

    assert trained.decode(scores, GRAPH).keysteps.tolist() == [BACKGROUND] * rows


def test_one_row_has_a_label(trained):
    assert trained.decode(make_scores(np.eye(SIZE)[[3]]), GRAPH).keysteps.tolist() == [3]


def test_long_videos_are_revised_in_parts(trained):
    sequence = np.tile(RECIPES[0], 60)

    expected = trained.expect(sequence)

    assert expected.shape == (300, SIZE)
    assert np.allclose(np.exp(expected).sum(axis=1), 1, atol=1e-5)


def test_what_is_expected_of_a_label_does_not_depend_on_it(trained):
    one, other = np.array([0, 2, 3, 4, 6]), np.array([0, 2, 7, 4, 6])

    assert np.allclose(trained.expect(one)[2], trained.expect(other)[2], atol=1e-6)


def test_the_same_seed_gives_the_same_decoder():
    one, same, other = (
        train_auto_regressive(corpus(20), SIZE, seed=seed, epochs=2) for seed in (3, 3, 4)
    )

    sequence = np.array(RECIPES[0])
    assert (one.expect(sequence) == same.expect(sequence)).all()
    assert (one.expect(sequence) != other.expect(sequence)).any()


def test_training_leaves_the_random_numbers_of_the_caller_alone():
    import torch

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train_auto_regressive(corpus(4), SIZE, epochs=1)

    assert (torch.rand(3) == expected).all()


def test_labels_belong_to_the_video_of_the_scores(trained):
    scores = make_scores(np.ones((4, SIZE)), video="v", hop=0.5)

    labels = trained.decode(scores, GRAPH)

    assert (labels.video, labels.hop, labels.vocabulary) == ("v", 0.5, scores.vocabulary)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([], []), ([-1, -1], []), ([2, 2, -1, 2, 0], [2, 0]), ([1, 0, 1], [1, 0, 1])],
)
def test_repetitions_and_background_are_left_out(labels, expected):
    assert without_repetitions(np.array(labels, np.int64)).tolist() == expected


@pytest.mark.parametrize("sequences", [[], [[]], [[-1, -1]], [[3, 3, 3]]])
def test_there_must_be_something_to_learn_from(sequences):
    with pytest.raises(DataError, match="two different keysteps in a row at least once, got none"):
        train_auto_regressive([np.array(one, np.int64) for one in sequences], SIZE)


def test_labels_must_be_in_the_vocabulary():
    with pytest.raises(DataError, match="labels of sequences must be below 3, got 5"):
        train_auto_regressive([np.array([0, 5])], 3)


def test_scores_must_be_over_the_vocabulary_that_was_trained_for(trained):
    with pytest.raises(DataError, match=r"must be over the 8 keysteps .* got 3"):
        trained.decode(make_scores(np.zeros((2, 3))), GRAPH)


@pytest.mark.parametrize(
    ("option", "value"), [("seed", -1), ("epochs", -1), ("epochs", 1.5), ("weight", -0.1)]
)
def test_options_must_be_possible(option, value):
    with pytest.raises(ConfigError, match=f"{option} must be a .*number from 0 on, got {value}"):
        train_auto_regressive([np.array([0, 1])], 3, **{"epochs": 0, option: value})


def test_about_every_seventh_label_is_hidden():
    rng = np.random.default_rng(0)

    _, hidden = _hide(rng.integers(0, 5, (200, 60)), 5, rng)

    assert 0.14 < hidden.mean() < 0.16


def test_the_transformer_is_small_and_what_it_expects_counts_a_twentieth():
    decoder = train_auto_regressive([np.array([0, 1])], 3, epochs=0)

    assert decoder.weight == AutoRegressive(decoder.network, 3).weight == 0.05
    assert decoder.network["position"].weight.shape == (64, 64)
    assert decoder.network["encoder"].num_layers == 2
    assert decoder.network["encoder"].layers[0].norm_first


def test_each_sequence_is_shown_twenty_times_if_nothing_is_asked_for():
    one, same, other = (
        train_auto_regressive([np.array([0, 1])], 3, **asked).expect(np.array([0, 1]))
        for asked in ({}, {"epochs": 20}, {"epochs": 19})
    )

    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_what_it_learns_from_a_batch_falls_evenly_to_hardly_anything(monkeypatch):
    import torch

    rates = []
    step = torch.optim.AdamW.step

    def remember(self, *arguments, **others):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments, **others)

    monkeypatch.setattr(torch.optim.AdamW, "step", remember)
    train_auto_regressive(corpus(33), SIZE, seed=0, epochs=3)

    # 33 sequences are two batches of at most 32.
    assert rates == pytest.approx([2e-3 * (1 - done / 7) for done in range(6)])


def test_each_round_learns_from_each_sequence_once(monkeypatch):
    sizes = []

    def remember(parts, *others):
        sizes.append(len(parts))
        return _hide(parts, *others)

    monkeypatch.setattr("stepgraph.decoders.auto_regressive._hide", remember)
    train_auto_regressive(corpus(70), SIZE, seed=0, epochs=2)

    assert sizes == [32, 32, 6] * 2


def test_the_seed_alone_decides_and_a_single_sequence_is_learned_from():
    import torch

    found = []
    for state, seed, epochs in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)):
        torch.manual_seed(state)
        decoder = train_auto_regressive([np.array([0, 1])], 3, seed=seed, epochs=epochs)
        found.append(decoder.network["embedding"].weight.detach().numpy())

    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[3])


def test_of_each_sequence_a_label_is_hidden_and_never_the_padding():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parts = [rng.integers(0, 5, int(rng.integers(1, 9))) for _ in range(12)]

        batch, hidden = _hide(parts, 5, rng)

        assert hidden.any(axis=1).all()
        assert batch[hidden].max() < 5
        for row, part in zip(batch, parts, strict=True):
            assert row.tolist() == [*part, *[6] * (batch.shape[1] - len(part))]
