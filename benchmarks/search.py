"""Search: are the right moments found, and how long does it take?

``python -m benchmarks.search``: fifty questions, written before the first of them was asked, on
the results of the embedded corpus; then an index of a million sentences (``--sentences``).  One
JSON object a line, also in ``benchmarks/results/search.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import stepgraph as sg
from stepgraph.viewer import index as files
from stepgraph.viewer.searching import Index, Moment, nearest

RESULTS = Path(__file__).parent / "results" / "search.jsonl"
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
    found = [{"command": "python -m benchmarks.search", **one} for one in (ask(), grow(sentences))]
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


def is_right(moment: Moment, keystep: int, corpus: sg.Dataset) -> bool:
    return any(
        segment.keystep == keystep
        and moment.start < segment.end + NEAR
        and segment.start - NEAR < moment.end
        for segment in corpus.truth[moment.video].segments()
    )


def grow(sentences: int) -> dict[str, object]:
    """Time an index of so many sentences whose embeddings are in the cache.

    The vectors are random directions about those of real sentences: what is timed does not depend
    on what is said.
    """
    random = np.random.default_rng(0)
    base = random.normal(size=(1000, 384)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        with Path(folder, "vectors").open("wb") as file:
            for start in range(0, sentences, 10_000):
                some = base[random.integers(0, 1000, min(10_000, sentences - start))]
                some = some + random.normal(size=some.shape).astype(np.float32)
                some /= np.linalg.norm(some, axis=1, keepdims=True)
                file.write(some.astype(np.float16).tobytes())
        vectors = np.memmap(Path(folder, "vectors"), np.float16, "r", shape=(sentences, 384))
        made, begun = time.perf_counter() - begun, time.perf_counter()
        files._write_coarse(Path(folder), vectors)
        coarse_s = time.perf_counter() - begun
        coarse = np.memmap(Path(folder, "coarse"), np.int8, "r", shape=(sentences, 64))
        turn = np.fromfile(Path(folder, "directions"), np.float32).reshape(384, 64)
        wall, cpu, kept = [], [], []
        for number in range(21):
            asked = np.asarray(vectors[number * 37], np.float32) + random.normal(size=384) / 20
            asked = (asked / np.linalg.norm(asked)).astype(np.float32)
            start, used = time.perf_counter(), time.process_time()
            rows = nearest(coarse, asked @ turn, 1000)
            score = np.asarray(vectors[rows], np.float32) @ asked
            best = set(rows[np.argsort(-score)[:10]].tolist())
            if number:  # the first one compiles
                wall.append(time.perf_counter() - start)
                cpu.append(time.process_time() - used)
                exact = np.argsort(-(vectors.astype(np.float32) @ asked))[:10]
                kept.append(len(best & set(exact.tolist())) / 10)
    result: dict[str, object] = {
        "sentences": sentences,
        "synthesised_s": round(made, 1),
        "coarse_s": round(coarse_s, 1),
        "query_ms": round(1000 * float(np.median(wall)), 1),
        "query_cpu_ms": round(1000 * float(np.median(cpu)), 1),
        "of_the_true_ten_found": round(float(np.mean(kept)), 3),
    }
    print(json.dumps(result))
    return result


if __name__ == "__main__":
    main()
