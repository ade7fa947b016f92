"""Pictures that were looked at and found good stay as they are, to a tenth of a pixel.

What is meant to look otherwise is drawn anew by ``python tests/test_export_pictures_kept.py``, and
looked at.
"""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stepgraph.export.drawing import draw_heat, draw_next, draw_task
from stepgraph.graph.maps import END, START
from task_maps import chain, make_map, random_map

KEPT = Path(__file__).parent / "pictures"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
LONG = "whisk the eggs with the milk and a little of the sugar"
NAMES = ("boil water", LONG, "stir", "Pour It", "serve")


def fork():
    """A way that forks, one that leads back, one that was never seen, and what is hardly done."""
    ways = [(START, 0, 9), (START, 1, 3), (0, 1, 60), (0, 2, 40), (1, 2, 7), (2, 0, 3), (2, 3, 2)]
    return make_map([*ways, (4, END, 5)], names=NAMES, shown={1: 3, 3: 6})


def draw_others():
    tea, many = fork(), random_map(5)
    iced = replace(tea, task=f"Make {LONG}", steps=tea.steps[1:4])
    unknown = make_map(chain(5), names=NAMES, videos=0, task="Make coffee")
    one = make_map(chain(5), names=NAMES, videos=1, task="Make cocoa")
    return [tea, unknown, replace(many, task="Mix", vocabulary=tea.vocabulary), iced, one]


PICTURES = {
    "task": lambda: draw_task(fork()),
    "task-of-a-page": lambda: draw_task(fork(), ["#123456", "red", "green", "blue", "#fff"]),
    "task-of-many": lambda: draw_task(random_map(16)),
    "task-of-one": lambda: draw_task(make_map([], names=("wait", "go"), videos=0, task="Wait")),
    "next": lambda: draw_next(draw_others(), 0),
    "next-of-a-long-name": lambda: draw_next([fork()], 1),
    "next-of-none": lambda: draw_next([make_map([(1, 2, 3)])], 0),
    "heat": lambda: draw_heat(draw_others()),
    "heat-of-a-page": lambda: draw_heat(draw_others()[:2], page=True),
}


def parts_of(picture):
    """Of each element what it is and says, without its numbers, and these."""
    for element in ElementTree.fromstring(picture).iter():
        tag = element.tag.rpartition("}")[2]
        if tag != "style":
            words = f"{tag} {sorted(element.items())} {element.text}"
            yield NUMBER.sub("#", words), [float(number) for number in NUMBER.findall(words)]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_as_it_was_kept(name):
    kept = [*parts_of((KEPT / f"{name}.svg").read_text(encoding="utf-8"))]

    drawn = [*parts_of(PICTURES[name]())]

    assert [words for words, _ in drawn] == [words for words, _ in kept]
    for (words, numbers), (_, before) in zip(drawn, kept, strict=True):
        assert numbers == pytest.approx(before, abs=0.11), words


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (KEPT / f"{name}.svg").write_text(draw().rstrip() + "\n", encoding="utf-8")
