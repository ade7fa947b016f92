"""The documentation: what it names exists, what it shows runs, and the site builds."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from test_cli import SAID, VOCABULARY, srt

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCES = sorted(DOCS.rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *SOURCES]
ROOMS = {path.stem for path in (ROOT / "src" / "stepgraph").iterdir() if path.stem[0] != "_"}


def page_name(page):
    return str(page.relative_to(ROOT))


def current(page):
    """The text of a page, without the names of 0.1.0 in the changelog's table of moved ones."""
    return re.sub(r"^\| `stepgraph[^|]+", "", page.read_text("utf-8"), flags=re.MULTILINE)


def resolves(name):
    """Whether a dotted name is a module of the package, or something in one."""
    try:
        if find_spec(name):  # without importing it: some modules import torch
            return True
    except ModuleNotFoundError:
        pass
    parent, _, last = name.rpartition(".")
    return hasattr(value_of(parent), last)


def value_of(name):
    try:
        return import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(value_of(parent), last, None)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_names_and_files_of_the_package_exist(page):
    text = current(page)

    for name in re.findall(r"\bstepgraph(?:\.[A-Za-z_]\w*)+", text):
        assert resolves(name), name
    for file in re.findall(r"[\w./-]+/[\w-]+\.(?:py|toml|jsonl)\b", text):
        inside = file.split("/")[0] in ROOMS
        if inside or file.startswith(("src/", "tests/", "benchmarks/", "recipes/", "examples/")):
            assert (ROOT / ("src/stepgraph" if inside else "") / file).exists(), file
    for module in re.findall(r"python -m (benchmarks[\w.]*)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).exists(), module


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_linked_files_exist_and_nothing_is_left_to_fill_in(page):
    text = page.read_text("utf-8")

    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        if not link.startswith("reference/"):  # made when the site is built
            assert (page.parent / link).exists(), link
    assert not re.search(r"@[A-Z]+@|TODO|TBD", text)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_lines_are_short_outside_of_code_tables_and_links(page):
    pieces = re.split(r"^```.*?^```", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for line in "\n".join(pieces).splitlines():
        if not line.startswith("|") and "](" not in line:
            assert len(line) <= 100, line


def test_no_page_speaks_of_verbs_or_options_that_do_not_exist():
    from stepgraph.cli.parser import make_parser

    verbs = next(a.choices for a in make_parser()._actions if isinstance(a.choices, dict))
    for page in PAGES:
        for command in re.findall(r"stepgraph ([a-z]+ .*?)(?:`|#|$)", current(page), re.MULTILINE):
            verb, *words = command.split()
            if verb in verbs and words:
                known = known_options(verbs[verb])
                asked = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
                assert asked <= known, f"{page_name(page)}: {command}"


def known_options(parser):
    inner = [a.choices.values() for a in parser._actions if isinstance(a.choices, dict)]
    parsers = [parser, *(one for many in inner for one in many)]
    return {name for one in parsers for action in one._actions for name in action.option_strings}


@pytest.fixture
def own_videos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("videos").mkdir()
    for name, sentences in SAID.items():
        Path("videos", f"{name}.srt").write_text(srt([*sentences, "pour it into the cup"]))
    Path("steps.txt").write_text(VOCABULARY + "pour into the cup\n")


def python_blocks(page):
    """The Python of a page in order, without what says that it is not to be run."""
    found = re.findall(
        r"(<!-- not run: [^>]+ -->\n)?```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL
    )
    return [code for reason, code in found if not reason]


WITH_PYTHON = [page for page in SOURCES if python_blocks(page)]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=page_name)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, own_videos):
    if page.name == "generated.md":
        pytest.importorskip("av", reason="rendering needs the extra video")
    names: dict[str, object] = {"__name__": "page"}
    for block in python_blocks(page):
        saved = re.search(
            r"Save this as `(\w+)\.py`:\s+```python\n" + re.escape(block), page.read_text()
        )
        if saved:
            Path(f"{saved[1]}.py").write_text(block)
        exec(compile(block, page.name, "exec"), names)


def test_pages_with_measured_tables_hold_what_was_measured():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.docs import measured_on_real_data, pages
    finally:
        sys.path.remove(str(ROOT))

    for name, text in pages().items():
        found = (DOCS / name).read_text("utf-8")
        assert found.split() == text.split(), f"{name}: run make docs-tables"
    assert measured_on_real_data() == 86  # counted by hand, table by table
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"tables print, {measured_on_real_data()} have a counterpart" in readme


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for library in ("material", "mkdocstrings"):
        pytest.importorskip(library, reason="building the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_a_page_for_every_source_and_fetches_nothing(site):
    for page in SOURCES:
        built = site / page.relative_to(DOCS).with_suffix(".html")
        assert (built.with_name("index.html") if page.stem == "README" else built).is_file()
    for page in site.rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(http[^\" >]+)",
            page.read_text("utf-8"),
        )
        assert not [url for url in fetched if "canonical" not in url], page


def test_the_reference_has_every_verb_every_option_and_every_public_name(site):
    import stepgraph
    from stepgraph.cli.parser import make_parser

    commands = (site / "reference" / "commands.html").read_text("utf-8")
    names = (site / "reference" / "python.html").read_text("utf-8")

    verbs = next(a.choices for a in make_parser()._actions if isinstance(a.choices, dict))
    for verb, parser in verbs.items():
        assert f"stepgraph {verb}" in commands
        for option in known_options(parser) - {"-h", "--help"}:
            assert f"<code>{option}" in commands, option
    for name in stepgraph.__all__:
        assert re.search(rf'id="stepgraph\.[\w.]*\b{name}"', names), name


def test_a_broken_link_fails_the_build(tmp_path):
    pytest.importorskip("material", reason="building the site needs the extra docs")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[gone](gone.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    kept = [
        part for part in re.split(r"\n(?=\w)", settings) if part[:3] not in ("nav", "hoo", "plu")
    ]
    (tmp_path / "mkdocs.yml").write_text("\n".join(kept))

    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "gone.md" in done.stdout + done.stderr
