"""What every page must keep for people who see, hear or type otherwise; looked at in a browser.

Contrast of text (WCAG 2.1, 1.4.3), names of controls (4.1.2), headings in order, a focus that goes
along the page (2.4.3) and can be seen (2.4.7).
"""

from pathlib import Path

LOOK = Path(__file__).with_suffix(".js").read_text("utf-8").strip()


def flaws(page):
    """What is wrong with what a page shows."""
    return page.evaluate(f"{LOOK}.flaws()")


def tabbed(page, times):
    """Press Tab so often: names of what is focused then; all of it is seen, and in order."""
    names = []
    page.evaluate("window.before = null")
    for _ in range(times):
        page.keyboard.press("Tab")
        name, seen, back = page.evaluate(f"{LOOK}.focused()")
        if name == "BODY":
            break
        assert seen, f"the focus on {name!r} cannot be seen"
        assert not back, f"the focus goes back to {name!r}"
        names.append(name)
    return names
