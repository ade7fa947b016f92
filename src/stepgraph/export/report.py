"""Write one HTML page that shows metrics, timelines and the graph.

The page is a single file: style, script and data are in it, and a content security policy
forbids it to fetch anything else, except video files where there are some to play.  Keystep
names, transcripts and titles are untrusted; text is escaped here, and data travels as JSON that
the script only ever inserts as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from stepgraph.core import BACKGROUND, Dataset, Labels, Video, runs
from stepgraph.evaluation import metrics
from stepgraph.evaluation.report import METRICS, ROWS, Report, evaluate
from stepgraph.export import drawing, svg
from stepgraph.export.results import seen_from
from stepgraph.export.terminal import plural
from stepgraph.files.disk import replacing
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import Procedure, ProcedureStep
from stepgraph.ingest.formats import MEDIA_SUFFIXES

_DEFINITIONS = {
    "accuracy": "Percentage of the rows with a true keystep that got this keystep.",
    "accuracy_per_keystep": "Mean of the same percentage over keysteps: rare ones weigh as much.",
    "iou": "Rows where truth and method agree on a keystep, divided by rows where either "
    "has it; both counts are sums over all keysteps of the truth.",
    "iou_per_keystep": "Mean of the same ratio over the keysteps of the truth.",
}


@dataclass(frozen=True, eq=False)
class MeasuredMethod:
    """Labels of one method by video id, with their report."""

    name: str
    report: Report
    labels: Mapping[str, Labels]


def write_report(
    path: Path,
    *,
    title: str,
    dataset: Dataset,
    methods: Sequence[MeasuredMethod],
    graph: TaskGraph,
    command: str = "",
) -> None:
    """Write a self-contained HTML page; a page that exists is replaced only when complete.

    Parameters
    ----------
    dataset
        Videos to show.  Truth may be missing for some or all of them.  One whose ``path`` is
        a video file is played beside its timeline, from where it lies (:func:`media_address`).
    methods
        Methods in the order of display; videos are sorted by the gain of the last over the
        first.
    command
        Command that made the labels, quoted in the page.
    """
    maps = [found for found in drawing.task_maps(graph) if found.successions]
    groups = [*graph.vocabulary.tasks.values()]
    groups += [tuple(step.keystep for step in found.steps) for found in maps]
    colors = keystep_colors(len(graph.vocabulary), groups)
    data = _payload(dataset, methods, graph, colors, path)
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    script = _static("player.js") + _static("report.js")
    made = f"<p class=command>Made with <code>{html.escape(command)}</code></p>"
    parts = {
        "title": html.escape(title),
        "policy": _policy(script, plays=any("src" in video for video in data["videos"])),
        "style": svg.page_colors() + _static("report.css") + svg.picture_style(),
        "script": script,
        "facts": _facts(dataset, methods, graph),
        "command": made if command else "",
        "rows": ("the truth and for " if dataset.truth else "") + "each method",
        "metrics": _metrics(dataset, methods),
        "graph": _graph(maps, colors),
        # JSON that cannot end the script element it stands in.
        "data": text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    }
    # One pass: inserted text is never searched for further placeholders.
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _static("report.html"))
    with replacing(path) as partial:
        # Half of a surrogate pair, which a broken transcript may hold, cannot be encoded.
        partial.write_bytes(page.encode("utf-8", "replace"))


def _static(name: str) -> str:
    return (files("stepgraph.export") / "static" / name).read_text(encoding="utf-8")


def _policy(script: str, *, plays: bool) -> str:
    """Allow the page its own script and style, and files to play only where there are some."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # 'self' is for a page that is served, file: for one that is opened from disk.
    media = "media-src 'self' file:; " if plays else ""
    return (
        f"default-src 'none'; img-src data:; {media}style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _facts(dataset: Dataset, methods: Sequence[MeasuredMethod], graph: TaskGraph) -> str:
    """Describe the evaluated data in one line."""
    some = [dataset.truth, *(method.labels for method in methods)]
    lengths = [
        next((len(labels[video.id]) for labels in some if video.id in labels), 0)
        for video in dataset.videos
    ]
    facts = [plural(len(lengths), "video"), plural(sum(lengths), "row")]
    judged = max((method.report.keystep_rows for method in methods), default=0)
    if judged and dataset.truth:
        facts[-1] += f", {judged:,} of them with a true keystep"
    facts.append(plural(len(graph.vocabulary), "keystep"))
    if graph.vocabulary.tasks:
        facts.append(plural(len(graph.vocabulary.tasks), "task"))
    mined = dict.fromkeys(method.report.graph_mined_on for method in methods)
    mined_on = "; ".join(filter(None, mined)) or (
        plural(len(graph.mined_on), "video") if graph.mined_on else "unrecorded videos"
    )
    facts.append(f"graph mined on {mined_on}")
    return " ".join(f"<li><bdi>{html.escape(fact)}</bdi></li>" for fact in facts)


def _metrics(dataset: Dataset, methods: Sequence[MeasuredMethod]) -> str:
    """Return the table of metrics, or a note where there is no truth."""
    if not dataset.truth or not methods:
        return (
            "<p class=empty>Metrics need a truth, and none was given. "
            "The timelines show the recognised keysteps.</p>"
        )
    other = not methods[0].report.background_rows
    reports = [
        evaluate(
            (one for video, one in method.labels.items() if video in dataset.truth),
            dataset.truth,
            background_rows=other,
        )
        for method in methods
    ]
    terms = "".join(
        f"<dt>{METRICS[key]}</dt><dd>{html.escape(_DEFINITIONS[key])}</dd>" for key in METRICS
    )
    names = [method.name for method in methods]
    return (
        _metrics_table(names, [method.report for method in methods])
        + f"<details><summary>The same {ROWS[other]}</summary>"
        + f"{_metrics_table(names, reports)}</details>"
        + f"<details><summary>What the metrics mean</summary><dl>{terms}</dl></details>"
    )


def _metrics_table(names: Sequence[str], reports: Sequence[Report]) -> str:
    """Return the metrics of some methods, by one protocol."""
    values = {key: [getattr(report, key) for report in reports] for key in METRICS}
    heads = [tuple(name.split(", ")) for name in METRICS.values()]
    groups = "".join(
        f"<th scope=colgroup colspan={sum(head[0] == name for head in heads)}>{name}</th>"
        for name in dict.fromkeys(head[0] for head in heads)
    )
    columns = "".join(
        f'<th scope=col title="{html.escape(_DEFINITIONS[key])}">{head[1]}</th>'
        for key, head in zip(METRICS, heads, strict=True)
    )
    lines = "".join(
        f"<tr><th scope=row><bdi>{html.escape(name)}</bdi></th>"
        + "".join(_metric_cell(column, position) for column in values.values())
        + "</tr>"
        for position, name in enumerate(names)
    )
    return (
        f"<table class=metrics><caption>In percent, {ROWS[reports[0].background_rows]}; the best "
        f"of each column is in bold.</caption><thead><tr><td rowspan=2></td>{groups}</tr>"
        f"<tr>{columns}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )


def _metric_cell(column: Sequence[float], position: int) -> str:
    value = column[position]
    if math.isnan(value):
        return "<td>–</td>"
    best = len(column) > 1 and f"{100 * value:.1f}" == f"{100 * np.nanmax(column):.1f}"
    shown = f"<strong>{100 * value:.1f}</strong>" if best else f"{100 * value:.1f}"
    bar = f'<span class=bar style="--share:{value:.4f}"></span>'
    return f"<td{' class=best' if best else ''}>{shown}{bar}</td>"


def _graph(maps: Sequence[Procedure], colors: Sequence[str]) -> str:
    """Return pictures of the tasks of most videos, each with its numbers as a table."""
    if not maps:
        return "<p class=empty>The graph has no transitions yet.</p>"
    drawn = drawing.most_used(maps) or maps[:1]
    note = "How each task is done, from START to END, estimated from its recognised videos. "
    note += drawing.BOX_NOTE
    if len(drawn) < len(maps):
        note += f" Shown: the {len(drawn):,} of {len(maps):,} tasks with the most videos; "
        note += "<code>stepgraph graph draw</code> draws any task."
    signs = "".join(
        f'<li><svg class="picture" viewBox="0 0 44 16" aria-hidden="true">{sign.sample}</svg>'
        f"{html.escape(sign.meaning)}</li>"
        for sign in drawing.legend(drawn)
    )
    panels = "".join(_panel(found, colors) for found in drawn)
    heat = ""
    if len(drawn) > 1:
        heat = (
            "<details class=heat><summary>Which task uses which keystep</summary><p class=quiet>"
            f"{drawing.HEAT_NOTE}</p><div class=scroll>{drawing.draw_heat(drawn, page=True)}"
            "</div></details>"
        )
    return (
        f"<p class=lead>{note} Point at, tap or focus a keystep to see what comes next.</p>"
        f"<ul class=signs>{signs}</ul><div id=panels>{panels}</div>{heat}"
    )


def _panel(found: Procedure, colors: Sequence[str]) -> str:
    lines = "".join(_next_line(found, step) for step in found.steps)
    return (
        f"<figure class=panel><h3><bdi>{html.escape(found.task)}</bdi></h3>"
        f"<p class=quiet>{drawing.made_of(found)}</p>"
        f"<div class=scroll>{drawing.draw_task(found, colors)}</div>"
        "<div class=panel-note></div><details class=next><summary>As a table</summary><table>"
        "<thead><tr><th scope=col>keystep</th><th scope=col>most probably next</th></tr></thead>"
        f"<tbody>{lines}</tbody></table></details></figure>"
    )


def _next_line(found: Procedure, step: ProcedureStep) -> str:
    """Return a table row of a keystep and its successors."""
    following = "".join(
        f'<li style="--share:{arrow.share:.3f}">'
        f"<bdi>{html.escape(drawing.name_of(found, arrow.second))}</bdi> "
        f"<span class=quiet>{drawing.describe_arrow(arrow)}</span></li>"
        for arrow in found.successions_from(step.keystep)[: drawing.NEXT]
    )
    notes = found.vocabulary.notes.get(step.keystep, ())
    items = "".join(f"<li><bdi>{html.escape(line)}</bdi></li>" for line in notes)
    return (
        f"<tr data-k={step.keystep}><th scope=row><bdi>"
        f"{html.escape(drawing.name_of(found, step.keystep))}</bdi> "
        f"<span class=quiet>{drawing.describe_step(found, step)}</span>"
        f"{items and f'<ul class=notes>{items}</ul>'}</th>"
        f"<td><ol>{following or '<li class=quiet>none observed</li>'}</ol></td></tr>"
    )


def _payload(
    dataset: Dataset,
    methods: Sequence[MeasuredMethod],
    graph: TaskGraph,
    colors: Sequence[str],
    page: Path,
) -> dict[str, Any]:
    """Return the script's data; keysteps are positions among those that occur in it."""
    videos = []
    for video in dataset.videos:
        videos.append(_video(video, dataset, methods))
        if address := media_address(video, page):
            videos[-1]["src"] = address
    used = _used_keysteps(dataset, methods)
    position = {keystep: at for at, keystep in enumerate(used)}
    for shown in videos:
        for bars in filter(None, shown["tracks"]):
            bars[2::4] = [position[keystep] for keystep in bars[2::4]]
    return {
        "keysteps": [graph.vocabulary.keysteps[keystep] for keystep in used],
        "colours": [colors[keystep] for keystep in used],
        "tasks": {
            task: [position[keystep] for keystep in members if keystep in position]
            for task, members in graph.vocabulary.tasks.items()
        },
        "methods": [method.name for method in methods],
        "videos": videos,
    }


def _used_keysteps(dataset: Dataset, methods: Sequence[MeasuredMethod]) -> list[int]:
    ids = {video.id for video in dataset.videos}
    used: set[int] = set()
    for labels in (dataset.truth, *(method.labels for method in methods)):
        for video, one in labels.items():
            used |= set(np.unique(one.keysteps).tolist()) if video in ids else set()
    return sorted(used - {BACKGROUND})


def _video(video: Video, dataset: Dataset, methods: Sequence[MeasuredMethod]) -> dict[str, Any]:
    truth = dataset.truth.get(video.id)
    labels = [method.labels.get(video.id) for method in methods]
    tallies = [metrics.tally(truth, one) if truth and one else None for one in labels]
    end = max([video.duration, *(len(one) * one.hop for one in (truth, *labels) if one)])
    return {
        "id": video.id,
        "task": video.task or "",
        "duration": _short(end),
        "cues": [
            [_short(sentence.start), _short(sentence.end), sentence.text]
            for sentence in video.transcript
            if math.isfinite(sentence.start) and math.isfinite(sentence.end)
        ],
        "tracks": [_bars(one) for one in (truth, *labels)],
        "sure": [_confidence(one) for one in (truth, *labels)],
        "rows": int((truth.keysteps != BACKGROUND).sum()) if truth else 0,
        "hits": [None if one is None else int(one.hits.sum()) for one in tallies],
    }


def _bars(labels: Labels | None) -> list[float] | None:
    """Start, end, keystep and kind (0 filled, 1 anchor or unknown) of each segment, flat."""
    if labels is None:
        return None
    anchors = np.ones(len(labels), bool) if labels.anchors is None else labels.anchors
    flat: list[float] = []
    for first, last in runs(labels.keysteps * 2 + anchors):
        keystep = int(labels.keysteps[first])
        if keystep != BACKGROUND:
            start, end = _short(first * labels.hop), _short(last * labels.hop)
            flat += [start, end, keystep, int(anchors[first])]
    return flat


def _confidence(labels: Labels | None) -> list[float] | None:
    """Return end and mean confidence in percent of each segment, flat; None without any."""
    if labels is None or labels.confidence is None:
        return None
    flat: list[float] = []
    for first, last in runs(labels.keysteps):
        percent = round(100 * float(labels.confidence[first:last].mean()))
        flat += [_short(last * labels.hop), percent]
    return flat


def _short(seconds: float) -> float:
    """Round to hundredths, finer than any screen; whole numbers become integers."""
    rounded = round(seconds, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def keystep_colors(size: int, groups: Iterable[Sequence[int]]) -> list[str]:
    """Give each keystep one colour for the whole page, as far as possible from its group's.

    The hues of a group run around the circle in its order, so that a task done in order
    reads as a spectrum; neighbours also differ in lightness.
    """
    hues: dict[int, float] = {}
    for number, members in enumerate(groups):
        # Each group starts elsewhere on the circle: turning by the golden angle spreads starts.
        free = [(137.5 * number + 360 * at / len(members)) % 360 for at in range(len(members))]
        # In a group of hundreds no two hues can be told apart, so a clash costs nothing.
        for keystep in members[:100]:
            if keystep in hues:
                free.remove(max(free, key=lambda hue: math.cos(math.radians(hue - hues[keystep]))))
        hues.update(zip((one for one in members if one not in hues), free, strict=False))
    light = {keystep: (0.70, 0.60, 0.79)[at % 3] for at, keystep in enumerate(hues)}
    return [
        _hex(light.get(keystep, 0.7), 0.125, hues.get(keystep, 137.5 * keystep))
        for keystep in range(size)
    ]


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """Convert OKLCH, in which equal steps look equal, to sRGB (Ottosson's matrices)."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    cone = np.array([[1, 0.3963, 0.2158], [1, -0.1056, -0.0639], [1, -0.0895, -1.2915]])
    rgb = np.array(
        [[4.0767, -3.3077, 0.2310], [-1.2684, 2.6098, -0.3413], [-0.0042, -0.7034, 1.7076]]
    )
    linear = np.clip(rgb @ (cone @ [lightness, a, b]) ** 3, 0, 1)
    encoded = np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in encoded)


def media_address(video: Video, page: Path) -> str | None:
    """Return the percent-encoded address of a video's file as seen from a page, or None.

    It is relative where both lie under one folder, so that this folder can be moved, copied
    or served; else it is a ``file:`` URI, which works on this computer only.  The browser
    finds out if the file exists and can be played, and the page reports it.
    None is for a video without a path or whose path does not end like a video file.

    >>> tea = Video("tea", 9.0, path=Path("videos/tea 100%.mp4"))
    >>> media_address(tea, Path("reports/tea.html"))
    '../videos/tea%20100%25.mp4'
    """
    if video.path is None or video.path.suffix.lower() not in MEDIA_SUFFIXES:
        return None
    address = seen_from(video.path, page.parent)
    if address.is_absolute():
        return address.as_uri()
    # A colon is encoded with the rest, so that no name is taken for a scheme; a name in
    # another encoding than the system's keeps its bytes.
    return quote(os.fsencode(address.as_posix()))
