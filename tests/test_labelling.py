"""Pseudo-labels on disk: nothing is lost on the way, and a killed run ends like any other."""

import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepgraph.core import BACKGROUND, Labels, Scores, Sentence, Timeline, Video, Vocabulary
from stepgraph.decoders import Argmax, PathSearch, TaskMarkov
from stepgraph.errors import ConfigError, DataError
from stepgraph.labelling.clips import ORIGINS, best_of, label_clips
from stepgraph.labelling.folders import (
    Provenance,
    describe,
    graph_fingerprint,
    label_source,
    open_labels,
    read_labels,
    write_labels,
)
from stepgraph.labelling.statistics import label_statistics
from stepgraph.pipeline import mine, recognize_all
from stepgraph.problems import Problems

FIELDS = (
    *("start", "end", "keystep", "origin", "confidence", "score", "argmax", "argmax_score"),
    *("top_keysteps", "top_scores"),
)


@pytest.fixture
def graph(omelette, encoder):
    return mine(omelette, encoder=encoder)


@pytest.fixture
def labelled(tmp_path, videos, graph, encoder):
    """The omelettes, labelled by path search."""
    return label_source(
        videos, graph, tmp_path / "labels", decoder=PathSearch(0.5), encoder=encoder
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def timeline_of(values, observed, labels, **more):
    vocabulary = Vocabulary(tuple(f"step {k}" for k in range(np.shape(values)[1])))
    scores = Scores("v", np.array(values, np.float32), np.array(observed), vocabulary)
    keysteps = Labels("v", np.array(labels), vocabulary, **more)
    return Timeline(Video("v", float(len(labels))), keysteps, scores)


# --- the clips of one video


def test_a_clip_keeps_both_labels_and_where_they_come_from():
    timeline = timeline_of(
        [[0.9, 0.1, 0.2, 0.3], [0.1, 0.3, 0.2, 0.0], [0, 0, 0, 0]],
        [True, True, False],
        [0, 2, 2],
        anchors=np.array([True, False, False]),
    )

    clips = label_clips(timeline)

    assert clips.keystep.tolist() == [0, 2, 2]
    assert clips.argmax.tolist() == [0, 1, BACKGROUND]
    assert [ORIGINS[code] for code in clips.origin] == ["anchor", "path", "path"]
    np.testing.assert_allclose(clips.score, [0.9, 0.2, math.nan])
    np.testing.assert_allclose(clips.argmax_score, [0.9, 0.3, math.nan])
    assert clips.top_keysteps.tolist() == [[0, 3, 2], [1, 2, 0], [-1, -1, -1]]
    np.testing.assert_allclose(clips.top_scores[1], [0.3, 0.2, 0.1])
    assert np.isnan(clips.confidence).all()


def test_background_has_no_origin_and_no_confidence():
    clips = label_clips(
        timeline_of([[0.2, 0.1]], [True], [BACKGROUND], confidence=np.array([0.0]))
    )

    assert (clips.keystep[0], clips.origin[0], clips.argmax[0]) == (BACKGROUND, -1, 0)
    assert np.isnan(clips.confidence[0])
    assert np.isnan(clips.score[0])


def test_labels_of_a_decoder_without_anchors_are_plain_labels():
    clips = label_clips(timeline_of([[0.2, 0.1]], [True], [0]))

    assert ORIGINS[clips.origin[0]] == "label"


def test_the_last_clip_ends_with_the_video_and_words_stand_where_they_were_said():
    timeline = timeline_of([[0.2, 0.1]] * 3, [True] * 3, [0] * 3)
    said = (Sentence(0.0, 1.0, "first"), Sentence(2.0, 2.4, "last"))
    timeline = replace(timeline, video=Video("v", 2.4, said, Path("v.mp4")))

    clips = label_clips(timeline)

    assert clips.end.tolist() == [1.0, 2.0, 2.4]
    assert clips.words == ("first", None, "last")
    assert clips.path == str(Path("v.mp4").absolute())


def test_the_best_three_are_those_of_a_full_sort():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        # Few different values, so that many score alike.
        values = rng.integers(0, 4, size=(20, 6)).astype(np.float32)
        vocabulary = Vocabulary(tuple("abcdef"))

        keysteps, scores = best_of(Scores("v", values, np.ones(20, bool), vocabulary))

        expected = np.argsort(-values, axis=1, kind="stable")[:, :3]
        np.testing.assert_array_equal(keysteps, expected)
        np.testing.assert_array_equal(scores, np.take_along_axis(values, expected, axis=1))


def test_forbidden_and_missing_keysteps_are_not_among_the_best():
    values = np.array([[0.5, -np.inf]], np.float32)

    keysteps, scores = best_of(Scores("v", values, np.ones(1, bool), Vocabulary(("a", "b"))))

    assert keysteps.tolist() == [[0, -1, -1]]
    assert scores.tolist() == [[0.5, -np.inf, -np.inf]]


# --- on disk


def test_what_is_read_is_what_was_recognised(labelled, videos, graph, encoder):
    read = list(read_labels(labelled.path))

    timelines = recognize_all(videos, graph, decoder=PathSearch(0.5), encoder=encoder)
    expected = [label_clips(timeline) for timeline in timelines]
    assert [one.video for one in read] == [video.id for video in videos]
    for one, other in zip(read, expected, strict=True):
        assert (one.path, one.task, one.words) == (other.path, other.task, other.words)
        for name in FIELDS:
            found, wanted = getattr(one, name), getattr(other, name)
            assert found.dtype == wanted.dtype, name
            np.testing.assert_array_equal(found, wanted, name)


def test_confidence_and_task_are_kept(tmp_path, videos, graph, encoder):
    label_source(videos, graph, tmp_path, decoder=TaskMarkov(), encoder=encoder)

    read = list(read_labels(tmp_path))

    assert {one.task for one in read} == {"Make an omelette"}
    sure = np.concatenate([one.confidence[one.keystep != BACKGROUND] for one in read])
    assert 0 < sure.min() <= sure.max() <= 1


def test_any_program_can_read_the_files(labelled):
    import pyarrow.parquet as parquet

    table = parquet.read_table(labelled.path / "labels-00000.parquet")

    first = table.slice(0, 1).to_pylist()[0]
    assert (first["video"], first["start"], first["end"]) == ("plain", 0.0, 1.0)
    assert (first["keystep"], first["name"], first["origin"]) == (0, "crack the eggs", "anchor")
    assert first["words"] == "crack the eggs into a bowl"
    metadata = json.loads(table.schema.metadata[b"stepgraph-labels"])
    assert metadata["decoder"] == {"name": "path-search", "threshold": 0.5}
    assert metadata["keysteps"][4] == "fold the omelette"
    assert (metadata["version"], metadata["failed"]) == (1, [])


def test_manifest_says_which_videos_are_in_which_part(tmp_path, videos, graph, encoder):
    labels = parts_of(tmp_path, videos, graph, encoder)

    assert [part.videos for part in open_labels(tmp_path).parts] == [
        ("plain", "chatty"),
        ("hurried",),
    ]
    assert (labels.rows, labels.videos, labels.failed) == (20 + 26 + 13, 3, ())
    assert open_labels(tmp_path) == labels
    assert [one.video for one in read_labels(labels)] == ["plain", "chatty", "hurried"]


def parts_of(folder, videos, graph, encoder, *, size=30, problems=None, decoder=None):
    """Small parts, so that three videos make two."""
    decoder = decoder or PathSearch(0.5)
    provenance = Provenance(
        graph.vocabulary, graph_fingerprint(graph), describe(decoder), {"name": "words"}
    )
    how = {"decoder": decoder, "encoder": encoder, "problems": problems}

    def label(group):
        return map(label_clips, recognize_all(group, graph, **how))

    return write_labels(videos, label, folder, provenance, part_size=size, problems=problems)


class Interrupted:
    """An encoder that is stopped when it comes to a video."""

    def __init__(self, encoder, video, error=KeyboardInterrupt):
        self.encoder, self.video, self.error = encoder, video, error
        self.options, self.seen = encoder.options, []

    def encode_keysteps(self, vocabulary):
        return self.encoder.encode_keysteps(vocabulary)

    def encode_videos(self, videos):
        for video in videos:
            if video.id == self.video:
                raise self.error
            self.seen.append(video.id)
            yield from self.encoder.encode_videos([video])


def test_an_interrupted_run_goes_on_and_ends_with_the_same_files(tmp_path, videos, graph, encoder):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    parts_of(whole, videos, graph, encoder)
    with pytest.raises(KeyboardInterrupt):
        parts_of(broken, videos, graph, Interrupted(encoder, "hurried"))
    assert list(contents(broken)) == ["labels-00000.parquet"]
    with pytest.raises(DataError, match=r"got 1 finished files without it; run the same command"):
        open_labels(broken)
    last = Interrupted(encoder, "nobody")

    parts_of(broken, videos, graph, last)

    assert last.seen == ["hurried"]
    assert contents(broken) == contents(whole)


def test_a_killed_run_leaves_no_half_file_and_goes_on(tmp_path, omelette_folder):
    code = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        import pyarrow.parquet as parquet
        from conftest import WordEncoder
        from test_labelling import parts_of
        from stepgraph.datasets import open_source
        from stepgraph.pipeline import mine

        write = parquet.write_table
        def killed(table, path, **options):
            write(table, path, **options)
            if table["video"][0].as_py() == sys.argv[4]:
                os._exit(9)
        parquet.write_table = killed
        dataset, encoder = open_source(sys.argv[2]), WordEncoder()
        parts_of(Path(sys.argv[3]), dataset.videos, mine(dataset, encoder=encoder), encoder)
        """
    )
    tests = str(Path(__file__).parent)

    def run(folder, victim):
        command = [sys.executable, "-c", code, tests, omelette_folder, folder, victim]
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": "src"}).returncode

    assert run(tmp_path / "whole", "nobody") == 0
    assert run(tmp_path / "killed", "plain") == 9
    assert [name for name in contents(tmp_path / "killed") if not name.startswith(".")] == [
        "labels-00000.parquet"
    ]
    assert run(tmp_path / "killed", "nobody") == 0

    finished = contents(tmp_path / "killed")
    assert {name: finished[name] for name in finished if not name.startswith(".")} == contents(
        tmp_path / "whole"
    )


def test_a_finished_folder_is_not_labelled_again(tmp_path, videos, graph, encoder):
    parts_of(tmp_path, videos, graph, encoder)
    before = contents(tmp_path)

    parts_of(tmp_path, videos, graph, Interrupted(encoder, "plain"))

    assert contents(tmp_path) == before


def test_only_what_is_new_or_changed_is_labelled_again(tmp_path, videos, graph, encoder):
    grown = (*videos, replace(videos[0], id="new"))
    parts_of(tmp_path / "new", grown, graph, encoder)
    parts_of(tmp_path / "old", videos, graph, encoder)

    parts_of(tmp_path / "old", grown, graph, Interrupted(encoder, "plain"))

    assert contents(tmp_path / "old") == contents(tmp_path / "new")
    longer = (replace(videos[0], duration=21.0), *videos[1:])
    parts_of(tmp_path / "old", longer, graph, encoder)
    assert [len(one) for one in read_labels(tmp_path / "old")] == [21, 26, 13]
    parts_of(tmp_path / "old", videos[:1], graph, encoder)
    assert list(contents(tmp_path / "old")) == ["labels-00000.parquet", "labels.json"]


def test_labels_of_another_run_are_not_overwritten(tmp_path, videos, graph, encoder, omelette):
    parts_of(tmp_path, videos, graph, encoder)

    with pytest.raises(
        DataError,
        match=r"00000.parquet: must hold labels made with decoder .*argmax.*got.*path-search.*;",
    ):
        parts_of(tmp_path, videos, graph, encoder, decoder=Argmax())
    other = mine(omelette, ["boil", "pour"], encoder=encoder)
    with pytest.raises(DataError, match=r"must hold labels made with fingerprint"):
        parts_of(tmp_path, videos, other, encoder)


def test_a_video_that_fails_is_noted_and_the_others_are_labelled(tmp_path, videos, graph, encoder):
    failing = Interrupted(encoder, "chatty", DataError("chatty.mp4: must be readable, got noise"))
    problems = Problems()

    labels = parts_of(tmp_path, (*videos, videos[0]), graph, failing, problems=problems)

    assert labels.failed == ("chatty",)
    assert labels.videos == 2
    assert [one.video for one in read_labels(tmp_path)] == ["plain", "hurried"]
    assert dict(problems.counts) == {"video that cannot be encoded": 1, "video listed twice": 1}
    assert "chatty.mp4: must be readable, got noise" in problems.summary()


def test_a_mistake_of_the_user_stops_the_run(tmp_path, videos, graph, encoder):
    failing = Interrupted(encoder, "chatty", ConfigError("encoder must be another"))

    with pytest.raises(ConfigError, match="encoder must be another"):
        parts_of(tmp_path, videos, graph, failing)


def test_videos_without_a_clip_are_no_labels(tmp_path, graph, encoder):
    with pytest.raises(DataError, match=r"labels must be of at least one clip, got none$"):
        label_source([], graph, tmp_path, encoder=encoder)
    failing = Interrupted(encoder, "v", DataError("v.mp4: must be readable"))
    with pytest.raises(DataError, match=r"got none: 1 video that cannot.*v.mp4: must be readable"):
        label_source([Video("v", 3.0)], graph, tmp_path, encoder=failing)


def test_an_empty_video_and_one_row_are_labelled(tmp_path, graph, encoder):
    one = Video("one", 0.5, (Sentence(0.0, 0.5, "whisk them"),))

    label_source([Video("none", 0.0), one], graph, tmp_path, encoder=encoder)

    assert open_labels(tmp_path).parts[0].videos == ("none", "one")
    [clips] = read_labels(tmp_path)
    assert (clips.video, len(clips), clips.argmax.tolist()) == ("one", 1, [1])


def test_a_name_that_is_no_text_is_noted(tmp_path, videos, graph, encoder):
    problems = Problems()

    label_source(
        [Video("bad\udcff", 2.0), *videos], graph, tmp_path, encoder=encoder, problems=problems
    )

    assert dict(problems.counts) == {"video that cannot be labelled": 1}
    assert len(list(read_labels(tmp_path))) == 3


# --- damaged and foreign files


def test_a_folder_without_labels_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must be labels with a labels.json, got none; make it"):
        open_labels(tmp_path / "nowhere")


def test_a_truncated_file_is_refused_in_one_line(labelled):
    path = labelled.path / "labels-00000.parquet"
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(DataError, match=r"00000.parquet: must be a whole file of labels, got .*"):
        list(read_labels(labelled.path))


def test_foreign_files_are_refused(labelled):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = labelled.path / "labels-00000.parquet"
    parquet.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DataError, match=r"must be a file of labels .*got 'NoneType'; make it"):
        list(read_labels(labelled.path))
    path.unlink()
    with pytest.raises(DataError, match=r"00000.parquet: must be a file of labels, got no such"):
        list(read_labels(labelled.path))
    (labelled.path / "labels.json").write_text('{"format": "stepgraph-graph"}')
    with pytest.raises(
        DataError, match=r"labels.json: must be a manifest of labels .*got 'stepgraph-graph'"
    ):
        open_labels(labelled.path)


@pytest.mark.parametrize(
    ("name", "value"), [("shards", 3), ("keysteps", ["a", "b"]), ("hop", "x"), ("tasks", [1])]
)
def test_an_edited_manifest_is_refused(labelled, name, value):
    path = labelled.path / "labels.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))

    with pytest.raises(DataError, match=r"labels.json: must "):
        open_labels(labelled.path)


def test_a_part_may_not_lie_elsewhere(labelled):
    path = labelled.path / "labels.json"
    path.write_text(path.read_text().replace("labels-00000", "../labels-00000"))

    with pytest.raises(DataError, match=r"files of labels must be beside the manifest"):
        open_labels(labelled.path)


# --- statistics


def test_statistics_count_what_the_graph_changed(labelled):
    statistics = label_statistics(labelled)

    counted = list(read_labels(labelled))
    graph = np.concatenate([one.keystep for one in counted])
    argmax = np.concatenate([one.argmax for one in counted])
    both = (graph >= 0) & (argmax >= 0)
    assert statistics.rows == len(graph) == 59
    assert statistics.labelled == (graph >= 0).sum()
    assert statistics.changed == (graph != argmax)[both].sum()
    assert statistics.added == ((graph >= 0) & (argmax < 0)).sum() > 0
    assert statistics.covered == len(set(graph[graph >= 0].tolist()))
    assert sum(statistics.origins.values()) == statistics.labelled
    assert statistics.most[0][1] == np.bincount(graph[graph >= 0]).max()


def test_statistics_are_text_that_a_person_can_judge(tmp_path):
    vocabulary = Vocabulary(("boil", "pour", "stir"))
    video = Video("tea", 3.0, (Sentence(0.0, 3.0, "now we stir"),))

    def label(videos):
        scores = Scores("tea", np.eye(3, dtype=np.float32), np.ones(3, bool), vocabulary)
        confidence = np.array([0.5, 0.25, 0.75])
        labels = Labels("tea", np.array([0, 1, 1]), vocabulary, confidence=confidence)
        yield label_clips(Timeline(video, labels, scores))

    write_labels([video], label, tmp_path, Provenance(vocabulary, "g", {}, {}))

    statistics = label_statistics(tmp_path)

    assert statistics.confidence == pytest.approx(0.5)
    assert str(statistics).splitlines() == [
        "3 clips of 1 videos",
        "labelled          3 (100.0 %); by argmax 3 (100.0 %)",
        "against argmax    1 changed (33.3 %), 0 added, 0 removed",
        "origin            100.0 % label",
        "mean confidence   0.500",
        "vocabulary        2 of 3 keysteps occur (66.7 %); by argmax 3",
        "most frequent     pour (2), boil (1)",
        "least frequent    boil (1), pour (2)",
        "changed, for example:",
        "  tea at 2 s “now we stir”: stir → pour",
    ]


def test_a_graph_has_one_fingerprint(graph, omelette, encoder):
    again = mine(omelette, encoder=encoder)

    assert graph_fingerprint(graph) == graph_fingerprint(again)
    assert graph_fingerprint(graph) != graph_fingerprint(replace(again, timing=None))
    assert graph_fingerprint(graph) != graph_fingerprint(again.restrict([0, 1]))


def test_a_decoder_of_the_users_is_described():
    class Mine:
        def decode(self, scores, graph): ...

        def __repr__(self):
            return "Mine(3)"

    assert describe(Mine())["options"] == "Mine(3)"
