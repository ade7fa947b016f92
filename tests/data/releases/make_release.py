"""Write the files of a release, and its answers, with the program of that release.

The README beside this file says how it is run.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

VIDEOS = ("omelette-5", "tea-4")
OMELETTE = "Make a vegetable omelette"
DONE = ("--done", "chop the vegetables", "--done", "whisk the eggs")
STORED = ("--graph", "graph.json", "--features", "features")


def stepgraph(*words):
    """Run a command of the program, and return what it prints."""
    command = [sys.executable, "-m", "stepgraph", *words]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def ask(answers, *words):
    """Keep the answer to a command, as JSON."""
    answers[" ".join(words)] = {
        "command": words,
        "answer": json.loads(stepgraph(*words, "--json")),
    }


def keep(folder, *kept):
    """Remove the files of a folder whose names begin otherwise."""
    for path in folder.iterdir():
        if not path.name.startswith(kept) or ".chapters." in path.name:
            path.unlink()


def mine_others(demo):
    """Mine the omelettes that the graph was not mined from."""
    mined = json.loads(Path("graph.json").read_text(encoding="utf-8"))["mined_on"]
    others = Path("others")
    others.mkdir()
    for path in demo.glob("omelette-*.vtt"):
        if path.stem not in mined:
            shutil.copy(path, others)
    stepgraph("mine", "others", "--vocabulary", "vocabulary.json", "-o", "other.json")
    shutil.rmtree(others)


def encode():
    import numpy as np

    import stepgraph as sg

    encoding = ("--encoder", "text:minilm", "--context", "1", "--blend")
    stepgraph("encode", "demo", *encoding, "-o", "features")
    keep(Path("features"), "features.json", *VIDEOS)
    graph = sg.load("graph.json")
    vectors = sg.load_encoder(graph.encoder).encode_keysteps(graph.vocabulary)
    np.save("features/keysteps.npy", vectors.astype(np.float32))


def save_artefacts(answers):
    """Save the artefacts of a video, and keep what path search makes of its scores."""
    import stepgraph as sg

    graph = sg.load("graph.json")
    video = next(one for one in sg.open_source("demo").videos if one.id == VIDEOS[0])
    encoder = sg.load_encoder(graph.encoder)
    scores = next(iter(sg.score([video], graph.vocabulary, encoder)))
    labels = sg.PathSearch().decode(scores, graph)
    sg.save(scores, "scores.npz")
    sg.save(labels, "video-labels.json")
    sg.save(next(iter(encoder.encode_videos([video]))), "video-features.npz")
    answers["artefacts"] = {
        "path-search": labels.keysteps.tolist(),
        "argmax": sg.Argmax().decode(scores, graph).keysteps.tolist(),
    }


def statistics():
    try:
        from stepgraph.labelling.statistics import label_statistics
    except ImportError:
        from stepgraph.labelling import label_statistics
    return json.loads(json.dumps(asdict(label_statistics(Path("labels")))))


def correct():
    """Correct a video as a person does in ``stepgraph view``."""
    from stepgraph.export.results import load_result, save_corrections

    path = Path(f"timelines/{VIDEOS[0]}.steps.json")
    steps = [(one.start, one.end, one.keystep) for one in load_result(path)]
    first = (steps[0][0] + 3.0, *steps[0][1:])
    save_corrections(path, [first, *steps[2:], (1.0, 4.0, "boil the water")], [(1.0, 4.0)])


def train():
    """Train a network of a moment on generated clips, and encode two seconds of one with it."""
    shard = ("generated", "--shard", "1/36")
    stepgraph("mine", *shard, "-o", "trained/graph.json")
    stepgraph("label", *shard, "--graph", "trained/graph.json", "-o", "trained/labels")
    shape = ("--frames", "2", "--size", "16", "--patch", "8", "--width", "8", "--depth", "1")
    taught = ("--heads", "1", "--epochs", "1", "--no-logs", "--precision", "float32")
    stepgraph("train", "trained/labels", *shape, *taught, "-o", "trained")
    shutil.copy("trained/encoder.safetensors", "encoder.safetensors")
    shutil.rmtree("trained")
    cut("clip.mp4")
    encoder = "own:encoder.safetensors"
    stepgraph("encode", "clip.mp4", "--encoder", encoder, "-o", "clip-features")


def cut(path, seconds=2):
    """Copy the first packets of the pictures of a generated clip, without what is said."""
    import av

    import stepgraph as sg

    video = min((one.path for one in sg.open_source("generated").videos), key=str)
    with av.open(str(video)) as old, av.open(path, "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.pts is not None and packet.pts * packet.time_base < seconds:
                packet.stream = stream
                new.mux(packet)


def view():
    """Return the content of the page of results."""
    stepgraph("view", "timelines", "--export", "page", "--no-open")
    content = [
        json.loads(text[text.index("{") : text.rindex("}") + 1])
        for path in ("page/data.js", "page/data/0.js")
        for text in [Path(path).read_text(encoding="utf-8")]
    ]
    shutil.rmtree("page")
    return content


def main(folder, demo):
    """Fill a folder; ``demo`` is the folder of the demo corpus in the program."""
    import os

    import stepgraph as sg

    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    answers = {}
    newer = not sg.__version__.startswith("0.1.")
    stepgraph("mine", "demo", "--shard", "1/2", "-o", "graph.json")
    stepgraph("vocabulary", f"{demo}/steps.txt", "-o", "vocabulary.json")
    encode()
    mine_others(Path(demo))
    stepgraph("recognize", "demo", *STORED, "-o", "timelines")
    stepgraph("recognize", "demo", *STORED, "--decoder", "path-search", "-o", "paths")
    for place in ("timelines", "paths"):
        keep(Path(place), *VIDEOS, "maps.json")
    stepgraph("label", "demo", *STORED, "-o", "labels")
    answers["labels"] = statistics()
    save_artefacts(answers)
    train()
    printed = stepgraph("evaluate", "demo", *STORED, "--json")
    Path("evaluation.json").write_text(printed, encoding="utf-8")

    stepgraph("reproduce", "thresholds", "demo", "-o", "reproduced")
    shutil.copy("reproduced/thresholds.state.json", "thresholds.results.json")
    shutil.rmtree("reproduced")

    asked = answers["commands"] = {}
    ask(asked, "vocabulary", "vocabulary.json")
    ask(asked, "graph", "next", "graph.json", "chop the vegetables")
    ask(asked, "graph", "path", "graph.json", "crack the eggs", "fold the omelette")
    ask(asked, "graph", "relation", "graph.json", "crack the eggs", "whisk the eggs")
    ask(asked, "graph", "show", "graph.json", *(("--task", OMELETTE) if newer else ()))
    ask(asked, "evaluate", "demo", *STORED, "--decoder", "path-search")
    stepgraph("graph", "merge", "graph.json", "other.json", "-o", "merged.json")
    ask(asked, "graph", "next", "merged.json", "melt the butter")
    if newer:
        ask(asked, "evaluate", "demo", *STORED)
        ask(asked, "graph", "order", "graph.json", OMELETTE)
        ask(asked, "graph", "order", "merged.json", OMELETTE)
        ask(asked, "graph", "compare", "graph.json", "other.json")
        ask(asked, "graph", "check", "graph.json", "demo")
        ask(asked, "ask", "next", "graph.json", *DONE, "--task", OMELETTE)
        correct()
        ask(asked, "search", "timelines", "crack the eggs", "--top", "1")
        ask(asked, "search", "timelines", "boil the water", "--top", "1")
        stepgraph("truth", "timelines", "-o", "corrected.csv")
        stepgraph("export", "timelines", "--format", "executions", "-o", ".")
        stepgraph("export", "paths", "--format", "csv", "-o", "paths")
        ask(asked, "evaluate", "demo", *STORED, "--corrections", "timelines")
        decided = ("recognize", "demo", *STORED, "--corrections", "timelines", "-o")
        stepgraph(*decided, "decided", "--decoder", "path-search")
        keep(Path("decided"), *VIDEOS)
        ask(asked, "ask", "next", "executions:executions.csv", *DONE)
        ask(asked, "ask", "missing", "executions:executions.csv", *DONE)
        ask(asked, "ask", "missing", "graph.json", *DONE)
        ask(asked, "ask", "mistakes", "graph.json", *DONE)
        way = ("--from", "chop the vegetables", "--to", "fold the omelette")
        ask(asked, "ask", "plan", "graph.json", *way)
        stepgraph("steps", "suggest", "demo", "--tasks", "6")
        ask(asked, "vocabulary", "steps.txt")
        answers["view"] = view()
    Path("merged.json").unlink()
    Path("answers.json").write_text(json.dumps(answers) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
