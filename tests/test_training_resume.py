"""A training that was stopped goes on without a trace, and only as it was begun."""

import pickle
from dataclasses import replace

import pytest
import torch

from small_training import (
    QUICK,
    QUIET,
    Colours,
    Small,
    Stopped,
    Stopping,
    make_examples,
    make_options,
    run,
)
from stepgraph.errors import ConfigError, DataError
from stepgraph.training.batches import StoredSource
from stepgraph.training.schedule import PAPER

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("after", [1, 4, 5, 7, 10, 12, 15, 19])
def test_a_training_that_was_stopped_goes_on_as_if_nothing_had_happened(tmp_path, after):
    """Five steps an epoch; phases change after step 10; the state is saved every 2 steps."""
    options = make_options(running=replace(QUIET, save_every=2))
    whole, expected = run(tmp_path / "whole", options)
    source = StoredSource(make_examples(), Colours(), options)
    with pytest.raises(Stopped):
        run(tmp_path / "part", options, source=Stopping(source, after))
    torch.rand(7)

    again, network = run(tmp_path / "part", options)

    assert again.losses == whole.losses
    assert again.epochs == whole.epochs
    for found, wanted in zip(network.parameters(), expected.parameters(), strict=True):
        assert torch.equal(found, wanted)


def test_a_training_may_be_stopped_often(tmp_path):
    options = make_options(running=replace(QUIET, save_every=1))
    whole, _ = run(tmp_path / "whole", options)

    for _ in range(6):
        source = StoredSource(make_examples(), Colours(), options)
        with pytest.raises(Stopped):
            run(tmp_path / "part", options, source=Stopping(source, 3))
    again, _ = run(tmp_path / "part", options)

    assert again.losses == whole.losses


def test_a_finished_training_is_not_repeated(tmp_path):
    curve, network = run(tmp_path)
    before = (tmp_path / "last.pt").read_bytes()
    nothing = Stopping(StoredSource(make_examples(), Colours(), make_options()), 0)

    again, other = run(tmp_path, source=nothing)

    assert again.losses == curve.losses
    assert (tmp_path / "last.pt").read_bytes() == before
    assert torch.equal(network.second.weight, other.second.weight)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"batch": 7}, r"last.pt: must continue as it began, with batch 5, got 7; give the same"),
        ({"seed": 1}, r"must continue as it began, with seed 0, got 1; "),
        ({"phases": PAPER}, r"must continue as it began, with phases \[.*, got \[.*; give"),
    ],
)
def test_other_options_are_refused_in_one_line(tmp_path, change, match):
    run(tmp_path)

    with pytest.raises(ConfigError, match=match) as error:
        run(tmp_path, make_options(**change))
    assert "\n" not in str(error.value)


def test_how_it_runs_may_change(tmp_path):
    options = make_options(running=replace(QUIET, save_every=2))
    source = StoredSource(make_examples(), Colours(), options)
    with pytest.raises(Stopped):
        run(tmp_path, options, source=Stopping(source, 7))

    curve, _ = run(tmp_path, make_options(running=replace(QUIET, save_every=100)), workers=1)

    assert len(curve.losses) == 20


@pytest.mark.parametrize("keep", [0, 10, 500, -20])
def test_a_truncated_state_is_refused_in_one_line(tmp_path, keep):
    run(tmp_path)
    path = tmp_path / "last.pt"
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(DataError, match=r"last.pt: must be the whole state of a training, got a"):
        run(tmp_path)


def test_foreign_states_are_refused(tmp_path):
    torch.save({"model": {}}, tmp_path / "last.pt")
    with pytest.raises(DataError, match=r"must be a state of a training .*got None; delete"):
        run(tmp_path)
    torch.save([1], tmp_path / "last.pt")
    with pytest.raises(DataError, match=r"got 'list'; delete it to begin anew"):
        run(tmp_path)


def test_a_state_of_another_network_is_refused(tmp_path):
    run(tmp_path, make_options(phases=QUICK[:1]))

    with pytest.raises(DataError, match=r"last.pt: must hold this network and its optimiser, got"):
        run(tmp_path, make_options(phases=QUICK[:1]), network=Small(classes=9))


class _Harm:
    def __reduce__(self):
        return (open, ("harm.txt", "w"))


def test_nothing_in_a_state_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "last.pt").write_bytes(pickle.dumps({"format": _Harm()}))
    with pytest.raises(DataError, match=r"must be the whole state of a training"):
        run(tmp_path)
    torch.save({"format": _Harm()}, tmp_path / "last.pt")
    with pytest.raises(DataError, match=r"must be the whole state of a training"):
        run(tmp_path)
    assert not (tmp_path / "harm.txt").exists()
