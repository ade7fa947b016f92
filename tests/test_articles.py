"""Articles in every layout they come in, and what is broken in them."""

import csv
import json
import re

import pytest

from stepgraph.errors import DataError
from stepgraph.problems import Problems
from stepgraph.vocabulary import Article, articles, read_articles

TEA = Article("Make Tea", ("Boil water", "Add the leaves"))
SOUP = Article("Make Soup", ("Chop", "Stir"))

ALL = (
    "headline,title,text\r\n"
    '"\nKeep related supplies in the same area.,\nUse clips, lines, and ""hooks"".,\n",'
    'How to Be Tidy1,"If you\'re tidy,\n\nkeep tidy.\n,"\r\n'
    '"\r\nPrepare your paint.",How to Paint a Mural,\r\n'
    '"\nThrow things out.",How to Be Tidy2,"Old\nthings"\r\n'
)
SEP = (
    "overview,headline,text,sectionLabel,title\n"
    '" Art, online.\n","\nSell yourself first.","Stop and\nthink.",Steps,How to Sell Art\n'
    '" Art, online.\n","\nJoin a\ncommunity.","\n\n;\n",Steps,How to Sell Art\n'
    ",Wet the brush.,,Wash,How to Clean a Brush1\n"
    ",,No headline here.,Wash,How to Clean a Brush1\n"
    ",Hang it up.,,Dry,How to Clean a Brush2\n"
)


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(path):
    """All articles of a file, and its problems as text."""
    problems = Problems()
    found = list(read_articles(path, problems=problems))
    return found, [str(problem).replace(f"{path.parent}/", "") for problem in problems.found]


def lines(*contents):
    return "".join(json.dumps(content, ensure_ascii=False) + "\n" for content in contents)


def as_object(article):
    return {"title": article.title, "steps": list(article.steps)}


# JSON lines


def test_json_lines_are_read_in_order(tmp_path):
    path = write(tmp_path / "a.jsonl", lines(as_object(TEA), as_object(SOUP)))

    assert read(path) == ([TEA, SOUP], [])


@pytest.mark.parametrize("start", ["\ufeff", "\n\n  "], ids=["mark", "blank lines"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["unix", "windows"])
def test_byte_order_marks_blank_lines_and_line_ends_do_not_matter(tmp_path, start, ending):
    text = start + ending.join([json.dumps(as_object(TEA)), "", json.dumps(as_object(SOUP))])

    assert read(write(tmp_path / "a.jsonl", text)) == ([TEA, SOUP], [])


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Boil water.", "Boil water"),
        ("  Boil\t the \n water . ", "Boil the water"),
        ("Add 1\xa0cup (240\xa0ml).", "Add 1 cup (240 ml)"),
        ("Boil water.,", "Boil water"),
        (", Boil water;", "Boil water"),
        ("Wait...", "Wait"),
        ("Enjoy!", "Enjoy!"),
        ("Begin at 5 a.m.", "Begin at 5 a.m."),
        ('Say "stop."', 'Say "stop."'),
        ("Bo\0il\ufeff", "Boil"),
        ("卵を割る", "卵を割る"),
    ],
)
def test_headlines_are_cleaned(tmp_path, written, kept):
    path = write(tmp_path / "a.jsonl", lines({"title": "T", "steps": [written]}))

    assert read(path) == ([Article("T", (kept,))], [])


def test_steps_that_say_nothing_are_dropped(tmp_path):
    content = {"title": "T", "steps": ["", " . ", "Stir", ";", "—", "\n"]}

    assert read(write(tmp_path / "a.jsonl", lines(content))) == ([Article("T", ("Stir",))], [])


def test_titles_lose_the_escapes_of_web_addresses(tmp_path):
    content = {"title": "Play %22Liar%27s  Dice%22 &amp; Win 100%", "steps": ["Roll"]}

    [article] = read(write(tmp_path / "a.jsonl", lines(content)))[0]

    assert article.title == 'Play "Liar\'s Dice" & Win 100%'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"title": "Cut o', "a.jsonl:2: must be JSON of an article, got 'Unterminated string"),
        (b"[1, 2]", "a.jsonl:2: must be JSON of an article, got an object with title and steps"),
        (b'{"title": "T", "steps": [7]}', "a.jsonl:2: .*got steps must be texts, got 7"),
        (b'{"title": "T", "steps": 7}', "a.jsonl:2: .*got steps must be texts, got 7"),
        (b'{"title": "T", "steps": []}', "a.jsonl:2: an article must have steps, got none in 'T'"),
        (b'{"title": "T"}', "a.jsonl:2: an article must have steps, got none in 'T'"),
        (b'{"title": "T", "steps": ["."]}', "a.jsonl:2: an article must have steps, got none"),
        (b'{"steps": ["a"]}', "a.jsonl:2: an article must have a title, got none"),
        (b'{"title": 7, "steps": ["a"]}', "a.jsonl:2: an article must have a title, got none"),
        (b'{"title": " ", "steps": ["a"]}', "a.jsonl:2: an article must have a title, got none"),
        (b'{"title": "caf\xe9"}', "a.jsonl:2: must be UTF-8 text, got byte 0xe9 at position 14"),
        (b'{"title": "T", "steps": ["\\ud800"]}', "a.jsonl:2: an article must have steps"),
        (b'{"title": "T", "steps": ["a\\ud800"]}', "a.jsonl:2: an article must be UTF-8 text"),
        (b"[" * 100_000, "a.jsonl:2: must be JSON nested a few levels deep"),
        (
            b'{"steps": ' + b"9" * 5000 + b"}",
            "a.jsonl:2: must be JSON of an article, got Exceeds",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else "",
)
def test_a_broken_line_is_reported_and_skipped(tmp_path, line, problem):
    good = lines(as_object(TEA)).encode(), lines(as_object(SOUP)).encode()
    path = write(tmp_path / "a.jsonl", good[0] + line + b"\n" + good[1])

    found, [said] = read(path)

    assert found == [TEA, SOUP]
    assert re.match(problem, said)


def test_strict_reading_stops_at_the_first_broken_line(tmp_path):
    path = write(tmp_path / "a.jsonl", lines(as_object(TEA)) + "{\n")
    reading = read_articles(path, problems=Problems(strict=True))

    assert next(reading) == TEA
    with pytest.raises(DataError, match=r"a\.jsonl:2: must be JSON of an article, got "):
        next(reading)


def test_a_line_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(articles, "_LONGEST", 100)
    long = {"title": "T", "steps": ["a" * 350]}
    path = write(tmp_path / "a.jsonl", lines(as_object(TEA), long, as_object(SOUP), {}))

    found, said = read(path)

    assert found == [TEA, SOUP]
    assert said[0].startswith("a.jsonl:2: an article must be at most")
    assert said[1].startswith("a.jsonl:4: an article must have a title")


def test_a_first_line_too_long_is_another_kind_of_file(tmp_path, monkeypatch):
    monkeypatch.setattr(articles, "_LONGEST", 100)
    path = write(tmp_path / "a.json", lines({"database": "a" * 350}, as_object(TEA)))

    with pytest.raises(DataError, match=r"a\.json:1: .* must be at most .*; is it the right file"):
        read(path)


# other shapes of JSON


@pytest.mark.parametrize(
    "fields",
    [
        {"headlines": ["Chop", "Stir"]},
        {"headline": "\nChop.,\nStir."},
        {"steps": "Chop\r\nStir"},
        {"steps": [{"headline": "Chop.", "description": "Use a knife."}, {"headline": "Stir"}]},
        {"methods": [{"name": "One", "steps": ["Chop"]}, {"name": "Two", "steps": ["Stir"]}]},
        {"methods": [], "parts": [{"steps": [{"headline": "Chop"}, {"headline": "Stir"}]}]},
        {"parts": [["Chop"], ["Stir"]]},
        {"sections": [{"headline": "Chop"}, {"steps": []}, {"headlines": ["Stir"]}]},
    ],
    ids=str,
)
def test_common_shapes_of_an_article_are_understood(tmp_path, fields):
    path = write(tmp_path / "a.jsonl", lines({"title": "Make Soup", **fields}))

    assert read(path) == ([SOUP], [])


def test_a_folder_holds_an_article_a_file(tmp_path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "more" / "soup.json", json.dumps(as_object(SOUP), indent=2))
    write(tmp_path / "b.json", "\ufeff" + json.dumps(as_object(TEA), indent=2))
    write(tmp_path / "notes.txt", "not an article")
    write(tmp_path / ".hidden.json", "not an article")

    assert read(tmp_path) == ([TEA, SOUP], [])


def test_broken_files_of_a_folder_are_reported_and_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(articles, "_LONGEST", 100)
    write(tmp_path / "a.json", '{"title": ')
    write(tmp_path / "b.json", lines(as_object(TEA)))
    write(tmp_path / "c.json", json.dumps({"title": "T", "steps": ["a" * 200]}))
    (tmp_path / "d.json").mkdir()

    found, said = read(tmp_path)

    assert found == [TEA]
    assert [line.split("/")[-1].split(": ")[0] for line in said] == ["a.json", "c.json", "d.json"]
    assert said[2].endswith("must be a file, got a folder; check the path")


# the published dump


def test_all_of_the_dump_has_a_method_a_row(tmp_path):
    assert read(write(tmp_path / "wikihowAll.csv", ALL)) == (
        [
            Article(
                "How to Be Tidy1",
                ("Keep related supplies in the same area", 'Use clips, lines, and "hooks"'),
            ),
            Article("How to Paint a Mural", ("Prepare your paint",)),
            Article("How to Be Tidy2", ("Throw things out",)),
        ],
        [],
    )


def test_sep_of_the_dump_has_a_step_a_row(tmp_path):
    assert read(write(tmp_path / "wikihowSep.csv", SEP)) == (
        [
            Article("How to Sell Art", ("Sell yourself first", "Join a community")),
            Article("How to Clean a Brush1", ("Wet the brush",)),
            Article("How to Clean a Brush2", ("Hang it up",)),
        ],
        [],
    )


@pytest.mark.parametrize("text", [ALL, SEP], ids=["all", "sep"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: "\n\n" + text,
        lambda text: text.replace("How to", "How\0 to").replace("headline,", "head\0line,", 1),
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"),
        lambda text: text.replace("title", "Title", 1).replace("headline", " HEADLINE ", 1),
        lambda text: text.rstrip("\r\n"),
        lambda text: text + "\n\n",
    ],
    ids=["mark", "blank", "zero bytes", "unix", "windows", "case", "no line end", "blank end"],
)
def test_the_dump_is_read_however_it_was_passed_on(tmp_path, text, change):
    plain = read(write(tmp_path / "plain.csv", text))

    assert read(write(tmp_path / "changed.csv", change(text))) == plain


def test_columns_are_known_by_their_names(tmp_path):
    text = ',title,text,headline\n0,Make Soup,"…","Chop.,\nStir."\n'

    assert read(write(tmp_path / "mine.csv", text)) == ([SOUP], [])


def test_cells_larger_than_the_limit_of_csv_are_read(tmp_path, monkeypatch):
    limit = csv.field_size_limit()
    text = "headline,title,text\n" + f'"Chop\nStir",Make Soup,"{"a " * 150_000}"\n'

    try:
        assert read(write(tmp_path / "wikihowAll.csv", text)) == ([SOUP], [])
    finally:
        csv.field_size_limit(limit)


def test_broken_rows_are_reported_with_the_line_they_begin_at(tmp_path):
    text = (
        ALL
        + "one,two\r\n"
        + '"Too\nmany",How to T,x,y\r\n'
        + ',How to Do Nothing,"text"\r\n'
        + "Stir.,,text\r\n"
        + '"Chop\nStir",Make Soup,\r\n'
    )

    found, said = read(write(tmp_path / "wikihowAll.csv", text))

    assert found[-1] == SOUP
    assert len(found) == 4
    assert said == [
        "wikihowAll.csv:14: a row must have 3 columns, got 2",
        "wikihowAll.csv:15: a row must have 3 columns, got 4",
        "wikihowAll.csv:17: an article must have steps, got none in 'How to Do Nothing'",
        "wikihowAll.csv:18: an article must have a title, got none",
    ]


def test_a_broken_row_does_not_break_its_article(tmp_path):
    text = SEP.replace(",,No headline here.,Wash,", ",,No headline here.,")

    found, said = read(write(tmp_path / "wikihowSep.csv", text))

    assert [article.title for article in found][1:] == [
        "How to Clean a Brush1",
        "How to Clean a Brush2",
    ]
    assert said == ["wikihowSep.csv:14: a row must have 5 columns, got 4"]


def test_bytes_that_are_no_utf8_cost_one_article_at_most(tmp_path):
    text = ALL.encode().replace(b"Old", b"Ol\xe9").replace(b"your paint", b"your p\xe4int")

    found, said = read(write(tmp_path / "wikihowAll.csv", text))

    assert [article.title for article in found] == ["How to Be Tidy1", "How to Be Tidy2"]
    assert said == [
        "wikihowAll.csv:9: an article must be UTF-8 text, got other bytes in "
        "'How to Paint a Mural'; convert the file"
    ]


@pytest.mark.parametrize("cut", ['"Old\nthings"\r\n', '\nthings"\r\n', '"\r\n'])
def test_a_file_cut_off_in_a_cell_loses_its_last_row(tmp_path, cut):
    text = ALL.removesuffix(cut) + ('"' if cut.startswith('"O') else "")

    found, said = read(write(tmp_path / "wikihowAll.csv", text))

    assert len(found) == 2
    assert said == [
        "wikihowAll.csv:11: a row must be complete, got the end of the file; fetch the file again"
    ]


def test_an_open_quote_does_not_swallow_the_file(tmp_path, monkeypatch):
    limit = csv.field_size_limit(1000)
    monkeypatch.setattr(articles, "_LONGEST", 1000)
    many = "".join(f"Chop.,How to Make Soup {number},text\n" for number in range(100))
    text = 'headline,title,text\nStir.,How to Stir,text\n"Chop.,How to Chop,text\n' + many

    try:
        found, said = read(write(tmp_path / "wikihowAll.csv", text))
    finally:
        csv.field_size_limit(limit)

    assert len(found) > 60
    assert found[-1] == Article("How to Make Soup 99", ("Chop",))
    assert said == [
        "wikihowAll.csv:3: must be CSV, got: field larger than field limit (1000); "
        "is a quote not closed?"
    ]


# what is no file of articles


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"must be articles as JSON lines .*, got an empty file"),
        (b"boil water\nstir\n", r"must be .* or wikihowSep\.csv, got .* 'boil water"),
        (b"video,start,end,keystep\nv,1,2,boil\n", r"must be articles .* 'video,start"),
        (b'[{"title": "T"}]', r"must be articles as JSON lines"),
        (b"\x89PNG\r\n\x00\x00", r"must be articles as JSON lines"),
        (
            '{"title": "T", "steps": ["a"]}'.encode("utf-16"),
            r"must be UTF-8 text, got UTF-16; con",
        ),
        (b"headline,title,text\n", r"must hold articles, got none; is it empty\?"),
        (
            b'{"database": {}}',
            r"must hold articles, got none; the first problem is .*:1: an article must have a",
        ),
        (
            b'{\n  "title": "T",\n  "steps": []\n}',
            r"must hold articles, got none; the first problem is .*:1: must be JSON",
        ),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else "",
)
def test_a_file_of_another_kind_is_one_error(tmp_path, data, message):
    path = write(tmp_path / "file", data)

    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        read(path)


def test_a_path_without_a_file_is_an_error_at_once(tmp_path):
    with pytest.raises(DataError, match="must be a file or folder of articles, got no such file"):
        read_articles(tmp_path / "none.jsonl", problems=Problems())


def test_a_folder_without_articles_is_an_error_at_once(tmp_path):
    write(tmp_path / "a.jsonl", lines(as_object(TEA)))

    with pytest.raises(DataError, match=r"must contain one \.json file an article, got none; "):
        read_articles(tmp_path, problems=Problems())


# real data


@pytest.mark.data
def test_the_real_articles_are_read_without_a_problem(real_data):
    found, said = read(real_data / "wikihow_articles.jsonl")

    assert len(found) == 2110
    assert said == []
    assert sum(len(article.steps) for article in found) == 33_348
