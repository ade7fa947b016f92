"""Do the tests notice?  Change one thing at random in the package, and run its module's tests.

``make mutants`` or ``python -m fuzz.mutants --seed 1 --count 40 graph scoring/fusion``: each
mutant is one small mistake of :mod:`fuzz.mistakes`, made in a copy of the tree.  It is noticed
when a test fails or runs out of time.  The diff of each survivor is printed: it wants a test,
simpler code, or a line in ``fuzz/equivalent.md`` that says why it changes nothing.  Not part of
CI.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from fuzz.mistakes import Mutant, find_mutants

ROOT = Path(__file__).resolve().parents[1]

# The tests of each room, and of modules for which fewer, or others, are their own.
ROOMS = {
    "graph": "graph graph_mining graph_order graph_shortest_paths properties",
    "scoring": "scoring fusion scoring_scales scoring_stored_scores export_saving",
    "decoders": "decoders decoders_path decoders_baselines decoders_dtw decoders_markov",
    "evaluation": "evaluation_metrics evaluation_report evaluation_segments properties",
    "ingest": "ingest_cleaning ingest_formats ingest_errors ingest ingest_media ingest_speech",
    "export": "export_timeline export_artefacts export_saving export_report tables",
}
TESTS = {
    "graph/mining": "graph_mining properties graph",
    "graph/task_graph": "graph graph_mining graph_parameters graph_maps properties",
    "graph/order": "graph_order",
    "graph/shortest_paths": "graph graph_shortest_paths",
    "graph/communities": "graph decoders_tasks",
    "graph/compiling": "graph_mining graph_shortest_paths",
    "graph/parameters": (
        "graph_parameters graph_parameters_prior recognizer_edges decoders_learning"
    ),
    "graph/saving": (
        "graph_saving graph graph_traces graph_parameters export_saving export_artefacts "
        "vocabulary_notes"
    ),
    "graph/traces": "graph_traces graph_order_statistics",
    "graph/order_statistics": "graph_order_statistics evaluation_order",
    "graph/shares": "graph_shares graph_maps graph_order_statistics",
    "graph/comparing": "graph_comparing",
    "graph/maps": "graph_maps",
    "graph/saving_parameters": "graph_parameters graph_traces recognizer_edges",
    "scoring/__init__": "scoring scoring_lazy scoring_stored_scores pipeline",
    "scoring/fusion": "scoring_scales fusion",
    "scoring/lazy": "scoring scoring_lazy scoring_annotations recognizer_edges",
    "decoders/__init__": "decoders scoring_annotations",
    "decoders/auto_regressive": "decoders_auto_regressive",
    "decoders/baselines": "decoders decoders_baselines",
    "graph/chains": "graph_chains decoders_markov recognizer_edges",
    "decoders/dtw": "decoders decoders_dtw",
    "decoders/observations": (
        "decoders_observations scoring_annotations decoders_task_markov_formulas recognizer_edges"
    ),
    "decoders/learning": (
        "decoders_learning decoders_learning_parts decoders_classifiers recognizer_edges"
    ),
    "decoders/markov": "decoders decoders_markov",
    "decoders/path": "decoders decoders_path properties",
    "decoders/task_markov": (
        "decoders_task_markov_formulas decoders_task_markov scoring_annotations recognizer_edges"
    ),
    "decoders/tasks": "decoders_tasks_formulas decoders_tasks recognizer_edges",
    "evaluation/entropy": "evaluation_entropy properties",
    "evaluation/metrics": "evaluation_metrics evaluation_background evaluation_report properties",
    "evaluation/order": "evaluation_order",
    "evaluation/report": "evaluation_report pipeline properties",
    "evaluation/segments": "evaluation_segments evaluation_recall properties",
    "ingest/__init__": "ingest ingest_media ingest_speech ingest_listening",
    "ingest/cleaning": "ingest_cleaning ingest_errors ingest_formats datasets_howto100m",
    "ingest/formats": "ingest_formats ingest_errors datasets_howto100m ingest ingest_media",
    "ingest/frames": "ingest_frames ingest_picture_track ingest_screen",
    "ingest/speech": "ingest_hearing ingest_speech ingest_listening live_sound",
    "ingest/whisper": "ingest_speech",
    "ingest/language": "ingest_language",
    "ingest/media": "ingest_media ingest_speech",
    "ingest/timed_text": "ingest_styled ingest_formats ingest_errors ingest",
    "ingest/media_cache": "ingest_hearing ingest_screen ingest_listening",
    "ingest/screen": "ingest_screen_lines ingest_screen",
    "ingest/language_check": "ingest_language_check",
    "export/annotators": (
        "export_formats_kept export_formats export_corrections assistant_executions"
    ),
    "export/answers": "tables export_terminal cli_graph",
    "export/artefacts": "export_saving export_artefacts evaluation_report",
    "export/clips": "export_clips",
    "export/corrections": "export_corrections",
    "export/annotations": "export_annotations",
    "export/drawing": "export_pictures_kept export_drawing",
    "export/editors": "export_formats_kept export_formats",
    "export/exchange": "export_exchange",
    "export/formats": "export_formats_kept export_formats",
    "export/layout": "export_layout export_pictures_kept export_drawing",
    "export/maps": "export_maps viewer_maps vocabulary_notes",
    "export/players": "export_formats_kept export_formats",
    "export/results": "export_results export_annotations viewer_server",
    "export/svg": "export_pictures_kept export_drawing",
    "export/report": "export_picture export_report export_report_video vocabulary_notes",
    "export/tags": "export_tags export_formats",
    "export/terminal": "export_terminal export_picture tables",
    "export/timeline": "export_formats_kept export_picture export_timeline export_timeline_edges",
}


class Chosen(NamedTuple):
    """A mutant and the module it is made in."""

    module: str
    mutant: Mutant


def choose(names: list[str], count: int, seed: int) -> list[Chosen]:
    """Draw mutants at random, all places of all modules alike; the same for the same seed."""
    modules = [one for one in _modules() if {one, one.partition("/")[0]} & {*names}]
    every = [
        Chosen(module, mutant)
        for module in modules
        for mutant in find_mutants(_path(ROOT, module).read_text("utf-8"))
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def _modules() -> Iterator[str]:
    for room in ROOMS:
        for path in sorted((ROOT / "src" / "stepgraph" / room).glob("*.py")):
            yield f"{room}/{path.stem}"


def tests_of(module: str) -> list[str]:
    """Names of the files with a module's own tests."""
    own = TESTS.get(module) or ROOMS[module.partition("/")[0]]
    return [f"tests/test_{name}.py" for name in own.split()]


def _path(root: Path, module: str) -> Path:
    return root / "src" / "stepgraph" / f"{module}.py"


class Copy:
    """A copy of the tree in which mistakes are made, and its tests run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = shutil.ignore_patterns("__pycache__", ".venv", ".git", ".*_cache", "site")
        shutil.copytree(ROOT, folder, ignore=kept, dirs_exist_ok=True)
        # What every run imports anyway; a fork has it at once.
        for library in ("scipy.sparse.csgraph", "scipy.special", "pytest", "networkx", "numba"):
            import_module(library)

    def survivors(self, module: str, mutants: list[Mutant], limit: float) -> list[Mutant] | None:
        """Those that no test of a module notices; None where a test fails without any."""
        loop = Loop(_path(self.folder, module), mutants)
        said = in_a_fork(lambda: self._run_tests(module, loop), limit * (len(mutants) + 10))
        if said == "fails":
            return None
        # Imported, or read while the tests are gathered: only a run from the beginning tells.
        sure = [mark == "!" for mark in said.ljust(len(mutants))]
        doubtful = [one for one, known in zip(mutants, sure, strict=True) if not known]
        return [one for one in doubtful if not self.notices(module, one, limit)]

    def notices(self, module: str, mutant: Mutant, limit: float) -> bool:
        """Whether the tests of a module fail, or take too long, with a mistake in it."""
        path = _path(self.folder, module)
        source = path.read_bytes()
        path.write_bytes(mutant.apply(source))
        try:
            return in_a_fork(lambda: self._run_tests(module, None), limit) != "0"
        finally:
            path.write_bytes(source)

    def _run_tests(self, module: str, loop: Loop | None) -> str:
        """What the loop says, or else the exit code of all tests."""
        import numba
        import pytest

        # In what is compiled nothing could be exchanged; elsewhere it is faster by far.
        numba.config.DISABLE_JIT = b"import compiled" in _path(self.folder, module).read_bytes()
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        os.chdir(self.folder)
        sys.path[:0] = [str(self.folder / "src")]
        # Bytecode knows the time of its source only to the second.
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ |= {"OMP_NUM_THREADS": "1", "STEPGRAPH_DATA": str(self.folder / "nothing")}
        quick = "not slow and not data and not browser"
        options = ["-q", "-n", "0", "-m", quick, "-p", "no:cacheprovider"]
        files = [str(_path(self.folder, module)), *tests_of(module)]
        code = pytest.main([*options, *([] if loop else ["-x"]), *files], [loop] if loop else [])
        return loop.said if loop else str(int(code))


def in_a_fork(work: Callable[[], str], limit: float) -> str:
    """What a function returns in a process of its own; nothing if that fails or takes too long."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            try:
                os.setpgid(0, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, limit)
                answer.write(work())
                answer.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what a test started ends with it
        answer.seek(0)
        return answer.read()


class Loop:
    """Instead of running all tests once, runs for each mutant those that reach its line.

    A plugin of pytest.  The tests are gathered once; each mutant gets a fork, in which the code
    of the functions that are already there is exchanged.  A test that fails is sure to be right;
    what none notices may still matter where no function is, or before the tests begin.
    """

    def __init__(self, path: Path, mutants: list[Mutant]) -> None:
        self.path = path
        self.mutants = mutants
        self.said = "fails"

    def pytest_runtestloop(self, session: Any) -> bool:
        """Say of each mutant ``!`` if it is noticed, and ``?`` if not."""
        self.source = self.path.read_bytes()
        self.functions = [
            one
            for one in gc.get_objects()
            if isinstance(one, FunctionType) and one.__code__.co_filename == str(self.path)
        ]
        items = {item.nodeid: item for item in session.items}
        told = in_a_fork(lambda: json.dumps(self._reached(session, session.items)), 900)
        if not told:
            return True
        reached = {name: (seconds, set(lines)) for name, seconds, lines in json.loads(told)}
        quick = sorted(reached, key=lambda name: reached[name][0])
        # A test that needs another before it says nothing alone.
        if not in_a_fork(lambda: self._run(session, [items[name] for name in quick], 300), 900):
            quick = []
        # What several tests share is made by whichever comes first, and may take the longest.
        limit = 5 + 10 * max((seconds for seconds, _ in reached.values()), default=0)
        said = ""
        for mutant in self.mutants:
            lines = _lines(self.source, mutant)
            own = [name for name in quick if reached[name][1] & lines]
            those = [items[name] for name in own]
            said += (
                "?" if in_a_fork(partial(self._try, session, mutant, those, limit), 600) else "!"
            )
        self.said = said
        return True

    def _reached(self, session: Any, items: list[Any]) -> list[tuple[str, float, list[int]]]:
        """Of each test how long it takes and which lines of the module it runs."""
        found = []
        for item, after in pairwise([*items, None]):
            lines: set[int] = set()
            start = time.monotonic()
            threading.settrace(trace := _follow(str(self.path), lines))
            sys.settrace(trace)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            sys.settrace(None)
            if session.testsfailed:
                raise AssertionError
            found.append((item.nodeid, time.monotonic() - start, sorted(lines)))
        return found

    def _run(self, session: Any, items: list[Any], limit: float) -> str:
        """Something if all tests pass, each in its time."""
        for item, after in pairwise([*items, None]):
            signal.setitimer(signal.ITIMER_REAL, limit)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                return ""
        return "passed"

    def _try(self, session: Any, mutant: Mutant, items: list[Any], limit: float) -> str:
        try:
            before, after = (_codes(s) for s in (self.source, mutant.apply(self.source)))
            changed = {old: new for old, new in zip(before, after, strict=True) if old != new}
            for function in self.functions:
                function.__code__ = changed.get(function.__code__, function.__code__)
        except ValueError:  # it has other functions inside, or other variables
            return "unknown"
        return self._run(session, items, limit)


def _follow(path: str, lines: set[int]) -> Callable[..., Any]:
    def trace(frame: Any, event: str, _: object) -> Any:
        if frame.f_code.co_filename != path:
            return None
        lines.add(frame.f_lineno)
        return trace

    return trace


def _codes(source: bytes) -> list[CodeType]:
    """The code of every function of a file, in the order of the file."""
    found = [compile(source, "module", "exec", dont_inherit=True)]
    for code in found:
        found.extend(one for one in code.co_consts if isinstance(one, CodeType))
    return found[1:]


def _lines(source: bytes, mutant: Mutant) -> set[int]:
    """The lines of the statement in which a mutant is, without those that stand inside it."""
    first, last = (source[:at].count(b"\n") + 1 for at in (mutant.start, mutant.end))
    around = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= first and last <= node.end_lineno:
            inner = getattr(node, "body", None)
            end = inner[0].lineno - 1 if inner and last < inner[0].lineno else node.end_lineno
            around.append(range(node.lineno, end + 1))
    return set(min(around, key=len))


def shown(chosen: Chosen) -> str:
    """The difference that a mutant makes, as a diff."""
    source = _path(ROOT, chosen.module).read_bytes()
    before, after = (s.decode().splitlines() for s in (source, chosen.mutant.apply(source)))
    lines = difflib.unified_diff(before, after, chosen.module, chosen.mutant.kind, "", "", 1, "")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Make mutants one after the other and say which were noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=list(ROOMS), help="rooms, or modules as room/module"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument(
        "--only", nargs="+", default=[], help="of those drawn, these rooms or modules alone"
    )
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for the tests of one")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time")
    args = parser.parse_args(argv)
    drawn = defaultdict(list)
    for module, mutant in sorted(choose(args.names, args.count, args.seed)):
        if not args.only or {module, module.partition("/")[0]} & {*args.only}:
            drawn[module].append(mutant)
    tried = Counter(dict.fromkeys(ROOMS, 0))
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ThreadPoolExecutor(args.jobs) as pool,
    ):
        copies = SimpleQueue[Copy]()
        for number in range(args.jobs):
            copies.put(Copy(Path(folder).resolve() / f"{number}"))

        def survivors_of(module: str) -> list[Mutant] | None:
            copy = copies.get()
            print(f"{module}: {len(drawn[module])}", file=sys.stderr, flush=True)
            try:
                return copy.survivors(module, drawn[module], args.limit)
            finally:
                copies.put(copy)

        noticed = Counter(tried)
        for module, survivors in zip(drawn, pool.map(survivors_of, drawn), strict=True):
            if survivors is None:
                print(f"{module}: its tests fail without any mistake", file=sys.stderr)
                return 1
            room = module.partition("/")[0]
            tried[room] += len(drawn[module])
            noticed[room] += len(drawn[module]) - len(survivors)
            for mutant in survivors:
                print(f"survived:\n{shown(Chosen(module, mutant))}\n", flush=True)
    for room in filter(tried.get, tried):
        print(f"{room:12} {noticed[room]:4} of {tried[room]:4} noticed")
    print(f"{'all':12} {noticed.total():4} of {tried.total():4} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
