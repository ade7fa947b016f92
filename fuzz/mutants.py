"""Do the tests notice?  Change one thing at random in the package, and run its module's tests.

``make mutants`` or ``python fuzz/mutants.py --seed 1 --count 40 graph scoring``: each mutant is
one small mistake (``<`` for ``<=``, an axis, a constant one off, a dropped ``not``, another
variable returned), made in a copy of the tree.  It is noticed when a test fails or runs out of
time.  The diff of each survivor is printed: it wants a test, simpler code, or a line in
``fuzz/equivalent.md`` that says why it changes nothing.  Not part of CI.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

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
    "graph/task_graph": "graph graph_mining properties",
    "graph/order": "graph_order",
    "graph/shortest_paths": "graph graph_shortest_paths",
    "graph/communities": "graph decoders_tasks",
    "graph/compiling": "graph_mining graph_shortest_paths",
    "graph/habits": "graph_habits recognizer_edges decoders_learning",
    "graph/saving": "graph export_saving export_artefacts",
    "graph/layers": "graph_layers",
    "graph/maps": "graph_maps",
    "graph/saving_habits": "graph_habits recognizer_edges",
    "scoring/__init__": "scoring scoring_stored_scores pipeline",
    "scoring/fusion": "scoring_scales fusion",
    "scoring/products": "scoring scoring_products recognizer_edges",
    "decoders/__init__": "decoders",
    "decoders/auto_regressive": "decoders_auto_regressive",
    "decoders/baselines": "decoders decoders_baselines",
    "graph/chains": "graph_chains decoders_markov recognizer_edges",
    "decoders/dtw": "decoders decoders_dtw",
    "decoders/hearing": "decoders_hearing decoders_task_markov_formulas recognizer_edges",
    "decoders/learning": "decoders_learning decoders_task_markov_formulas recognizer_edges",
    "decoders/markov": "decoders decoders_markov",
    "decoders/path": "decoders decoders_path properties",
    "decoders/task_markov": "decoders_task_markov_formulas decoders_task_markov recognizer_edges",
    "decoders/tasks": "decoders_tasks decoders_task_markov_formulas recognizer_edges",
    "evaluation/entropy": "evaluation_entropy properties",
    "evaluation/metrics": "evaluation_metrics evaluation_background evaluation_report properties",
    "evaluation/order": "evaluation_order",
    "evaluation/report": "evaluation_report pipeline properties",
    "evaluation/segments": "evaluation_segments evaluation_recall properties",
    "ingest/cleaning": "ingest_cleaning ingest_errors ingest_formats datasets_howto100m",
    "ingest/formats": "ingest_formats ingest_errors datasets_howto100m ingest ingest_media",
    "ingest/frames": "ingest_frames ingest_picture_track",
    "ingest/media": "ingest_media ingest_speech",
    "ingest/timed_text": "ingest_styled ingest_formats ingest_errors ingest",
    "export/artefacts": "export_saving export_artefacts evaluation_report",
    "export/drawing": "export_drawing",
    "export/exchange": "export_exchange",
    "export/layout": "export_layout export_drawing",
    "export/svg": "export_drawing",
    "export/report": "export_picture export_report export_report_video",
    "export/terminal": "export_picture tables",
    "export/timeline": "export_picture export_timeline",
}

_COMPARED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is},
}
_COMPUTED = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult},
    **{ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift},
}
_PAIRS = ["max min", "argmax argmin", "maximum minimum", "any all", "ceil floor", "zeros ones"]
_CALLED = {one: other for pair in _PAIRS for one, other in (pair.split(), reversed(pair.split()))}


class Mutant(NamedTuple):
    """One changed place of a file: which bytes, and what stands there instead."""

    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        """The file with the mistake in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def find_mutants(source: str) -> list[Mutant]:
    """Every mistake that could be made in a file, in the order of its lines."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, names in _walk(ast.parse(source), frozenset()):
        for kind, changed in _changes(node, names):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(changed)
            if isinstance(node, ast.expr) and not isinstance(node, ast.Constant | ast.Slice):
                text = f"({text})"
            found.append(Mutant(start, end, text, kind))
    before = ast.dump(ast.parse(source))
    return sorted(one for one in set(found) if _differs(one.apply(source.encode()), before))


def _differs(source: bytes, before: str) -> bool:
    """Whether it is a program at all, and another one: neither needs a test to be noticed."""
    try:
        compile(source, "mutant", "exec")
        return ast.dump(ast.parse(source)) != before
    except SyntaxError:
        return False


def _walk(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Every node that decides something, with the variables of its function."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return  # what is said is the tests' own affair
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # it guards against mistakes, and is none
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.FunctionDef):
        inside = [one for one in ast.walk(node) if isinstance(one, ast.Name | ast.arg)]
        stored = (o for o in inside if isinstance(o, ast.arg) or isinstance(o.ctx, ast.Store))
        names = frozenset(o.arg if isinstance(o, ast.arg) else o.id for o in stored)
    yield node, names
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, names)


def _changes(node: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left, [op], right) if type(op) in _COMPARED:
            yield "compare", ast.Compare(left, [_COMPARED[type(op)]()], right)
        case ast.Compare(left, ops, right) if len(ops) > 1:
            for at, op in enumerate(ops):
                if type(op) in _COMPARED:
                    other = [*ops[:at], _COMPARED[type(op)](), *ops[at + 1 :]]
                    yield "compare", ast.Compare(left, other, right)
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED:
            yield "compute", ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in _COMPUTED:
            yield "compute", ast.AugAssign(target, _COMPUTED[type(op)](), value)
        case ast.BoolOp(op, values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield "dropped sign", operand
        case ast.IfExp(test, body, orelse):
            yield "swapped", ast.IfExp(test, orelse, body)
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int(value)):
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case ast.Constant(float(value)):
            yield "constant", ast.Constant(value * 2 if value else 1.0)
        case ast.Call(ast.Name(name), args, keywords) if name in _CALLED:
            yield "called", ast.Call(ast.Name(_CALLED[name]), args, keywords)
        case ast.Attribute(value, name) if name in _CALLED:
            yield "called", ast.Attribute(value, _CALLED[name])
        case ast.Slice(lower, upper, None) if lower or upper:
            yield "slice", ast.Slice(lower, None if lower else _one_more(upper))
            yield "slice", ast.Slice(_one_more(lower) if lower else ast.Constant(1), upper)
        case ast.Continue():
            yield "loop", ast.Break()
        case ast.Break():
            yield "loop", ast.Continue()
        case ast.Return(ast.Name(name)):
            for other in sorted(names - {name, "self", "cls"})[:3]:
                yield "returned", ast.Return(ast.Name(other))
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield "left out", ast.Pass()


def _one_more(bound: ast.expr | None) -> ast.expr | None:
    return bound and ast.BinOp(bound, ast.Add(), ast.Constant(1))


class Chosen(NamedTuple):
    """A mutant and the module it is made in."""

    module: str
    mutant: Mutant


def choose(names: list[str], count: int, seed: int) -> list[Chosen]:
    """Draw mutants at random, all places of all modules alike; the same for the same seed."""
    modules = [one for one in _modules() if any(one.startswith(name) for name in names)]
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
        # Compiling takes longer than the tests do without.
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        # What every run imports anyway; a fork has it at once.
        for library in ("scipy.sparse.csgraph", "scipy.special", "pytest", "networkx", "numba"):
            import_module(library)

    def notices(self, module: str, mutant: Mutant | None, limit: float) -> bool:
        """Whether the tests of a module fail, or take too long, with a mistake in it."""
        path = _path(self.folder, module)
        source = path.read_bytes()
        if mutant:
            path.write_bytes(mutant.apply(source))
        try:
            return self._fails(module, limit)
        finally:
            path.write_bytes(source)

    def _fails(self, module: str, limit: float) -> bool:
        child = os.fork()
        if not child:
            self._run_tests(module, limit)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status) != 0
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return True

    def _run_tests(self, module: str, limit: float) -> None:
        """In the child: run the tests, and end with what they end with."""
        import pytest

        code = 3
        try:
            os.setpgid(0, 0)  # what a test starts ends with it
            signal.alarm(int(limit) + 5)  # even where the parent is gone
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            os.chdir(self.folder)
            sys.path[:0] = [str(self.folder / "src")]
            # Bytecode knows the time of its source only to the second.
            sys.dont_write_bytecode = True
            os.environ |= {"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"}
            os.environ |= {"OMP_NUM_THREADS": "1", "STEPGRAPH_DATA": str(self.folder / "nothing")}
            marks = ["-m", "not slow and not data", "-p", "no:cacheprovider"]
            code = pytest.main(
                ["-x", "-q", "-n", "0", *marks, str(_path(self.folder, module)), *tests_of(module)]
            )
        finally:
            os._exit(int(code))


def shown(chosen: Chosen, folder: Path = ROOT) -> str:
    """The difference that a mutant makes in a tree, as a diff."""
    source = _path(folder, chosen.module).read_bytes()
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
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for the tests of one")
    args = parser.parse_args(argv)
    noticed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        mutants = choose(args.names, args.count, args.seed)
        for module in sorted({one.module for one in mutants}):
            if copy.notices(module, None, 5 * args.limit):
                print(f"{module}: its tests fail without any mistake", file=sys.stderr)
                return 1
        for number, chosen in enumerate(mutants, start=1):
            print(f"\r{number} of {len(mutants)}", end="", file=sys.stderr, flush=True)
            room = chosen.module.partition("/")[0]
            tried[room] += 1
            if copy.notices(chosen.module, chosen.mutant, args.limit):
                noticed[room] += 1
            else:
                print(f"survived:\n{shown(chosen, copy.folder)}\n", flush=True)
    for room in sorted(tried):
        print(f"{room:12} {noticed[room]:4} of {tried[room]:4} noticed")
    print(f"{'all':12} {noticed.total():4} of {tried.total():4} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
