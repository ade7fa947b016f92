"""What scores the videos of a verb: every option counts, and what is missing is said."""

import json
from pathlib import Path

import numpy as np
import pytest

from stepgraph.cli import main
from test_cli import failed, srt

STEPS = "# Make tea\nboil the water\nadd the leaves\n# Fry eggs\ncrack the eggs\nheat a pan\n"
SAID = ["boil the water", "add the leaves", "heat a pan", "crack the eggs"]
ENCODER = '''
import zlib
import numpy as np
from stepgraph.core import Features


class Words:
    """Counts words, and says how it was made."""

    def __init__(self, options):
        self.options = options

    def vectors(self, texts):
        found = np.full((len(texts), 32), 0.1, np.float32)
        for row, text in zip(found, texts):
            for word in text.split():
                row[zlib.crc32(word.encode()) % 32] += 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def encode_keysteps(self, vocabulary):
        return self.vectors(vocabulary.keysteps)

    def encode_videos(self, videos):
        for video in videos:
            if video.id == "noise":
                from stepgraph.errors import DataError
                raise DataError("noise.mp4: must be a video, got noise")
            times = np.array([[s.start, s.end] for s in video.transcript]).reshape(-1, 2)
            said = self.vectors([s.text for s in video.transcript])
            yield Features(video.id, video.duration, said, times)


class Another(Words):
    def encode_videos(self, videos):
        for features in super().encode_videos(videos):
            yield Features("x", features.duration, features.vectors, features.intervals)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Four narrated videos with truth, and an encoder of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "wordy.py").write_text(ENCODER)
    videos = tmp_path / "videos"
    videos.mkdir()
    lines = ["video,start,end,keystep"]
    for name in "abgh":
        (videos / f"{name}.srt").write_text(srt(SAID))
        lines += [f"{name},{6 * i},{6 * i + 6},{text}" for i, text in enumerate(SAID)]
    (videos / "truth.csv").write_text("\n".join(lines) + "\n")
    (videos / "steps.txt").write_text(STEPS)
    return videos


@pytest.fixture
def scores(folder, tmp_path):
    """Perfect scores of two of the four videos."""
    stored = tmp_path / "scores"
    stored.mkdir()
    for name in "ag":
        rows = np.repeat([0, 1, 3, 2], 6)
        np.save(stored / f"{name}.npy", np.eye(4, dtype=np.float32)[rows])
    return stored


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    said = capsys.readouterr()
    assert code == 0, said.err
    return json.loads(said.out)


def test_stored_scores_are_measured_on_the_videos_that_have_them(scores, capsys):
    found = run(capsys, "evaluate", "videos", "--scores", scores, "--decoder", "argmax", "--json")

    assert (found["videos"], found["videos_with_truth"]) == (2, 4)
    assert found["accuracy"] == pytest.approx(1.0)


def test_all_videos_can_be_asked_for(scores, capsys):
    asked = ("evaluate", "videos", "--scores", scores, "--decoder", "argmax", "--all-videos")
    found = run(capsys, *asked, "--json")

    assert (found["videos"], found["videos_with_truth"]) == (4, 4)
    assert found["accuracy"] == pytest.approx(0.5)


def test_the_table_says_of_how_many_videos_it_is(scores, capsys):
    assert main(["evaluate", "videos", "--scores", str(scores), "--decoder", "argmax"]) == 0

    assert "Only 2 of the 4 videos with a truth have scores" in capsys.readouterr().out


def test_stored_features_are_measured_on_the_videos_that_have_them(folder, tmp_path, capsys):
    vectors = np.eye(4, dtype=np.float32)[np.repeat([0, 1, 3, 2], 6)]
    (tmp_path / "features").mkdir()
    np.save(tmp_path / "features" / "a.npy", vectors)
    np.save(tmp_path / "features" / "keysteps.npy", np.eye(4, dtype=np.float32))

    found = run(
        capsys, "evaluate", "videos", "--features", "features", "--decoder", "argmax", "--json"
    )

    assert (found["videos"], found["videos_with_truth"]) == (1, 4)
    assert found["accuracy"] == pytest.approx(1.0)


def test_not_one_usable_table_is_an_error(scores, capsys):
    for name in "ag":
        np.save(scores / f"{name}.npy", np.ones((3, 7), np.float32))

    said = failed(capsys, "evaluate", "videos", "--scores", scores, "--json")

    assert "were they computed with another vocabulary?" in said


def test_no_table_of_any_video_is_an_error(scores, capsys):
    for name in "ag":
        (scores / f"{name}.npy").rename(scores / f"not-{name}.npy")

    said = failed(capsys, "evaluate", "videos", "--scores", scores, "--json")

    assert "must hold videos with a truth that can be scored, got none" in said
    assert "4 × video without stored scores" in said


@pytest.mark.parametrize("verb", ["mine", "label", "recognize"])
def test_stored_scores_serve_every_verb_that_scores(scores, capsys, verb):
    run(capsys, "mine", "videos", "--scores", scores, "-o", "graph.json", "--json")
    graph = [] if verb == "mine" else ["--graph", "graph.json"]

    found = run(capsys, verb, "videos", "--scores", scores, "-o", f"{verb}-out", *graph, "--json")

    videos = found["videos"]
    assert (len(videos) if isinstance(videos, list) else videos) == 2


def test_nothing_to_hear_is_an_error_that_says_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coin = {"database": {}}
    for number in range(3):
        coin["database"][f"video{number}"] = {
            "class": "MakeTea",
            "recipe_type": 1,
            "subset": "testing",
            "duration": 30.0,
            "start": 0.0,
            "end": 30.0,
            "video_url": "",
            "annotation": [
                {"id": str(step), "segment": [5.0 * step, 5.0 * step + 4], "label": label}
                for step, label in enumerate(["boil the water", "add the leaves"])
            ],
        }
    (tmp_path / "COIN.json").write_text(json.dumps(coin))

    source = f"coin:{tmp_path}"
    for asked in (
        ("evaluate", source, "--decoder", "argmax", "--json"),
        ("mine", source, "-o", "mined.json"),
        ("mine", source, "-o", "mined.json", "--workers", "1"),
        ("recognize", source, "--graph", "graph.json", "-o", "steps"),
        ("label", source, "--graph", "graph.json", "-o", "labels"),
        ("reproduce", "table1", source),
        ("reproduce", "noise", source),
        ("reproduce", "tasks", source),
    ):
        if "graph.json" in asked:
            run(capsys, "mine", "demo", "-o", "graph.json", "--json")
        said = failed(capsys, *asked)

        assert "must hold narration (" in said, asked
        assert "or --scores" in said
    assert {path.name for path in tmp_path.iterdir()} == {"COIN.json", "graph.json"}


def test_text_has_nothing_to_tell_of_silent_videos_that_were_looked_at(scores, capsys):
    for name in "abgh":
        Path(f"videos/{name}.srt").write_text("1\n00:00:23,000 --> 00:00:24,000\n[Music]\n")
        np.save(scores / f"{name}.npy", np.load(scores / "a.npy"))

    asked = ("reproduce", "table1", "videos", "--video-scores", scores, "--format", "json")
    found = run(capsys, *asked)
    first = {
        row["section"]: row["measured here"]["accuracy"]
        for row in found["rows"]
        if row["name"] == "Ours"
    }
    reason = "no text scores: no video has narration"
    assert first["Text-only"] == {"value": None, "reason": reason}
    assert first["Video-Text"]["value"] is None
    assert first["Video-only"]["value"] == 100.0


def test_scores_that_cannot_be_read_lose_their_video(scores, capsys):
    run(capsys, "mine", "videos", "--scores", scores, "-o", "graph.json", "--json")
    (scores / "g.npy").write_bytes(b"hi")

    said = failed(
        *(capsys, "recognize", "videos", "--graph", "graph.json"),
        *("--scores", scores, "-o", "steps", "--json"),
    )

    assert "1 failed, the others are done: 1 unreadable stored scores" in said
    assert [path.name for path in Path("steps").glob("*.steps.json")] == ["a.steps.json"]


def test_the_length_of_rows_is_refused_where_nothing_is_stored(folder, capsys):
    said = failed(capsys, "mine", "videos", "--every", "2")

    assert "seconds_per_row (--every) requires scores (--scores) or features" in said


def test_compat_uses_the_encoder_asked_for(folder, capsys):
    folder.rename("crosstask")
    asked = ("evaluate", "crosstask", "--compat", "authors", "--encoder", "wordy:Words", "--json")

    found = run(capsys, *asked)

    assert found["encoder"]["name"] == "wordy:Words"
    assert found["compat"]


def test_compat_uses_stored_scores(scores, capsys):
    Path("videos").rename("crosstask")
    asked = ("evaluate", "crosstask", "--compat", "authors", "--scores", scores, "--json")

    found = run(capsys, *asked)

    assert (found["videos"], found["encoder"]) == (2, None)


@pytest.mark.parametrize("option", [["--min-score", "0.2"], ["--option", "self-transition=1"]])
def test_compat_refuses_what_it_would_ignore(folder, capsys, option):
    said = failed(capsys, "evaluate", "videos", "--compat", "authors", *option, "--json")

    assert f"--compat and {option[0]} are mutually exclusive: remove one" in said


def test_an_encoder_that_answers_for_another_video_is_an_error(folder, capsys):
    said = failed(
        capsys, "mine", "videos", "--vocabulary", "videos/steps.txt", "--encoder", "wordy:Another"
    )

    assert "must give the features of each video in order, got ['x'] for ['a']" in said


def test_the_shard_is_in_the_answer(scores, capsys):
    found = [
        run(
            capsys,
            *("evaluate", "videos", "--scores", scores, "--decoder", "argmax", "--all-videos"),
            *("--shard", f"{part}/2", "--json"),
        )
        for part in (1, 2)
    ]

    assert [one["shard"] for one in found] == ["1/2", "2/2"]
    assert sum(one["videos_with_truth"] for one in found) == 4


def test_max_gap_is_there_wherever_a_graph_is_mined(scores, capsys):
    found = run(capsys, "evaluate", "videos", "--scores", scores, "--max-gap", "5", "--json")

    assert found["mining"]["max_gap"] == 5.0


def test_stored_scores_and_an_encoder_are_refused_together(scores, capsys):
    said = failed(
        capsys, "evaluate", "videos", "--scores", scores, "--encoder", "text:minilm", "--json"
    )

    assert "scores must come from one source, got stored scores and an encoder" in said


def test_reproduce_refuses_to_print_what_is_seen_under_text(folder, capsys):
    said = failed(capsys, "reproduce", "table2", "videos", "--encoder", "colour:motion")

    assert "--encoder must encode sentences, for the rows of text, got 'colour:motion'" in said


def test_reproduce_refuses_another_vocabulary_than_that_of_the_truth(folder, tmp_path, capsys):
    (tmp_path / "other.txt").write_text("saw the board\nsand the board\n")

    said = failed(capsys, "reproduce", "table2", "videos", "--vocabulary", "other.txt")

    assert "--vocabulary must be the vocabulary of the truth of" in said


def test_probe_says_which_videos_cannot_be_read(folder, capsys):
    (folder / "e.srt").write_text("no cue at all")

    asked = ["probe", "videos", "--encoder", "words=wordy:Words", "--probes", "keystep"]
    code = main([*asked, "--heads", "mlp", "--epochs", "1", "--seeds", "1"])

    said = capsys.readouterr().err
    assert code == 1
    assert "e.srt" in said
