"""Task graphs for other programs: Gephi, yEd, Cytoscape, Graphviz, networkx, spreadsheets.

Nodes are keysteps, START and END.  An edge is a succession in the recognised videos of one task,
so two keysteps may have several.  Names come from users and are escaped as each format
requires.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepgraph.errors import ConfigError
from stepgraph.export.svg import xml_text
from stepgraph.files.cells import write_cell
from stepgraph.files.disk import write_text
from stepgraph.graph import TaskGraph
from stepgraph.graph.maps import END, START, Procedure

if TYPE_CHECKING:
    import networkx

_ENDS = {START: "START", END: "END"}


def to_networkx(graph: TaskGraph, maps: Sequence[Procedure]) -> networkx.MultiDiGraph[str]:
    """Build one network from the procedures of several tasks.

    A node has its ``name``, the ``tasks`` that use it, the number of their ``videos`` with a
    salient mention, and the ``share`` of these among all.  An edge has its ``task``, the count
    ``seen``, the expected ``share`` of all successors, with its 90 % interval from ``low`` to
    ``high``, and the ``probability`` of that transition between neighbouring rows, 0 from START
    and to END.
    """
    from networkx import MultiDiGraph

    network: networkx.MultiDiGraph[str] = MultiDiGraph()
    used: defaultdict[int, list[tuple[Procedure, int]]] = defaultdict(list)
    for found in maps:
        steps = [(step.keystep, step.videos) for step in found.steps]
        for keystep, videos in [(START, found.videos), *steps, (END, found.videos)]:
            used[keystep].append((found, videos))
    for keystep, shown in used.items():
        videos, of = sum(one for _, one in shown), sum(found.videos for found, _ in shown)
        network.add_node(
            _id(keystep),
            name=_ENDS.get(keystep) or graph.vocabulary.keysteps[keystep],
            tasks="; ".join(found.task for found, _ in shown),
            videos=videos,
            share=videos / of if of else 0.0,
        )
    for found in maps:
        for arrow in found.successions:
            first, second = arrow[:2]
            rows = float(graph.probabilities[first, second]) if min(first, second) >= 0 else 0.0
            numbers = dict(zip(arrow._fields[2:], arrow[2:], strict=True))
            ends = _id(first), _id(second)
            network.add_edge(*ends, task=found.task, probability=rows, **numbers)
    return network


def _id(keystep: int) -> str:
    return _ENDS.get(keystep, f"k{keystep}")


def write_network(
    graph: TaskGraph, maps: Sequence[Procedure], path: Path, format: str | None = None
) -> list[Path]:
    """Write procedures as a file for another program; return the paths of the files.

    Parameters
    ----------
    format
        One of ``FORMATS``; by default it follows from the ending of the name.  CSV is two files:
        that of the keysteps has ``.keysteps.csv`` at its end.
    """
    kind = format or _ENDINGS.get(path.suffix.lower(), "")
    if kind not in FORMATS:
        raise ConfigError(
            f"{path}: must end in {', '.join(_ENDINGS)}, got {path.suffix or 'no ending'}; "
            f"rename it, or give --format {'|'.join(FORMATS)}"
        )
    files = FORMATS[kind](to_networkx(graph, maps))
    written = [path.with_suffix(ending) if ending else path for ending in files]
    for file, text in zip(written, files.values(), strict=True):
        write_text(file, text)
    return written


def _xml(kind: str, network: Any) -> dict[str, str]:
    import networkx

    for _, node in network.nodes(data=True):
        node["label"] = node["name"]  # Gephi's field
    for *_, fields in (*network.nodes(data=True), *network.edges(data=True)):
        texts = {key: xml_text(value) for key, value in fields.items() if isinstance(value, str)}
        fields.update(texts)
    return {"": "\n".join(getattr(networkx, f"generate_{kind}")(network)) + "\n"}


def _json(network: Any) -> dict[str, str]:
    from networkx import node_link_data

    content = node_link_data(network, edges="edges")
    return {"": json.dumps(content, ensure_ascii=False, indent=1) + "\n"}


def _dot(network: Any) -> dict[str, str]:
    lines = ["digraph stepgraph {", "  node [shape=box];"]
    for node, fields in network.nodes(data=True):
        # Graphviz shows the label; readers take an attribute called name for the node's own.
        shown = {"label": fields.pop("name"), **fields}
        shown |= {"shape": "oval"} if node in _ENDS.values() else {}
        lines.append(f"  {node} [{_dot_fields(shown)}];")
    for first, second, fields in network.edges(data=True):
        lines.append(f"  {first} -> {second} [{_dot_fields(fields)}];")
    return {"": "\n".join([*lines, "}", ""])}


def _dot_fields(fields: dict[str, Any]) -> str:
    def quote(value: Any) -> str:
        text = xml_text(" ".join(str(value).split())) if isinstance(value, str) else str(value)
        return text.replace("\\", "\\\\").replace('"', '\\"')

    return ", ".join(f'{key}="{quote(value)}"' for key, value in fields.items())


def _csv(network: Any) -> dict[str, str]:
    names = dict(network.nodes(data="name"))
    edges = [
        {"first": names[first], "second": names[second], **fields}
        for first, second, fields in network.edges(data=True)
    ]
    nodes = [fields for _, fields in network.nodes(data=True)]
    return {"": _table(edges), ".keysteps.csv": _table(nodes)}


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """Render rows of one kind as CSV, in which no cell is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(rows[:1])  # names of the columns
    for row in rows:
        writer.writerow(write_cell(one) if isinstance(one, str) else one for one in row.values())
    return text.getvalue()


FORMATS: dict[str, Callable[[Any], dict[str, str]]] = {
    "graphml": partial(_xml, "graphml"),
    "gexf": partial(_xml, "gexf"),
    "dot": _dot,
    "networkx-json": _json,
    "csv": _csv,
}
"""Formats by name; each returns the texts of its files by their endings."""
_ENDINGS = {
    **{".graphml": "graphml", ".gexf": "gexf", ".dot": "dot", ".gv": "dot"},
    **{".json": "networkx-json", ".csv": "csv"},
}
