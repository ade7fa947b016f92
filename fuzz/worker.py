"""The child process in which inputs are read, with little memory, little time, and no network.

It is told the name of a harness and then one input after the other, and answers what became of
each.  Whatever an input does to this process, the one that started it goes on.
"""

import faulthandler
import importlib
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz.printed import require_error
from fuzz.watching import Lines, Watch

MEMORY = 1536 << 20
"""Bytes that an input may take beyond what the process had before."""
SECONDS = 5
"""Processor time that an input may take: a machine that is busy with other work is not slow."""


def serve(connection, harnesses):
    """Answer until nobody asks any more."""
    from stepgraph.errors import StepgraphError

    watch, lines = Watch(Path.cwd()), Lines()
    harness = None
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        if isinstance(request, str):
            harness, lines = harnesses[request], Lines()
            watch.programs = harness.programs
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            seeds = harness.seeds()
            for files in seeds:  # imports and compiles what is needed, before anything is limited
                _attempt(harness, files, watch, nullcontext(), StepgraphError)
            _limit_memory()
            connection.send(seeds)
        else:
            files, follow = request
            following = lines if follow else nullcontext()
            connection.send(_attempt(harness, files, watch, following, StepgraphError))


def _attempt(harness, files, watch, following, refusals):
    """Read one input: ``read``, ``refused`` or ``find``; where; in words; how many new lines."""
    lines = None
    path, out = _lay_out(files, harness.folder)
    kind, place, words = "read", "", ""
    with warnings.catch_warnings(record=True) as warned, watch:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of files that an error leaves open
        try:
            with _limited_time(), following as lines:
                harness.read(path, out)
        except refusals as error:
            kind, words = "refused", str(error)
            place, found = _check_refusal(error)
            if found:
                kind, words = "find", found
        except BaseException as error:
            kind, place = "find", _place(error)
            words = "".join(traceback.format_exception(error))[-3000:]
    for one in warned:
        if kind != "find" and not _is_said_on_purpose(one):
            kind, place = "find", f"{one.category.__name__} {Path(one.filename).name}"
            words = f"warns: {one.message}"
    if kind != "find" and watch.mischief:
        kind, place, words = "find", watch.mischief[0].split(":")[0], watch.mischief[0]
    return kind, place, words, lines.new if lines else 0


def _lay_out(files, folder):
    for name in ("in", "out"):
        shutil.rmtree(name, ignore_errors=True)
        os.mkdir(name)
    for name, content in files.items():
        path = Path("in", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    alone = len(files) == 1 and not folder
    return Path("in", *files if alone else ()), Path("out")


def _check_refusal(error):
    """Where an error was raised, and what is wrong with it."""
    cause = error
    while cause is not None:
        # FFmpeg calls it a lack of memory, too, where a number in a file is beyond all bounds.
        if isinstance(cause, MemoryError) and not type(cause).__module__.startswith("av."):
            return f"memory {_place(error)}", f"takes more than it may, and then says: {error}"
        cause = cause.__cause__ or cause.__context__
    try:
        require_error(str(error))
    except AssertionError as wrong:
        # One place for all: messages are made in many places, but printed in one.
        return f"message {str(wrong).split()[0]}", str(wrong)
    return _place(error), ""


def _place(error):
    """The kind of an error, and the last function of ours it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}stepgraph{os.sep}" in f.filename] or frames
    where = f"{Path(ours[-1].filename).name} {ours[-1].name}" if ours else ""
    return f"{type(error).__name__} {where}"


def _is_said_on_purpose(warning):
    if warning.category is not UserWarning:
        return False
    try:
        require_error(str(warning.message))
    except AssertionError:
        return False
    return True


@contextmanager
def _limited_time():
    """End this process, with a traceback, when the processor has worked too long."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def main():
    """Serve the connection and the harnesses that are given; what libraries print goes nowhere."""
    connection = Connection(int(sys.argv[1]))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(connection, importlib.import_module(sys.argv[2]).HARNESSES)


if __name__ == "__main__":
    main()
