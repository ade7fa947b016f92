"""Training: the paper's schedule, losses as defined, and a loop that does what it should."""

import csv
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from small_training import (
    QUICK,
    Colours,
    Small,
    Stopped,
    Stopping,
    make_examples,
    make_options,
    run,
)
from stepgraph.errors import ConfigError, DataError
from stepgraph.labelling.clips import ClipLabels
from stepgraph.networks.timesformer import normalize
from stepgraph.training.batches import StoredSource
from stepgraph.training.loop import compiles
from stepgraph.training.schedule import (
    PAPER,
    Phase,
    Running,
    TrainingOptions,
    make_optimizer,
    plan,
    short_phases,
)
from stepgraph.training.state import read_state
from stepgraph.training.targets import distribution_losses, soften

pytestmark = pytest.mark.usefixtures("one_thread")


# --- schedule

RATES = [
    *[5e-3] * 10,  # SGD, epochs 1 to 10
    *(5e-4, 5e-4, 5e-4),  # 11 to 13
    *(5e-5, 5e-5),  # 14 and 15
    *[5e-5] * 10,  # AdamW, epochs 1 to 10
    *(5e-6, 5e-6, 5e-6),
    *(5e-7, 5e-7),
]


def test_the_schedule_is_that_of_the_paper():
    epochs = plan(PAPER)

    assert [epoch.rate for epoch in epochs] == pytest.approx(RATES, rel=1e-12)
    assert [epoch.phase for epoch in epochs] == [0] * 15 + [1] * 15
    assert [epoch.number for epoch in epochs] == [*range(1, 16), *range(1, 16)]
    assert [phase.optimiser for phase in PAPER] == ["sgd", "adamw"]


def test_optimisers_are_what_the_phases_say():
    sgd, adamw = (make_optimizer(phase, Small()) for phase in PAPER)

    assert type(sgd) is torch.optim.SGD
    assert type(adamw) is torch.optim.AdamW
    chosen = {name: sgd.defaults[name] for name in ("lr", "momentum", "weight_decay")}
    assert chosen == {"lr": 5e-3, "momentum": 0.9, "weight_decay": 1e-4}
    assert (adamw.defaults["lr"], adamw.defaults["weight_decay"]) == (5e-5, 1e-4)


@pytest.mark.parametrize(
    ("epochs", "drops"), [(15, (11, 14)), (30, (21, 27)), (6, (5, 6)), (3, (3,)), (1, ())]
)
def test_a_short_schedule_drops_after_the_same_shares(epochs, drops):
    first, second = short_phases(epochs)

    assert (first.epochs, first.drops, first.rate) == (epochs, drops, 5e-3)
    assert (second.epochs, second.drops, second.rate) == (epochs, drops, 5e-5)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: Phase("adam", 1, 0.1), r"optimiser must be 'sgd' or 'adamw', got 'adam'"),
        (lambda: Phase("sgd", 0, 0.1), r"epochs of a phase must be a whole number from 1 on"),
        (lambda: Phase("sgd", 1, math.nan), r"rate must be more than 0, got nan"),
        (lambda: Phase("sgd", 1, 0.1, momentum=1.0), r"momentum must be at least 0 and less"),
        (lambda: Phase("sgd", 1, 0.1, weight_decay=-1), r"weight_decay must be at least 0"),
        (lambda: Phase("sgd", 1, 0.1, drops=(0,)), r"in which the rate drops must be .* got 0"),
        (lambda: TrainingOptions(phases=()), r"phases must be at least one, got none"),
        (lambda: TrainingOptions(batch=0), r"batch must be a whole number from 1 on, got 0"),
        (lambda: TrainingOptions(seed=-1), r"seed must be a whole number from 0 on, got -1"),
        (lambda: TrainingOptions(loss="mse"), r"loss must be one of labels, distribution, got"),
        (lambda: TrainingOptions(window=0), r"window must be more than 0, got 0"),
        (lambda: TrainingOptions(crop=0), r"crop must be above 0 and at most 1, got 0"),
        (lambda: Running(workers=-1), r"workers must be a whole number from 0 on, got -1"),
        (lambda: Running(save_every=0), r"save_every must be a whole number from 1 on, got 0"),
        (lambda: short_phases(0), r"epochs of a phase must be a whole number from 1 on, got 0"),
    ],
)
def test_impossible_options_are_refused(wrong, match):
    with pytest.raises(ConfigError, match=match):
        wrong()


# --- losses


def test_a_divergence_is_that_of_the_definition():
    for seed in range(5):
        chance = torch.Generator().manual_seed(seed)
        logits = torch.randn(6, 5, generator=chance)
        soft = torch.stack([torch.randperm(5, generator=chance)[:3] for _ in range(6)])
        weights = torch.rand(6, 3, generator=chance)
        weights[0] = torch.tensor([1.0, 0.0, 0.0])
        weights /= weights.sum(dim=1, keepdim=True)

        found = distribution_losses(logits, soft, weights)

        for row in range(6):
            total = sum(math.exp(value) for value in logits[row].tolist())
            predicted = [math.exp(value) / total for value in logits[row].tolist()]
            divergence = sum(
                weight * math.log(weight / predicted[keystep])
                for keystep, weight in zip(soft[row].tolist(), weights[row].tolist(), strict=True)
                if weight > 0
            )
            assert found[row].item() == pytest.approx(divergence, rel=1e-4, abs=1e-5)


def labels_of(keystep, argmax, top_keysteps, top_scores):
    count = len(keystep)
    nothing = np.full(count, np.nan, np.float32)
    return ClipLabels(
        *("v", None, None, np.arange(count), np.arange(count) + 1),
        *(np.array(keystep, np.int32), np.zeros(count, np.int8), nothing, nothing),
        *(np.array(argmax, np.int32), nothing),
        *(np.array(top_keysteps, np.int32), np.array(top_scores, np.float32), (None,) * count),
    )


def test_the_baseline_is_softened_by_its_scores():
    one = labels_of([7], [4], [[4, 2, 9]], [[0.9, 0.5, 0.1]])

    keysteps, weights = soften(one, "argmax", 0.5, np.array([0]))

    total = sum(math.exp(score / 0.5) for score in (0.9, 0.5, 0.1))
    assert keysteps.tolist() == [[4, 2, 9]]
    expected = [math.exp(score / 0.5) / total for score in (0.9, 0.5, 0.1)]
    np.testing.assert_allclose(weights[0], expected, rtol=1e-6)


def test_what_the_graph_says_is_as_probable_as_what_scored_best():
    one = labels_of([7, 2], [4, 4], [[4, 2, 9]] * 2, [[0.9, 0.5, 0.1]] * 2)

    keysteps, weights = soften(one, "graph", 1.0, np.array([0, 1]))

    assert keysteps.tolist() == [[4, 2, 7], [4, 2, 9]]
    assert weights[0, 0] == weights[0, 2] > weights[0, 1]
    assert weights[1, 0] == weights[1, 1] > weights[1, 2]
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)


def test_where_nothing_was_observed_the_label_has_all_the_weight():
    one = labels_of([7], [-1], [[-1, -1, -1]], [[-math.inf] * 3])

    keysteps, weights = soften(one, "graph", 1.0, np.array([0]))

    assert (keysteps.tolist(), weights.tolist()) == ([[7, 0, 0]], [[1, 0, 0]])


# --- the loop


@pytest.mark.parametrize("loss", ["labels", "distribution"])
def test_the_loop_does_what_a_plain_one_does(tmp_path, loss):
    options = make_options(loss=loss)
    examples, store = make_examples(), Colours()

    curve, network = run(tmp_path, options, network=Small(dropout=0.0))

    other, expected, epoch = Small(dropout=0.0), [], 0
    for phase in QUICK:
        if phase.optimiser == "sgd":
            step = torch.optim.SGD(other.parameters(), 1, momentum=0.9, weight_decay=1e-4)
        else:
            step = torch.optim.AdamW(other.parameters(), 1, weight_decay=1e-4)
        for number in (1, 2):
            step.param_groups[0]["lr"] = phase.rate if number == 1 else phase.rate / 10
            rows = np.random.default_rng([0, epoch]).permutation(22)
            for batch in (rows[at : at + 5] for at in range(0, 22, 5)):
                clips = [store.read(str(row // 10), row) for row in batch.tolist()]
                logits = other(normalize(torch.from_numpy(np.stack(clips))))
                if loss == "labels":
                    mean = nn.functional.cross_entropy(logits, torch.from_numpy(batch % 4))
                else:
                    soft = torch.from_numpy(examples.soft[0][batch]).long()
                    weights = torch.from_numpy(examples.soft[1][batch])
                    mean = distribution_losses(logits, soft, weights).mean()
                step.zero_grad()
                mean.backward()
                step.step()
                expected.append(mean.item())
            epoch += 1
    np.testing.assert_allclose(curve.losses, expected, rtol=1e-5)
    for found, wanted in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(found, wanted)


def test_it_learns_and_writes_what_it_learned(tmp_path):
    options = make_options(phases=(Phase("adamw", 30, 0.05, drops=()),))

    curve, network = run(tmp_path, options, network=Small(dropout=0.0))

    assert curve.epochs[-1].loss < 0.5 * curve.epochs[0].loss
    assert curve.epochs[-1].accuracy > curve.epochs[0].accuracy
    assert curve.epochs[-1].clips == 22
    lines = list(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert [float(line["loss"]) for line in lines] == [record.loss for record in curve.epochs]
    saved = read_state(tmp_path / "last.pt")["model"]
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, saved[name])
    losses = [record.loss for record in curve.epochs]
    best = read_state(tmp_path / "best.pt")
    assert best["epoch"] == losses.index(min(losses)) + 1
    assert best["optimiser"] is None


def test_the_mean_of_an_epoch_weighs_every_clip_alike(tmp_path):
    curve, _ = run(tmp_path)

    sizes = [5, 5, 5, 5, 2]
    for number, record in enumerate(curve.epochs):
        steps = curve.losses[5 * number : 5 * number + 5]
        assert record.loss == pytest.approx(np.average(steps, weights=sizes), rel=1e-6)


@pytest.mark.parametrize(("count", "batch"), [(1, 5), (1, 1), (5, 5), (3, 100)])
def test_small_sets_and_large_batches_train(tmp_path, count, batch):
    curve, _ = run(tmp_path, make_options(batch=batch), examples=make_examples(count))

    assert len(curve.losses) == 4
    assert np.isfinite(curve.losses).all()


def test_workers_change_nothing(tmp_path):
    alone, _ = run(tmp_path / "alone", make_options(flip=True, crop=0.5))
    helped, _ = run(tmp_path / "helped", make_options(flip=True, crop=0.5), workers=2)

    assert alone.losses == helped.losses


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)

    run(tmp_path)

    assert torch.equal(torch.rand(3), expected)


def test_bfloat16_is_near_and_not_the_same(tmp_path):
    exact, _ = run(tmp_path / "exact", network=Small(dropout=0.0))
    half, _ = run(
        tmp_path / "half", make_options(precision="bfloat16"), network=Small(dropout=0.0)
    )

    assert exact.losses != half.losses
    np.testing.assert_allclose(exact.losses, half.losses, rtol=0.05)


def test_a_loss_that_is_no_number_is_an_error_and_leaves_the_last_good_state(tmp_path):
    network = Small()
    with torch.no_grad():
        network.second.bias[0] = math.inf

    with pytest.raises(DataError, match=r"loss must be finite, got .* in epoch 1 of phase 1; low"):
        run(tmp_path, network=network)
    assert not (tmp_path / "last.pt").exists()


@pytest.mark.parametrize(
    ("asked", "on_cpu", "on_gpu"), [(None, 0, 1), (True, 1, 1), (False, 0, 0)]
)
def test_networks_are_compiled_on_a_gpu_unless_said_otherwise(asked, on_cpu, on_gpu):
    options = make_options(running=Running(compile=asked))

    assert compiles(options, torch.device("cpu")) == on_cpu
    assert compiles(options, torch.device("cuda")) == on_gpu


def test_a_network_that_cannot_be_compiled_is_trained_all_the_same(tmp_path, monkeypatch):
    # As on a GPU without a compiler: by default, and with a backend that fails.
    monkeypatch.setattr("stepgraph.training.loop.compiles", lambda *_: True)

    def fail(*_):
        raise RuntimeError("no compiler here")

    compiled = nn.Module.compile
    monkeypatch.setattr(nn.Module, "compile", lambda self: compiled(self, backend=fail))
    with pytest.raises(Exception, match="no compiler here"):
        run(tmp_path / "asked", make_options(running=Running(compile=True, logs=False)))
    torch._dynamo.reset()  # it remembers what failed
    lenient, _ = run(tmp_path / "lenient")

    assert len(lenient.losses) == 20


# --- logs


def test_tensorboard_shows_loss_rate_speed_and_accuracy(tmp_path):
    options = make_options(running=Running(save_every=2))
    source = StoredSource(make_examples(), Colours(), options)
    with pytest.raises(Stopped):
        run(tmp_path, options, source=Stopping(source, 7))
    curve, _ = run(tmp_path, options)

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    shown = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
    assert {"train/loss", "train/rate", "train/accuracy", "train/clips per second"} <= set(shown)
    assert [event.value for event in shown["epoch/loss"]] == pytest.approx(
        [record.loss for record in curve.epochs], rel=1e-6
    )
    steps = [event.step for event in shown["train/loss"]]
    assert all(before < after for before, after in pairwise(steps))
    assert steps[-1] == 20
