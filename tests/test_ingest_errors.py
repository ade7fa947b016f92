"""What is no transcript is refused in one line that says what to do."""

import json
import zlib

import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.ingest import open_video, read_transcript
from stepgraph.ingest.formats import transcript_from_lists
from stepgraph.problems import Problems

CUE = "1\n00:00:01,000 --> 00:00:02,000\nhello\n\n"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + zlib.compress(b"x" * 100)


def refusal(path):
    """Return the message with which a file, or strictly read a cue of it, is refused."""
    with pytest.raises(DataError) as caught:
        read_transcript(path, problems=Problems(strict=True))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.replace(str(path), path.name)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.srt", b"", "t.srt: must hold a transcript, got an empty file; fetch or write"),
        ("t.srt", b"\xef\xbb\xbf", "t.srt: must hold a transcript, got an empty file"),
        ("t.vtt", b" \n\t\n", "t.vtt: must hold a transcript, got only whitespace"),
        ("t.srt", b"Dear diary,\n", "t.srt: must hold cues with times, got none; give a"),
        ("t.srt", b"Dear diary,\n", "got none; give a transcript in one of"),
        ("t.vtt", b"WEBVTT\n\nNOTE nothing\n", "t.vtt: must hold cues with times, got none"),
        ("t.ass", b"nothing here", "t.ass: must hold cues with times, got none"),
        ("t.tsv", b"start\tend\ttext\n", "t.tsv: must hold cues with times, got none"),
        ("t.srt", PNG, "t.srt: must be UTF-8 text, got a zero byte at position 8; this is a bin"),
        ("t.srt", b"\0\0\0\x20ftypisom", "t.srt: must be UTF-8 text, got a zero byte at positi"),
        ("t.json", b"{}\0", "t.json: must be UTF-8 text, got a zero byte at position 2"),
        (
            "t.srt",
            "caf\xe9 --> au lait".encode("latin-1"),
            "t.srt: must be UTF-8 text, got byte 0xe9 at position 3; convert it, for example: "
            "iconv -f latin1 -t utf-8 t.srt",
        ),
        ("t.srt", b"\xff\xfea\0b", "t.srt: must be whole UTF-16 text, got truncated data at pos"),
        ("t.sub", b"{10}{20}hello\n", "t.sub: must state its frame rate in its first line, like"),
        ("t.ttml", b"<tt", "t.ttml: must be a readable TTML transcript, got an error (unclosed"),
        ("t.tsv", b"1\t2\ta\nx\ty\tb\n3\t4\tc\n", "t.tsv:2: a line must read start, end (millis"),
        ("t.tsv", b"1\t2\ta\nx\ty\tb\n3\t4\tc\n", "between tabs, got other times; correct"),
        ("t.tsv", b"1\t2\ta\n3\t4\n", "t.tsv:2: a line must read start, end (millis"),
        ("t.tsv", b"1\t2\ta\n3\t4\n", "between tabs, got fewer tabs; correct or remove it"),
    ],
)
def test_a_file_that_is_no_transcript_is_refused(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)

    assert message in refusal(path)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            "00:00:05,000 --> 00:00:04,000",
            "end must not be before start, got start 5.0 and end 4.0",
        ),
        ("-00:00:01,000 --> 00:00:04,000", "start must be at least 0, got -1.0"),
        ("nan --> nan", "times must read like 00:01:02,500 --> 00:01:04,000, got 'nan --> nan'"),
        ("00:00:05,000 -> 00:00:06,000", "times must read like"),
        ("00:00:05,000 --> 00:", "times must read like"),
        ("999:00:00,000 --> 999:00:01,000", "start must be at most 604800 seconds (a week)"),
    ],
)
def test_an_impossible_time_is_refused_with_its_line(tmp_path, times, message):
    path = tmp_path / "talk.srt"
    path.write_text(f"{CUE}2\n{times}\nworld\n\n3\n00:00:09,000 --> 00:00:10,000\nbye\n", "utf-8")

    assert f"talk.srt:6: {message}" in refusal(path)
    assert [sentence.text for sentence in lenient(path, 1)] == ["hello", "bye"]


def lenient(path, left_out):
    """Read what can be read of a file in which so many cues cannot."""
    problems = Problems()
    sentences = read_transcript(path, problems=problems)
    assert problems.counts == {"unreadable cue": left_out}
    assert not problems.failed
    return sentences


def written(path, starts):
    """Write cues of a second's length that say when they start."""
    cues = [
        f"0:{at // 60:02}:{at % 60:02},0 --> 0:{at // 60:02}:{at % 60:02},9\n{at}" for at in starts
    ]
    path.write_text("\n\n".join(cues), "utf-8")
    return path


@pytest.mark.parametrize(
    ("starts", "bad", "message"),
    [
        (
            [1, 2, 3, 900, 4, 5, 6],
            900,
            "start must not jump on by more than 1.0 s, got 900.0 before 4.0",
        ),
        (
            [31, 32, 33, 2, 34, 35, 36],
            2,
            "start must not jump back by more than 1.0 s, got 2.0 after",
        ),
        ([900, 1, 2, 3], 900, "start must not jump on by"),
        ([10, 11, 12, 1], 1, "start must not jump back by"),
        ([61, 1], 1, "start must not jump"),
        ([10, 11, 1, 12, 13], 1, "start must not jump back by"),
        ([10, 20, 9, 11, 12], 20, "start must not jump on by"),  # 9 is only a little early
        ([1, 2, 3, 20, 19, 18, 21, 22], 20, "start must not jump on by"),
    ],
)
def test_one_start_out_of_place_costs_no_other_cue(tmp_path, starts, bad, message):
    path = written(tmp_path / "talk.srt", starts)

    texts = [sentence.text for sentence in lenient(path, 1)]

    assert len(texts) == len(starts) - 1
    assert message in refusal(path)
    assert len(starts) == 2 or str(bad) not in texts


def test_two_transcripts_in_one_file_are_refused(tmp_path):
    path = written(tmp_path / "talk.srt", [*range(0, 60, 3), *range(0, 45, 3)])

    for problems in (None, Problems(), Problems(strict=True)):
        with pytest.raises(
            DataError, match=r"talk\.srt:\d+: start must not jump .* two transcripts"
        ):
            read_transcript(path, problems=problems)


def test_from_two_cues_on_a_tenth_out_of_place_are_too_many(tmp_path):
    def jumping(cues, jumps):
        starts = list(range(cues - jumps))
        for jump in range(jumps):
            starts.insert(3 * jump + 2, 900 + jump)
        return written(tmp_path / "talk.srt", starts)

    assert len(lenient(jumping(20, 2), 2)) == 18
    for cues, jumps in ((9, 2), (20, 3)):
        with pytest.raises(DataError, match=f"{jumps} of {cues} cues are out of place, two tr"):
            read_transcript(jumping(cues, jumps), problems=Problems())


def test_two_cues_that_start_together_out_of_place_cost_no_later_one(tmp_path):
    path = written(tmp_path / "talk.srt", [1, 2, 3, 900, 900, 4, 5, 6])

    texts = [sentence.text for sentence in lenient(path, 1)]

    assert texts[:6] == list("123456")


def test_lists_out_of_order_are_told_of_as_well():
    problems = Problems()
    record = {"start": [1, 900, 3, 4], "end": [2, 901, 4, 5], "text": list("abcd")}

    sentences = transcript_from_lists(record, origin="v1", problems=problems)

    assert [sentence.text for sentence in sentences] == list("acd")
    assert "v1: cue 2: start must not jump on by more than 1.0 s" in problems.summary()


def test_the_longest_time_and_the_longest_text_are_read(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text(f"1\n00:00:01,000 --> 168:00:00,000\n{'hello ' * 16_666}bye!", "utf-8")

    [sentence] = read_transcript(path, problems=Problems(strict=True))

    assert (sentence.end, sentence.text[-10:]) == (604_800.0, "hello bye!")


def test_without_a_place_for_problems_a_warning_tells_of_cues_that_are_left_out(tmp_path):
    path = written(tmp_path / "talk.srt", [1, 2, 900, 3, 4])

    with pytest.warns(
        UserWarning, match=r"^left out: 1 unreadable cue \(.*talk\.srt:7: start must"
    ):
        assert len(read_transcript(path)) == 4


def test_the_warning_points_to_the_line_that_opened_the_video(tmp_path):
    path = written(tmp_path / "talk.srt", [1, 2, 900, 3, 4])

    with pytest.warns(UserWarning, match=r"^left out: 1 unreadable cue ") as caught:
        open_video(path)

    assert [one.filename for one in caught] == [__file__]


def test_a_file_of_nothing_but_bad_cues_is_refused_with_the_first(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text("1\n0:09 --> 0:08\na\n\n2\n0:07 --> 0:06\nb\n", "utf-8")

    with pytest.raises(DataError, match=r"talk\.srt:2: end must not be before start"):
        read_transcript(path, problems=Problems())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"segments": [{"start": 1', "talk.json: must be complete JSON, got an end at line 1"),
        ('{"segments": [\n{"start": 1.', "must be complete JSON, got an end at line 2, column 12"),
        ('{"segments": [{"text": "hal', "must be complete JSON, got an end at"),
        ('[{"start": 1, "end": 2, "text": "a"}', "must be complete JSON, got an end at"),
        ('{"segments": tr', "must be complete JSON, got an end at"),
        (
            '{\n"segments": nothing at all here}',
            "talk.json:2: must be JSON, got 'Expecting value'",
        ),
        ("hello", "talk.json:1: must be JSON, got 'Expecting value' at column 1"),
        ("[" * 200_000, "talk.json: must be JSON nested a few levels deep, got too many"),
        ('{"a":' * 200_000, "talk.json: must be JSON nested a few levels deep, got too many"),
        ("[" + "9" * 5000 + "]", "talk.json: must be JSON with ordinary numbers, got: Exceeds"),
        ('{"a": 1, "b": 2}', "must hold 'segments', 'events', or lists 'start', 'end' and 'text'"),
        ('{"a": 1, "b": 2}', "'text', got an object"),
        ("3", "talk.json: a JSON transcript must hold 'segments'"),
        ("[1]", "talk.json: cue 1: must be an object with start, end, text, got 1"),
        ('[[1, "a"]]', "talk.json: cue 1: a list must read [id, seek, start, end, text, ...]"),
        ('[["a", 1]]', "talk.json: cue 1: a list must read [id, seek, start, end, text, ...]"),
        ('{"segments": 3}', "talk.json: 'segments' must be a list, got 3"),
        ('{"events": [7]}', "talk.json: cue 1: must be an object with tStartMs, got 7"),
    ],
)
def test_json_that_is_no_transcript_is_refused(tmp_path, text, message):
    path = tmp_path / "talk.json"
    path.write_text(text, "utf-8")

    assert message in refusal(path)


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        ({"start": float("nan"), "end": 2}, "start must be a finite number of seconds, got nan"),
        ({"start": 1, "end": float("inf")}, "end must be a finite number of seconds, got inf"),
        ({"start": 1, "end": 10**400}, "end must be a finite number of seconds, got inf"),
        (
            {"start": -1, "end": 2},
            "start must be at least 0, got -1.0; was the transcript shifted?",
        ),
        ({"start": 3, "end": 2}, "end must not be before start, got start 3.0 and end 2.0"),
        (
            {"start": 1e9, "end": 2e9},
            "start must be at most 604800 seconds (a week), got 1000000000.0; is it in",
        ),
        ({"start": "1", "end": 2}, "start must be a number, got '1'"),
        ({"start": True, "end": 2}, "start must be a number, got True"),
        ({}, "start must be a number, got None"),
        ({"start": 1, "end": "2"}, "end must be a number, got '2'"),
        ({"start": 1, "end": 2, "text": 5}, "text must be a string, got 5"),
        ({"start": 1, "duration": "x"}, "duration must be a number, got 'x'"),
    ],
)
def test_a_segment_with_wrong_values_is_refused_with_its_number(tmp_path, segment, message):
    path = tmp_path / "talk.json"
    first = {"start": 0, "end": 1, "text": "hello"}
    path.write_text(json.dumps([first, {"text": "world"} | segment]), "utf-8")

    assert f"talk.json: cue 2: {message}" in refusal(path)
    assert lenient(path, 1) == (Sentence(0.0, 1.0, "hello"),)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"start": [1, 2], "end": [3], "text": ["a"]},
            "v1: 'start', 'end' and 'text' must be equally long, got 2, 1 and 1",
        ),
        (
            {"start": [1], "end": [3]},
            "v1: must have lists 'start', 'end' and 'text', got no 'text'",
        ),
        ({"start": 1, "end": [3], "text": ["a"]}, "v1: 'start' must be a list, got 1"),
        ({"start": [1], "end": [3], "text": [None]}, "v1: cue 1: text must be a string, got None"),
    ],
)
def test_lists_that_do_not_fit_are_refused(record, message):
    with pytest.raises(DataError) as caught:
        transcript_from_lists(record, origin="v1")

    assert message in str(caught.value)


def test_a_file_of_300_megabytes_is_refused_unread(tmp_path):
    path = tmp_path / "talk.srt"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)

    assert "talk.srt: must be at most 64 MiB, got 300 MiB; is it the right" in (refusal(path))


def test_a_cue_of_one_endless_line_is_refused(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text(CUE + "0:00" + "-" * 2_000_000 + "<a [ ( { " * 100_000, "utf-8")

    assert "a cue must have at most 100,000 characters, got 2,900" in refusal(path)


def test_a_cue_of_endless_lines_is_refused(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text(
        CUE + "a b\n" * 200_000 + CUE.replace(":02", ":03").replace(":01", ":02") + "a b\n" * 1000,
        "utf-8",
    )

    assert "a cue must have at most 100,000 characters, got 800" in refusal(path)
    assert len(lenient(path, 1)) == 1


@pytest.mark.parametrize(("name", "got"), [("none.srt", "no such file"), ("", "a folder")])
def test_what_is_no_file_is_refused(tmp_path, name, got):
    assert f": must be a transcript file, got {got}; check the path" in refusal(tmp_path / name)


def test_the_error_of_the_underlying_reader_is_kept(tmp_path):
    path = tmp_path / "talk.ttml"
    path.write_text("<tt", "utf-8")

    with pytest.raises(DataError) as caught:
        read_transcript(path)

    assert caught.value.__cause__ is not None
