"""Sources from strangers: one clear line for what is wrong with them, and no more than that."""

import contextlib
import json
import os
import time
import tracemalloc

import pytest

from stepgraph.core import Vocabulary
from stepgraph.datasets import Shard, build_vocabulary, open_source
from stepgraph.errors import ConfigError, DataError, StepgraphError, quoted
from stepgraph.ingest import open_video, read_transcript
from stepgraph.ingest.cleaning import clean
from stepgraph.problems import Problems
from stepgraph.vocabulary import make_vocabulary, read_articles, read_vocabulary

VTT = "WEBVTT\n\n00:00.000 --> 00:04.000\nboil\n"
DIGITS = "9" * 5000
SAID = {"start": [0.0], "end": [2.0], "text": ["boil the water"]}
STEPS = [{"id": str(n), "label": name, "segment": [n, n + 1]} for n, name in enumerate("ab")]
ENTRY = {"class": "MakeTea", "subset": "testing", "duration": 9, "annotation": STEPS}
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)


def write(folder, **files):
    """Write files; in names, two underscores stand for a dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def refusal(call, *args, **options):
    """The one line with which something is refused."""
    with pytest.raises(StepgraphError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1500
    return message


# --- Time


@contextlib.contextmanager
def at_once(seconds=2.0):
    begin = time.process_time()
    yield
    assert time.process_time() - begin < seconds


MANY = 20_000
NAMES = tuple(f"do thing {number}" for number in range(MANY))


def test_many_keysteps_of_many_tasks_are_counted_at_once():
    vocabulary = Vocabulary(NAMES, {f"task {k}": (k, (k + 1) % MANY) for k in range(MANY)})

    with at_once():
        assert [vocabulary.tasks_of(k) for k in (0, 1, MANY)] == [
            ("task 0", f"task {MANY - 1}"),
            ("task 0", "task 1"),
            (),
        ]
        assert sum(len(vocabulary.tasks_of(k)) for k in range(MANY)) == 2 * MANY


def test_many_keysteps_that_repeat_are_refused_at_once():
    with at_once():
        assert "must be unique, got ['a0', 'a1', " in refusal(
            Vocabulary, tuple(f"a{k // 2}" for k in range(3 * MANY))
        )


def test_many_names_that_no_vocabulary_has_are_counted_at_once(tmp_path):
    rows = "".join(f"a,0,1,no thing {n}\n" for n in range(1000)) + f"a,0,1,{'x' * 100_000}\n"
    write(tmp_path, a__vtt=VTT, truth__csv=f"video,start,end,keystep\n{rows}a,1,2,do thing 7\n")

    with at_once(10):
        dataset = open_source(tmp_path, strict=False, vocabulary=Vocabulary(NAMES))

    assert dataset.problems.counts == {"unknown keystep": 1001}
    assert "did you mean 'do thing" in str(dataset.problems.found[0])
    assert dataset.truth["a"].keysteps.tolist() == [-1, 7, -1, -1]


def test_many_bad_times_are_counted_at_once(tmp_path):
    path = tmp_path / "t.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nhi\n" + "\n0:00 --> x\n" * 30_000 + "\nx\n")
    problems = Problems()

    with at_once():
        assert len(read_transcript(path, problems=problems)) == 1
    assert len(problems) == 30_000


def test_many_videos_twice_in_a_file_are_named_at_once(tmp_path):
    entry = f": {json.dumps(ENTRY)}"
    names = ",".join(f'"v{n}"{entry},"v{n}"{entry}' for n in range(8000))
    (tmp_path / "COIN.json").write_text(f'{{"database": {{{names}}}}}')

    with at_once(6):
        problems = open_source(f"coin:{tmp_path}").problems
    assert problems.counts["duplicate video"] == 8000


def test_a_headline_of_initials_is_cleaned_at_once(tmp_path):
    steps = ["a." * 50_000 + " b.", "Boil in the U.S.A."]
    write(tmp_path, a__jsonl=json.dumps({"title": "How to Boil", "steps": steps}))

    with at_once():
        [article] = read_articles(tmp_path / "a.jsonl", problems=Problems())
    assert article.steps[1] == "Boil in the U.S.A."


def test_a_folder_of_many_videos_is_listed_once(tmp_path, monkeypatch):
    from stepgraph.ingest import formats

    for number in range(40):
        (tmp_path / f"v{number}.mp4").touch()
        (tmp_path / f"v{number}.en.vtt").write_text(VTT)
    os.utime(tmp_path, (1e9, 1e9))
    asked = []
    listed = type(tmp_path).iterdir
    monkeypatch.setattr(type(tmp_path), "iterdir", lambda path: asked.append(path) or listed(path))

    found = [formats.find_transcript(tmp_path / f"v{number}.mp4") for number in range(40)]

    assert found == [tmp_path / f"v{number}.en.vtt" for number in range(40)]
    assert len(asked) == 1
    (tmp_path / "w.mp4").touch()
    (tmp_path / "w.en.vtt").write_text(VTT)
    assert formats.find_transcript(tmp_path / "w.mp4") == tmp_path / "w.en.vtt"


# --- Numbers, lines and nesting


def test_a_count_of_thousands_of_digits_is_no_count(tmp_path):
    tasks = f"111\nTea\nu\n{DIGITS}\nboil,pour\n\n222\nSoup\nu\n2\nchop,stir\n"
    write(tmp_path, tasks_primary__txt=tasks, videos__csv="222,a,u\n")
    problems = Problems()

    vocabulary = build_vocabulary(f"crosstask:{tmp_path}", problems=problems)

    assert vocabulary.keysteps == ("chop", "stir")
    assert "tasks_primary.txt:1: a task must have 5 lines" in str(problems.found[0])
    assert len(str(problems.found[0])) < 500


@pytest.mark.parametrize("text", [f"1/{DIGITS}", f"{DIGITS}/1", "²/2"])
def test_a_shard_of_thousands_of_digits_is_refused(text):
    with pytest.raises(ConfigError, match="shard must be I/N with I from 1 to N"):
        Shard.parse(text)


def test_a_seed_of_thousands_of_digits_is_refused():
    assert "source must be a folder" in refusal(open_source, f"generated:{DIGITS}")


def test_a_character_of_thousands_of_digits_is_text(tmp_path):
    [sentence] = clean(read_transcript(write(tmp_path, a__vtt=VTT) / "a.vtt"))
    [odd] = clean([sentence._replace(text=f"boil &#{DIGITS}; &#38; pour")])

    assert odd.text.startswith("boil ")
    assert odd.text.endswith(" & pour")
    write(tmp_path, a__jsonl=json.dumps({"title": f"Tea &#{DIGITS};", "steps": ["a", "b"]}))
    assert len(list(read_articles(tmp_path / "a.jsonl", problems=Problems()))) == 1


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_the_end_of_a_line_ends_a_line(tmp_path, mark):
    steps = f"boil{mark}water\nadd leaves\n"
    write(tmp_path, steps__txt=steps, a__csv=f"title{mark},headline,text\nTea,Boil,x\n")

    assert read_vocabulary(tmp_path / "steps.txt").keysteps == ("boil water", "add leaves")
    assert [one.title for one in read_articles(tmp_path / "a.csv", problems=Problems())] == ["Tea"]
    problems = Problems()
    tasks = f"111\nMake{mark}Tea\nu\n2\nboil{mark}it,pour\n"
    write(tmp_path, tasks_primary__txt=tasks, videos__csv="111,a,u\n")
    assert len(build_vocabulary(f"crosstask:{tmp_path}", problems=problems)) == 2


@pytest.mark.parametrize(
    "header", ['"title\nx",headline,text', 'title,"headline', "\x0btitle,headline\x0b\x0b,text"]
)
def test_any_header_of_articles_is_read_or_refused(tmp_path, header, monkeypatch):
    monkeypatch.setattr("stepgraph.vocabulary.articles._LONGEST", 200_000)
    write(tmp_path, a__csv=f"{header}\nTea,Boil,{'x' * 300_000}\n")

    with contextlib.suppress(DataError):
        list(read_articles(tmp_path / "a.csv", problems=Problems()))


@pytest.mark.parametrize("depth", [*range(930, 1010, 3), 1500, 100_000])
def test_what_is_nested_deeply_is_refused_in_a_line(tmp_path, depth):
    deep = "[" * depth + "]" * depth
    record = json.dumps(SAID)
    files = {
        "t.json": deep,
        "u.json": f'{{"start": {deep}, "end": [], "text": []}}',
        "w.json": f'{{"segments": [{deep}]}}',
        "x.json": f'{{"segments": [{{"start": 0, "end": {deep}, "text": {deep}}}]}}',
        "y.json3": f'{{"events": [{deep}]}}',
        "videos.jsonl": f'{{"transcript": {deep}}}',
        "a.jsonl": f'{{"title": "x", "steps": {deep}}}',
        "raw_caption.json": f'{{"a": {record}, "b": {{"start": {deep}}}, "c": {record}}}',
        "COIN.json": f'{{"database": {{"a": {json.dumps(ENTRY)}, "b": {deep}}}}}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    for name in ("t.json", "u.json", "w.json", "x.json", "y.json3"):
        refusal(read_transcript, tmp_path / name)
    refusal(open_source, tmp_path / "videos.jsonl", strict=False)
    refusal(lambda: list(read_articles(tmp_path / "a.jsonl", problems=Problems())))
    assert [one.id for one in open_source(f"howto100m:{tmp_path}").videos] == ["a", "c"]
    with contextlib.suppress(DataError):
        open_source(f"coin:{tmp_path}")


def test_numbers_of_thousands_of_digits_cost_their_record(tmp_path):
    record = json.dumps(SAID)
    broken = record.replace("2.0", DIGITS)
    write(tmp_path, raw_caption__json=f'{{"a": {record}, "b": {broken}, "c": {record}}}')
    write(tmp_path, t__json=broken, t__tsv=f"start\tend\ttext\n0\t{DIGITS}\thi\n")

    assert [one.id for one in open_source(f"howto100m:{tmp_path}").videos] == ["a", "c"]
    refusal(read_transcript, tmp_path / "t.json")
    refusal(read_transcript, tmp_path / "t.tsv")


def test_a_cell_of_megabytes_is_refused_in_a_line(tmp_path):
    write(tmp_path, a__vtt=VTT, steps__txt="boil\npour\n")
    write(tmp_path, truth__csv=f'video,start,end,keystep\na,0,1,"{"x" * 3_000_000}"\n')

    assert "truth.csv:2: " in refusal(open_source, tmp_path)


# --- Folders and files that cannot be opened


@as_root
def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path):
    (tmp_path / "closed").mkdir()
    write(tmp_path, a__vtt=VTT)
    write(tmp_path / "closed", b__vtt=VTT)
    (tmp_path / "closed").chmod(0)
    try:
        dataset = open_source(tmp_path, strict=False)
        message = refusal(open_source, tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)

    assert [one.id for one in dataset.videos] == ["a"]
    assert "closed: must be a folder that can be listed, got Permission denied" in message
    assert dataset.problems.failed.counts == {"unreadable folder": 1}


def test_a_folder_that_fails_while_it_is_listed_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    write(tmp_path, a__vtt=VTT)
    write(tmp_path / "closed", b__vtt=VTT)
    scandir = os.scandir

    def deny(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", deny)
    dataset = open_source(tmp_path, strict=False)

    assert [one.id for one in dataset.videos] == ["a"]
    assert dataset.problems.failed.counts == {"unreadable folder": 1}
    assert "closed: must be a folder that can be listed, got Permission denied; " in str(
        dataset.problems.found[0]
    )
    assert "closed: must be a folder that can be listed" in refusal(open_source, tmp_path)


def test_a_json_file_that_cannot_be_read_is_a_problem_of_that_file(tmp_path, monkeypatch):
    write(tmp_path, a__vtt=VTT, b__json=json.dumps(SAID), vocabulary__json="{}")
    opened = type(tmp_path).open

    def deny(path, *args, **options):
        if path.suffix == ".json":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **options)

    monkeypatch.setattr(type(tmp_path), "open", deny)
    dataset = open_source(tmp_path, strict=False)

    assert [one.id for one in dataset.videos] == ["a"]
    assert [one.where for one in dataset.problems.failed.found] == [
        str(tmp_path / "b.json"),
        str(tmp_path / "vocabulary.json"),
    ]
    assert "must be readable, got Permission denied" in str(dataset.problems.found[0])


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 300 + "x" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_refused_in_a_line(tmp_path, name):
    path = tmp_path / f"{name}.vtt"

    for call in (read_transcript, read_vocabulary, open_video, open_source):
        assert "must be a" in refusal(call, path)
    refusal(lambda: list(read_articles(path, problems=Problems())))
    refusal(build_vocabulary, str(path))
    refusal(open_video, tmp_path / f"{name}.mp4")
    for kind in ("crosstask", "coin", "howto100m", "manifest"):
        refusal(open_source, f"{kind}:{path}")


# --- What an error quotes

SECRETS = "root:x:0:0:hunter2:/root:/bin/bash\nalice:hunter2\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("passwd", SECRETS),
        ("passwd.srt", SECRETS),
        ("passwd.srt", f"key --> hunter2\n{SECRETS}"),
        ("passwd.sbv", f"0:00,0:hunter2\n{SECRETS}"),
        ("passwd.vtt", SECRETS),
        ("passwd.tsv", SECRETS),
        ("passwd.tsv", "hunter2\thunter2\thunter2\n"),
        ("passwd.ass", SECRETS),
        ("passwd.sub", SECRETS),
        ("passwd.ttml", SECRETS),
        ("passwd.json", SECRETS),
        ("passwd.json", '{"hunter2": "hunter2"}'),
        ("passwd.json", '["hunter2"]'),
        ("passwd.json", '"hunter2"'),
        ("passwd.json", '{"segments": "hunter2"}'),
        ("passwd.json", '{"start": "hunter2", "end": 1, "text": 2}'),
        ("passwd.json3", '{"events": ["hunter2"]}'),
        ("passwd.txt", SECRETS),
    ],
)
def test_an_error_says_nothing_of_a_file_that_is_no_transcript(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / "videos.jsonl").write_text(json.dumps({"id": "a", "transcript": name}))

    assert "hunter2" not in refusal(open_source, tmp_path / "videos.jsonl")


def test_an_error_says_nothing_of_a_file_that_is_no_truth(tmp_path):
    write(tmp_path, a__vtt=VTT, passwd=SECRETS, steps__txt="boil\npour\n")
    row = {"id": "a", "transcript": "a.vtt", "truth": "passwd"}
    (tmp_path / "videos.jsonl").write_text(json.dumps(row))

    message = refusal(open_source, tmp_path / "videos.jsonl")

    assert "hunter2" not in message
    assert "passwd:1: columns must be video, start, end, keystep, got none of them" in message


LONG = "x" * 3_000_000


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: make_vocabulary([f"# {LONG}", f"# {LONG}"]),
        lambda folder: Vocabulary((LONG, LONG)),
        lambda folder: Vocabulary(("a", "b")).index(LONG),
        lambda folder: Vocabulary(("a", "\ud800" + LONG)),
        lambda folder: Vocabulary(("a", "b"), {LONG: (7,)}),
        lambda folder: open_source(LONG),
        lambda folder: open_source("demo", split=LONG),
        lambda folder: Shard.parse(LONG),
        lambda folder: open_source(write(folder, a__jsonl=LONG) / "a.jsonl"),
        lambda folder: open_source(write(folder, a__csv=LONG) / "a.csv"),
        lambda folder: open_source(
            write(folder, a__jsonl=json.dumps({"transcript": LONG})) / "a.jsonl"
        ),
        lambda folder: build_vocabulary(
            f"crosstask:{write(folder, tasks_primary__txt=LONG, videos__csv='')}"
        ),
        lambda folder: read_vocabulary(write(folder, a__txt=f"#{LONG}\nx\n#{LONG}\n") / "a.txt"),
        lambda folder: read_transcript(write(folder, a__json=json.dumps({LONG: 1})) / "a.json"),
    ],
)
def test_no_message_quotes_megabytes(tmp_path, make):
    with pytest.raises(StepgraphError) as caught:
        make(tmp_path)

    assert len(str(caught.value)) < 1500


def test_no_problem_quotes_megabytes(tmp_path):
    database = {"a": ENTRY, "b": {**ENTRY, "class": LONG, "subset": LONG, "duration": LONG}}
    database["c"] = {**ENTRY, "annotation": [{**STEPS[0], "label": LONG}, {"id": LONG}]}
    write(tmp_path, COIN__json=json.dumps({"database": database}))

    for problem in open_source(f"coin:{tmp_path}").problems.found:
        assert len(str(problem)) < 1000
        assert "x" * 300 not in str(problem)


def test_what_is_quoted_is_cut():
    assert quoted("tea") == "'tea'"
    assert quoted("x" * 500) == f"'{'x' * 200}'…"
    assert quoted(["x" * 500], 10) == f"['{'x' * 8}…"
    assert quoted("a\x1b\n") == r"'a\x1b\n'"


# --- Videos that are said to last a week


def test_a_cue_after_a_week_takes_no_memory(tmp_path):
    write(tmp_path, a__srt="1\n167:59:50,000 --> 167:59:55,000\nboil\n", steps__txt="boil\npour\n")
    tracemalloc.start()
    try:
        [video] = open_source(tmp_path).videos
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert video.duration == 604_795
    assert peak < 4_000_000


@pytest.mark.parametrize("shard", [Shard(), Shard(1, 2)])
def test_truth_of_videos_that_last_a_week_takes_no_memory(tmp_path, shard):
    rows = ["video,start,end,keystep", *(f"v{n},604790,604795,boil" for n in range(40))]
    write(tmp_path, truth__csv="\n".join(rows), steps__txt="boil\npour\n")
    for number in range(40):
        (tmp_path / f"v{number}.srt").write_text("1\n167:59:50,000 --> 167:59:55,000\nboil\n")
    open_source(tmp_path, shard=shard)  # what is imported at first takes memory, too
    tracemalloc.start()
    try:
        dataset = open_source(tmp_path, shard=shard)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 8_000_000  # a row of one of them is 5 MB
    assert len(dataset.truth) == len(dataset.videos)
    first = next(iter(dataset.truth))
    assert dataset.truth[first].segments()[0][:2] == (604_790, 604_795)
    assert "gone" not in dataset.truth
