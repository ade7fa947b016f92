"""ASS, SSA, TTML and MicroDVD as another reader reads them, and any file in linear time."""

import random
import time
import warnings
from contextlib import suppress

import pytest

from stepgraph.errors import DataError
from stepgraph.ingest import read_transcript, timed_text
from stepgraph.problems import Problems

ASS = """[Script Info]
[V4+ Styles]
Style: Default,Arial,20
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
SAID = "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,hello "
TTML = '<tt xmlns="http://www.w3.org/ns/ttml"><body{}><div{}>{}</div></body></tt>'
STYLED = (
    "{\\i1}",
    "{\\p1}",
    "{\\p0}",
    "{\\pos(1,2)}",
    "\\N",
    "\\n",
    "\\h",
    "a, b",
    "{",
    "}",
    "{x}",
)
SIZE = 90_000
PIECES = (
    "{",
    "}",
    "{}",
    "{\\p",
    "{\\p1}",
    "{\\",
    "{y:i}",
    "{y:",
    "[a",
    "(",
    "[",
    "<a",
    "&#",
    "♪",
    "|",
)
FILES = {
    "t.ass": lambda piece: f"{ASS}{SAID}{piece}\n{piece}\n",
    "t.ssa": lambda piece: f"{ASS}{SAID}{piece}\n{piece}\n",
    "t.sub": lambda piece: f"{{1}}{{1}}25\n{{1}}{{99}}hello {piece}\n",
    "t.ttml": lambda piece: TTML.format(
        "",
        "",
        f'<p begin="1s" end="2s">hello {piece.replace("&", "&amp;").replace("<", "&lt;")}</p>',
    ),
    "t.srt": lambda piece: f"1\n00:00:01,000 --> 00:00:02,000\nhello {piece}\n",
    "t.vtt": lambda piece: f"WEBVTT\n\n{piece}\n\n00:01.000 --> 00:02.000\nhello {piece}\n",
    "t.sbv": lambda piece: f"0:00:01.000,0:00:02.000\nhello {piece}\n",
    "t.txt": lambda piece: f"0:01\nhello {piece}\n0:02\nyes\n",
    "t.tsv": lambda piece: f"start\tend\ttext\n1000\t2000\thello {piece}\n",
}


def with_pysubs2(text, name):
    """The cues of another reader, in milliseconds."""
    pysubs2 = pytest.importorskip("pysubs2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        events = pysubs2.SSAFile.from_string(text, format_=name)
    spoken = [event for event in events if not (event.is_comment or event.is_drawing)]
    return [(event.start, event.end, event.plaintext.split()) for event in spoken]


def milliseconds(cues):
    return [(round(1000 * c.start), round(1000 * c.end), c.text.split()) for c in cues]


def test_dialogue_is_read_as_by_another_reader():
    for seed in range(300):
        rng = random.Random(seed)
        lines = [
            f"{rng.choice(['Dialogue', 'Comment'])}: 0,0:00:0{i}.{rng.randint(0, 99):02d},"
            f"0:01:0{i}.50,Default,,0,0,0,,{''.join(rng.choices(STYLED, k=rng.randint(0, 6)))}"
            for i in range(4)
        ]
        text = ASS + "\n".join(lines) + "\n"

        assert milliseconds(timed_text.read_ass(text, "t")) == with_pysubs2(text, "ass")


def test_frames_are_read_as_by_another_reader():
    text = "{1}{1}23.976\n{10}{25}crack|{y:i}the eggs\nnonsense\n {30} { 4000 }whisk\n"

    found = [
        cue._replace(text=cue.text.replace("{y:i}", ""))
        for cue in timed_text.read_microdvd(text, "t")
    ]
    assert milliseconds(found) == with_pysubs2(text, "microdvd")


@pytest.mark.parametrize("begin", ["", ' begin="00:01:00"', ' begin="1.5h"'])
def test_paragraphs_are_read_as_by_another_reader(begin):
    said = (
        '<p begin="1s" end="2.5s">a<span> b<br/>c </span>d</p>\n<metadata>no</metadata>'
        '<p end="00:01:02.250">\n e\n f</p><p begin="100ms" duration="3m">g</p>'
    )
    text = TTML.format(begin, ' begin="2s"', said)

    assert milliseconds(timed_text.read_ttml(text, "t")) == with_pysubs2(text, "ttml")


def test_times_count_from_what_they_stand_in_and_from_nothing_else():
    """A number without a unit is seconds."""
    said = '<p begin="1" end="2.5">a</p></div><div begin="30s"><p begin="1s" dur="2s">b</p>'
    found = timed_text.read_ttml(TTML.format(' begin="10s"', ' begin="5s"', said), "t")

    assert [(cue.start, cue.end) for cue in found] == [(16.0, 17.5), (41.0, 43.0)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "t.ass",
            f"{ASS}{SAID}\n{SAID.replace(',,hello', ',hello').strip()}\n",
            r"t.ass:7: dialogue must have 10 fields and times like 0:01:02.50, got ",
        ),
        ("t.sub", "{1}{1}25\n{25}{50}a\n{75}{50}b\n", r"t.sub:3: end must not be before start"),
        ("t.ass", f"{ASS}{SAID}\nDialogue: 0,x,y\n", r"t.ass:7: dialogue must have 10 fields and"),
        ("t.ass", f"{ASS}{SAID}\nDialogue: 0,1,2,3,4,5,6,7,8,9\n", r"t.ass:7: .* like 0:01:02.50"),
        (
            "t.ttml",
            TTML.format("", "", '<p begin="1s" end="2s">a</p><p begin="9f" end="2s">b</p>'),
            r"t.ttml: cue 2: a time must read like 00:01:02.500 or 62.5s, got '9f'",
        ),
        (
            "t.ttml",
            TTML.format("", "", f'<p begin="1s" end="2s">a</p><p end="{"9" * 9000}s">b</p>'),
            r"t.ttml: cue 2: a time must read like .*, got '9{60}'…; ",
        ),
    ],
)
def test_a_cue_that_cannot_be_read_costs_no_other(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    problems = Problems()

    assert len(read_transcript(tmp_path / name, problems=problems)) == 1
    with pytest.raises(DataError, match=message):
        raise DataError(str(problems.found[0]))


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_nothing_but_marks_is_read_at_once(tmp_path, name, piece):
    (tmp_path / name).write_text(FILES[name](piece * (SIZE // len(piece))))

    begin = time.process_time()
    with suppress(DataError):  # a drawing says nothing
        read_transcript(tmp_path / name, problems=Problems())

    # What grows with the square of the size takes many seconds.
    assert time.process_time() - begin < 1.5


def test_elements_nested_without_end_are_read(tmp_path):
    deep = "<span>" * 50_000 + "a" + "</span>" * 50_000
    (tmp_path / "t.ttml").write_text(TTML.format("", "", f'<p begin="1s" end="2s">{deep}</p>'))

    assert [one.text for one in read_transcript(tmp_path / "t.ttml")] == ["a"]


def test_entities_that_grow_without_end_are_refused(tmp_path):
    bomb = '<!DOCTYPE t [<!ENTITY a "lol">' + "".join(
        f'<!ENTITY {after} "{f"&{before};" * 10}">'
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    said = TTML.format("", "", '<p begin="1s" end="2s">&i;</p>')
    (tmp_path / "t.ttml").write_text(f"{bomb}]>{said}")

    with pytest.raises(DataError, match="must be a readable TTML transcript, got an error"):
        read_transcript(tmp_path / "t.ttml")
