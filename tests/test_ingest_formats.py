"""Transcript files: every format in, the same sentences out."""

import json
import re
from pathlib import Path

import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.ingest import open_video, read_transcript
from stepgraph.problems import Problems

EGGS = (Sentence(1.0, 2.5, "crack the eggs"), Sentence(3.0, 4.0, "whisk them well"))

SRT = """1
00:00:01,000 --> 00:00:02,500
crack
<i>the</i> eggs

2
00:00:03,000 --> 00:00:04,000
whisk them well
"""

VTT = """WEBVTT - a talk
Kind: captions
Language: en

STYLE
::cue { color: red }

NOTE this is
not spoken

intro
00:01.000 --> 00:02.500 align:start position:0%
crack the eggs

NOTE neither is this

00:00:03.000 --> 00:00:04.000
<v Anna>whisk them well
"""

ASS = r"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize
Style: Default,Arial,20

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,whisk {\i1}them{\i0} well
Comment: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,not spoken
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\an8}crack\Nthe eggs
"""

TTML = """<?xml version="1.0" encoding="utf-8"?>
<tt xmlns="http://www.w3.org/ns/ttml"><body><div>
<p begin="00:00:01.000" end="00:00:02.500">crack<br/>the eggs</p>
<p begin="00:00:03.000" end="00:00:04.000">whisk them well</p>
</div></body></tt>
"""

MICRODVD = "{1}{1}10\n{10}{25}crack|the eggs\n{30}{40}whisk them well\n"
TSV = "start\tend\ttext\n1000\t2500\tcrack the eggs\n3000\t4000\twhisk them well\n"
TEXTS = [" crack the eggs", " whisk them well"]

YOUTUBE = {
    "wireMagic": "pb3",
    "events": [
        {"tStartMs": 0, "dDurationMs": 9000, "id": 1, "wpWinPosId": 1},
        {
            "tStartMs": 1000,
            "dDurationMs": 1500,
            "segs": [{"utf8": "crack"}, {"utf8": " the", "tOffsetMs": 200}, {"utf8": " eggs"}],
        },
        {"tStartMs": 2400, "dDurationMs": 100, "aAppend": 1, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 3000, "dDurationMs": 1000, "segs": [{"utf8": "whisk them well"}]},
    ],
}
WHISPER = {
    "text": "crack the eggs whisk them well",
    "segments": [
        {"id": 0, "start": 1.0, "end": 2.5, "text": TEXTS[0]},
        {"id": 1, "start": 3, "end": 4, "text": TEXTS[1]},
    ],
}
WHISPERX = {
    "segments": [
        {
            "words": [
                {"word": "crack", "start": 1.0, "end": 1.5},
                {"word": "the"},
                {"word": "eggs", "start": 2.0, "end": 2.5},
            ]
        },
        {"start": 2.6, "end": 2.7},
        {"start": 3.0, "end": 4.0, "text": TEXTS[1], "words": [{"word": "2"}]},
    ]
}
FASTER_WHISPER = [
    [1, 0, 1.0, 2.5, TEXTS[0], [50364], -0.2, 1.5, 0.01, None, 0.0],
    [2, 0, 3.0, 4.0, TEXTS[1], [50365], 0.0, -0.2, 1.5, 0.01, [[3.0, 4.0, "whisk", 0.9]]],
]
YOUTUBE_API = [
    {"text": TEXTS[0], "start": 1.0, "duration": 1.5},
    {"text": TEXTS[1], "start": 3.0, "duration": 1.0},
]
SBV = "0:00:01.000,0:00:02.500\ncrack\nthe eggs\n\n0:00:03.000,0:00:04.000\nwhisk them well\n"
LISTS = {"start": [1.0, 3.0], "end": [2.5, 4.0], "text": TEXTS}


@pytest.fixture
def read(tmp_path):
    """Write a text or bytes under a name and read it as a transcript."""

    def written(name, content, problems=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_transcript(path, problems=problems)

    return written


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("talk.json", json.dumps([[1.0, 2.5, TEXTS[0]], [3.0, 4.0, TEXTS[1]]])),
        ("talk.srt", SRT),
        ("talk.vtt", VTT),
        ("talk.ass", ASS),
        ("talk.ttml", TTML),
        ("talk.sub", MICRODVD),
        ("talk.sbv", SBV),
        ("talk.tsv", TSV),
        ("talk.json3", json.dumps(YOUTUBE)),
        ("talk.json", json.dumps(WHISPER)),
        ("talk.json", json.dumps(WHISPER["segments"])),
        ("talk.json", json.dumps(WHISPERX)),
        ("talk.json", json.dumps(FASTER_WHISPER)),
        ("talk.json", json.dumps({"segments": FASTER_WHISPER})),
        ("talk.json", json.dumps(YOUTUBE_API)),
        ("talk.json", json.dumps(LISTS)),
    ],
)
def test_every_format_gives_the_same_sentences(read, name, text):
    assert read(name, text) == EGGS


@pytest.mark.parametrize(
    "text", [SRT, VTT, ASS, TTML, MICRODVD, TSV, SBV, json.dumps(WHISPER, indent=1)]
)
@pytest.mark.parametrize("suffix", [".srt", ".vtt", ".txt"])
def test_the_content_decides_not_the_suffix(read, suffix, text):
    assert read(f"talk{suffix}", text) == EGGS


@pytest.mark.parametrize(
    "text",
    [
        "0:01\ncrack the eggs\n0:03\nwhisk them well\n",
        "Transcript\n\n0:01\ncrack\nthe eggs\n\n00:03\n\nwhisk them well",
        "0:01 crack the eggs\n0:03 whisk them well",
        "0:00:01 crack the eggs\n\n0:00:03\twhisk them well\n",
        "[00:01] crack the eggs\n[00:03] whisk them well",
        "(0:01) crack the eggs\n(0:03) whisk them well",
        "0:01 - crack the eggs\n0:03: whisk them well",
        "0:01\n1 second\ncrack the eggs\n0:03\n3 seconds\nwhisk them well",
    ],
)
def test_text_pasted_from_a_transcript_panel_is_read(read, text):
    """It says only when each cue starts, so that it lasts until the next; the last, 5 seconds."""
    expected = (Sentence(1.0, 3.0, EGGS[0].text), Sentence(3.0, 8.0, EGGS[1].text))

    assert read("talk.txt", text) == read("talk.srt", text) == expected


def test_pasted_hours_are_read(read):
    [first, second] = read("talk.txt", "59:59\nhello\n1:00:05\nbye")

    assert (first.start, first.end, second.start) == (3599.0, 3605.0, 3605.0)


def test_a_time_in_words_is_kept_where_nothing_else_is_said(read):
    [first, second] = read("talk.txt", "0:01\n5 seconds\n0:03\n3 seconds\nwhisk")

    assert (first.text, second.text) == ("5 seconds", "whisk")


@pytest.mark.parametrize(
    "text", ["mix the dough\nbake it\n", "Bake at noon\n12:30 bake\n", "", "0:01"]
)
def test_text_without_times_is_no_transcript(read, text):
    with pytest.raises(DataError, match=r"talk\.txt: must hold "):
        read("talk.txt", text)


def test_segments_without_an_end_last_until_the_next_starts(read):
    segments = [
        {"start": 1, "text": "one"},
        {"start": 4.5, "text": "two", "end": None},
        {"start": 4.5, "text": "three", "end": 5},
        {"start": 6, "text": "four"},
    ]

    assert read("talk.json", json.dumps({"segments": segments})) == (
        Sentence(1.0, 4.5, "one"),
        Sentence(4.5, 6.0, "two three"),
        Sentence(6.0, 11.0, "four"),
    )


def test_bad_times_and_breaks_of_an_sbv_are_understood(read):
    problems = Problems()
    text = (
        "0:00:01.0,0:00:02.5\ncrack[br]the eggs\n\n0:00:0x.0,0:00:03.0\nx\n\n"
        + SBV.split("\n\n")[1]
    )

    assert read("talk.sbv", text, problems) == EGGS
    assert problems.summary().startswith("1 unreadable cue (")
    assert "talk.sbv:4: times must read like" in problems.summary()


def test_ssa_is_read(read):
    text = ASS.replace("v4.00+", "v4.00").replace("V4+", "V4").replace("Layer", "Marked")

    assert read("talk.ssa", text.replace("Dialogue: 0", "Dialogue: Marked=0")) == EGGS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_with_a_mark_and_all_line_ends_are_read(read, encoding, newline):
    text = SRT.replace("eggs", "œufs 🥚").replace("\n", newline)

    assert read("talk.srt", text.encode(encoding))[0].text == "crack the œufs 🥚"


def test_words_of_a_youtube_transcript_are_counted_once(read):
    sentences = read(
        "talk.en.vtt",
        "WEBVTT\nKind: captions\nLanguage: en\n\n"
        "00:00:00.030 --> 00:00:02.000 align:start position:0%\n \n"
        "crack<00:00:00.400><c> the</c><00:00:00.900><c> eggs</c>\n\n"
        "00:00:02.000 --> 00:00:02.010 align:start position:0%\ncrack the eggs\n \n\n"
        "00:00:02.010 --> 00:00:04.000 align:start position:0%\ncrack the eggs\n"
        "whisk<00:00:02.500><c> them</c>\n\n"
        "00:00:04.000 --> 00:00:04.010 align:start position:0%\nwhisk them\n \n\n"
        "00:00:04.010 --> 00:00:09.000 align:start position:0%\nwhisk them\n[Music]\n",
    )

    assert sentences == (
        Sentence(0.03, 2.0, "crack the eggs"),
        Sentence(2.01, 4.0, "whisk them"),
    )


SRT_TEXT = SRT.index("whisk")


@pytest.mark.parametrize(
    ("name", "text", "lengths"),
    [
        ("talk.srt", SRT, range(SRT.index("2\n00:") + 1, SRT_TEXT + 1)),
        ("talk.vtt", VTT, range(VTT.rindex("> 00:00:04") + 1, VTT.index("<v Anna"))),
        ("talk.tsv", TSV, range(TSV.index("3000") + 1, TSV.index("\twhisk") + 1)),
    ],
)
def test_what_is_cut_off_before_its_last_words_keeps_the_rest_and_says_so(
    read, name, text, lengths
):
    said = r"must be a whole transcript, got a cue that is cut|a line must read start, end"
    for length in lengths:
        problems = Problems()
        assert read(name, text[:length], problems) == EGGS[:1]
        assert re.search(rf"^1 unreadable cue \(.*{name}:\d+: ({said})", problems.summary())
        with pytest.raises(DataError, match=rf"{name}:\d+: ({said})"):
            read(name, text[:length], Problems(strict=True))


def test_a_cut_inside_the_last_words_of_an_srt_keeps_the_rest(read):
    for length in range(SRT_TEXT + 1, len(SRT)):
        first, *rest = read("talk.srt", SRT[:length])

        assert first == EGGS[0]
        assert EGGS[1].text.startswith(" ".join(sentence.text for sentence in rest))


def test_an_empty_last_cue_is_not_cut_off(read):
    assert read("talk.srt", SRT + "\n\n3\n00:00:09,000 --> 00:00:10,000\n\n") == EGGS


def test_a_blank_line_inside_an_srt_cue_loses_no_word(read):
    assert read("talk.srt", SRT.replace("crack\n", "crack\n\n")) == EGGS


def test_an_srt_without_numbers_and_blank_lines_is_read(read):
    text = "0:01.0 --> 0:02.5\ncrack the eggs\n0:03 --> 0:04\nwhisk them well"

    assert read("talk.srt", text) == EGGS


def test_a_number_that_is_spoken_is_kept(read):
    sentences = read("talk.srt", SRT.replace("whisk them well", "stir for\n10"))

    assert sentences[-1].text == "stir for 10"


def test_an_arrow_that_is_spoken_is_kept(read):
    assert read("talk.srt", SRT.replace("the", "--> the"))[0].text == "crack --> the eggs"


def test_hours_are_read(read):
    assert read("talk.srt", "1\n01:02:03,004 --> 100:00:00,000\nhello\n") == (
        Sentence(3723.004, 360000.0, "hello"),
    )


def test_a_time_is_kept_to_the_millionth_of_a_second_and_without_noise(read):
    """Speech models write more digits than a format asks for."""
    assert read("talk.srt", "1\n00:00:01.234567 --> 01:00:00.1\nhello\n") == (
        Sentence(1.234567, 3600.1, "hello"),
    )


@pytest.mark.parametrize("back", [0.01, 1.0])
def test_a_start_up_to_a_second_too_early_is_sorted(read, back):
    lists = {"start": [1.0, 5.0, 5.0 - back], "end": [2, 6, 6], "text": ["one", "two", "three"]}

    sentences = read("talk.json", json.dumps(lists))

    assert [sentence.text for sentence in sentences] == ["one", "three", "two"]


@pytest.mark.parametrize(
    "text",
    ['{"segments": []}', '{"events": []}', json.dumps({"start": [], "end": [], "text": []})],
)
def test_an_empty_list_of_cues_is_refused(read, text):
    with pytest.raises(DataError, match=r"talk\.json: must hold cues with times, got none"):
        read("talk.json", text)


def test_an_empty_last_cue_of_a_vtt_is_not_cut_off(read):
    assert read("talk.vtt", VTT + "\n00:00:09.000 --> 00:00:10.000\n\n") == EGGS


def test_only_music_gives_no_sentences(read):
    assert read("talk.srt", "1\n00:00:01,000 --> 00:00:02,000\n[Music]\n") == ()


def test_a_youtube_event_without_duration_loses_no_word(read):
    events = {"events": [{"tStartMs": 1000, "segs": [{"utf8": "hello"}]}]}

    assert read("talk.json3", json.dumps(events)) == (Sentence(1.0, 2.0, "hello"),)


def test_a_youtube_event_without_a_start_begins_with_the_video(read):
    events = {"events": [{"dDurationMs": 1500, "segs": [{"utf8": "hello"}]}]}

    assert read("talk.json3", json.dumps(events)) == (Sentence(0.0, 1.5, "hello"),)


def test_a_tab_that_is_part_of_what_is_said_is_kept_apart_from_those_of_the_table(read):
    assert read("talk.tsv", TSV.replace("crack the", "crack\tthe")) == EGGS


def test_a_string_is_taken_for_a_path(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text(SRT, "utf-8")

    assert read_transcript(str(path)) == read_transcript(Path(path))


def test_numbers_that_are_said_do_not_begin_a_cue(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\ncount with me\n\n3\napples\n")

    [sentence] = read_transcript(path)

    assert sentence.text == "count with me 3 apples"


def test_a_segment_without_times_lasts_as_long_as_its_words(tmp_path):
    words = [{"start": n, "end": n + 1, "word": f" word{n}"} for n in (2, 3, 4, 5)]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"segments": [{"words": words}]}))

    assert read_transcript(path) == (Sentence(2, 6, "word2 word3 word4 word5"),)


@pytest.mark.parametrize(
    ("rest", "line", "said"),
    [
        ("2\n00:00:0", 6, "a cue that is cut off"),
        ("2\n00:00:0\n\n\n\n", 6, "a cue that is cut off"),
        ("2\n\n\n", 5, "a cue that is cut off"),
        ("2\n00:00:0x,000 --> 00:00:04,000\nthere\n", 6, "times must read like"),
        ("2\n00:00:0x,000 --> 00:00:04,000\n\n", 6, "a cue that is cut off"),
        ("2\n00:00:03,000 --> 00:00:04,000\n\n3\n00:00:0", 9, "a cue that is cut off"),
    ],
)
def test_what_is_left_of_a_last_cue_is_noted_and_not_said(tmp_path, rest, line, said):
    path = tmp_path / "talk.srt"
    path.write_text(f"1\n00:00:01,000 --> 00:00:02,000\nhello\n\n{rest}")
    problems = Problems()

    assert read_transcript(path, problems=problems) == (Sentence(1, 2, "hello"),)
    assert [said in one.what for one in problems.found] == [True]
    assert f"talk.srt:{line}: " in problems.summary()


def test_a_transcript_alone_lasts_until_its_last_sentence_ends(tmp_path):
    path = tmp_path / "talk.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\na\n\n2\n00:00:05,000 --> 00:00:09,500\nb\n")

    assert open_video(path).duration == 9.5
