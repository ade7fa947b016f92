"""Files of earlier releases load, and give the same answers.

The programs of the releases wrote ``data/releases`` themselves, from the demo and the generated
corpus alone; its README has the commands.  Some answers differ by design, see the changelog:

- Encoders compute in float32 instead of bfloat16.  Recognition therefore starts from stored
  features and scores.  ``graph video`` encodes anew and has no place here; the page of results
  has the same deviations.
- ``task-markov`` of 0.1.0 was replaced by another model.  Its ``path-search`` was not; chapters
  that hold little of their keystep are left out since 0.2.0, unless ``--overlap`` is 0.
- ``graph show`` lists directional pairs within a task only.
- Reports have more metrics since 0.2.0, which refused those of 0.1.0; so does today's program.

Answers are compared by their numbers and names, in order: fields and prose may be renamed.
"""

import csv
import json
import math
import re
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import stepgraph as sg
from stepgraph.cli import main

RELEASES = Path(__file__).parent / "data/releases"
VIDEOS = ("omelette-5", "tea-4")
STORED = ("--graph", "graph.json", "--features", "features")
KINDS = {
    "graph.json": sg.TaskGraph,
    "other.json": sg.TaskGraph,
    "vocabulary.json": sg.Vocabulary,
    "video-labels.json": sg.Labels,
    "scores.npz": sg.Scores,
    "video-features.npz": sg.Features,
}
# What the program says of itself and of its options, which later programs have more of.
OWN = {"format", "version", "stepgraph", "fingerprint", "options", "encoder"}
# Changed by design since 0.2.0: `graph show` lists directional pairs within a task only.
CHANGED = {"directional"}
# Since 0.3.0 a spreadsheet has the origin of a chapter in words.
BASIS = {"anchor": "matched", "path": "inferred", "label": "unspecified"}
EACH = pytest.mark.parametrize("release", ["0.1.0", "0.2.0"])


@cache
def answers_of(release):
    return json.loads((RELEASES / release / "answers.json").read_text(encoding="utf-8"))


@cache
def names():
    """A pattern of the names of keysteps, tasks and videos, longer ones first."""
    dataset = sg.open_source("demo")
    known = [*dataset.vocabulary.keysteps, *dataset.vocabulary.tasks]
    known += [video.id for video in dataset.videos]
    found = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    return re.compile(rf"{found}|\d+(?:\.\d+)?")


def same(old, new, *, near=1e-6):
    """Whether every number and name of an old answer is in the new one, whatever its field."""

    def holds(one, other):
        return same(one, other, near=near)

    if isinstance(old, dict) and isinstance(new, dict):
        free = dict(new)
        for key, value in old.items():
            if key in OWN | CHANGED:
                continue
            # Prefer the field of this name; do not take that of another one.
            order = sorted(free, key=lambda one: (one != key, one in old))
            found = next((one for one in order if holds(value, free[one])), None)
            if found is None:
                return False
            del free[found]
        return True
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(holds, old, new))
    if isinstance(old, str) and isinstance(new, str):
        return names().findall(old) == names().findall(new)
    if type(old) in (int, float) and type(new) in (int, float):
        return math.isclose(old, new, rel_tol=near, abs_tol=near)
    return type(old) is type(new) and old == new


def difference(old, new, **how):
    """The first field that differs, for the message of a failure."""
    if isinstance(old, dict):
        return {key: one for key, one in old.items() if not same({key: one}, new, **how)}
    return old


@pytest.fixture
def files(release, tmp_path, monkeypatch):
    """A copy of the files of a release, as the current folder."""
    shutil.copytree(RELEASES / release, tmp_path / release)
    monkeypatch.chdir(tmp_path / release)
    return Path()


def printed(capsys, *words):
    assert main([*words]) == 0
    return capsys.readouterr().out


def rows(path):
    """The cells of a table; numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        return [[as_number(cell) for cell in row] for row in csv.reader(file)][1:]


def as_number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


@pytest.mark.parametrize("name", KINDS)
@EACH
def test_artefacts_are_loaded_and_saved_again(release, name, files):
    loaded = sg.load(name)
    sg.save(loaded, f"again-{name}")

    assert type(loaded) is KINDS[name]
    assert type(sg.load(f"again-{name}")) is KINDS[name]


@pytest.mark.parametrize(
    ("release", "key"),
    [(one, key) for one in ("0.1.0", "0.2.0") for key in answers_of(one)["commands"]],
)
def test_commands_answer_as_they_did(release, key, files, capsys):
    asked = answers_of(release)["commands"][key]
    # Search encodes sentences anew, which may round otherwise.
    how = {"near": 0.01 if key.startswith("search") else 1e-6}
    if "merged.json" in key:
        printed(capsys, "graph", "merge", "graph.json", "other.json", "-o", "merged.json")

    answer = json.loads(printed(capsys, *asked["command"], "--json"))

    assert same(asked["answer"], answer, **how), difference(asked["answer"], answer, **how)


@pytest.mark.parametrize(
    ("release", "key"),
    [
        (one, key)
        for one in ("0.1.0", "0.2.0")
        for key in answers_of(one)["commands"]
        if key.startswith("graph ") and "merged" not in key
    ],
)
def test_graphs_that_are_saved_again_answer_as_before(release, key, files, capsys):
    asked = answers_of(release)["commands"][key]
    for name in ("graph.json", "other.json"):
        sg.save(sg.load(name), name)

    answer = json.loads(printed(capsys, *asked["command"], "--json"))

    assert same(asked["answer"], answer)


@pytest.mark.parametrize(
    ("release", "place", "options"),
    [
        ("0.1.0", "paths", ("--decoder", "path-search", "--overlap", "0")),
        ("0.2.0", "paths", ("--decoder", "path-search")),
        ("0.2.0", "timelines", ()),
        ("0.2.0", "decided", ("--decoder", "path-search", "--corrections", "timelines")),
    ],
)
def test_videos_are_recognised_as_they_were(release, place, options, files, capsys):
    printed(capsys, "recognize", "demo", *STORED, *options, "-o", "new")

    for video in VIDEOS:
        old, new = rows(files / place / f"{video}.steps.csv"), rows(Path(f"new/{video}.steps.csv"))
        old = [[BASIS.get(cell, cell) for cell in row] for row in old]
        assert old
        assert same(old, new)


@pytest.mark.parametrize("release", ["0.1.0"])
def test_a_graph_of_counts_alone_serves_the_present_recogniser(release, files, capsys):
    printed(capsys, "recognize", "demo", *STORED, "-o", "new")

    found = {video: rows(Path(f"new/{video}.steps.csv"))[0][-1] for video in VIDEOS}
    assert found == dict(
        zip(VIDEOS, ["Make a vegetable omelette", "Make spiced milk tea"], strict=True)
    )


@EACH
def test_timelines_are_loaded(release, files):
    for place in ("paths", "timelines"):
        for video in VIDEOS:
            (files / place / f"{video}.corrected.json").unlink(missing_ok=True)
            result = sg.load(files / place / f"{video}.steps.json")
            found = [[one.start, one.end, one.keystep] for one in result.chapters]

            assert result.video.id == video
            assert found == [row[1:4] for row in rows(files / place / f"{video}.steps.csv")]


@EACH
def test_what_was_saved_of_a_video_is_decoded_as_it_was(release, files):
    kept = answers_of(release)["artefacts"]
    graph, scores = sg.load("graph.json"), sg.load("scores.npz")

    assert sg.load("video-labels.json").keysteps.tolist() == kept["path-search"]
    assert sg.PathSearch().decode(scores, graph).keysteps.tolist() == kept["path-search"]
    assert sg.Argmax().decode(scores, graph).keysteps.tolist() == kept["argmax"]


@EACH
def test_features_of_a_video_are_as_they_were(release, files):
    features = sg.load("video-features.npz")
    stored = np.load(files / "features" / f"{VIDEOS[0]}.npz")

    assert np.allclose(features.vectors, stored["vectors"], atol=1e-3)
    assert np.array_equal(features.intervals, stored["intervals"])
    assert features.duration == stored["duration"]


@pytest.mark.parametrize("release", ["0.2.0"])
def test_a_report_has_its_numbers(release, files):
    content = json.loads((files / "evaluation.json").read_text(encoding="utf-8"))
    report = asdict(sg.load("evaluation.json"))

    sg.save(sg.load("evaluation.json"), "again.json")

    shared = {key: content[key] for key in report.keys() & content.keys()}
    assert len(shared) > 15
    assert same(shared, report)
    assert sg.load("again.json") == sg.load("evaluation.json")


@pytest.mark.parametrize("release", ["0.1.0"])
def test_a_report_of_the_first_release_is_refused_in_one_line(release, files):
    with pytest.raises(sg.DataError, match=r"must be a report .* without 'frame_accuracy'"):
        sg.load("evaluation.json")


@EACH
def test_labels_have_their_statistics(release, files):
    pytest.importorskip("pyarrow", reason="labels are parquet")
    from stepgraph.labelling.statistics import label_statistics

    new = json.loads(json.dumps(asdict(label_statistics(files / "labels"))))
    assert same(answers_of(release)["labels"], new)


@EACH
def test_a_checkpoint_sees_what_it_saw(release, files, capsys):
    pytest.importorskip("av", reason="the clip is a video")

    encoder = ("--encoder", "own:encoder.safetensors", "--precision", "float32")
    printed(capsys, "encode", "clip.mp4", *encoder, "-o", "new")

    old, new = (np.load(Path(f"{place}/clip.npz")) for place in ("clip-features", "new"))
    assert len(old["vectors"])
    assert np.allclose(old["vectors"], new["vectors"], atol=0.01)
    assert np.array_equal(old["intervals"], new["intervals"])


@EACH
def test_finished_results_are_kept(release, files, capsys):
    """Their keys cover the program, so that it measures anew, and adds to what is there."""
    kept = json.loads((files / "thresholds.results.json").read_text(encoding="utf-8"))["done"]
    state = files / "new/thresholds.state.json"
    state.parent.mkdir()
    shutil.copy(files / "thresholds.results.json", state)

    printed(capsys, "reproduce", "thresholds", "demo", "-o", "new")

    now = json.loads(state.read_text(encoding="utf-8"))["done"]
    assert kept.items() < now.items()


@pytest.mark.parametrize("release", ["0.2.0"])
def test_corrections_are_a_truth(release, files, capsys):
    printed(capsys, "truth", "timelines", "-o", "new.csv")

    assert rows(Path("corrected.csv"))
    assert rows(Path("new.csv")) == rows(Path("corrected.csv"))


@pytest.mark.parametrize("release", ["0.2.0"])
def test_executions_are_exported_as_they_were(release, files, capsys):
    printed(capsys, "export", "timelines", "--format", "executions", "-o", "new")

    assert rows(Path("new/executions.csv")) == rows(Path("executions.csv"))


@pytest.mark.parametrize("release", ["0.2.0"])
def test_the_page_of_results_shows_the_same(release, files, capsys):
    """The stored norms of the tasks are in it, and how videos depart from them."""
    printed(capsys, "view", "timelines", "--export", "page", "--no-open")

    for name, old in zip(("data.js", "data/0.js"), answers_of(release)["view"], strict=True):
        text = (files / "page" / name).read_text(encoding="utf-8")
        new = json.loads(text[text.index("{") : text.rindex("}") + 1])
        assert same(old, new), difference(old, new)


def test_answers_are_compared_by_numbers_and_names():
    old = {"told": [{"step": "crack the eggs", "chance": 0.25}], "why": "no 'heat the pan', 5 %"}

    assert same(
        old,
        {
            "answers": [{"keystep": "crack the eggs", "share": 0.25, "more": 1}],
            "reason": "'heat the pan' is missing (5 %)",
        },
    )
    assert not same(old, old | {"told": [{"step": "crack the eggs", "chance": 0.26}]})
    assert not same(old, old | {"told": [{"step": "heat the pan", "chance": 0.25}]})
    assert not same(old, old | {"told": []})
    assert not same(old, old | {"why": "no 'heat the pan', 6 %"})
