"""Results and all that is made of them: seeds, and the functions that read one input.

As in :mod:`fuzz.readers`: timelines with their corrections, the index of a search, and what a
browser sends to a server of results.
"""

import functools
import io
import json
import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from unittest import mock

import stepgraph as sg
from fuzz.binary_seeds import made, write_talk
from fuzz.own_seeds import result
from fuzz.readers import check_problems, check_video, command
from fuzz.text_seeds import as_bytes
from fuzz.words import Words
from stepgraph.core import LONGEST
from stepgraph.problems import Problems


@functools.cache
def timelines():
    """A result with what was corrected of it, with its video, and with the map of its task."""
    from stepgraph.export.maps import MAPS, save_maps
    from stepgraph.export.results import save_corrections

    words = sg.make_vocabulary(["# tea", "boil", "  // said in 2 of 2 videos", "pour"])

    def make(folder):
        write_talk(folder / "talk.mp4")
        sg.write_timeline(result(folder / "talk.mp4"), folder)
        save_corrections(folder / "tea.steps.json", [(0.0, 0.5, "boil"), (1.0, 1.5, "wait")])
        save_maps(sg.TaskGraph.from_order(words, [(0, 1)]), ["tea"], folder)

    files, own = made(make), "tea.steps.json"
    return [
        {name: files[name] for name in (own, other)}
        for other in ("tea.corrected.json", "talk.mp4", MAPS)
    ]


def read_timelines(path, out):
    from stepgraph.export.clips import COPIES
    from stepgraph.export.formats import NAMES, write_results
    from stepgraph.export.results import read_results

    problems = Problems()
    found = list(read_results(path, problems))
    for one in found:
        check_video(one.video)
        assert all(0 <= step.start <= step.end <= LONGEST for step in one)
    names = [name for name in NAMES if find_spec("av") or name not in COPIES]
    write_results(found, out / "formats", names, problems)
    check_problems(problems)
    command("view", path, "--export", out / "page")
    command("truth", path, "-o", out / "truth.csv")
    assert not list(out.rglob("*.partial")), "left half a file"
    if not found:
        raise sg.DataError("results must be readable, got none")
    return found


def _write_dated(folder):
    """Write a result that is always as long and as old."""
    sg.write_timeline(result(), folder)
    os.utime(folder / "tea.steps.json", (1, 1))


@contextmanager
def _searching(cache):
    """Search in a cache of its own, with words instead of a model."""
    from stepgraph.viewer import searching

    with (
        mock.patch.dict(os.environ, STEPGRAPH_CACHE=str(cache)),
        mock.patch.object(searching, "TextEncoder", Words),
        mock.patch.object(searching, "encoder_for", return_value=None),
    ):
        yield


def search_index():
    """What a search keeps of results."""
    from stepgraph.viewer.index import open_files

    def make(folder):
        _write_dated(folder / "results")
        with _searching(folder / "cache"):
            open_files(folder / "results", Words(None))
        [index] = (folder / "cache").rglob("index.json")
        for path in (index, *index.parent.glob("*/*")):
            path.rename(folder / path.name)

    files = {name: content for name, content in made(make).items() if "/" not in name}
    content = {**json.loads(files["index.json"]), "made": "x"}
    return [{**files, "index.json": as_bytes(content)}]


def read_index(path, out):
    from stepgraph.viewer.index import index_folder
    from stepgraph.viewer.searching import Index

    _write_dated(out / "results")
    with _searching(out / "cache"):
        place = index_folder(out / "results", Words(None))
        for file in path.iterdir():
            target = place / ("" if file.name == "index.json" else "x") / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return Index(out / "results").search("boil water", 3)


def requests():
    """What a browser asks a server for; its secret is ``S``."""
    timelines()  # made once, before anybody watches who writes what
    own = "Host: 127.0.0.1:80\r\nOrigin: http://127.0.0.1:80\r\nSec-Fetch-Site: same-origin\r\n"
    steps = '[[0.0, 1.0, "boil"], [1.0, 1.5, "wait"]]'
    names = ("", "view.js", "overview", "result?of=tea", "search?of=boil%20water")
    asked = [
        *(f"GET /S/{name} HTTP/1.1\r\n{own}\r\n" for name in names),
        f"HEAD /S/media/tea HTTP/1.1\r\n{own}Range: bytes=10-99\r\n\r\n",
        f"GET /S/media/tea HTTP/1.0\r\n{own}Range: bytes=-20\r\n\r\n",
        f"POST /S/correct?of=tea HTTP/1.1\r\n{own}Content-Type: application/json\r\n"
        f"Content-Length: {len(steps)}\r\n\r\n{steps}",
    ]
    return [{"request.txt": one.encode()} for one in asked]


def answer_request(path, out):
    """Answer what a browser sends, without any connection."""
    from stepgraph.viewer.pages import policy
    from stepgraph.viewer.server import Handler, Server, Shown

    (out / "results").mkdir()
    for name, content in timelines()[1].items():
        (out / "results" / name).write_bytes(content)
    server = object.__new__(Server)
    server.shown, server.secret, server.server_port = Shown(out / "results"), "S", 80
    server.policy = policy()
    answer = io.BytesIO()
    sent = path.read_bytes()
    asked = SimpleNamespace(makefile=lambda *_: io.BytesIO(sent), sendall=answer.write)
    with _searching(out / "cache"):
        Handler(asked, ("127.0.0.1", 1), server)
    said = answer.getvalue()
    if b" 200 " not in said[:20] and b" 206 " not in said[:20]:
        raise sg.DataError("a request must be of the page, got another")
    return said
