"""Two real processes train one model together, and get what one process gets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from small_training import CASES, Colours, make_examples, run_case
from stepgraph.errors import ConfigError
from stepgraph.training.batches import StoredSource
from stepgraph.training.schedule import ALONE, Team, TrainingOptions, joined
from videos import plain, write_video

CPU = torch.device("cpu")
TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What two processes found, started by torchrun as a user would."""
    folder = tmp_path_factory.mktemp("together")
    videos = tmp_path_factory.mktemp("videos")
    for number in range(3):
        pictures = plain((60 * number, 0, 0), 40, width=16, height=16)
        write_video(videos / f"{number}.mp4", pictures, rate=4)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launcher, str(TESTS / "small_training.py"), folder, videos]
    paths = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


def test_there_were_two_processes(together):
    assert together["world"] == 2


@pytest.mark.parametrize("name", CASES)
def test_two_processes_have_the_losses_of_one(together, tmp_path, name):
    alone = run_case(name, tmp_path)

    np.testing.assert_allclose(together[name]["losses"], alone["losses"], rtol=0, atol=1e-5)
    for found, expected in zip(together[name]["epochs"], alone["epochs"], strict=True):
        assert found["loss"] == pytest.approx(expected["loss"], abs=1e-5)
        assert (found["accuracy"], found["clips"]) == (expected["accuracy"], expected["clips"])


def test_streams_of_different_length_end_together(together):
    """Of three videos one process has two: its stream is longer, and every clip counts once."""
    assert [record["clips"] for record in together["stream"]["epochs"]] == [30] * 4
    assert np.isfinite(together["stream"]["losses"]).all()


@pytest.mark.parametrize("world", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 6, 20, 22])
def test_processes_share_every_step_without_rest(world, count):
    examples = make_examples(count, classes=count)  # so that a keystep tells which it is
    options = TrainingOptions(batch=6)

    def share_of(team):
        return list(StoredSource(examples, Colours(), options, team=team).batches(0, 0))

    whole = share_of(ALONE)
    shares = [share_of(Team(CPU, rank, world)) for rank in range(world)]

    for step, parts in zip(whole, zip(*shares, strict=True), strict=True):
        rows = np.concatenate([part.keysteps[: part.real] for part in parts])
        assert rows.tolist() == step.keysteps.tolist()
        assert {part.total for part in parts} == {step.total}
        assert all(len(part.keysteps) for part in parts)
    seen = np.concatenate([step.keysteps for step in whole])
    assert sorted(seen.tolist()) == list(range(count))


def test_every_epoch_has_its_own_order():
    options = TrainingOptions(batch=50)
    source = StoredSource(make_examples(50, classes=50), Colours(), options)
    [first] = source.batches(0, 0)
    [second] = source.batches(1, 0)

    assert first.keysteps.tolist() != second.keysteps.tolist()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused():
    with (
        pytest.raises(ConfigError, match=r"device must be available, got 'cuda' and no GPU"),
        joined("cuda"),
    ):
        pass
