"""Sources of videos: folders of one's own, single files, the demo; and what they share."""

import math
import os
import sys

import pytest

from stepgraph.core import Segment, Sentence, Vocabulary
from stepgraph.datasets import open_source
from stepgraph.datasets.reading import Narration, read_truth
from stepgraph.errors import ConfigError, DataError
from stepgraph.files.ids import check_id
from stepgraph.problems import Problems

VTT = "WEBVTT\n\n00:00.000 --> 00:04.000\n{}\n"
TEA = Vocabulary(("boil", "pour"))
A = {"a": math.inf}


def strictly(path, vocabulary=TEA, lengths=A):
    return read_truth(path, vocabulary, lengths, Problems(strict=True))


@pytest.fixture
def without_av(monkeypatch):
    """Video files are then as long as their transcripts."""
    monkeypatch.setitem(sys.modules, "av", None)


def fill(folder, **files):
    """Write transcripts; in names, two underscores stand for a dot."""
    for name, said in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(VTT.format(said), "utf-8")


def ids(folder, **options):
    return [video.id for video in open_source(folder, **options).videos]


# --- Folders


def test_a_folder_is_a_data_set(omelette_folder, omelette):
    dataset = open_source(omelette_folder)

    assert dataset.name == str(omelette_folder)
    assert dataset.vocabulary == omelette.vocabulary
    assert [video.id for video in dataset.videos] == ["chatty", "hurried", "plain"]


def test_a_folder_gives_what_was_said(omelette_folder, videos):
    by_id = {video.id: video for video in open_source(str(omelette_folder)).videos}

    assert by_id["chatty"].transcript == videos[1].transcript
    assert by_id["hurried"].duration == 12.5


def test_a_folder_gives_the_truth_apart(omelette_folder, truth):
    dataset = open_source(omelette_folder)

    assert set(dataset.truth) == set(truth)
    assert all(
        dataset.truth[name].keysteps.tolist() == truth[name].keysteps.tolist() for name in truth
    )


def test_a_folder_without_steps_has_neither_vocabulary_nor_truth(omelette_folder):
    (omelette_folder / "steps.txt").unlink()

    dataset = open_source(omelette_folder)

    assert (dataset.vocabulary, dataset.truth) == (None, {})


def test_the_task_of_a_video_is_the_one_that_fits_its_truth(tmp_path):
    fill(tmp_path, a__vtt="boil", b__vtt="boil")
    (tmp_path / "steps.txt").write_text("# Tea\nboil\npour\n# Soup\nboil\nstir\n")
    (tmp_path / "truth.csv").write_text("video,start,end,keystep\na,0,1,pour\nb,0,1,boil\n")

    tasks = [video.task for video in open_source(tmp_path).videos]

    assert tasks == ["Tea", None]


def test_a_video_lasts_until_its_last_true_keystep(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "steps.txt").write_text("boil\npour\n")
    (tmp_path / "truth.csv").write_text("video,start,end,keystep\na,0,9.5,pour\n")

    dataset = open_source(tmp_path)

    assert dataset.videos[0].duration == 9.5
    assert len(dataset.truth["a"]) == 10


def test_folders_within_are_part_of_the_id(tmp_path):
    fill(tmp_path / "deep" / "er", a__vtt="boil")
    fill(tmp_path, a__vtt="boil")

    assert ids(tmp_path) == ["a", "deep/er/a"]


def test_a_video_and_its_transcript_are_one(tmp_path, without_av):
    fill(tmp_path, a__en__vtt="boil", b__vtt="pour")
    (tmp_path / "a.mp4").touch()

    first, second = open_source(tmp_path).videos

    assert (first.id, first.path) == ("a", tmp_path / "a.mp4")
    assert (second.id, second.path) == ("b", None)


def test_transcripts_of_one_video_in_two_formats_are_one(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\npour\n")

    [video] = open_source(tmp_path).videos

    assert video.transcript == (Sentence(0.0, 4.0, "boil"),)


@pytest.mark.parametrize("names", [("a.de.vtt", "a.en.vtt"), ("a.en.vtt", "a.fr.vtt")])
def test_of_several_languages_english_is_taken(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text(VTT.format(name))

    [video] = open_source(tmp_path).videos

    assert (video.id, video.transcript[0].text) == ("a", "a.en.vtt")


def test_a_transcript_without_a_language_is_taken_before_english(tmp_path):
    fill(tmp_path, a__en__vtt="with", a__vtt="without")

    [video] = open_source(tmp_path).videos

    assert video.transcript[0].text == "without"


def test_two_videos_whose_names_end_like_languages_are_two(tmp_path, without_av):
    for name in ("knot.up.mp4", "knot.in.mp4"):
        (tmp_path / name).touch()
        fill(tmp_path, **{name.replace(".mp4", "__vtt"): name})

    assert len(ids(tmp_path)) == 2


def test_files_of_our_own_and_hidden_ones_are_no_transcripts(tmp_path):
    fill(tmp_path, a__vtt="boil", a__chapters__vtt="x", __hidden__vtt="x")
    fill(tmp_path / ".cache", b__vtt="x")
    (tmp_path / "graph.json").write_text('{"format": "stepgraph-graph",\n"version": 1}')
    (tmp_path / "other.json").write_text('{\n "format": "stepgraph-timeline"}')
    for name in ("a.steps.json", "a.info.json", "a.steps.csv", "a.chapters.txt", "notes.txt"):
        (tmp_path / name).write_text("{}")

    assert ids(tmp_path) == ["a"]


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"must contain videos .* or transcripts \(\.vtt, .*got none"
    ):
        open_source(tmp_path)


def test_a_bad_transcript_is_refused_with_a_way_on(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "b.srt").write_bytes(b"\xff\x00")

    with pytest.raises(DataError, match=r"b\.srt.*; --skip-bad leaves them out$"):
        open_source(tmp_path)


def test_several_bad_transcripts_are_counted(tmp_path):
    fill(tmp_path, a__vtt="boil")
    for name in ("b.json", "c.json"):
        (tmp_path / name).write_text("{")
    (tmp_path / "d.srt").write_text("")

    named = r"\(1\) .*b\.json, .*c\.json: must .*, \(2\) .*d\.srt: must .*; --skip-bad leaves"
    with pytest.raises(DataError, match=rf"^3 of 4 videos cannot be read: {named} them out$"):
        open_source(tmp_path)


def test_of_many_bad_transcripts_twenty_are_named(tmp_path):
    fill(tmp_path, a__vtt="boil")
    for number in range(30):
        (tmp_path / f"b{number:02}.json").write_text("{")

    with pytest.raises(DataError, match=r"^30 of 31 .*b18\.json, .*b19\.json: .*; 10 more; "):
        open_source(tmp_path)


def test_pasted_transcripts_are_found_and_other_texts_are_not(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "b.txt").write_text("0:01\nboil the water\n0:04\npour it\n")
    (tmp_path / "c.sbv").write_text("0:00:01.000,0:00:02.500\nboil\n")
    for name in ("README.txt", "steps.txt"):
        (tmp_path / name).write_text("boil the water\nadd the tea leaves\n")
    (tmp_path / "a.chapters.txt").write_text("0:00 boil\n0:10 pour\n0:20 drink\n")

    videos = {video.id: video for video in open_source(tmp_path).videos}

    assert list(videos) == ["a", "b", "c"]
    assert videos["b"].duration == 9.0


def test_a_bad_cue_is_noted_and_the_rest_is_read(tmp_path):
    fill(tmp_path, a__vtt="boil")
    with (tmp_path / "a.vtt").open("a") as file:
        file.write("\n00:09.000 --> 00:08.000\npour\n")

    for dataset in (open_source(tmp_path), open_source(tmp_path / "a.vtt")):
        [problem] = dataset.problems.found
        assert (problem.kind, problem.fatal) == ("unreadable cue", False)
        assert [len(video.transcript) for video in dataset.videos] == [1]
        with pytest.raises(DataError, match=r"a\.vtt:\d+: end must not be before start"):
            open_source(dataset.name, strict=True)


def test_bad_transcripts_are_left_out_when_asked(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "b.json").write_text("{")

    dataset = open_source(tmp_path, strict=False)

    assert [video.id for video in dataset.videos] == ["a"]
    [problem] = dataset.problems.found
    assert (problem.kind, problem.fatal) == ("unreadable video or transcript", True)
    assert str(problem).startswith(f"{tmp_path / 'b.json'}: must be complete JSON")


def test_nothing_but_bad_transcripts_is_refused_even_then(tmp_path):
    (tmp_path / "b.json").write_text("{")

    with pytest.raises(DataError, match=r"b\.json: must be"):
        open_source(tmp_path, strict=False)


def test_the_truth_of_a_video_left_out_is_left_out_too(omelette_folder):
    (omelette_folder / "plain.vtt").write_bytes(b"\xff\x00")

    dataset = open_source(omelette_folder, strict=False)

    assert set(dataset.truth) == {"chatty", "hurried"}


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_a_file_name_in_another_encoding_is_read_or_refused_in_words(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.vtt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(VTT.format("boil"))

    try:
        [name] = ids(tmp_path)
    except DataError:
        return
    assert name.encode("utf-8")


# --- truth.csv


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,0,1", "must have 4 columns, got 3"),
        ("a,0,1,boil,again", "must have 4 columns, got 5"),
        ("b,0,1,boil", "video 'b' must be among the videos, got none of that name"),
        (
            "a,zero,1,boil",
            "a time must be a number of seconds .* at most a week, got 'zero'",
        ),
        ("a,0,nan,boil", "a time must be .*, got nan"),
        ("a,0,inf,boil", "a time must be .*, got inf"),
        ("a,-1,1,boil", "a time must be .*, got -1"),
        ("a,2,2,boil", "end must be after start, got start 2.0 and end 2.0"),
        (",0,1,boil", "a video must be named, since the file is of 1 videos, got none"),
        ("a,0,1,boill", "keystep must be one of the 2 .*, got 'boill'; .*mean 'boil'"),
    ],
)
def test_bad_truth_is_refused_with_its_line(tmp_path, line, message):
    path = tmp_path / "truth.csv"
    path.write_text(f"Video, Start, End, Keystep\na,0,1,boil\n\n{line}\n")

    with pytest.raises(DataError, match=rf"truth\.csv:4: {message}"):
        strictly(path)


@pytest.mark.parametrize("header", ["", "a,0,1,boil", "video,start,end"])
def test_truth_without_its_columns_is_refused(tmp_path, header):
    path = tmp_path / "truth.csv"
    path.write_text(header)

    with pytest.raises(DataError, match=r"truth\.csv:1: columns must be video, start, end, keys"):
        strictly(path)


def test_truth_may_quote_names_with_commas(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text('video,start,end,keystep\n"a, b",0,1.5,"stir, well"\n')

    found = strictly(path, Vocabulary(("boil", "stir, well")), {"a, b": math.inf})

    assert found == {"a, b": [Segment(0.0, 1.5, 1)]}


def test_a_quote_that_is_never_closed_is_refused_in_words(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text('video,start,end,keystep\n"a,0,1,boil\n' + "a,0,1,boil\n" * 20_000)

    with pytest.raises(DataError, match=r"truth\.csv:"):
        strictly(path)


def test_a_time_beyond_any_video_is_refused_with_its_line(tmp_path):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "steps.txt").write_text("boil\npour\n")
    (tmp_path / "truth.csv").write_text("video,start,end,keystep\na,0,1e15,boil\n")

    with pytest.raises(DataError, match=r"truth\.csv:2: "):
        open_source(tmp_path)


def test_mistakes_in_truth_are_counted_when_asked_and_the_rest_is_read(tmp_path):
    fill(tmp_path, a__vtt="boil", b__vtt="pour")
    (tmp_path / "steps.txt").write_text("boil\npour\n")
    lines = ["video,start,end,keystep", "a,0,1", "a,0,1,boil", "c,0,1,boil", "b,3,1,pour"]
    (tmp_path / "truth.csv").write_bytes("\r\n".join(lines).encode("utf-8-sig"))

    dataset = open_source(tmp_path, strict=False)

    assert set(dataset.truth) == {"a"}
    assert [(problem.where, problem.kind) for problem in dataset.problems.found] == [
        (f"{tmp_path / 'truth.csv'}:2", "wrong column count"),
        (f"{tmp_path / 'truth.csv'}:4", "unlisted video"),
        (f"{tmp_path / 'truth.csv'}:5", "reversed segment"),
    ]


@pytest.mark.parametrize("content", [b"caf\xe9", b"clip,from,to\n"])
def test_a_truth_file_that_cannot_be_read_is_left_out_when_asked(tmp_path, content):
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "steps.txt").write_text("boil\npour\n")
    (tmp_path / "truth.csv").write_bytes(content)

    dataset = open_source(tmp_path, strict=False)

    assert (len(dataset.videos), dataset.truth, len(dataset.problems)) == (1, {}, 1)


def test_truth_past_the_end_of_a_video_is_refused_or_cut_there(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("video,start,end,keystep\na,2,9,boil\na,7,8,pour\n")
    problems = Problems()

    found = read_truth(path, TEA, {"a": 5.0}, problems)

    assert found == {"a": [Segment(2.0, 5.0, 0)]}
    assert problems.counts == {"segment past the end": 2}
    with pytest.raises(DataError, match=r"csv:2: end must be within the 5 seconds .*, got 9"):
        strictly(path, TEA, {"a": 5.0})


def test_a_video_file_says_how_long_its_truth_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr("stepgraph.ingest.media.media_duration", lambda path, sound: 5.2)
    fill(tmp_path, a__vtt="boil")
    (tmp_path / "a.mp4").touch()
    (tmp_path / "steps.txt").write_text("boil\npour\n")
    (tmp_path / "truth.csv").write_text("video,start,end,keystep\na,0,5.9,boil\na,1,7,pour\n")

    with pytest.raises(DataError, match=r"truth\.csv:3: end must be within the 6 seconds"):
        open_source(tmp_path)


def test_a_vocabulary_given_is_that_of_truth_without_steps(omelette_folder, omelette):
    (omelette_folder / "steps.txt").unlink()

    dataset = open_source(omelette_folder, vocabulary=omelette.vocabulary)

    assert dataset.vocabulary == omelette.vocabulary
    assert set(dataset.truth) == set(omelette.truth)


def test_the_steps_of_a_folder_come_before_a_vocabulary_given(omelette_folder, omelette):
    assert open_source(omelette_folder, vocabulary=TEA).vocabulary == omelette.vocabulary


# --- What the readers of published data sets share


def test_of_several_transcripts_the_best_of_the_first_folder_is_taken(tmp_path):
    fill(tmp_path / "one", a__en__vtt="", a__vtt="", _a_b__json="", b__info__json="")
    fill(tmp_path / "two", a__vtt="", c__srt="", __hidden__vtt="", note__txt="")

    found = Narration.beside(tmp_path, Problems(), "one", "two", "absent").files

    assert found == {
        "a": tmp_path / "one" / "a.vtt",
        "_a_b": tmp_path / "one" / "_a_b.json",
        "c": tmp_path / "two" / "c.srt",
    }


@pytest.mark.parametrize("name", ["a", "-_x", "deep/er/a", "..a", "grün", "two words"])
def test_plain_names_are_ids(name):
    assert check_id(name) == name


@pytest.mark.parametrize(
    "name", ["", "/a", "../a", "a/../../b", "a\nb", "a\0", "  ", "..\\a", "\ud800", "."]
)
def test_names_that_lead_elsewhere_are_no_ids(name):
    with pytest.raises(DataError, match="id of a video must be usable as a file name"):
        check_id(name)


# --- Other sources


def test_one_transcript_is_a_data_set_of_one_video(omelette_folder, videos):
    dataset = open_source(omelette_folder / "chatty.vtt")

    assert dataset.videos == (videos[1],)
    assert dataset.vocabulary is None


@pytest.mark.parametrize(
    "source", ["nowhere", "coins:/data", "demo2", "no/thing", "", " ", "x" * 5000]
)
def test_unknown_sources_are_answered_with_the_known_ones(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(
        ConfigError, match=rf"'demo', 'gen.*:PATH'.*, got '{source[:200]}'…?, which"
    ):
        open_source(source)


@pytest.mark.parametrize("kind", ["crosstask", "coin", "howto100m", "manifest"])
def test_a_data_set_without_a_path_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match=rf"source '{kind}:' must name a path after the colon"):
        open_source(f"{kind}:")


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("demo", "'all'"),
        ("howto100m:here", "'all'"),
        ("manifest:here", "'all'"),
        ("crosstask:here", "'all', 'train', 'val'"),
        ("coin:here", "'all', 'training', 'testing'"),
    ],
)
def test_an_unknown_split_is_answered_with_the_known_ones(source, known):
    with pytest.raises(ConfigError, match=rf"^split of .* must be one of {known}, got 'test'$"):
        open_source(source, split="test")


def test_a_file_whose_name_begins_with_a_tilde_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, **{"~draft__vtt": "boil"})

    assert ids("~draft.vtt") == ["~draft"]


def test_demo_is_complete():
    dataset = open_source("demo")

    assert dataset.name == "demo"
    assert len(dataset.videos) == len(dataset.truth) == 36
    assert len(dataset.vocabulary) == 49
    assert all(video.task and video.transcript for video in dataset.videos)
