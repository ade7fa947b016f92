"""From a folder of transcripts to chapters: ``python examples/own_folder.py [VIDEOS STEPS]``.

Without arguments a small folder is written first: three people make tea, each in other words.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import stepgraph as sg

STEPS = """\
# Make tea
boil the water
warm the pot
add the tea leaves
let it steep
pour into the cup

# Make an omelette
crack the eggs
whisk the eggs
heat the pan
fold the omelette
"""

SAID = {
    "monday": (
        "first we boil the water in a kettle",
        "warm the pot with a little of it",
        "now add the tea leaves, two spoons",
        "let it steep for three minutes",
        "and pour it into the cup",
    ),
    "friday": (
        "hello and welcome to my kitchen",
        "get some water boiling",
        "add your tea leaves to the pot",
        "we let it steep, be patient",
        "pour it into your favourite cup",
    ),
    "sunday": (
        "crack the eggs into a bowl",
        "whisk the eggs well",
        "heat the pan with some butter",
        "fold the omelette and serve",
    ),
}


def write_folder(folder: Path) -> None:
    """Write ``videos/*.srt`` and ``steps.txt``; a sentence every eight seconds."""
    (folder / "videos").mkdir()
    for name, sentences in SAID.items():
        cues = [
            f"{n + 1}\n00:00:{8 * n:02},000 --> 00:00:{8 * n + 8:02},000\n{text}\n"
            for n, text in enumerate(sentences)
        ]
        (folder / "videos" / f"{name}.srt").write_text("\n".join(cues), "utf-8")
    (folder / "steps.txt").write_text(STEPS, "utf-8")


def chapters_of(videos: Path, steps: Path, output: Path) -> None:
    """Mine, recognise, print and write."""
    graph = sg.mine(videos, steps)
    sg.save(graph, output / "graph.json")
    names = graph.vocabulary.keysteps
    for keystep, name in enumerate(names):
        after = [f"{names[one.keystep]} ({one.count})" for one in graph.following(keystep)]
        print(f"after {name!r}: {', '.join(after) or 'nothing was seen'}")

    for timeline in sg.recognize_all(sg.open_source(videos).videos, graph):
        task, probability = next(iter(timeline.labels.tasks.items()))
        print(f"\n{timeline.video.id}: {task} ({probability:.0%})")
        for chapter in timeline:
            print(f"  {chapter.start:5.0f} s  {chapter.keystep}")
        sg.write_timeline(timeline, output / "chapters")
    print(f"\n{output}: graph.json, and chapters as WebVTT, text, CSV and JSON")


def main() -> None:
    """Use the folder that is given, or write one."""
    folder = Path(tempfile.mkdtemp(prefix="stepgraph-"))
    if len(sys.argv) > 1:
        videos, steps = Path(sys.argv[1]), Path(sys.argv[2])
    else:
        write_folder(folder)
        videos, steps = folder / "videos", folder / "steps.txt"
    chapters_of(videos, steps, folder)


if __name__ == "__main__":
    main()
