"""Caption files: a stream of any size, from any byte, past any broken record."""

import json
import math
import random
import re

import pytest

from stepgraph.datasets import Shard
from stepgraph.datasets import howto100m_captions as captions
from stepgraph.datasets.howto100m_captions import read_captions
from stepgraph.errors import DataError
from stepgraph.problems import Problems

PLAIN = {"start": [0.0, 2.0], "end": [2.0, 4.5], "text": ["crack the eggs", "whisk them"]}
A, B, C = (f'"{name}": {json.dumps(PLAIN)}' for name in "abc")

# What texts and keys could say to be taken for the border of a record.
HOSTILE = (
    *('"', "\\", '\\"', "{", "}", "[", "]", ",", ":", ": {", '": {"start": [', "start"),
    *(
        '"start":',
        "}, ",
        '", "x": {"start": [0], "end": [1], "text": ["',
        '{"text":',
        "\\u0022",
        "\n",
        "\t",
    ),
    *(" ", "", "crack the eggs", "[Music]", "äöü", "蛋", "🥚", "\ud83e", "\udd5a", "\u2028"),
)


@pytest.fixture
def problems():
    return Problems()


@pytest.fixture
def write(tmp_path):
    def write(text, name="raw_caption.json"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def hostile_text(rng):
    return "".join(rng.choices(HOSTILE, k=rng.randint(0, 6)))


def hostile_record(rng):
    size = rng.choice([0, 1, 2, 9])
    starts = [3.0 * i for i in range(size)]
    texts = [hostile_text(rng) for _ in range(size)]
    fields = [("start", starts), ("end", [t + 2.5 for t in starts]), ("text", texts)]
    rng.shuffle(fields)
    return dict(fields)


def hostile_file(rng):
    """An object of hostile records, in one of the ways in which JSON can be written."""
    keys = [hostile_text(rng).encode(errors="ignore").decode() for _ in range(rng.randint(1, 12))]
    records = {f"{i}{key}": hostile_record(rng) for i, key in enumerate(keys)}
    ascii_only = rng.random() < 0.5 or "\\ud" in json.dumps(records)
    layout = rng.choice(
        [{}, {"separators": (",", ":")}, {"indent": 4}, {"separators": (" ,\r\n", " :\t")}]
    )
    text = json.dumps(records, ensure_ascii=ascii_only, **layout)
    return rng.choice(["", "\ufeff", "\n "]) + text + rng.choice(["", "\n"])


def read(path, problems, shard=Shard()):
    return [(one.video, one.lists) for one in read_captions(path, problems=problems, shard=shard)]


def read_parts(path, problems, count):
    """Records of all shards, sorted."""
    parts = [read(path, problems, Shard(part, count)) for part in range(1, count + 1)]
    return sorted((pair for part in parts for pair in part), key=lambda pair: pair[0])


def test_shards_give_every_record_once_whatever_it_says(write, monkeypatch, problems):
    for seed in range(60):
        rng = random.Random(seed)
        text = hostile_file(rng)
        path = write(text)
        monkeypatch.setattr(captions, "CHUNK", rng.choice([50, 1000, 1 << 20]))

        records = json.loads(text.lstrip("\ufeff"))
        assert read(path, problems) == list(records.items())
        for count in (2, 3, rng.randint(4, 40)):
            assert read_parts(path, problems, count) == sorted(records.items())
        assert not problems


def test_parts_of_a_file_give_every_record_once_wherever_they_meet(write, monkeypatch, problems):
    rng = random.Random(5)
    for chunk in (700, 5000):
        monkeypatch.setattr(captions, "CHUNK", chunk)
        path = write(hostile_file(rng))
        whole, size = list(read_captions(path, problems=problems)), path.stat().st_size
        for cut in {1, 2, size - 1, size, *rng.sample(range(size), min(size, 60))}:
            parts = [
                record
                for between in ((0, cut), (cut, math.inf))
                for record in read_captions(path, problems=problems, between=between)
            ]
            assert parts == whole, cut


def test_a_record_stands_where_it_says(write, problems):
    for seed in range(20):
        path = write(hostile_file(random.Random(seed)))
        data = path.read_bytes()

        for one in read_captions(path, problems=problems):
            quoted = json.JSONDecoder().raw_decode(data[one.position :].decode())[0]
            assert quoted == one.video


@pytest.mark.parametrize("text", ["{}", " { } ", "\ufeff{\n}\n"])
def test_an_empty_object_has_no_records(write, problems, text):
    assert read(write(text), problems) == []
    assert not problems


def test_a_key_longer_than_any_id_is_read_once(write, problems):
    text = json.dumps({"a": PLAIN, "k" * 5000: PLAIN, "c": PLAIN})

    for count in (1, 2, 50):
        found = read_parts(write(text), problems, count)
        assert [video for video, _ in found] == ["a", "c", "k" * 5000]


def test_records_may_hold_other_fields(write, problems):
    odd = {"duration": 9, "meta": {"a": {"b": 1}}, **PLAIN, "tail": {"x": 1}}

    assert read(write(json.dumps({"a": odd, "b": PLAIN, "c": odd})), problems) == [
        ("a", odd),
        ("b", PLAIN),
        ("c", odd),
    ]
    assert not problems


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ('"x": {"start": [0.0, "end": [1.0], "text": ["a"]}', r"must be JSON, got .* at byte \d+"),
        ('"x": {"start": [0.0, 2.0], "end": [1', r"must be JSON, got .* at byte \d+; record skip"),
        ('"x": {"start": [0.0], "end": [1.0], "text": ["a', r"must be JSON, got"),
        ('"x": {"start": [0.0], "end": [1.0], "text": ["a]}', r"must be JSON, got"),
        ('"x": {"start": [0.0], "end": [1.0], "text": ["a"', r"must be JSON, got"),
        ('"x": {"start": [0.0], "end": [1.0], "text": "a"}', r"'text' must be a list, got a text"),
        ('"x": {"start": [0.0], "end": [1.0]}', r"must have lists .*, got no 'text'"),
        ('"x": {"start": [0.0], "end": [1, 2], "text": ["a"]}', r"equally long, got 1, 2 and 1"),
        ('"x": {}', r"must have lists 'start', 'end' and 'text', got no 'start'"),
        ('"x": null', r"must be an object with lists 'start', 'end' and 'text', got None"),
        ('"x": [1, 2]', r"must be an object with lists 'start', 'end' and 'text', got \[1, 2\]"),
        ('"x"', r"must be JSON, got 'Expecting a colon'"),
        ('"x": {"start": ' + "[" * 100_000, r"must be JSON that can be read, got RecursionError"),
    ],
)
def test_a_broken_record_is_reported_and_the_others_are_read(write, problems, broken, what):
    path = write("{" + ", ".join([A, broken, B, C]) + "}")
    position = len("{" + A + ", ")

    assert [video for video, _ in read(path, problems)] == ["a", "b", "c"]
    assert problems.counts == {"broken record": 1}
    # Behind a colon that is missing nobody knows whether the string was an id.
    assert problems.found[0].where.startswith(f"{path}: byte {position}")
    assert broken == '"x"' or problems.found[0].where.endswith(": video 'x'")
    assert re.search(what, problems.found[0].what)


def test_strict_makes_the_first_broken_record_an_error(write):
    path = write('{"x": {"start": [0.0], "end": [1.0]}, ' + A + "}")

    with pytest.raises(DataError, match=r"raw_caption.json: byte 1: video 'x': must have lists"):
        read(path, Problems(strict=True))


def test_every_broken_record_is_reported_once_whatever_the_shards(write):
    broken = '"x": {"start": [0.0, "end": [1.0], "text": ["a"]}'
    path = write("{" + ", ".join([broken, A, '"y": 3', broken, B, broken]) + "}")

    for count in range(1, 30):
        problems = Problems()
        assert read_parts(path, problems, count) == [("a", PLAIN), ("b", PLAIN)]
        assert problems.counts == {"broken record": 4}


def test_bytes_that_are_not_utf8_spoil_only_their_record(write, problems):
    data = json.dumps({"a": PLAIN, "x": {**PLAIN, "text": ["a", "Ä"]}, "b": PLAIN})
    path = write(data.replace("\\u00c4", "Ä").encode("latin-1"))

    assert [video for video, _ in read(path, problems)] == ["a", "b"]
    assert re.search(
        r"byte \d+: video 'x': must be UTF-8, got byte 0xc4 at byte \d+; record",
        str(problems.found[0]),
    )


def test_a_record_larger_than_any_video_is_skipped_in_flat_memory(write, problems, monkeypatch):
    monkeypatch.setattr(captions, "LONGEST_RECORD", 2000)
    monkeypatch.setattr(captions, "CHUNK", 600)
    large = {**PLAIN, "text": ["x" * 5000, "y"]}

    assert read(write(json.dumps({"a": PLAIN, "x": large, "b": PLAIN})), problems) == [
        ("a", PLAIN),
        ("b", PLAIN),
    ]
    assert "video 'x': a record must have at most" in str(problems.found[0])


@pytest.mark.parametrize("between", [" ", "\n", "}{", "}\n{"])
def test_records_without_a_comma_between_are_read_and_reported(write, problems, between):
    path = write("{" + A + between + B + "}")

    assert [video for video, _ in read(path, problems)] == ["a", "b"]
    assert "video 'a': must be followed by a comma, got" in str(problems.found[0])


def test_a_file_cut_off_anywhere_keeps_what_is_complete(write):
    whole = "{" + ", ".join([A, B, C]) + "}"
    ends = [whole.index("}", whole.index(f'"{name}"')) + 1 for name in "abc"]

    for length in range(20, len(whole)):
        problems = Problems()
        videos = [video for video, _ in read(write(whole[:length]), problems)]
        assert videos == [name for name, end in zip("abc", ends, strict=True) if end <= length]
        if re.search(r'"[abc]": \{"start":[^{]*$', whole[:length]):
            assert problems.counts == {"cut-off file": 1}
            assert "the file is cut off, fetch it again" in problems.found[0].what
        else:
            assert len(problems) == 1


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "an empty file"),
        ("   ", "a file that begins b'   '"),
        ("[1, 2]", "a file that begins"),
        ("video_id,task\n", "a file that begins"),
        (b"\x80\x04pickle", "a file that begins"),
        ('{"a": 1}', "an object without such a record"),
        ('{"database": {"v": {"duration": 3, "start": 1}}}', "an object without such a record"),
    ],
)
def test_another_file_is_refused_in_one_line(write, problems, text, got):
    with pytest.raises(DataError, match=r"must be one JSON object of records .*, got ") as caught:
        read(write(text), problems)

    assert got in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path, problems):
    with pytest.raises(DataError, match=r"none.json: must be a caption file, got no such file"):
        read(tmp_path / "none.json", problems)
