"""Small whole files of what stepgraph itself writes and reads again."""

import json
import os
import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np

import stepgraph as sg
from fuzz import text_seeds
from fuzz.binary_seeds import ROWS, made, media, torch_saved, write_talk
from stepgraph.cli import main

VOCABULARY = sg.Vocabulary(("boil the water", "add the leaves", "pour the tea"), {"tea": (0, 1)})
ENCODER = "fuzz.words:make"


def run(*arguments):
    """Run the command, which must succeed."""
    code = main([str(argument) for argument in arguments])
    assert code == 0, arguments


def own_folder(folder):
    """Write a folder of one's own videos, and a graph that was mined from it."""
    for name, content in text_seeds.folders()[0].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    run("mine", folder, "--encoder", ENCODER, "-o", folder / "graph.json")
    return folder


def graph():
    def make(folder):
        with tempfile.TemporaryDirectory() as own:
            graph = sg.load(own_folder(Path(own)) / "graph.json")
            sg.save(graph, folder / "graph.json")

    return [made(make)]


def report_fields():
    kinds = {"str": "viterbi", "int": 3, "float": 0.5, "bool": True}
    return {one.name: kinds[str(one.type)] for one in fields(sg.Report)}


def saved():
    """A vocabulary, labels, a report, a timeline: one input each."""
    labels = sg.Labels(
        "tea",
        np.array([0, 0, -1, 2]),
        VOCABULARY,
        anchors=np.array([True, False, False, False]),
        confidence=np.array([0.5, 1.0, 0.0, 0.25]),
        tasks={"tea": 0.75},
    )
    scores = sg.Scores("tea", ROWS[:4], np.ones(4, bool), VOCABULARY)
    video = sg.Video("tea", 3.5, (sg.Sentence(0.0, 2.0, "boil"),))
    timeline = sg.Timeline(video, labels, scores)
    return [
        made(lambda folder: sg.save(VOCABULARY, folder / "vocabulary.json")),
        made(lambda folder: sg.save(labels, folder / "labels.json")),
        made(lambda folder: sg.save(sg.Report(**report_fields()), folder / "report.json")),
        {"tea.steps.json": made(lambda to: sg.write_timeline(timeline, to))["tea.steps.json"]},
    ]


def result(media=None):
    """What was recognised in a video."""
    from stepgraph.core import Chapter, Result

    steps = (
        Chapter(0.0, 0.5, "boil", 0.5, "anchor", 0.75, "boil it", "tea"),
        Chapter(0.5, 1.5, "pour", None, "label"),
    )
    said = (sg.Sentence(0.0, 0.5, "boil the water"), sg.Sentence(0.5, 1.0, "pour it"))
    return Result(sg.Video("tea", 1.5, said, media), steps, {"tea": 0.75, "soup": 0.1})


def annotations():
    """A document of ELAN, a project of VIA, and tasks of Label Studio."""
    from stepgraph.export.formats import write_results

    texts = made(lambda to: write_results([result()], to, ["elan", "via", "label-studio"]))
    tasks = texts.pop("label-studio.json").replace(b'"predictions"', b'"annotations"')
    del texts["label-studio.xml"]
    return [{"label-studio.json": tasks}, *({name: text} for name, text in texts.items())]


def saved_arrays():
    intervals = np.array([[t, t + 1.0] for t in range(6)])
    scores = sg.Scores("tea", ROWS, np.ones(6, bool), VOCABULARY)
    return [
        made(lambda folder: sg.save(scores, folder / "scores.npz")),
        made(lambda to: sg.save(sg.Features("tea", 6.0, ROWS, intervals), to / "features.npz")),
    ]


def results():
    content = {
        "format": "stepgraph-reproduce",
        "version": 1,
        "done": {"ab": {"f1": 0.5, "x": None}},
    }
    return [{"results.json": text_seeds.as_bytes(content)}]


def own_features():
    """What ``stepgraph encode`` writes."""

    def make(folder):
        with tempfile.TemporaryDirectory() as own:
            run("encode", own_folder(Path(own)), "--encoder", ENCODER, "-o", folder)

    return [made(make)]


def own_labels():
    """What ``stepgraph label`` writes."""

    def make(folder):
        with tempfile.TemporaryDirectory() as own:
            graph = own_folder(Path(own)) / "graph.json"
            run("label", own, "--graph", graph, "--encoder", ENCODER, "-o", folder)

    return [made(make)]


def embedding_cache():
    from stepgraph.encoders.cache import EmbeddingCache

    def make(folder):
        cache = EmbeddingCache("model", folder)
        cache.store(["boil", "pour"], ROWS[:2])
        cache.path.rename(folder / "cache.sqlite")

    return [made(make)]


def heard_speech():
    """What was heard in a file, as it is kept."""
    said = [[0.5, 2.0, "Boil the water."], [2.0, 3.25, "Pour the tea, \u2014 then wait."]]
    rest = {"end": 4.5, "damaged": 2, "language": "de", "unsure": 0.1}
    content = {"format": "stepgraph-speech", "version": 1, "sentences": said, **rest}
    silent = {**content, "sentences": [], "damaged": 0, "language": "", "unsure": 0.0}
    return [{"heard.json": text_seeds.as_bytes(one)} for one in (content, silent)]


def read_screens():
    """What was read on the screen of a video, as it is kept."""
    said = [[0.5, 2.0, "BOIL THE WATER"], [2.0, 3.25, "cr\u00e8me"]]
    content = {"format": "stepgraph-screen", "version": 1, "sentences": said}
    return [{"read.json": text_seeds.as_bytes(content)}]


def _network():
    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions

    return TimeSformer(TimeSformerOptions(3, 2, 4, 2, width=4, depth=1, heads=2))


def checkpoints():
    import torch

    from stepgraph.networks.checkpoints import save_checkpoint

    network = _network()
    names = list(VOCABULARY.keysteps)
    weights = {"module.a": torch.ones(2, 3), "module.b.num_batches_tracked": torch.tensor(3)}
    return [
        made(lambda to: save_checkpoint(to / "own.safetensors", network, names, {"window": 1.0})),
        {"weights.pt": torch_saved({"state_dict": weights, "epoch": 3, "options": {"a": [1]}})},
        {"weights.pth": torch_saved(weights, _use_new_zipfile_serialization=False)},
    ]


def training_states():
    import torch

    from stepgraph.training.state import EpochRecord, Position, save_state

    network = torch.nn.Linear(2, 2)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    position = Position(1, 2, [0.5, 0.25], [EpochRecord(1, 1, 0.1, 0.5, 0.5, 3)], 0.5, 1.0, 3)
    return [
        made(lambda to: save_state(to / "state.pt", {"seed": 0}, position, network, optimiser))
    ]


def model_folders():
    """A folder of the transformers library, and a video to look at."""
    from safetensors.torch import save

    sizes = {"num_frames": 2, "image_size": 4, "patch_size": 2, "hidden_size": 4}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = {"model_type": "timesformer", "attention_type": "divided_space_time", **sizes}
    colours = {"image_mean": [0.45, 0.45, 0.45], "image_std": [0.225, 0.225, 0.225]}
    return [
        {
            "config.json": text_seeds.as_bytes(config),
            "preprocessor_config.json": text_seeds.as_bytes(colours),
            "model.safetensors": save(_network().state_dict()),
            "talk.mp4": media()[0]["talk.mp4"],
        }
    ]


def clips():
    """Decoded clips of a training."""
    from stepgraph.training.clip_store import ClipStore

    def make(folder):
        write_talk(folder / "talk.mp4")
        os.utime(folder / "talk.mp4", (1, 1))
        ClipStore(folder, clip_options()).write("talk", folder / "talk.mp4")

    return [made(make)]


def clip_options():
    from stepgraph.ingest.frames import ClipOptions

    return ClipOptions(frames=2, window=1.0, height=4, width=4)


def commands():
    """Everything that mine and recognize read: videos, keysteps and a graph."""
    graph = made(own_folder)["graph.json"]
    with_graph = [{**files, "graph.json": graph} for files in text_seeds.folders()]
    release = {"raw_caption.json": json.dumps(text_seeds.captions()).encode()}
    release["steps.txt"] = text_seeds.STEPS.encode()
    return [*with_graph, {**release, "graph.json": graph}]
