"""Kill a verb of the command line at any moment, run it again, and compare what is left.

A moment is any change that python makes to the disk: a file opened to be written, a rename, a
removal, a new folder.  The process kills itself just before its n-th, with the signal that cannot
be caught; n is drawn at random, so that over many kills all are met.  Processes are forked from
one that has imported everything, so that a kill costs a fraction of a second.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
KILLS = int(os.environ.get("STEPGRAPH_SOAK", "0"))
"""How many kills of each verb were asked for (``make soak``)."""

# Reads a line of JSON for each run: the arguments, and before which moment it is killed.
NURSERY = """
import gc, json, os, signal, sys, time, traceback, warnings
from importlib import import_module

for name in sys.argv[1:]:
    import_module(name)
from stepgraph.cli import main

moments = 0


def count(event, args):
    global moments
    if event == "open":
        path, mode, flags = args
        changes = flags & (os.O_WRONLY | os.O_RDWR) and isinstance(path, (str, bytes, os.PathLike))
        changes = changes and not os.fsdecode(path).startswith("/dev/")
    else:
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.truncate")
    moments += bool(changes)
    if changes and moments == last:
        os.kill(os.getpid(), signal.SIGKILL)


gc.freeze()  # what was imported stays shared with the children, who would look for garbage in it
for line in sys.stdin:
    args, last = json.loads(line)
    inner, outer = os.pipe()
    child = os.fork()
    if child == 0:
        # What a verb prints goes to a file: the parent's stdout is for the harness.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        sys.addaudithook(count)
        try:
            code = main(args)
        except BaseException:
            traceback.print_exc()
            code = 70
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(outer, str(moments).encode())
        os._exit(code)
    os.close(outer)
    said = os.read(inner, 100).decode()
    os.close(inner)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, int(said or 0)]), flush=True)
"""


class Nursery:
    """Where runs of the command line come from.

    Parameters
    ----------
    modules
        What is imported beforehand, such as torch.
    paths
        Where modules of one's own are found.
    """

    def __init__(self, folder, modules=("stepgraph.cli.learning",), paths=()):
        known = [str(TESTS.parent / "src"), *map(str, paths)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(known),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # what is compiled is no moment of a verb
            "STEPGRAPH_CACHE": str(folder / "cache"),
        }
        self.log = folder / "log.txt"
        self._said = self.log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=environment,
            cwd=folder,
            text=True,
        )

    def run(self, *args, before=None):
        """Run a verb, killed before its n-th moment if told to: exit code, and its moments."""
        self._process.stdin.write(json.dumps([list(map(str, args)), before]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self.log.read_text()
        status, moments = json.loads(line)
        return status, moments

    def close(self):
        """End it."""
        self._process.stdin.close()
        self._process.wait(timeout=300)
        self._process.stdout.close()
        self._said.close()


def files_in(folder, read=Path.read_bytes):
    """Everything in a folder: contents of files, None for folders."""
    return {
        str(path.relative_to(folder)): read(path) if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def kill_and_compare(nursery, folder, verb, kills, *, look=files_in, seed=0):
    """Kill a verb so many times, finish it each time, and ask for what an undisturbed run leaves.

    Parameters
    ----------
    verb
        From a folder to write into to the arguments of the command line.
    kills
        Now and then a run is killed again while it makes good what the last kill left.
    look
        What a run left, by name: of a folder all files with all their bytes.
    """
    chance = random.Random(seed)
    status, moments = nursery.run(*verb(folder / "whole"))
    assert status == 0, nursery.log.read_text()
    expected = look(folder / "whole")
    assert moments > 3
    population = []
    for number in range(kills):
        place = folder / f"killed-{number}"
        while True:
            # The first kills are spread over the whole run, so that few of them meet all of it.
            before = 1 + (chance.randrange(moments) + number * moments // kills) % moments
            status, _ = nursery.run(*verb(place), before=before)
            population += [before] * (status != 0)
            if status == 0 or chance.random() < 0.7:
                break
        assert status in (0, -9), nursery.log.read_text()
        status, _ = nursery.run(*verb(place))
        assert status == 0, (number, before, nursery.log.read_text())
        found = look(place)
        assert found.keys() == expected.keys(), (number, before)
        different = [name for name, data in expected.items() if found[name] != data]
        assert different == [], (number, before)
    # For make soak, which shows what tests print.
    print(
        f"{verb(Path())[0]}: {len(population)} kills at {len({*population})} of {moments} moments"
    )
