"""The command line on video files: look, listen, both; and files that are no good."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stepgraph.cli import main
from videos import write_sound, write_video

av = pytest.importorskip("av")

STEPS = "# Paint\npaint it red\npaint it green\npaint it blue\n"
COLORS = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (40, 60, 220)}
ORDER = ("red", "green", "blue")
# An encoder that sees which of the three colours fills the picture.
LOOKING = """
import numpy as np
from stepgraph.encoders.visual import encode_rows
from stepgraph.ingest.frames import ClipOptions

NAMES = ("red", "green", "blue")


class Painter:
    clips = ClipOptions(frames=2, height=8, width=8)

    def __init__(self, options):
        self.options = options

    def encode_keysteps(self, vocabulary):
        named = [[name in keystep for name in NAMES] for keystep in vocabulary.keysteps]
        return np.array(named, np.float32)

    def encode_videos(self, videos):
        for video in videos:
            yield encode_rows(video, self.clips, self.look, batch=4)

    def look(self, frames):
        return frames.mean(axis=(1, 2, 3)).astype(np.float32) - 60


def make(options):
    return Painter(options)
"""


def paint(path, order=ORDER, seconds=2, said=()):
    """A clip in which each colour is shown for some seconds, with words as a text track."""
    pictures = [
        np.full((48, 64, 3), COLORS[color], np.uint8)
        for color in order
        for _ in range(5 * seconds)
    ]
    if not said:
        return write_video(path, pictures, rate=5)
    silent = write_video(path.with_name(f"silent-{path.name}"), pictures, rate=5)
    with av.open(str(silent)) as source, av.open(str(path), "w") as target:
        copied = target.add_stream_from_template(source.streams.video[0])
        words = target.add_stream("mov_text")
        words.codec_context.subtitle_header = b"[Script Info]\n"
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = copied
                target.mux(packet)
        for number, text in enumerate(said):
            packet = av.Packet(len(text.encode()).to_bytes(2, "big") + text.encode())
            packet.stream, packet.time_base = words, Fraction(1, 1000)
            packet.pts = packet.dts = 1000 * seconds * number
            packet.duration = 1000 * seconds
            target.mux(packet)
    silent.unlink()
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three painted clips without a word, a list of keysteps, and an encoder of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "painting.py").write_text(LOOKING)
    (tmp_path / "steps.txt").write_text(STEPS)
    (tmp_path / "videos").mkdir()
    for name in ("a", "b", "c"):
        paint(tmp_path / "videos" / f"{name}.mp4")
    return tmp_path / "videos"


def mine(*more):
    return main(
        ["mine", "videos", "--vocabulary", "steps.txt", "--encoder", "painting:make", *more]
    )


@pytest.fixture
def graph(folder, capsys):
    assert mine() == 0
    capsys.readouterr()
    return "graph.json"


def said(capsys):
    found = capsys.readouterr()
    return found.out, found.err


def chapters(name, folder="keysteps"):
    found = json.loads(Path(folder, f"{name}.steps.json").read_text("utf-8"))["chapters"]
    return [one["keystep"] for one in found]


def test_a_graph_is_mined_from_pixels(folder, capsys):
    assert mine() == 0

    assert "3 keysteps, 5 transitions between them, mined from 3 videos" in said(capsys)[0]


@pytest.mark.parametrize("decoder", ["argmax", "path-search", "task-markov"])
def test_keysteps_are_recognised_from_pixels_alone(graph, decoder):
    arguments = ["recognize", "videos/a.mp4", "--graph", graph, "--encoder", "painting:make"]

    assert main([*arguments, "--decoder", decoder]) == 0

    assert chapters("a") == ["paint it red", "paint it green", "paint it blue"]


def test_a_graph_does_not_choose_which_code_is_run(graph, capsys):
    assert main(["recognize", "videos", "--graph", graph]) == 1

    assert (
        "must be named explicitly if it is a function, got 'painting:make'; to use it, add: "
        in (said(capsys)[1])
    )


def test_a_bare_file_with_a_text_track_is_enough(folder, capsys):
    words = ("I paint it red", "now paint it green", "at last paint it blue")
    for name in ("a", "b", "c"):
        paint(folder / f"{name}.mp4", seconds=6, said=words)
    assert main(["mine", "videos", "--vocabulary", "steps.txt"]) == 0

    assert main(["recognize", "videos/a.mp4", "--graph", "graph.json"]) == 0

    assert chapters("a") == ["paint it red", "paint it green", "paint it blue"]


def test_what_is_not_said_is_seen_and_what_is_not_seen_is_said(graph):
    # Blue is never shown, green never named.
    paint(
        Path("videos/d.mp4"), ("red", "green", "green"), said=("", "", "now paint it blue, blue")
    )
    arguments = ["recognize", "videos/d.mp4", "--graph", graph, "--decoder", "argmax"]

    assert main([*arguments, "--encoder", "text:minilm", "--also", "painting:make"]) == 0

    assert chapters("d") == ["paint it red", "paint it green", "paint it blue"]


def test_features_are_stored_once_and_used_instead_of_looking(graph, capsys):
    assert main(["encode", "videos", "--encoder", "painting:make"]) == 0
    assert "features: 3 videos encoded (18 rows," in said(capsys)[0]
    shutil.rmtree("videos")
    Path("videos").mkdir()
    Path("videos/a.srt").write_text("1\n00:00:00,000 --> 00:00:06,000\nhello\n")

    arguments = ["recognize", "videos", "--graph", graph, "--encoder", "painting:make"]
    assert main([*arguments, "--features", "features"]) == 0

    assert chapters("a") == ["paint it red", "paint it green", "paint it blue"]


def test_encoding_again_does_nothing(folder, capsys):
    assert main(["encode", "videos", "--encoder", "painting:make"]) == 0
    before = {path: path.stat().st_mtime_ns for path in Path("features").iterdir()}
    capsys.readouterr()

    assert main(["encode", "videos", "--encoder", "painting:make"]) == 0

    assert "0 videos encoded (0 rows, 0.0 rows/s), 3 were already there" in said(capsys)[0]
    assert {path: path.stat().st_mtime_ns for path in Path("features").iterdir()} == before


def bad_files(folder):
    whole = (folder / "a.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "text.mp4").write_text("this is no video")
    write_sound(folder / "sound.mp4")
    return ["cut", "empty", "sound", "text"]


@pytest.mark.parametrize("verb", ["encode", "recognize"])
def test_bad_files_are_counted_and_the_others_go_on(graph, folder, capsys, verb):
    bad = bad_files(folder)
    more = ["--graph", graph] if verb == "recognize" else []

    assert main([verb, "videos", "--encoder", "painting:make", *more]) == 1

    out, err = said(capsys)
    assert "3 videos" in out
    *each, summary = err.splitlines()
    assert summary.startswith("stepgraph: error: 4 failed, the others are done:")
    for name in bad:
        [line] = [line for line in each if f"videos/{name}.mp4: must" in line]
        assert line.startswith("stepgraph: failed: ")
    written = {path.name.split(".")[0] for path in Path(_folder_of(verb)).rglob("*.*")}
    assert {"a", "b", "c"} <= written
    assert not written & set(bad)
    assert not list(Path().rglob("*.partial"))


def _folder_of(verb):
    return "features" if verb == "encode" else "keysteps"


def test_bad_files_may_be_skipped(graph, folder, capsys):
    bad_files(folder)

    code = main(
        ["recognize", "videos", "--graph", graph, "--encoder", "painting:make", "--skip-bad"]
    )

    assert code == 0
    assert "warning" in said(capsys)[1]


def test_a_real_film_under_a_wrong_name_is_read(graph, folder):
    (folder / "a.mp4").rename(folder / "a.avi")

    assert main(["recognize", "videos/a.avi", "--graph", graph, "--encoder", "painting:make"]) == 0

    assert chapters("a") == ["paint it red", "paint it green", "paint it blue"]


def test_a_graph_is_not_overwritten_by_an_empty_one(graph, folder, capsys):
    for name in ("a", "b", "c"):
        (folder / f"{name}.mp4").write_bytes(b"")
    before = Path(graph).read_bytes()

    assert mine() == 1

    assert Path(graph).read_bytes() == before


def test_options_beside_a_graph_change_its_encoder_and_nothing_else(folder, capsys):
    """What is not said is as the graph has it."""
    assert main(["mine", "videos", "--vocabulary", "steps.txt", "--encoder", "colour:motion"]) == 0

    assert main(["recognize", "videos", "--graph", "graph.json", "--window", "2"]) == 0

    assert main(["recognize", "videos", "--graph", "graph.json", "--also", "colour:motion"]) == 1
    assert "encoders to fuse must be two, got 'colour:motion' twice" in said(capsys)[1]


@pytest.mark.parametrize("how", ["mean", "banana"])
def test_a_fusion_of_one_encoder_is_refused(graph, capsys, how):
    arguments = ["recognize", "videos", "--graph", graph, "--encoder", "painting:make"]

    assert main([*arguments, "--fusion", how]) == 1

    assert "fusion" in said(capsys)[1]


def test_a_repaired_video_is_labelled_when_run_again(graph, folder, capsys):
    whole = (folder / "b.mp4").read_bytes()
    write_sound(folder / "b.mp4")
    arguments = ["label", "videos", "--graph", graph, "--encoder", "painting:make"]
    assert main(arguments) == 1
    (folder / "b.mp4").write_bytes(whole)

    assert main(arguments) == 0

    assert "18 clips of 3 videos" in said(capsys)[0]


@pytest.mark.parametrize("option", ["--epochs", "--rate"])
def test_no_epochs_are_not_all_epochs(graph, capsys, option):
    assert main(["label", "videos", "--graph", graph, "--encoder", "painting:make"]) == 0

    assert main(["train", "labels", option, "0"]) == 1

    assert "must be" in said(capsys)[1]


def test_features_of_another_encoder_are_refused(graph, folder, capsys):
    assert main(["encode", "videos", "--encoder", "painting:make", "--window", "2"]) == 0

    arguments = ["recognize", "videos", "--graph", graph, "--encoder", "painting:make"]
    assert main([*arguments, "--features", "features"]) == 1

    assert "window" in said(capsys)[1]


def test_a_transcript_alone_cannot_be_looked_at(graph, folder, capsys):
    Path("videos/x.srt").write_text("1\n00:00:00,000 --> 00:00:06,000\nhello\n")

    arguments = ["recognize", "videos/x.srt", "--graph", graph, "--encoder", "painting:make"]
    assert main(arguments) == 1

    assert "must have a video file to be encoded, got a transcript alone" in said(capsys)[1]


def test_clip_recognises_from_pixels(graph, tmp_path):
    from test_encoders_pretrained import tiny_network, write_tokenizer

    model = tmp_path / "clip"
    tiny_network("clip").save_pretrained(model)
    write_tokenizer(model)

    arguments = ["recognize", "videos/a.mp4", "--graph", graph, "--encoder", f"clip:{model}"]
    assert main(arguments) == 0

    assert set(chapters("a")) <= {"paint it red", "paint it green", "paint it blue"}


def test_labels_train_a_model_that_recognises(graph, folder, capsys):
    """The whole way: label, train, use as an encoder."""
    assert main(["label", "videos", "--graph", graph, "--encoder", "painting:make"]) == 0
    assert "18" in said(capsys)[0]
    small = "--frames 2 --size 16 --patch 8 --width 32 --depth 1 --heads 2 --batch 6 --epochs 15"

    assert main(["train", "labels", *small.split(), "--rate", "20"]) == 0

    assert "trained on 18 clips of 3 videos" in said(capsys)[0]
    encoder = "own:training/encoder.safetensors"
    arguments = ["recognize", "videos/b.mp4", "--graph", graph, "--encoder", encoder]
    assert main([*arguments, "--decoder", "argmax"]) == 0
    assert chapters("b") == ["paint it red", "paint it green", "paint it blue"]


def test_features_are_probed(folder, capsys):
    rows = [
        f"{name},{2 * at},{2 * at + 2},paint it {color}"
        for name in ("a", "b", "c")
        for at, color in enumerate(ORDER)
    ]
    truth = "\n".join(["video,start,end,keystep", *rows]) + "\n"
    (folder / "truth.csv").write_text(truth)
    shutil.copy("steps.txt", folder / "steps.txt")
    assert main(["encode", "videos", "--encoder", "painting:make"]) == 0
    capsys.readouterr()

    more = ["--probes", "keystep", "--heads", "mlp", "--seeds", "2", "-o", "probed"]
    code = main(["probe", "videos", "--features", "painter=features", "--format", "json", *more])

    assert code == 0
    assert json.loads(said(capsys)[0])["rows"]
    assert Path("probed/downstream.md").is_file()


def test_a_trained_network_is_not_probed_on_the_videos_of_its_training(graph, capsys):
    truth = "".join(
        f"{v},{2 * t},{2 * t + 2},paint it {c}\n" for v in "abc" for t, c in enumerate(ORDER)
    )
    Path("videos/truth.csv").write_text("video,start,end,keystep\n" + truth)
    shutil.copy("steps.txt", "videos/steps.txt")
    assert main(["label", "videos", "--graph", graph, "--encoder", "painting:make"]) == 0
    small = "--frames 2 --size 16 --patch 8 --width 32 --depth 1 --heads 2 --batch 6 --epochs 1"
    assert main(["train", "labels", *small.split()]) == 0
    capsys.readouterr()
    network = "Ours=timesformer:training/encoder.safetensors"
    asked = ["probe", "videos", "--probes", "keystep", "--heads", "mlp", "--seeds", "1"]

    assert main([*asked, "--encoder", network]) == 1
    assert "Ours: must be trained on no test video of videos, got 1 of 1" in said(capsys)[1]

    assert main([*asked, "--encoder", network, "--allow-shared"]) == 0
    assert "Ours was trained on test videos of videos" in said(capsys)[0]

    # Another model that learned from the same labels has nothing to tell of itself.
    other = ["--encoder", "other=painting:make", "--pretrained-on", "other=labels"]
    assert main([*asked, *other]) == 1
    assert "other: must be trained on no test video" in said(capsys)[1]


def test_probing_without_features_is_refused(folder, capsys):
    assert main(["probe", "videos"]) == 1

    assert "backbones must be at least one, got none" in said(capsys)[1]
