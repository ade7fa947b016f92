"""Make published numbers anew, and write them: ``python -m benchmarks.published DATA [RECIPE …]``.

Runs the commands of the recipes named, or of all that no other machine made, and writes what they
answer: into the file of results, into the numbers of the recipe with as many digits as before, and
into the pages that print them.  ``make docs-tables`` then writes the tables of the docs.
``tests/test_published.py`` explains recipes, and compares without writing.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLES = "benchmarks/results/tables"


def numbers_of(recipe: dict[str, Any]) -> dict[str, str]:
    """The numbers of a recipe as they are printed, by their keys."""
    return {**recipe.get("numbers", {}), **recipe.get("percent", {})}


def value_at(answer: Any, key: str) -> Any:
    """A number of an answer: ``measured/decoder=argmax/accuracy`` and the like."""
    for part in key.split("/"):
        if isinstance(answer, list):
            wanted = dict(pair.split("=", 1) for pair in part.split("; "))
            [answer] = [
                one
                for one in answer
                if all(str(one.get(field)) == value for field, value in wanted.items())
            ]
        else:
            answer = answer[part]
    return answer


def read_answer(text: str) -> Any:
    """JSON, or JSON lines as the benchmarks print."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def is_table(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("format") == "stepgraph-table"


def by_row(answer: Any) -> Any:
    """Rows of a table can be found by name like the lines of a benchmark."""
    return answer["rows"] if is_table(answer) else answer


def printed(value: float, before: str) -> str:
    """A number with as many decimals, and with commas where there were some."""
    decimals = len(before.partition(".")[2])
    return f"{value:{',' if ',' in before else ''}.{decimals}f}"


def run(command: str, places: dict[str, str], more: list[str]) -> str:
    program, *words = shlex.split(command.format(**places))
    start = ["-m", "stepgraph"] if program == "stepgraph" else []
    done = subprocess.run(
        [sys.executable, *start, *words, *more], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode()


def make(name: str, data: Path) -> None:
    """Run a recipe and write its numbers everywhere."""
    path = ROOT / "recipes" / f"{name}.toml"
    recipe = tomllib.loads(path.read_text("utf-8"))
    results = recipe.get("results", "")
    with tempfile.TemporaryDirectory() as out:
        places = {"data": str(data), "out": out}
        for command in recipe.get("before", []):
            run(command, places, [])
        folder = str(Path(results).parent)
        more = (
            ["-o", folder] if results.startswith(TABLES) and "-o" not in recipe["command"] else []
        )
        text = run(recipe["command"], places, more)
        for page in Path(out).glob("*.md") if results.startswith(TABLES) else ():
            (ROOT / folder / page.name).write_bytes(page.read_bytes())
    answer = read_answer(text)
    if more:
        for state in (ROOT / folder).glob("*.state.json"):
            state.unlink()
    elif results:
        (ROOT / results).write_text(text, "utf-8")
    old = numbers_of(recipe)
    new = {}
    for key, before in old.items():
        factor = 100 if key in recipe.get("percent", {}) else 1
        new[key] = printed(factor * value_at(by_row(answer), key), before)
        if new[key] != before:
            print(f"{name}: {key}: {before} -> {new[key]}", flush=True)
    write(path, recipe, old, new)


def write(path: Path, recipe: dict[str, Any], old: dict[str, str], new: dict[str, str]) -> None:
    """Replace the numbers in the recipe and in the pages."""
    text = path.read_text("utf-8")
    for key, value in new.items():
        text = text.replace(f'"{key}" = "{old[key]}"', f'"{key}" = "{value}"')
    path.write_text(text, "utf-8")
    for place in recipe.get("printed", []):
        page = ROOT / place["page"]
        was, now = (
            re.sub(r"\{([^}]+)\}", lambda f, n=numbers: n[f[1]], place["text"]).strip()
            for numbers in (old, new)
        )
        pattern = r"\s+".join(map(re.escape, was.split()))
        content = page.read_text("utf-8")
        if not re.search(pattern, content):
            print(f"{path.stem}: not found in {place['page']}: {was}", flush=True)
        page.write_text(re.sub(pattern, lambda _, n=now: n, content), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make published numbers anew, and write them.")
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", help="recipes (default: all but those of a machine)")
    given = parser.parse_args()
    for path in sorted((ROOT / "recipes").glob("*.toml")):
        recipe = tomllib.loads(path.read_text("utf-8"))
        command = recipe.get("command", "paper")
        if path.stem in given.names or not (
            given.names or recipe.get("machine") or recipe.get("unmeasured") or command == "paper"
        ):
            make(path.stem, given.data.resolve())


if __name__ == "__main__":
    main()
