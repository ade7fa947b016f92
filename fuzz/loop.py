"""The process that makes inputs, hands them to a worker, and keeps what was found.

An input that reaches new lines of stepgraph is kept to be damaged further.  What is tried depends
on the seed and the number of inputs alone.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zlib
from base64 import b85decode, b85encode
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.util import find_spec
from multiprocessing import Pipe
from pathlib import Path

from fuzz.mutations import damage

FINDS = Path(__file__).parent / "finds"
_ROOT = Path(__file__).parents[1]
# Seconds until a worker is taken to sleep; one that computes is ended much earlier.
_PATIENCE = 120
_KEPT = 400  # inputs that are damaged further
_TRIES = 150  # to make a find smaller


@dataclass(frozen=True)
class Outcome:
    """What became of an input: ``read``, ``refused`` or ``find``, where, and in words."""

    kind: str
    place: str = ""
    words: str = ""
    new: int = 0


@dataclass(frozen=True)
class Find:
    """An input that is neither read nor refused as it should be."""

    harness: str
    files: dict[str, bytes]
    outcome: Outcome

    @property
    def name(self):
        """Name of the file it is kept in."""
        content = repr(sorted(self.files.items())).encode()
        return f"{self.harness}-{blake2b(content, digest_size=4).hexdigest()}.json"


@dataclass
class Tally:
    """How the inputs of one harness fared."""

    harness: str
    inputs: int = 0
    read: int = 0
    lines: int = 0
    seconds: float = 0.0
    finds: list[Find] = field(default_factory=list)

    def __str__(self):
        rate = self.inputs / max(self.seconds, 1e-9)
        return (
            f"{self.harness:20} {self.inputs:9,} inputs {rate:8,.0f}/s {self.read:9,} read "
            f"{self.lines:6,} lines {len(self.finds):3} finds"
        )


class Worker:
    """A child process that reads inputs; it is started again when one has ended it.

    ``table`` is the module with the harnesses.
    """

    def __init__(self, table="fuzz.harnesses"):
        self._table = table
        self._folder = tempfile.TemporaryDirectory(prefix="stepgraph-fuzz-")
        self._process = None
        self._harness = ""
        self.seeds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop()
        self._folder.cleanup()

    def open(self, harness):
        """Take up another harness, and give its seeds."""
        self._harness = harness
        if self._process is None:
            self._start()
        self._connection.send(harness)
        try:
            self.seeds = self._connection.recv()
        except EOFError:
            raise RuntimeError(f"{harness}: its seeds end the worker: {self._said()}") from None
        return self.seeds

    def run(self, files, *, follow=False):
        """Let the worker read one input, and follow which lines it reaches if asked to."""
        if self._process is None:
            self.open(self._harness)
        try:
            self._connection.send((files, follow))
            if self._connection.poll(_PATIENCE):
                return Outcome(*self._connection.recv())
            words = f"sleeps for more than {_PATIENCE} s"
        except (EOFError, ConnectionError):
            code = self._process.wait()
            words = f"ended the process with {code}: {self._said()}"
        place = f"end {words.partition(':')[0]} {_innermost(words)}"
        self._stop()
        return Outcome("find", place, words)

    def _start(self):
        root = Path(self._folder.name)
        (root / "sandbox").mkdir(exist_ok=True)
        self._errors = (root / "errors").open("w+b")
        self._connection, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", str(theirs.fileno()), self._table],
            cwd=root / "sandbox",
            env=_environment(root / "sandbox"),
            pass_fds=[theirs.fileno()],
            stderr=self._errors,
        )
        theirs.close()

    def _said(self):
        self._errors.seek(0)
        return self._errors.read()[-3000:].decode(errors="replace")

    def _stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._connection.close()
            self._errors.close()
            self._process = None


def _environment(sandbox):
    """One thread, fixed hashes, nothing compiled to disk, no cache and no home but the sandbox."""
    paths = [str(_ROOT / "src"), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    folders = {"HOME": sandbox, "TMPDIR": sandbox / "out", "STEPGRAPH_CACHE": sandbox / "out"}
    return {
        **os.environ,
        **{name: str(folder) for name, folder in folders.items()},
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing but readers writes
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _innermost(words):
    """The first function of ours in a traceback of a process that ended."""
    lines = [line.strip() for line in words.splitlines() if f"{os.sep}stepgraph{os.sep}" in line]
    return lines[0].rpartition(" in ")[2] if lines else ""


def is_installed(harness):
    """Whether the extras that a harness needs are there."""
    return all(map(find_spec, harness.needs))


def fuzz(worker, name, *, inputs=None, seconds=None, seed=0, names=True):
    """Try so many inputs on a harness, or for so long; each place is found once."""
    tally = Tally(name)
    # What is still read is damaged more often: a refusal hides what comes after it.
    whole = list(worker.open(name))
    kept = list(whole)
    begun, found = time.monotonic(), set()
    while _goes_on(tally.inputs, inputs, time.monotonic() - begun, seconds):
        rng = random.Random(f"{seed} {name} {tally.inputs}")
        first = kept[tally.inputs] if tally.inputs < len(worker.seeds) else None
        chosen = rng.choice(whole if rng.random() < 0.7 else kept)
        files = first or damage(chosen, kept, rng, names=names)
        # Following an input takes three times as long, so most are only read.
        outcome = worker.run(files, follow=tally.inputs % 3 == 0)
        tally.inputs += 1
        tally.read += outcome.kind == "read"
        tally.lines += outcome.new
        if outcome.kind == "find" and outcome.place not in found:
            found.add(outcome.place)
            tally.finds.append(minimise(worker, Find(name, files, outcome)))
        elif outcome.new and first is None:
            for pool in (kept, whole) if outcome.kind == "read" else (kept,):
                pool.append(files)
                if len(pool) > _KEPT:
                    del pool[rng.randrange(len(worker.seeds), len(pool))]
    tally.seconds = time.monotonic() - begun
    return tally


def _goes_on(done, inputs, passed, seconds):
    return (inputs is None or done < inputs) and (seconds is None or passed < seconds)


def minimise(worker, find):
    """Take away what is not needed to find the same again, as far as a few tries go."""
    tries = 12 if find.outcome.place.startswith("end ") else _TRIES
    files = dict(find.files)

    def is_same(smaller):
        outcome = worker.run(smaller)
        return (outcome.kind, outcome.place) == ("find", find.outcome.place)

    for name in sorted(files):
        without = {other: data for other, data in files.items() if other != name}
        if without and is_same(without):
            files = without
    for name in sorted(files):
        size = max(1, len(files[name]) // 2)
        while size and tries > 0:
            begin = 0
            while begin < len(files[name]) and tries > 0:
                tries -= 1
                data = files[name]
                smaller = files | {name: data[:begin] + data[begin + size :]}
                if is_same(smaller):
                    files = smaller
                else:
                    begin += size
            size //= 2
    return Find(find.harness, files, find.outcome)


def save(find, folder=FINDS):
    """Keep a find as JSON that people can read where its files are text."""
    folder.mkdir(exist_ok=True)
    files = {name: _as_text(content) for name, content in find.files.items()}
    content = {"harness": find.harness, "found": find.outcome.place, "files": files}
    path = folder / find.name
    path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")
    return path


def load(path):
    """Read the harness and the files of a find."""
    content = json.loads(path.read_text())
    files = {name: _as_bytes(said) for name, said in content["files"].items()}
    return content["harness"], files


def _as_text(content):
    """Text as it is; what is none, or long, packed."""
    with suppress(UnicodeDecodeError):
        if len(content) < 4096:
            return content.decode()
    return {"packed": b85encode(zlib.compress(content, 9)).decode()}


def _as_bytes(said):
    return said.encode() if isinstance(said, str) else zlib.decompress(b85decode(said["packed"]))
