"""The generated corpus: scripts, pictures, files, and the folder that keeps them."""

import os
import time
from itertools import pairwise

import numpy as np
import pytest

from stepgraph.core import Sentence
from stepgraph.datasets import generated
from stepgraph.datasets.generated import generated_folder, is_whole, open_generated, write_scripts
from stepgraph.datasets.generated.drawing import MOTIONS, SHAPES, ObjectPlace, color_of, draw
from stepgraph.datasets.generated.render import HEIGHT, RATE, WIDTH, film, make_scene, render
from stepgraph.datasets.generated.scripts import CHAT, HUES, KEYSTEPS, TASKS, Script, Shot
from stepgraph.datasets.own import Own, open_folder
from stepgraph.decoders import Argmax, PathSearch
from stepgraph.encoders import load_encoder
from stepgraph.errors import ConfigError, DataError, MissingExtraError
from stepgraph.evaluation.report import evaluate
from stepgraph.graph import mine_graph
from stepgraph.ingest import open_video
from stepgraph.ingest.frames import ClipOptions, read_clips
from stepgraph.ingest.media import media_duration
from stepgraph.scoring import score
from stepgraph.scoring.fusion import Fusion

RED = "slide the red block in from the left"
BLUE = "flash the blue lamp"
TWO = ("Wire a signal lamp", "Fix a wobbly stool")
SMALL = Script(
    "small",
    "Build a toy cart",
    (Shot(0.0, 2.0, "talk"), Shot(2.0, 5.0, "step", RED, seed=3), Shot(5.0, 7.0, "clutter")),
    (Sentence(0.5, 1.5, "good morning"), Sentence(2.1, 4.0, "push that red block across")),
    seed=5,
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    pytest.importorskip("av")
    path = tmp_path_factory.mktemp("rendered") / "small.mp4"
    render(SMALL, path)
    return path


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder with one clip of each of two tasks."""
    pytest.importorskip("av")
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEPGRAPH_CACHE", str(folder))
        generated_folder(per_task=1, tasks=TWO)
    return folder


@pytest.fixture
def corpus(cache, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(cache))
    return open_generated(0, 1, tasks=TWO)


@pytest.fixture
def rendered(monkeypatch):
    """Write the names of clips instead of clips, and remember which."""
    names = []

    def note(script, path):
        names.append(script.video)
        path.write_text(script.video)

    monkeypatch.setattr(generated, "render", note)
    return names


def redness(picture):
    """Share of pixels that are clearly red."""
    red, green, blue = (picture[..., channel].astype(int) for channel in range(3))
    return ((red > 120) & (red > 2 * green) & (red > 2 * blue)).mean()


# --- Scripts


def test_every_keystep_can_be_drawn_and_spoken_of():
    assert {step.keystep for steps in TASKS.values() for step in steps} == set(KEYSTEPS)
    for keystep in KEYSTEPS.values():
        assert keystep.motion in MOTIONS
        assert keystep.color in HUES
        assert keystep.shape in SHAPES
        assert len(keystep.plain) >= 4
        assert len(keystep.vague) >= 3


def test_tasks_share_keysteps_and_some_keysteps_look_alike():
    uses = [step.keystep for steps in TASKS.values() for step in steps]
    uses_vision = [keystep[:3] for keystep in KEYSTEPS.values()]

    assert len(uses) - len(set(uses)) >= 6
    assert len(set(uses_vision)) < len(uses_vision)


def test_scripts_are_the_same_every_time_and_differ_by_seed():
    first, again, other = write_scripts(0, 2), write_scripts(0, 2), write_scripts(1, 2)

    assert first == again
    assert not {script.video for script in first} & {script.video for script in other}
    assert [script.truth for script in first] != [script.truth for script in other]


def test_more_clips_begin_with_the_same_ones():
    assert set(write_scripts(0, 1)) <= set(write_scripts(0, 3))


def test_the_default_corpus_has_seventy_two_clips_of_six_tasks():
    scripts = write_scripts()

    assert len(scripts) == 72
    assert {script.task for script in scripts} == set(TASKS)
    assert all(30 <= script.shots[-1].end <= 90 for script in scripts)
    assert {keystep for script in scripts for *_, keystep in script.truth} == set(KEYSTEPS)


def test_shots_follow_one_another_in_whole_frames():
    for script in write_scripts():
        assert script.shots[0].start == 0
        assert all(one.end == two.start < two.end for one, two in pairwise(script.shots))
        frames = [shot.end * RATE for shot in script.shots]
        np.testing.assert_allclose(frames, np.round(frames), atol=1e-6)


def test_only_keysteps_of_the_task_are_done():
    for script in write_scripts():
        own = {step.keystep for step in TASKS[script.task]}
        assert {keystep for *_, keystep in script.truth} <= own


def test_procedures_vary_as_their_tasks_allow():
    done = [
        tuple(keystep for *_, keystep in script.truth)
        for script in write_scripts(0, 40, ["Set up a marble run"])
    ]

    assert len(set(done)) > 10
    assert any("bounce the pink ball" not in order for order in done)
    assert any(order.count("drop the blue ball") == 2 for order in done)
    assert any(
        order.index("tap the purple wedge")
        < order.index("slide the orange plate in from the left")
        for order in done
        if "tap the purple wedge" in order
    )


def test_sentences_come_one_at_a_time_within_the_clip():
    for script in write_scripts():
        assert script.narration
        assert script.narration[0].start >= 0
        assert script.narration[-1].end <= script.shots[-1].end
        assert all(one.end <= two.start for one, two in pairwise(script.narration))
        assert all(sentence.end > sentence.start for sentence in script.narration)


def test_nobody_reads_out_the_name_of_a_keystep():
    said = " / ".join(text for keystep in KEYSTEPS.values() for text in keystep.plain)

    assert not [name for name in KEYSTEPS if name in said]


def test_much_of_what_is_said_is_small_talk():
    said = [sentence.text for script in write_scripts() for sentence in script.narration]

    assert 0.2 < np.mean([text in CHAT for text in said]) < 0.6


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"seed": -1}, r"seed must be a whole number from 0 on, got -1"),
        ({"per_task": 0}, r"per_task must be between 1 and 10,000 clips, got 0"),
        ({"tasks": ["Bake"]}, r"task must be one of 'Build a toy cart', .*, got 'Bake'"),
    ],
)
def test_a_corpus_that_cannot_be_is_refused(chosen, message):
    with pytest.raises(ConfigError, match=message):
        write_scripts(**chosen)


# --- Pictures


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_drawn_where_it_is_placed(shape):
    picture = np.zeros((60, 80, 3), np.float32)

    draw(picture, shape, ObjectPlace(0.2, -0.1, 0.2), color_of(0))

    rows, columns = np.nonzero(picture[..., 0] > 100)
    # A hoop has a gap and a star five points: not all have their weight in their middle.
    assert rows.mean() == pytest.approx(30 - 6, abs=3)
    assert columns.mean() == pytest.approx(40 + 12, abs=3)


def test_what_is_out_of_the_picture_is_not_drawn():
    picture = np.zeros((60, 80, 3), np.float32)

    draw(picture, "ball", ObjectPlace(3.0, 0.0, 0.2), color_of(0))

    assert not picture.any()


def test_a_lamp_blinks():
    frames = np.stack(list(film(make_scene(5), Shot(0.0, 6.0, "step", BLUE, seed=1))))
    blue = (frames[..., 2].astype(int) - frames[..., 0] > 80).mean(axis=(1, 2))

    assert blue.max() > 0.04
    assert (blue < blue.max() / 4).any()


def test_a_keystep_that_is_hidden_is_hardly_seen():
    scene = make_scene(5)

    def seen(view):
        shots = [Shot(0.0, 4.0, "step", RED, view, seed=seed) for seed in range(4)]
        return np.mean([redness(frame) for shot in shots for frame in film(scene, shot)])

    assert seen("hidden") < seen("clear") / 2


# --- Files


def test_a_clip_is_a_video_file_with_its_narration_inside(small_file):
    video = open_video(small_file)

    assert video.transcript == SMALL.narration
    assert video.duration == media_duration(small_file) == pytest.approx(7.0)


def test_what_is_seen_is_when_the_truth_says(small_file):
    options = ClipOptions(frames=5, height=HEIGHT, width=WIDTH)

    red = [redness(clip.frames) for clip in read_clips(small_file, options)]

    assert SMALL.truth == [(2.0, 5.0, RED)]
    assert len(red) == 7
    assert min(red[3:5]) > 0.04
    assert max(red[:2] + red[5:]) < 0.02


def test_the_same_script_gives_the_same_file(small_file, tmp_path):
    render(SMALL, tmp_path / "again.mp4")

    assert (tmp_path / "again.mp4").read_bytes() == small_file.read_bytes()


def test_another_codec_serves_where_x264_is_missing(tmp_path, monkeypatch):
    av = pytest.importorskip("av")
    monkeypatch.setattr(av, "codecs_available", {"mpeg4", "mov_text"})

    render(SMALL, tmp_path / "small.mp4")

    with av.open(str(tmp_path / "small.mp4")) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
    assert open_video(tmp_path / "small.mp4").transcript == SMALL.narration


# --- The corpus


def test_the_corpus_is_a_data_set_of_video_files(corpus):
    first, second = corpus.videos

    assert corpus.name == "generated"
    assert (first.task, second.task) == TWO
    assert first.path.is_file()
    assert first.transcript
    assert first.duration == pytest.approx(write_scripts(0, 1, TWO)[0].shots[-1].end, abs=0.05)
    assert set(corpus.vocabulary.tasks) == set(TWO)
    assert set(corpus.truth) == {first.id, second.id}


def test_the_corpus_is_a_plain_folder(corpus):
    plain = open_folder(generated_folder(per_task=1, tasks=TWO), Own())

    assert [video.transcript for video in plain.videos] == [v.transcript for v in corpus.videos]
    assert not len(plain.problems)
    for video, labels in corpus.truth.items():
        assert plain.truth[video].keysteps.tolist() == labels.keysteps.tolist()


def test_the_truth_is_that_of_the_scripts(corpus):
    for script in write_scripts(0, 1, TWO):
        labels = corpus.truth[script.video].keysteps
        for start, end, keystep in script.truth:
            middle = int((start + end) / 2)
            assert labels[middle] == corpus.vocabulary.index(keystep)


def test_colour_and_motion_recognise_keysteps_from_the_files(corpus):
    found = score(corpus.videos, corpus.vocabulary, load_encoder("colour:motion"))

    right = np.concatenate(
        [
            (one.values.argmax(axis=1) == corpus.truth[one.video].keysteps)[
                corpus.truth[one.video].keysteps >= 0
            ]
            for one in found
        ]
    )
    assert right.mean() > 0.3


# --- The folder that keeps it


def test_a_corpus_is_rendered_once(tmp_path, rendered):
    one = generated_folder(2, per_task=2, tasks=TWO)
    two = generated_folder(2, per_task=2, tasks=TWO)

    assert one == two
    assert len(rendered) == 4


def test_corpora_of_different_choices_lie_apart(tmp_path, rendered):
    choices = [{"seed": 1}, {"seed": 2}, {"seed": 1, "per_task": 2}, {"seed": 1, "tasks": TWO}]

    folders = {generated_folder(**{"per_task": 1, **choice}) for choice in choices}

    assert len(folders) == 4


def damage(folder, how):
    first = min(folder.glob("*.mp4"))
    if how == "cut off":
        first.write_bytes(first.read_bytes()[:3])
    elif how == "missing":
        first.unlink()
    elif how == "another list":
        (folder / "generated.json").write_text('{"format": "stepgraph-generated", "files": 3}')
    else:
        (folder / "generated.json").unlink()


@pytest.mark.parametrize("how", ["cut off", "missing", "another list", "no list"])
def test_a_damaged_corpus_is_rendered_again(tmp_path, rendered, how):
    folder = generated_folder(per_task=1, tasks=TWO)
    damage(folder, how)
    assert not is_whole(folder)

    again = generated_folder(per_task=1, tasks=TWO)

    assert again == folder
    assert is_whole(folder)
    assert len(rendered) == 4
    assert os.listdir(folder.parent) == [folder.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_rendering_leaves_nothing(tmp_path, monkeypatch, error):
    def stop(script, path):
        path.write_text("half")
        raise error

    monkeypatch.setattr(generated, "render", stop)

    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else DataError
    with pytest.raises(expected, match=r"^$|cannot be written: No space left on device; set STEP"):
        generated_folder(per_task=1, tasks=TWO)

    assert os.listdir(tmp_path / "generated") == []


def test_what_a_killed_rendering_left_is_swept_away(tmp_path, rendered):
    left = tmp_path / "generated" / ".v1-x.abc.partial"
    left.mkdir(parents=True)
    (left / "clip.mp4").write_text("half")
    os.utime(left, (time.time() - 7200,) * 2)

    generated_folder(per_task=1, tasks=TWO)

    assert not left.exists()


def test_another_process_may_be_faster(tmp_path, rendered, monkeypatch):
    def render_and_be_late(script, path):
        path.write_text(script.video)
        monkeypatch.setattr(generated, "render", lambda one, p: p.write_text(one.video))
        generated_folder(per_task=1, tasks=TWO[:1])

    monkeypatch.setattr(generated, "render", render_and_be_late)

    folder = generated_folder(per_task=1, tasks=TWO[:1])

    assert is_whole(folder)
    assert os.listdir(folder.parent) == [folder.name]


# --- What it is for


@pytest.mark.slow
def test_both_modalities_are_better_than_either_and_paths_better_than_argmax(
    monkeypatch, tmp_path
):
    pytest.importorskip("av")
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path))
    dataset = open_generated(0, 2, tasks=list(TASKS)[2:4])
    encoders = {"text": load_encoder(), "video": load_encoder("colour:motion")}
    scores = {
        name: list(score(dataset.videos, dataset.vocabulary, encoder))
        for name, encoder in encoders.items()
    }
    scores["both"] = [
        Fusion().join(seen, heard)
        for seen, heard in zip(scores["video"], scores["text"], strict=True)
    ]

    def accuracy(name, decoder):
        graph = mine_graph(scores[name], dataset.vocabulary)
        labels = [decoder.decode(one, graph) for one in scores[name]]
        return evaluate(labels, dataset.truth, decoder=name).accuracy

    found = {name: accuracy(name, PathSearch(0.4)) for name in scores}
    assert found["both"] > max(found["text"], found["video"])
    for name, value in found.items():
        assert value > accuracy(name, Argmax()) + 0.03


def test_without_the_video_extra_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "find_spec", lambda _: None)

    with pytest.raises(MissingExtraError, match=r"^the generated corpus must be rendered, .* av$"):
        generated.generated_folder()

    assert not list(tmp_path.rglob("*.partial"))
