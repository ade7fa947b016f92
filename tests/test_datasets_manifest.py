"""A manifest of one's own videos, as JSON lines and as CSV."""

import json

import pytest

from stepgraph.core import Vocabulary
from stepgraph.datasets import open_source
from stepgraph.datasets.own import Own, open_manifest
from stepgraph.errors import DataError
from stepgraph.vocabulary.lists import save_vocabulary

VTT = "WEBVTT\n\n00:00.000 --> 00:04.000\n{}\n"
TRUTH = "video,start,end,keystep\n"


@pytest.fixture
def here(tmp_path):
    """Transcripts, the truth of all videos in one file, and the keysteps."""
    (tmp_path / "said").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "said" / f"{name}.en.vtt").write_text(VTT.format(name))
    (tmp_path / "steps.txt").write_text("# Tea\nboil\npour\n")
    (tmp_path / "all.csv").write_text(TRUTH + "a,0,2,boil\nb,1,6,pour\n")
    return tmp_path


def listing(folder, *rows):
    """A manifest as JSON lines, and the same as CSV."""
    lines = folder / "videos.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = folder / "videos.csv"
    columns = ["id", "media", "transcript", "task", "truth"]
    cells = [",".join(row.get(column, "") for column in columns) for row in rows]
    table.write_text("\n".join([",".join(columns), *cells]))
    return lines, table


def row(name, **fields):
    return {"transcript": f"said/{name}.en.vtt", **fields}


def ids(dataset):
    return [video.id for video in dataset.videos]


def problems(dataset):
    return [(one.kind, one.where.rpartition("/")[2]) for one in dataset.problems.found]


# --- What is read


def test_both_forms_say_the_same(here):
    rows = [
        row("b", id="second", task="Tea"),
        row("a", truth="all.csv"),
        row("b", truth="all.csv"),
    ]

    lines, table = (open_manifest(path, Own()) for path in listing(here, *rows))

    assert lines.videos == table.videos
    assert [(video.id, video.task) for video in lines.videos] == [
        ("second", "Tea"),
        ("a", "Tea"),
        ("b", "Tea"),
    ]
    assert set(lines.truth) == set(table.truth) == {"a", "b"}


def test_an_id_is_the_stem_if_none_is_given(here):
    lines, _ = listing(here, row("a"), row("b", id="x/y"))

    assert ids(open_manifest(lines, Own())) == ["a", "x/y"]


def test_a_media_file_is_opened_with_its_transcript(here, monkeypatch):
    monkeypatch.setattr("stepgraph.ingest.media.media_duration", lambda *_: 9.5)
    (here / "film.mp4").touch()
    lines, _ = listing(here, {"media": "film.mp4", "transcript": "said/a.en.vtt"})

    [video] = open_manifest(lines, Own()).videos

    assert (video.id, video.duration, video.path) == ("film", 9.5, here / "film.mp4")
    assert video.transcript[0].text == "a"


def test_truth_makes_a_video_as_long_as_its_last_keystep(here):
    lines, _ = listing(here, row("a", truth="all.csv"), row("b", truth="all.csv"))

    dataset = open_manifest(lines, Own())

    assert [video.duration for video in dataset.videos] == [4.0, 6.0]
    assert dataset.truth["b"].keysteps.tolist() == [-1, 1, 1, 1, 1, 1]


def test_a_truth_file_of_one_row_need_not_name_the_video(here):
    (here / "a.csv").write_text(TRUTH + ",0,1,boil\nmine,1,2,pour\n")
    lines, _ = listing(here, row("a", id="mine", truth="a.csv"), row("b"))

    assert open_manifest(lines, Own()).truth["mine"].keysteps.tolist() == [0, 1, -1, -1]


def test_a_vocabulary_given_is_used_where_none_lies_beside(here):
    lines, _ = listing(here, row("a", truth="all.csv"), row("b", truth="all.csv"))
    (here / "steps.txt").unlink()
    given = Vocabulary(("stir", "pour", "boil"))

    without, dataset = open_manifest(lines, Own()), open_source(lines, vocabulary=given)

    assert (without.vocabulary, without.truth) == (None, {})
    assert dataset.vocabulary == given
    assert dataset.truth["a"].keysteps.tolist() == [2, 2, -1, -1]


def test_a_saved_vocabulary_beside_is_used(here):
    lines, _ = listing(here, row("a", truth="all.csv"), row("b", truth="all.csv"))
    (here / "steps.txt").unlink()
    save_vocabulary(Vocabulary(("stir", "pour", "boil")), here / "vocabulary.json")
    (here / "truth.csv").write_text(TRUTH + "said/a,0,2,pour\n")

    manifest, folder = open_source(lines), open_source(here)

    assert manifest.truth["a"].keysteps.tolist() == [2, 2, -1, -1]
    assert folder.truth["said/a"].keysteps.tolist() == [1, 1, -1, -1]
    assert ids(folder) == ["said/a", "said/b", "said/c"]


def test_columns_may_be_fewer_and_in_any_order(here):
    path = here / "few.csv"
    path.write_text("Truth, Transcript\nall.csv,said/a.en.vtt\nall.csv,said/b.en.vtt\n")

    assert set(open_source(path).truth) == {"a", "b"}


def test_a_manifest_is_told_by_its_suffix_or_its_prefix(here):
    lines, table = listing(here, row("a"))
    other = lines.rename(here / "list.txt")

    assert ids(open_source(table)) == ["a"]
    assert ids(open_source(f"manifest:{other}")) == ["a"]


def test_line_ends_blank_lines_and_byte_order_marks_do_not_matter(here):
    for path in listing(here, row("a"), row("b")):
        path.write_bytes((path.read_text().replace("\n", "\r\n", 1) + "\n\n").encode("utf-8-sig"))

        assert ids(open_manifest(path, Own())) == ["a", "b"]


def test_null_and_empty_text_are_nothing(here):
    path = here / "videos.jsonl"
    path.write_text(json.dumps(row("a", id=None, media="", task=None, truth=None)))

    [video] = open_manifest(path, Own()).videos

    assert (video.id, video.task) == ("a", None)


# --- Mistakes: strictly by default, the first is an error; else the rest is read


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (row("a"), "duplicate video", "ids must differ, got 'a' again; give one of the two an"),
        ({"id": "x"}, "unreadable row", "must name a media file or a transcript, got none"),
        (row("gone"), "missing file", r"transcript must be a file, got '.*gone\.en\.vtt', which"),
        ({"media": "x.mp4"}, "missing file", r"media must be a file, got '.*x\.mp4', which"),
        (row("b", id="../b"), "bad id", "id of a video must be usable .*, got '../b'"),
        (row("b", id="/b"), "bad id", "id of a video must be usable .*, got '/b'"),
        (row("x" * 5000), "missing file", "transcript must be a file"),
    ],
)
@pytest.mark.parametrize("form", [0, 1], ids=["jsonl", "csv"])
def test_a_bad_row_is_left_out_when_asked(here, form, wrong, kind, message):
    path = listing(here, row("a"), wrong, row("c"))[form]
    line = 2 + form

    dataset = open_manifest(path, Own(strict=False))

    assert problems(dataset)[0][0] == kind
    assert str(dataset.problems.found[0]).startswith(f"{path}:{line}: ")
    assert len(dataset.problems.failed) == 1
    assert ids(dataset) == ["a", "c"]
    with pytest.raises(DataError, match=rf"{path}:{line}: {message}"):
        open_manifest(path, Own())


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("{", "unreadable row", r"must be one JSON object, got an error \(Expect"),
        ("[" * 100_000, "unreadable row", "must be one JSON object, got an error"),
        ("[1]", "unreadable row", r"must be one JSON object, got '\[1\]'"),
        ('{"transcript": 7}', "unreadable row", "transcript must be text, got 7"),
        ('{"transcript": "a\\u0000"}', "missing file", "transcript must be a file"),
        ('{"video": "a.mp4"}', "unknown column", "columns must be among id, .*, got 'video'"),
    ],
    ids=range(6),
)
def test_a_bad_json_line_is_left_out_when_asked(here, line, kind, message):
    path = here / "videos.jsonl"
    path.write_text(json.dumps(row("a")) + "\n" + line + "\n")

    dataset = open_manifest(path, Own(strict=False))

    assert ids(dataset) == ["a"]
    assert problems(dataset)[0] == (kind, "videos.jsonl:2")
    with pytest.raises(DataError, match=rf"videos\.jsonl:2: {message}"):
        open_manifest(path, Own())


def test_an_unknown_column_is_ignored_when_asked(here):
    path = here / "videos.csv"
    path.write_text("transcript,author\nsaid/a.en.vtt,Jo\n")

    dataset = open_manifest(path, Own(strict=False))

    assert (ids(dataset), problems(dataset)) == (["a"], [("unknown column", "videos.csv:1")])
    with pytest.raises(DataError, match=r"videos\.csv:1: columns must be among .*, got 'author'"):
        open_manifest(path, Own())


def test_a_row_with_a_wrong_number_of_columns_is_left_out_when_asked(here):
    path = here / "videos.csv"
    path.write_text("id,transcript\nx\na,said/a.en.vtt\n")

    assert ids(open_manifest(path, Own(strict=False))) == ["a"]
    with pytest.raises(DataError, match=r"videos\.csv:2: must have 2 columns, got 1"):
        open_manifest(path, Own())


def test_a_transcript_that_cannot_be_read_is_refused_with_a_way_on(here):
    (here / "said" / "b.en.vtt").write_bytes(b"caf\xe9")
    lines, _ = listing(here, row("a", truth="all.csv"), row("b", truth="all.csv"))

    dataset = open_manifest(lines, Own(strict=False))

    assert ids(dataset) == list(dataset.truth) == ["a"]
    assert problems(dataset) == [("unreadable video or transcript", "b.en.vtt")]
    with pytest.raises(DataError, match=r"b\.en\.vtt: must be UTF-8 .*; --skip-bad leaves them"):
        open_manifest(lines, Own())


@pytest.mark.parametrize(
    ("truth", "kind", "message"),
    [
        (
            "a,0,1,stir",
            "unknown keystep",
            r"all\.csv:3: keystep must be one of the 2 .*, got 'stir'",
        ),
        ("z,0,1,boil", "unlisted video", r"all\.csv:3: video 'z' must be among the videos"),
        (",0,1,boil", "unlisted video", r"all\.csv:3: a video must be named, since .* 2 videos"),
        ("a,0,1", "wrong column count", r"all\.csv:3: must have 4 columns, got 3"),
        ("a,3,1,boil", "reversed segment", r"all\.csv:3: end must be after start"),
        ("a,nan,1,boil", "impossible time", r"all\.csv:3: a time must be a number of seconds"),
    ],
)
def test_a_bad_line_of_truth_is_left_out_when_asked(here, truth, kind, message):
    (here / "all.csv").write_text(f"{TRUTH}b,0,1,pour\n{truth}\n")
    lines, _ = listing(here, row("a", truth="all.csv"), row("b", truth="all.csv"))

    dataset = open_manifest(lines, Own(strict=False))

    assert problems(dataset) == [(kind, "all.csv:3")]
    assert (ids(dataset), set(dataset.truth)) == (["a", "b"], {"b"})
    with pytest.raises(DataError, match=message):
        open_manifest(lines, Own())


def test_a_missing_truth_file_leaves_a_video_without_truth_when_asked(here):
    lines, _ = listing(here, row("a", truth="gone.csv"), row("b", truth="all.csv"))
    (here / "all.csv").write_text(TRUTH + "b,1,6,pour\n")

    dataset = open_manifest(lines, Own(strict=False))

    assert (ids(dataset), set(dataset.truth)) == (["a", "b"], {"b"})
    assert problems(dataset) == [("missing file", "videos.jsonl:1")]
    with pytest.raises(DataError, match=r"videos\.jsonl:1: truth must be a file, got .*gone\.csv"):
        open_manifest(lines, Own())


# --- Nothing to read


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", "", r"m\.csv:1: a manifest must begin with its columns, .*, got ''"),
        ("m.csv", "video,start,end,keystep\n", r"m\.csv:1: a manifest must begin with its col"),
        ("m.csv", "transcript,transcript\n", r"m\.csv:1: a manifest must .* columns, each once"),
        ("m.csv", "transcript\n", r"m\.csv: must list videos that can be opened, got none$"),
        (
            "m.jsonl",
            "{}",
            r"m\.jsonl: must list videos that .*, got none; .*m\.jsonl:1: must name",
        ),
    ],
)
def test_a_manifest_without_videos_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)

    with pytest.raises(DataError, match=message):
        open_source(tmp_path / name, strict=False)


def test_a_manifest_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"gone\.jsonl: must be a file, got no such file"):
        open_source(f"manifest:{tmp_path}/gone.jsonl")
