"""Small whole files of every binary format, and of those that stepgraph writes itself."""

import io
import json
import pickle
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

import stepgraph as sg
from fuzz import text_seeds
from stepgraph.cli import main

VOCABULARY = sg.Vocabulary(("boil the water", "add the leaves", "pour the tea"), {"tea": (0, 1)})
ROWS = (np.arange(18).reshape(6, 3) / 18).astype(np.float32)
ENCODER = "fuzz.words:make"


def made(make):
    """All that a function writes into a folder, as an input."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


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
    from dataclasses import fields

    kinds = {"str": "viterbi", "int": 3, "float": 0.5}
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


def numpy_arrays():
    def as_npz(**arrays):
        out = io.BytesIO()
        np.savez(out, **arrays)
        return out.getvalue()

    def as_npy(array):
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    return [
        {"v.npy": as_npy(ROWS)},
        {"v.npy": as_npy(np.asfortranarray(ROWS.astype(">f8")))},
        {"v.npz": as_npz(rows=ROWS.astype(np.float16))},
        {"all.npz": as_npz(v=ROWS, w=ROWS[:2].astype(np.int64))},
        {"v.npy": as_npy(ROWS), "keysteps.npy": as_npy(np.eye(3))},
    ]


def pickled_arrays():
    array, rows = pickle.dumps(ROWS), pickle.dumps(list(ROWS), protocol=2)
    return [{"v.pkl": array}, {"v.pkl": rows}, {"v.pkl": pickle.dumps([*ROWS], protocol=0)}]


def _torch_saved(content, **how):
    import torch

    out = io.BytesIO()
    torch.save(content, out, **how)
    return out.getvalue()


def torch_arrays():
    import torch

    rows = torch.from_numpy(ROWS)
    both = {"v": rows, "w": rows[:2].bfloat16()}
    return [
        {"v.pt": _torch_saved(rows)},
        {"v.pt": _torch_saved({"x": rows.t().contiguous().t()})},
        {"v.pt": _torch_saved(rows, _use_new_zipfile_serialization=False)},
        {"all.pt": _torch_saved(both)},
    ]


def hdf5_arrays():
    import h5py

    def make(folder, name, **how):
        with h5py.File(folder / name, "w", **how) as file:
            file.create_dataset("v", data=ROWS)
            packed = {"compression": "gzip", "shuffle": True, "fletcher32": True}
            file.create_dataset("w/rows", data=ROWS[:2], chunks=(1, 3), **packed)

    def alone(folder):
        with h5py.File(folder / "v.h5", "w") as file:
            file.create_dataset("rows", data=ROWS.astype("f8"))

    return [
        made(lambda folder: make(folder, "all.h5")),
        made(lambda folder: make(folder, "all.hdf5", libver="latest")),
        made(alone),
    ]


def parquet_arrays():
    import pyarrow as pa
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)
    names = pa.array(["v"] * 4 + ["w"] * 2)
    tables = {
        "all.parquet": pa.table({"video": names, "vector": lists}),
        "v.parquet": pa.table({"vector": pa.array(ROWS.tolist())}),
    }
    columns = pa.table({name: ROWS[:, place] for place, name in enumerate("abc")})

    def write(table, name, **how):
        return made(lambda folder: parquet.write_table(table, folder / name, **how))

    plain = {"compression": "none", "use_dictionary": False}
    return [write(table, name, **plain) for name, table in tables.items()] + [
        write(columns, "v.parquet"),
        write(tables["all.parquet"], "all.parquet", row_group_size=2, compression="zstd"),
    ]


def embedding_cache():
    from stepgraph.encoders.cache import EmbeddingCache

    def make(folder):
        cache = EmbeddingCache("model", folder)
        cache.store(["boil", "pour"], ROWS[:2])
        cache.path.rename(folder / "cache.sqlite")

    return [made(make)]


def _network():
    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions

    return TimeSformer(TimeSformerOptions(3, 2, 4, 2, width=4, depth=1, heads=2))


def checkpoints():
    import torch

    from stepgraph.networks.timesformer import save_checkpoint

    network = _network()
    names = list(VOCABULARY.keysteps)
    weights = {"module.a": torch.ones(2, 3), "module.b.num_batches_tracked": torch.tensor(3)}
    return [
        made(lambda to: save_checkpoint(to / "own.safetensors", network, names, {"window": 1.0})),
        {"weights.pt": _torch_saved({"state_dict": weights, "epoch": 3, "options": {"a": [1]}})},
        {"weights.pth": _torch_saved(weights, _use_new_zipfile_serialization=False)},
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


def _write_video(path, codec, payload):
    """Two seconds of grey with a text track."""
    import av

    with av.open(str(path), "w") as container:
        picture = container.add_stream("mpeg4", rate=5)
        picture.width, picture.height, picture.pix_fmt = 32, 32, "yuv420p"
        track = container.add_stream(codec)
        track.codec_context.subtitle_header = b"[Script Info]\n"
        for number in range(10):
            pixels = np.full((32, 32, 3), 20 * number, np.uint8)
            container.mux(picture.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(picture.encode())
        for start, text in enumerate(("boil the water", "pour it")):
            packet = av.Packet(payload(text))
            packet.stream, packet.time_base = track, Fraction(1, 1000)
            packet.pts = packet.dts = 1000 * start
            packet.duration = 900
            container.mux(packet)


def media():
    def as_mov_text(text):
        return len(text).to_bytes(2, "big") + text.encode()

    def as_ass(text):
        return f"0,0,Default,,0,0,0,,{{\\an8}}{text}".encode()

    return [
        made(lambda folder: _write_video(folder / "talk.mp4", "mov_text", as_mov_text)),
        made(lambda folder: _write_video(folder / "talk.mkv", "subrip", str.encode)),
        made(lambda folder: _write_video(folder / "talk.mkv", "ass", as_ass)),
    ]


def commands():
    """Everything that mine and recognize read: videos, keysteps and a graph."""
    graph = made(own_folder)["graph.json"]
    with_graph = [{**files, "graph.json": graph} for files in text_seeds.folders()]
    release = {"raw_caption.json": json.dumps(text_seeds.captions()).encode()}
    release["steps.txt"] = text_seeds.STEPS.encode()
    return [*with_graph, {**release, "graph.json": graph}]
