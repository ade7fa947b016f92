"""The shape of the code: imports point left, files stay small, importing stays light."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "stepgraph"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# A part imports from itself and from the parts before it.
ORDER = [
    *("errors", "problems", "progress", "core", "files", "ingest", "vocabulary", "datasets"),
    *("networks", "encoders", "scoring", "graph", "decoders", "evaluation", "export"),
    *("pipeline", "labelling", "training", "experiments", "cli"),
]
# These are made of torch; all others import them late, as they do torch.
NETWORKS = ("networks", "training")
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "networkx",
    "av",
    "pysubs2",
    "numba",
}


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(tree):
    """Names of all imported modules, `from package import module` spelled out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would escape these tests"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_parts(path):
    for name in imports_of(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "stepgraph" and len(parts) > 1 and parts[1] in ORDER:
            yield parts[1]


def module_of(path):
    parts = ("stepgraph", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def test_modules_of_a_room_have_an_order_too():
    # The package itself only hands names on.
    modules = {module_of(path): path for path in SOURCES if path != PACKAGE / "__init__.py"}
    uses = {
        module: {
            name if name in modules else name.rpartition(".")[0]
            for name in imports_of(ast.parse(path.read_text()))
        }
        & modules.keys()
        for module, path in modules.items()
    }

    # Late imports count as well: who reads the files in this order never has to look ahead.
    order = TopologicalSorter({module: used - {module} for module, used in uses.items()})

    assert len(list(order.static_order())) == len(modules)


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_point_left(path):
    if part_of(path) in ("__init__", "__main__"):
        return
    allowed = ORDER[: ORDER.index(part_of(path)) + 1]

    assert set(imported_parts(path)) <= set(allowed)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_heavy_libraries_are_imported_late(path):
    if part_of(path) in NETWORKS:
        return
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []

    names = [name.split(".") for name in imports_of(tree)]
    assert not {name[0] for name in names} & HEAVY
    assert not {name[1] for name in names if name[0] == "stepgraph" and name[1:]} & set(NETWORKS)


@pytest.mark.parametrize("path", [*SOURCES, *sorted(ROOT.glob("tests/*.py"))], ids=name_of)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 500


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_stay_small(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 80, node.name


def test_every_public_name_exists_and_is_documented():
    import stepgraph

    for name in stepgraph.__all__:
        if name != "BACKGROUND":
            assert getattr(stepgraph, name).__doc__, name


def test_importing_the_package_imports_no_heavy_library():
    heavy = HEAVY | {"numpy"}
    code = f"import stepgraph.cli, sys; print(sorted(set(sys.modules) & {heavy}))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
