"""What each extra adds to an install: ``python -m benchmarks.sizes``.

Counts the files of the distributions that are installed here, with whatever they need; those of
an extra that is not installed are named as missing.  One JSON object for each extra, in MB, beyond
the install without any and beyond that of ``video``, which most of them include.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def install(*extras: str) -> tuple[dict[str, Distribution], set[str]]:
    """The distributions that stepgraph needs with these extras, and the names of missing ones."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    listed = {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, Distribution] = {}
    missing, seen, waiting = set(), set(), [("stepgraph", extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        needs: Iterable[str] | None = listed.get(extra)
        if name != "stepgraph":
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:  # for another system, or of an extra that is not here
                missing.add(name)
                continue
            needs = found[name].requires
        for line in needs or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                bare = re.sub(r"[-_.]+", "-", needed.name).lower()
                waiting += [(bare, more) for more in ("", *needed.extras)]
    return found, missing


def extras() -> list[str]:
    """Those for users."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name != "dev"]


def megabytes(found: Iterable[Distribution]) -> int:
    files = (one.locate_file(file) for one in found for file in one.files or ())
    places = {Path(str(file)) for file in files}
    return round(sum(place.stat().st_size for place in places if place.is_file()) / 1e6)


def main() -> None:
    base, video = install()[0], install("video")[0]
    for extra in ("", *extras()):
        found, missing = install(extra)
        told: dict[str, object] = {"extra": extra or "none", "missing": sorted(missing)}
        if extra:
            told["adds_mb"] = megabytes(found[name] for name in found.keys() - base.keys())
            more = found.keys() - video.keys()
            told["adds_to_video_mb"] = megabytes(found[name] for name in more)
        else:
            told["mb"] = megabytes(found.values())
        print(json.dumps(told))


if __name__ == "__main__":
    main()
