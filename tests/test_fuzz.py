"""Damaged files of every format are read, or refused in one line; so is all that ever was found.

`make fuzz` tries more; see fuzz/README.md.
"""

import os
import sys
from pathlib import Path

import pytest
from fuzz import loop
from fuzz.harnesses import HARNESSES

import planted

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits on memory and time are those of Linux"
)
# Times the inputs of each harness: this much takes almost two minutes of a processor.
SHARE = float(os.environ.get("STEPGRAPH_FUZZ_SHARE", 0.57))


def worker_of(table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        with loop.Worker(table) as worker:
            yield worker


@pytest.fixture(scope="module")
def worker():
    yield from worker_of("fuzz.harnesses")


@pytest.fixture(scope="module")
def sick_worker():
    yield from worker_of("planted")


def require_installed(name):
    if not loop.is_installed(HARNESSES[name]):
        pytest.skip(f"needs {', '.join(HARNESSES[name].needs)}")


@pytest.mark.parametrize("name", HARNESSES)
def test_damaged_files_are_read_or_refused(worker, tmp_path, name):
    require_installed(name)

    tally = loop.fuzz(worker, name, inputs=round(SHARE * HARNESSES[name].inputs), seed=0)

    found = "\n".join(
        f"{find.outcome.place}: {find.outcome.words}\nto be kept in fuzz/finds/{find.name}:\n"
        f"{loop.save(find, tmp_path).read_text()}"
        for find in tally.finds
    )
    assert not found, found
    assert tally.read > len(worker.seeds), "all damage is refused: nothing behind it was tried"


@pytest.mark.parametrize("path", sorted(loop.FINDS.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_once_is_not_found_again(worker, path):
    name, files = loop.load(path)
    require_installed(name)
    worker.open(name)

    outcome = worker.run(files)

    assert outcome.kind != "find", f"{outcome.place}: {outcome.words}"


@pytest.mark.parametrize("name", HARNESSES)
def test_whole_files_are_read(worker, name):
    require_installed(name)

    outcomes = [worker.run(files) for files in worker.open(name)]

    wrong = [one for one in outcomes if one.kind != "read" and "timeline" not in one.words]
    assert not wrong, wrong


@pytest.mark.parametrize("name", planted.MISTAKES)
def test_planted_mistakes_are_found(sick_worker, name):
    (seed,) = sick_worker.open(name)

    assert sick_worker.run(seed).kind == "read"
    assert sick_worker.run({"a.txt": b"damaged"}).kind == "find"
    assert sick_worker.run(seed).kind == "read"


def test_what_is_no_mistake_is_not_found(sick_worker):
    tally = loop.fuzz(sick_worker, "read", inputs=200)

    assert tally.inputs == 200
    assert 1 < tally.read < 200
    assert tally.finds == []


def test_the_same_seed_tries_the_same_inputs(sick_worker):
    first, again, other = (
        loop.fuzz(sick_worker, "read", inputs=100, seed=seed).read for seed in (1, 1, 2)
    )

    assert first == again != other


def test_a_find_is_made_small_and_can_be_kept(sick_worker, tmp_path):
    tally = loop.fuzz(sick_worker, "say_nothing", inputs=5)

    (find,) = tally.finds
    assert find.files == {"a.txt": b""}
    assert loop.load(loop.save(find, tmp_path)) == ("say_nothing", {"a.txt": b""})
