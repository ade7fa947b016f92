"""Search: are the right moments found, and how long does it take?

``python -m benchmarks.search``: fifty questions, written before the first of them was asked, on
the results of the embedded corpus; then an index of a million sentences (``--sentences``), and a
look at nine times as many vectors.  One JSON object a line, also in
``benchmarks/results/search.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

# As the command line does, and as early: numpy reads it when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import stepgraph as sg
from stepgraph.core import Chapter, Features, Result, Sentence, Video
from stepgraph.decoders import DEFAULT_DECODER, encoder_for
from stepgraph.encoders.text import TextEncoder
from stepgraph.export.timeline import to_json
from stepgraph.viewer import index as files
from stepgraph.viewer.searching import Index, SearchHit, nearest

RESULTS = Path(__file__).parent / "results" / "search.jsonl"
EACH = 200  # sentences of a video of the large index
NEAR = 5.0  # seconds by which people speak of what they are about to do, or have just done

QUESTIONS = """\
where do they melt the butter? | melt the butter
how do I get the water hot | boil the water
grinding beans | grind the coffee beans
preparing the paper for the dripper | fold the paper filter
why wash the filter first? | rinse the filter with hot water
putting the grounds in | add the ground coffee
letting the coffee degas | let the coffee bloom
spiral pour | pour the water in circles
getting rid of the used filter | throw away the filter
serving it in a mug | pour into the cup
cardamom and cloves in the mortar | crush the spices
fresh ginger | grate the ginger
when do the tea leaves go in? | add the tea leaves
adding milk | pour in the milk
sweetening the tea | stir in the sugar
using a sieve | strain the tea
no lumps of flour | sift the flour
breaking eggs into a bowl | crack the eggs
beating the eggs | whisk the eggs
how long should the batter stand? | rest the batter
is the pan hot enough? | heat the pan
putting batter in the pan | ladle the batter into the pan
turning the pancake over | flip the pancake
maple syrup on top | drizzle with syrup
cutting peppers and onions | chop the vegetables
salt and pepper | season with salt and pepper
cooking the vegetables | fry the vegetables
eggs go into the pan | pour the eggs into the pan
adding cheese | sprinkle the cheese
folding it in half | fold the omelette
flipping the bike over | turn it upside down
removing the wheel | take off the wheel
tyre levers | lever off the tyre
taking the tube out | pull out the inner tube
where is the leak? | find the hole
sanding the rubber | roughen the surface with sandpaper
applying glue | spread the glue
sticking the patch on | press on the patch
looking for thorns or glass | check inside the tyre for sharp objects
getting the tyre back on the rim | refit the tyre
inflating the tire | pump up the tyre
putting the wheel back in the frame | put the wheel back on
taking the leg out of the chair | pull the joint apart
removing dried glue | scrape off the old glue
using a clamp | clamp the joint
cleaning up glue that squeezes out | wipe away the excess glue
how long does the glue take to set? | let the glue dry
tightening screws | tighten the screws
does the chair still rock? | check that it stands level
waiting for the kettle | boil the water
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    sentences = parser.parse_args().sentences
    parts = (ask(), grow(sentences), look())
    found = [{"command": "python -m benchmarks.search", **one} for one in parts]
    RESULTS.write_text("".join(json.dumps(one) + "\n" for one in found))


def ask() -> dict[str, object]:
    """Ask the fifty questions; right is a moment that speaks of the keystep while it is done."""
    corpus = sg.open_source("demo")
    graph = sg.mine(corpus)
    with tempfile.TemporaryDirectory() as folder:
        for video in corpus.videos:
            sg.write_timeline(sg.recognize(video, graph), folder)
        index, times, ranks = Index(folder), [], []
        for line in QUESTIONS.splitlines():
            question, keystep = (part.strip() for part in line.split("|"))
            begun = time.process_time()
            moments = index.search(question)
            times.append(time.process_time() - begun)
            right = [is_right(one, graph.vocabulary.index(keystep), corpus) for one in moments]
            ranks.append(right.index(True) + 1 if True in right else None)
            if ranks[-1] is None or ranks[-1] > 3:
                print(f"{question!r}: right at {ranks[-1]}, first: {moments[0]}")
    within = {n: sum(rank is not None and rank <= n for rank in ranks) for n in (1, 3, 10)}
    result: dict[str, object] = {"questions": len(ranks), "right": within}
    print(json.dumps(result))
    return result


def is_right(moment: SearchHit, keystep: int, corpus: sg.Dataset) -> bool:
    return any(
        segment.keystep == keystep
        and moment.start < segment.end + NEAR
        and segment.start - NEAR < moment.end
        for segment in corpus.truth[moment.video].segments()
    )


class Cached(TextEncoder):
    """An encoder whose embeddings are there already: random directions about a thousand others.

    What is timed does not depend on what is said; how well is found, is asked above.
    """

    def encode_videos(self, videos: Iterable[Video]) -> Iterator[Features]:
        random = np.random.default_rng(0)
        base = random.normal(size=(1000, 384)).astype(np.float32)
        for video in videos:
            count = len(video.transcript)
            vectors = base[random.integers(0, 1000, count)]
            vectors = vectors + random.normal(size=(count, 384)).astype(np.float32)
            spans = np.array([(one.start, one.end) for one in video.transcript])
            yield Features(video.id, video.duration, vectors, spans)


def grow(sentences: int) -> dict[str, object]:
    """Make an index of so many sentences as a user does, from results, and ask it."""
    said = [one.text for video in sg.open_source("demo").videos for one in video.transcript]
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STEPGRAPH_CACHE"] = str(Path(folder, "cache"))
        for number in range(sentences // EACH):
            texts = [said[at] for at in random.integers(0, len(said), EACH)]
            heard = tuple(Sentence(4.0 * at, 4.0 * at + 3, one) for at, one in enumerate(texts))
            steps = [
                Chapter(80.0 * at, 80.0 * at + 60, f"step {at}", None, "label")
                for at in range(EACH // 20)
            ]
            one = Result(Video(f"v{number:06}", 4.0 * EACH, heard), tuple(steps))
            Path(folder, f"v{number:06}.steps.json").write_text(to_json(one))
        wall, cpu = time.perf_counter(), time.process_time()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        files.open_files(Path(folder), Cached(encoder_for(DEFAULT_DECODER)))
        made, used = time.perf_counter() - wall, time.process_time() - cpu
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        index = Index(folder)
        kept = Path(folder, "cache", "search").rglob("*")
        size = sum(one.stat().st_size for one in kept if one.is_file())
        walls, cpus = [], []
        for line in ["warm up", *QUESTIONS.splitlines()]:
            wall, cpu = time.perf_counter(), time.process_time()
            index.search(line.split("|")[0])
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
    result: dict[str, object] = {
        "sentences": len(index),
        "made_s": round(made, 1),
        "made_cpu_s": round(used, 1),
        "made_mb": round(most / 1024),
        "on_disk_mb": round(size / 1e6),
        "query_ms": round(float(np.median(walls[1:])), 1),
        "query_cpu_ms": round(float(np.median(cpus[1:])), 1),
        "slowest_query_ms": round(max(walls[1:]), 1),
        "slowest_query_cpu_ms": round(max(cpus[1:]), 1),
    }
    print(json.dumps(result))
    return result


def look(sentences: int = 9_000_000) -> dict[str, object]:
    """The first look at the vectors of ten thousand hours, random ones."""
    random = np.random.default_rng(0)
    coarse = random.integers(-127, 128, (sentences, files.COARSE), dtype=np.int8)
    asked = random.normal(size=files.COARSE).astype(np.float32)
    cpus = []
    for _ in range(6):
        begun = time.process_time()
        nearest(coarse, asked, 1000)
        cpus.append(1000 * (time.process_time() - begun))
    result: dict[str, object] = {
        "looked_at": sentences,
        "look_cpu_ms": round(float(np.median(cpus[1:])), 1),
    }
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
