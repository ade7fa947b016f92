"""Read corrections made in ELAN, VIA or Label Studio, as rows of a truth."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from stepgraph.errors import DataError, and_got, one_line, quoted
from stepgraph.export.annotators import FRAMES, STEPS
from stepgraph.files.cells import write_cell
from stepgraph.files.disk import parse_json, read_text
from stepgraph.files.headers import as_list, as_seconds, as_text


class AnnotatedStep(NamedTuple):
    """Step that a person annotated."""

    video: str
    start: float
    end: float
    keystep: str


def read_corrections(path: Path) -> list[AnnotatedStep]:
    """Read the steps of a document of ELAN, a project of VIA 3, or an export of Label Studio."""
    text = read_text(path, kind="file of annotations")
    is_xml = path.suffix == ".eaf" or text.lstrip().startswith("<")
    content: Any = _parsed(text, path) if is_xml else parse_json(text, str(path))
    try:
        if is_xml:
            found = [*_elan(content, path)]
        else:
            via = isinstance(content, dict) and "metadata" in content
            found = [*(_via(content) if via else _label_studio(content))]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path}: must be a document of ELAN, a project of VIA 3 or an export of Label Studio "
            f"in JSON{and_got(error)}"
        ) from error
    wrong = [one for one in found if one.end <= one.start or not one.keystep]
    if wrong:
        raise DataError(
            f"{path}: a step must end after its start and have a name, got {quoted(wrong[0])}; "
            f"correct it there and save again"
        )
    return sorted(found)


def to_truth(steps: list[AnnotatedStep]) -> str:
    """Render steps as a ``truth.csv``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["video", "start", "end", "keystep"])
    for one in steps:
        writer.writerow([write_cell(one.video), one.start, one.end, write_cell(one.keystep)])
    return buffer.getvalue()


def _parsed(text: str, path: Path) -> Element:
    # Documents of ELAN declare no types; entities could be made to grow without bound.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DataError(f"{path}: must be XML without type declarations, got some")
    try:
        return fromstring(text)
    except ParseError as error:
        raise DataError(f"{path}: must be valid XML, got {one_line(str(error), 80)}") from error


def _elan(document: Element, path: Path) -> Iterator[AnnotatedStep]:
    tier = document.find(f"TIER[@TIER_ID='{STEPS}']")
    if document.tag != "ANNOTATION_DOCUMENT" or tier is None:
        tiers = ", ".join(one.get("TIER_ID", "") for one in document.findall("TIER")[:5])
        found = f"tiers {quoted(tiers)}" if tiers else f"{quoted(document.tag)} without tiers"
        raise TypeError(f"in ELAN a tier {STEPS!r} was expected, got {found}")
    times = {one.get("TIME_SLOT_ID"): one.get("TIME_VALUE") for one in document.iter("TIME_SLOT")}
    for one in tier.iter("ALIGNABLE_ANNOTATION"):
        ends = (times[one.get(f"TIME_SLOT_REF{number}")] for number in (1, 2))
        start, end = (as_seconds(int(as_text(at)) / 1000) for at in ends)
        yield AnnotatedStep(
            path.stem, start, end, (one.findtext("ANNOTATION_VALUE") or "").strip()
        )


def _via(content: dict[str, Any]) -> Iterator[AnnotatedStep]:
    chosen = {key: one["options"] for key, one in content["attribute"].items()}
    for one in content["metadata"].values():
        [file] = content["view"][one["vid"]]["fid_list"]
        video = as_text(content["file"][file]["fname"])
        for attribute, option in one["av"].items():
            start, end = map(as_seconds, as_list(one["z"]))
            yield AnnotatedStep(video, start, end, as_text(chosen[attribute][option]))


def _label_studio(content: Any) -> Iterator[AnnotatedStep]:
    for task in as_list(content):
        data = task["data"]
        video = as_text(data.get("id") or data["video"])
        # Of several annotations, take the last: its author could see the others.
        [last] = as_list(task.get("annotations", []))[-1:] or [{"result": []}]
        for region in as_list(last["result"]):
            if region["type"] != "timelinelabels":
                continue
            [name] = as_list(region["value"]["timelinelabels"])
            for one in as_list(region["value"]["ranges"]):
                start, end = (
                    as_seconds((one["start"] - 1) / FRAMES),
                    as_seconds(one["end"] / FRAMES),
                )
                yield AnnotatedStep(video, as_seconds(start), as_seconds(end), as_text(name))
