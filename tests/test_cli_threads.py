"""Products of the command line are made by one thread, unless the user asks for more."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("threadpoolctl")

# What the command does, and then how many threads numpy's products have.
COMMAND = """
import json, sys
from stepgraph.cli import run
try:
    sys.argv = ["stepgraph", "decoders"]
    run()
except SystemExit as done:
    assert not done.code
import numpy
from threadpoolctl import threadpool_info
said = [one["num_threads"] for one in threadpool_info() if one["internal_api"] == "openblas"]
print(json.dumps(said))
"""


@pytest.mark.parametrize(("asked", "threads"), [(None, 1), ("2", 2)])
def test_numpy_has_one_thread_unless_more_are_asked_for(asked, threads):
    others = {name: value for name, value in os.environ.items() if name[-7:] != "THREADS"}
    chosen = {} if asked is None else {"OPENBLAS_NUM_THREADS": asked}

    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env=others | chosen,
        capture_output=True,
        text=True,
        check=True,
    )

    told = json.loads(done.stdout.splitlines()[-1])
    if not told:
        pytest.skip("numpy is made with another library than OpenBLAS")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core has one thread whatever is asked for")
    assert set(told) == {threads}
