"""Draw the pictures of the page that the documentation shows: ``python docs/pictures.py``.

Needs Chromium on the PATH and playwright; runs the demo in a temporary folder.
"""

import shutil
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from stepgraph.cli import main
from stepgraph.viewer.server import Server, Shown

IMAGES = Path(__file__).parent / "images"


def draw(folder: Path) -> None:
    """Draw the overview, a video and what a search found, of the results in a folder."""
    with Server(Shown(folder)) as server, sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path, quiet = shutil.which("chromium"), ["--no-sandbox", "--disable-gpu"]
        chromium = driver.chromium.launch(executable_path=path, args=quiet)
        page = chromium.new_page(viewport={"width": 1280, "height": 640})
        page.goto(server.address)
        page.wait_for_selector(".list .row")
        page.screenshot(path=IMAGES / "page-overview.png")
        page.goto(f"{server.address}#video/pancakes-1@70.0")
        page.wait_for_selector(".steps button")
        page.screenshot(path=IMAGES / "page-video.png")
        page.fill("#question", "where do they melt the butter?")
        page.keyboard.press("Enter")
        page.wait_for_selector(".moments a", timeout=60_000)
        page.screenshot(path=IMAGES / "page-search.png")
        chromium.close()
        server.shutdown()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(["demo", "-o", place])
        draw(Path(place) / "keysteps")
