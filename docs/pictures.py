"""Draw the pictures of the page and the report for the documentation: ``docs/pictures.py``.

Needs Chromium on the PATH and playwright; runs the demo on rendered clips in a temporary folder,
or takes those in a folder that is named (``stepgraph demo --video -o FOLDER``).
"""

import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from stepgraph.cli import main
from stepgraph.viewer.server import Server, Shown

IMAGES = Path(__file__).parent / "images"


def draw(folder: Path) -> None:
    """Draw every page, of the results in a folder."""
    shown = Shown(folder)
    videos = json.loads(shown.overview)["videos"]
    first, second = (quote(one["id"], safe="") for one in videos[:2])
    task, step = quote(videos[0]["task"]), quote(videos[0]["steps"][2][2])
    places = {
        "page-overview": ("", ".list .row"),
        "page-video": (f"#video/{first}@20.0", ".steps .step"),
        "page-tasks": (f"#graph/{task}/{step}", ".places"),
        "page-compare": (f"#compare/{first}/{second}", ".pairs"),
        "page-search": (f"#search/{step}", ".hits"),
    }
    with Server(shown) as server, browser() as chromium:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, (place, there) in places.items():
            page = chromium.new_page(viewport={"width": 1280, "height": 760})
            page.goto(server.address + place)
            page.wait_for_selector(there, timeout=120_000)
            if name == "page-video":
                page.click(".why >> nth=1")
            page.wait_for_timeout(1500)  # small pictures, and what the player shows
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
        server.shutdown()


def draw_report(report: Path) -> None:
    """Draw the first video of a report."""
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1100, "height": 1200})
        page.goto(report.absolute().as_uri())
        page.wait_for_selector("article.card svg")
        page.locator("article.card").first.screenshot(path=IMAGES / "report.png")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as driver:
        path, quiet = shutil.which("chromium"), ["--no-sandbox", "--disable-gpu"]
        chromium = driver.chromium.launch(executable_path=path, args=quiet)
        yield chromium
        chromium.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        filmed = Path(sys.argv[1]) if sys.argv[1:] else Path(place, "filmed")
        if not sys.argv[1:]:
            main(["demo", "--video", "-o", str(filmed)])
        main(["demo", "-o", f"{place}/told"])
        draw(filmed / "keysteps")
        draw_report(Path(place, "told", "report.html"))
