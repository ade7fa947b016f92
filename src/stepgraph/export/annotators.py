"""Formats of programs for annotating video, and of data sets of such annotations.

ELAN uses a file for each video; VIA, Label Studio and readers of ActivityNet's JSON use one for
all videos.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from stepgraph.core import Sentence
from stepgraph.export.svg import xml_text
from stepgraph.export.timeline import AnyTimeline, on_one_line
from stepgraph.files.cells import write_cell

FRAMES = 25.0
"""Frames a second for programs that count in frames."""

STEPS, _SAID = "keysteps", "transcript"
"""Tiers of a document of ELAN."""


def whole(start: float, end: float, rate: float) -> tuple[int, int]:
    """Convert an interval to whole units at a rate; a shorter one lasts one unit.

    >>> whole(0.5, 2.0, FRAMES), whole(60.0, 60.0004, 1000)
    ((12, 50), (60000, 60001))
    """
    first = round(start * rate)
    return first, max(first + 1, round(end * rate))


def to_elan(timeline: AnyTimeline) -> str:
    """Render a document of ELAN (``.eaf``) with a tier of keysteps and one of sentences."""
    schema = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"
    document = Element(
        "ANNOTATION_DOCUMENT",
        {schema: "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"},
        AUTHOR="stepgraph",
        DATE=datetime.now(UTC).isoformat(timespec="seconds"),
        FORMAT="3.0",
        VERSION="3.0",
    )
    head = SubElement(document, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if path := timeline.video.path:
        kind = "audio/x-wav" if path.suffix == ".wav" else "video/mp4"
        address = xml_text(path.as_posix())
        SubElement(head, "MEDIA_DESCRIPTOR", MEDIA_URL=address, MIME_TYPE=kind)
    slots = SubElement(document, "TIME_ORDER")
    steps = [Sentence(one.start, one.end, one.keystep) for one in timeline]
    count = 0
    for tier, rows in ((STEPS, steps), (_SAID, timeline.video.transcript)):
        element = SubElement(document, "TIER", LINGUISTIC_TYPE_REF="default", TIER_ID=tier)
        for start, end, text in rows:
            count += 1
            ends = {f"TIME_SLOT_REF{n}": f"ts{2 * count + n}" for n in (1, 2)}
            for slot, at in zip(ends.values(), whole(start, end, 1000), strict=True):
                SubElement(slots, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(at))
            holder = SubElement(element, "ANNOTATION")
            ids = {"ANNOTATION_ID": f"a{count}"} | ends
            found = SubElement(holder, "ALIGNABLE_ANNOTATION", ids)
            SubElement(found, "ANNOTATION_VALUE").text = xml_text(on_one_line(text))
    tiers = {"LINGUISTIC_TYPE_ID": "default", "GRAPHIC_REFERENCES": "false"}
    SubElement(document, "LINGUISTIC_TYPE", tiers, TIME_ALIGNABLE="true")
    return _xml(document)


def to_via(results: Sequence[AnyTimeline]) -> str:
    """Render a project of the VGG Image Annotator for video (VIA 3)."""
    names = _names(results)
    files, views, found = {}, {}, {}
    for number, result in enumerate(results, 1):
        key, path = str(number), result.video.path
        files[key] = {
            "fid": key,
            "fname": result.video.id,
            "type": 4,  # a video
            "loc": 1,  # a file of the user's
            "src": "" if path is None else path.as_posix(),
        }
        views[key] = {"fid_list": [key]}
        for place, one in enumerate(result):
            found[f"{key}_{place}"] = {
                "vid": key,
                "flg": 0,
                "z": [at / 1000 for at in whole(one.start, one.end, 1000)],
                "xy": [],
                "av": {"1": str(names.index(one.keystep))},
            }
    attribute = {
        "aname": "keystep",
        "anchor_id": "FILE1_Z2_XY0",  # an interval of time of one file
        "type": 4,  # one of several
        "desc": "",
        "options": {str(number): name for number, name in enumerate(names)},
        "default_option_id": "",
    }
    project = {
        "pid": "__VIA_PROJECT_ID__",
        "rev": "__VIA_PROJECT_REV_ID__",
        "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
        "pname": "stepgraph",
        "creator": "stepgraph",
        "created": round(datetime.now(UTC).timestamp() * 1000),
        "data_format_version": "3.1.1",
        "vid_list": list(views),
    }
    content = {"project": project, "config": {}, "attribute": {"1": attribute}}
    return _json(content | {"file": files, "metadata": found, "view": views})


def to_label_studio(results: Sequence[AnyTimeline]) -> str:
    """Render tasks of Label Studio with predictions, for :func:`label_studio_config`."""
    return _json([_label_studio_task(result) for result in results])


def _label_studio_task(result: AnyTimeline) -> dict[str, Any]:
    path = result.video.path
    regions = [
        {
            "id": f"step{number}",
            "from_name": "keystep",
            "to_name": "video",
            "type": "timelinelabels",
            **({} if one.confidence is None else {"score": one.confidence}),
            "value": {
                # Pictures are counted from 1, the last one included.
                "ranges": [
                    {"start": first + 1, "end": last}
                    for first, last in [whole(one.start, one.end, FRAMES)]
                ],
                "timelinelabels": [one.keystep],
            },
        }
        for number, one in enumerate(result)
    ]
    video = result.video.id if path is None else path.as_posix()
    prediction = {"model_version": "stepgraph", "result": regions}
    return {"data": {"video": video, "id": result.video.id}, "predictions": [prediction]}


def label_studio_config(results: Sequence[AnyTimeline]) -> str:
    """Render the labelling interface that belongs to the tasks."""
    view = Element("View")
    labels = SubElement(view, "TimelineLabels", name="keystep", toName="video")
    for name in _names(results):
        SubElement(labels, "Label", value=xml_text(name))
    shown = {"timelineHeight": "120", "frameRate": f"{FRAMES:g}"}
    SubElement(view, "Video", shown, name="video", value="$video")
    return _xml(view, declared=False)


def to_activitynet(results: Sequence[AnyTimeline]) -> str:
    """Render ActivityNet's JSON, which many programs read (FiftyOne among them)."""
    database = {
        result.video.id: {
            "duration": result.video.duration,
            "subset": "validation",
            "url": "",
            "annotations": [
                {
                    "segment": [one.start, one.end],
                    "label": one.keystep,
                    **({} if one.confidence is None else {"score": one.confidence}),
                }
                for one in result
            ],
        }
        for result in results
    }
    names = _names(results)
    taxonomy = [{"nodeId": 0, "nodeName": "Root", "parentId": None, "parentName": None}]
    taxonomy += [
        {"nodeId": number, "nodeName": name, "parentId": 0, "parentName": "Root"}
        for number, name in enumerate(names, 1)
    ]
    return _json({"version": "stepgraph", "taxonomy": taxonomy, "database": database})


def to_xes(results: Sequence[AnyTimeline]) -> str:
    """Render an event log (XES, IEEE 1849): a trace for each video, an event for each end."""
    log = Element("log", {"xes.version": "1.0", "xes.features": "nested-attributes"})
    for name in ("Concept", "Time", "Lifecycle"):
        address = f"http://www.xes-standard.org/{name.lower()}.xesext"
        SubElement(log, "extension", name=name, prefix=name.lower(), uri=address)
    SubElement(log, "classifier", name="keystep", keys="concept:name")
    zero = datetime(1970, 1, 1, tzinfo=UTC)  # a video has a clock, and no date
    for result in results:
        trace = SubElement(log, "trace")
        _attribute(trace, "concept:name", result.video.id)
        for one in result:
            for transition, at in (("start", one.start), ("complete", one.end)):
                event = SubElement(trace, "event")
                _attribute(event, "concept:name", one.keystep)
                _attribute(event, "lifecycle:transition", transition)
                stamp = (zero + timedelta(seconds=at)).isoformat(timespec="milliseconds")
                SubElement(event, "date", key="time:timestamp", value=stamp)
                if one.task is not None:
                    _attribute(event, "task", one.task)
    return _xml(log)


def _attribute(element: Element, key: str, value: str) -> None:
    SubElement(element, "string", key=key, value=xml_text(value))


def _names(results: Iterable[AnyTimeline]) -> list[str]:
    """List every keystep once, in order of first occurrence."""
    return list(dict.fromkeys(one.keystep for result in results for one in result))


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _xml(root: Element, *, declared: bool = True) -> str:
    indent(root)
    text = tostring(root, encoding="unicode") + "\n"
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + text if declared else text


FORMATS = {"elan": (".eaf", to_elan)}
"""As in :data:`stepgraph.export.timeline.FORMATS`."""

EXECUTIONS = "executions.csv"
EXECUTIONS_COLUMNS = ("execution", "task", "split", "step", "mistake")
"""Columns of executions: the layout that ``executions:PATH`` reads."""

Done = tuple[str, str, str, Sequence[str], Sequence[bool]]
"""An execution: id, task, split, steps, and a mark for each step that is a mistake."""


def execution_rows(done: Iterable[Done]) -> str:
    """Render executions as CSV, one row a step; an execution without steps has one row."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(EXECUTIONS_COLUMNS)
    for id, task, split, steps, mistakes in done:
        head = [write_cell(id), write_cell(task), write_cell(split)]
        marks = mistakes or (False,) * len(steps)
        for step, wrong in zip(steps, marks, strict=True):
            writer.writerow([*head, write_cell(step), int(wrong)])
        if not steps:
            writer.writerow([*head, "", ""])
    return buffer.getvalue()


def to_executions(timelines: Sequence[AnyTimeline]) -> str:
    """Render recognised or corrected steps as executions of each video's most probable task."""
    return execution_rows(
        (
            one.video.id,
            max(one.tasks, key=one.tasks.__getitem__) if one.tasks else "",
            "",
            [on_one_line(each.keystep) for each in one],
            (),
        )
        for one in timelines
    )


TOGETHER: dict[str, dict[str, Callable[[Sequence[AnyTimeline]], str]]] = {
    "via": {"via.json": to_via},
    "label-studio": {
        "label-studio.json": to_label_studio,
        "label-studio.xml": label_studio_config,
    },
    "activitynet": {"activitynet.json": to_activitynet},
    "xes": {"keysteps.xes": to_xes},
    "executions": {EXECUTIONS: to_executions},
}
"""Formats with one file for all videos: name, file names, and their writers."""
