"""Filling a folder with features, killed at any moment: the end is as if it had not been."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

VIDEOS = 30

# An encoder of a user's own, slow enough to be caught at anything it does.
ENCODER = """
import os
import sys
import time

import numpy as np

from stepgraph.core import Features


def say(what):
    print(what, flush=True)
    if what == os.environ.get("HANG"):
        time.sleep(600)


class Slow:
    def __init__(self, options):
        self.options = options

    def encode_keysteps(self, vocabulary):
        return np.eye(len(vocabulary), 16, dtype=np.float32)

    def encode_videos(self, videos):
        for video in videos:
            say(f"encode {video.id}")
            time.sleep(0.005)
            rows = int(video.duration)
            vectors = np.random.default_rng(rows).normal(size=(rows, 16)).astype(np.float32)
            times = np.arange(rows, dtype=np.float64)
            yield Features(video.id, video.duration, vectors, np.stack([times, times + 1], axis=1))
"""

# Writing is slow, too: it stops after each array, and once more before the file gets its name.
RUN = """
import os
import sys
import time
from pathlib import Path

import numpy as np

from slow_encoder import say
from stepgraph.core import Video
from stepgraph.encoders import load_encoder
from stepgraph.encoders.stored_features import FeatureStore
from stepgraph.encoders.encoding import encode_to
from stepgraph.problems import Problems

folder, count = Path(sys.argv[1]), int(sys.argv[2])
write, sync = np.lib.format.write_array, os.fsync
written, problems = 0, Problems()


def write_slowly(file, array, *args, **options):
    write(file, array, *args, **options)
    time.sleep(0.002)


def sync_slowly(file):
    global written
    written += 1
    say(f"sync {written}")
    sync(file)
    time.sleep(0.005)


np.lib.format.write_array, os.fsync = write_slowly, sync_slowly
videos = [Video(f"day{i % 3}/v{i}", 100.0 + i) for i in range(count)]
done = encode_to(FeatureStore(folder), videos, load_encoder("slow_encoder:Slow"), problems)
say(f"done {done.written} {done.skipped} {len(problems)}")
"""


@pytest.fixture
def start(tmp_path):
    """Start a process that fills a folder; it hangs where it is told to, to be killed there."""
    (tmp_path / "slow_encoder.py").write_text(ENCODER)
    started = []

    def start(folder, hang=""):
        python_path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": python_path, "HANG": hang}
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(folder), str(VIDEOS)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def kill(process):
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def finish(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return said.splitlines()[-1]


def files_in(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def wait_for(process, line):
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"the process ended before it said {line!r}")


@pytest.mark.slow
def test_killed_runs_leave_together_what_one_run_leaves(tmp_path, start):
    rng = random.Random(20)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert finish(start(whole)) == f"done {VIDEOS} 0 0"

    for _ in range(6):
        # It hangs later than it is killed, so it is alive then however slow this machine is.
        process = start(killed, hang="sync 5")
        for _ in range(rng.randrange(8)):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.02))
        kill(process)
        present = {name: data for name, data in files_in(killed).items() if "partial" not in name}
        assert present.items() <= files_in(whole).items()

    written, skipped, failed = map(int, finish(start(killed)).split()[1:])
    assert (written + skipped, failed) == (VIDEOS, 0)
    assert files_in(killed) == files_in(whole)
    assert len(files_in(whole)) == VIDEOS + 1


@pytest.mark.slow
def test_half_a_file_is_never_taken_for_one_and_is_removed(tmp_path, start):
    folder = tmp_path / "features"
    process = start(folder, hang="sync 3")
    wait_for(process, "sync 3")

    kill(process)

    left = [name for name in files_in(folder) if name.endswith(".partial")]
    assert [name.rpartition("-")[0] for name in left] == [f"day2/.v2.npz.{process.pid}"]
    assert finish(start(folder)) == f"done {VIDEOS - 2} 2 0"
    assert not [name for name in files_in(folder) if name.endswith(".partial")]
