"""Cleaning: every spoken word once, at one time, and nothing that was not spoken."""

import html
import json
import os
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from stepgraph.core import LONGEST, Sentence
from stepgraph.ingest import read_transcript
from stepgraph.ingest.cleaning import clean, clean_lists
from stepgraph.ingest.formats import transcript_from_lists

DATA = Path(
    os.environ.get("STEPGRAPH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
WORDS = (
    "add",
    "the",
    "egg",
    "and",
    "stir",
    "it",
    "well",
    "then",
    "pour",
    "milk",
    "in",
    "a",
    "pan",
)


def words_of(sentences):
    return " ".join(sentence.text for sentence in sentences).split()


def texts_of(*cues):
    return [sentence.text for sentence in clean(Sentence(*cue) for cue in cues)]


def random_lines(rng):
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) for _ in range(rng.randint(1, 40))]


def rolled(lines, rng):
    """Show each line below the one before, as YouTube does, with its 10 ms cues in between."""
    cues, clock, above = [], rng.random(), " "
    for line in lines:
        end = clock + rng.uniform(1, 4)
        stamped = re.sub(r" (\S+)", r"<00:00:01.200><c> \1</c>", line)
        cues.append(Sentence(clock, end, f"{above}\n{stamped}"))
        cues.append(Sentence(end, end + 0.01, f"{line}\n "))
        clock, above = end + 0.01, line
    return cues


def grown(lines, rng):
    """Show each line again with every further word, as live transcripts do."""
    cues, clock = [], rng.random()
    for line in lines:
        words = line.split()
        for count in range(1, len(words) + 1):
            cues.append(Sentence(clock, clock + 0.4, " ".join(words[:count])))
            clock += 0.4
        clock += 1.0
    return cues


@pytest.mark.parametrize("display", [rolled, grown])
def test_words_in_are_words_out(display):
    for seed in range(30):
        rng = random.Random(seed)
        lines = random_lines(rng)

        sentences = clean(display(lines, rng))

        assert words_of(sentences) == " ".join(lines).split()


def test_rolling_words_are_counted_once():
    assert texts_of(
        (0.0, 2.0, " \ncrack<00:00:00.400><c> the</c><00:00:00.900><c> eggs</c>"),
        (2.0, 2.01, "crack the eggs\n "),
        (2.01, 4.0, "crack the eggs\nwhisk<00:00:02.500><c> them</c>"),
        (4.0, 4.01, "whisk them\n "),
        (4.01, 6.0, "whisk them\ninto a bowl"),
    ) == ["crack the eggs", "whisk them", "into a bowl"]


def test_what_is_said_after_a_pause_of_a_rolling_transcript_is_kept_whole():
    assert texts_of(
        (0.0, 2.0, "crack the eggs"),
        (2.0, 4.0, "crack the eggs\nwhisk them"),
        (4.0, 6.0, "whisk them\ninto a bowl"),
        (9.0, 11.0, "and now the milk"),
        (11.2, 13.0, "and now the milk"),
    ) == ["crack the eggs", "whisk them", "into a bowl", *["and now the milk"] * 2]


def test_three_rolling_lines_are_counted_once():
    assert texts_of(
        (0.0, 2.0, "one two\nthree four\nfive six"),
        (2.0, 4.0, "three four\nfive six\nseven eight"),
    ) == ["one two three four five six", "seven eight"]


def test_growing_words_are_counted_once():
    assert texts_of((0, 1, "add"), (1, 2, "add the"), (2, 3, "Add the egg")) == [
        "add",
        "the",
        "egg",
    ]


def test_a_line_spoken_again_in_a_rolling_transcript_is_kept():
    assert texts_of(
        (0.0, 2.0, " \nstir it"),
        (2.0, 2.01, "stir it\n "),
        (2.01, 4.0, "stir it\nstir it"),
    ) == ["stir it", "stir it"]


def test_what_is_said_again_later_is_kept():
    assert texts_of((0, 2, "stir it well"), (2.2, 4, "stir it well")) == ["stir it well"] * 2


def test_part_of_a_line_said_again_is_kept():
    assert texts_of((0, 2, "now stir it"), (2, 4, "stir it again")) == [
        "now stir it",
        "stir it again",
    ]


def test_a_stammer_in_a_plain_transcript_is_kept():
    plain = [(10.0 * i, 10.0 * i + 9, f"sentence number {i}") for i in range(40)]

    said = texts_of(
        (0, 1, "took"), (1, 2, "took my square"), *((a + 5, b + 5, t) for a, b, t in plain)
    )

    assert said[:2] == ["took", "took my square"]


def test_a_long_line_shown_again_in_a_plain_transcript_is_dropped():
    plain = [(10.0 * i, 10.0 * i + 9, f"sentence number {i}") for i in range(1, 41)]

    said = texts_of((0, 1, "crack the eggs"), (1, 2, "crack the eggs"), *plain)

    assert said[:2] == ["crack the eggs", "sentence number 1"]


def test_one_short_repeat_in_a_short_transcript_is_a_stammer():
    assert texts_of((0, 1, "took"), (1, 2, "took my square"), (2, 3, "and went")) == [
        *("took", "took my square", "and went"),
    ]


@pytest.mark.parametrize(("cues", "rolling"), [(40, True), (41, False)])
def test_short_repeats_are_dropped_where_a_twentieth_of_all_cues_repeats(cues, rolling):
    plain = [(10.0 * i, 10.0 * i + 9, f"sentence number {i}") for i in range(1, cues - 3)]
    late = 10.0 * cues

    said = texts_of(
        *((0, 1, "took"), (1, 2, "took a cup"), *plain),
        *((late, late + 1, "put"), (late + 1, late + 2, "put it down")),
    )

    expected = ("a cup", "it down") if rolling else ("took a cup", "put it down")
    assert (len(said), said[1], said[-1]) == (cues, *expected)


@pytest.mark.parametrize(("lines", "times"), [(20, 1), (21, 2)])
def test_more_lines_than_a_screen_has_cannot_be_shown_again(lines, times):
    shown = "\n".join(f"line number {n}" for n in range(lines))

    assert len(texts_of((0, 1, shown), (1, 2, shown))) == times


def test_starts_more_than_a_millisecond_apart_are_two():
    assert len(texts_of((1.0, 3, "crack"), (1.0015, 4, "whisk"))) == 2
    assert len(texts_of((1.0, 3, "crack"), (1.0005, 4, "whisk"))) == 1


def test_what_starts_together_does_so_with_the_first():
    cues = [(1.0, 3, "crack"), (1.0006, 4, "whisk"), (1.0012, 5, "pour")]

    assert texts_of(*cues) == ["crack whisk", "pour"]


def test_what_touches_a_cue_that_others_were_joined_to_belongs_to_the_longest():
    cues = [(1.0, 9.0, "crack"), (1.0005, 2.0, "whisk"), (8.0, 8.0, "pour")]

    assert texts_of(*cues) == ["crack whisk pour"]


def test_a_sure_repeat_is_dropped_beside_one_that_is_none():
    plain = [f"sentence number {n}" for n in range(90)]
    texts = ["took my square", "took my square", "put", "put it down", *plain]

    said = transcript_from_lists(
        {"start": [*range(94)], "end": [*range(1, 95)], "text": texts}, origin="v"
    )

    assert [one.text for one in said[:3]] == ["took my square", "put", "put it down"]


PLAIN = [f"sentence number {n}" for n in range(40)]


@pytest.mark.parametrize(
    ("starts", "ends", "texts"),
    [
        ([1], [2], ["hello"]),
        ([0.0, 0.001], [0.001, 1.0], ["hello", "bye"]),
        ([1.0], [LONGEST], ["hello"]),
        ([0.0, 1.0], [1.0, 2.0], ["an egg", "eggs are good"]),
        # A cue ends where the next one starts, be there silence between others or not.
        ([0.0, 2.0, 9.0], [5.0, 3.0, 10.0], ["hello", "how are you", "bye"]),
    ],
)
def test_a_plain_transcript_is_cleaned_at_once_as_it_is_with_care(starts, ends, texts):
    quick = clean_lists([*starts], [*ends], texts)

    assert quick == clean(map(Sentence, starts, ends, texts))
    assert [sentence.text for sentence in quick] == texts


def test_whatever_is_cleaned_at_once_is_as_with_care():
    repeated = ["took", "took a cup", "put", "put it down", *PLAIN[:36]]
    lists = [([*range(40)], [*range(1, 41)], repeated)]
    lists.append(([0.0, 1.1], [1.0, 2.0], ["crack the eggs", "crack the eggs now"]))
    for seed in range(200):
        rng = random.Random(seed)
        starts = sorted(rng.choices(range(40), k=rng.randint(1, 20)))
        ends = [start + rng.choice([0, 0.9, 1, 1, 3]) for start in starts]
        lists.append(
            (starts, ends, [" ".join(rng.choices("abA", k=rng.randint(0, 4))) for _ in starts])
        )

    quick = [clean_lists(*one) for one in lists]

    for one, found in zip(lists, quick, strict=True):
        assert found is None or found == clean(map(Sentence, *one))
    assert len([found for found in quick if found]) > 20


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("<i>add</i> <b>salt</b>", "add salt"),
        ("<c.colorE5E5E5>add</c><00:00:01.500><c> salt</c>", "add salt"),
        ("<v Anna>add salt</v>", "add salt"),
        (r"{\an8}add salt", "add salt"),
        ("add<br/>salt", "add salt"),
        ("salt &amp; pepper, it&#39;s&nbsp;fine", "salt & pepper, it's fine"),
        ("&lt;i&gt; is a tag", "<i> is a tag"),
        ("[Music] add [ __ ] salt", "add salt"),
        ("(upbeat music) add salt (Applause)", "add salt"),
        ("add salt (or pepper)", "add salt (or pepper)"),
        ("(soft\nmusic) add salt", "add salt"),
        ("♪ la la ♪", "la la"),
        (">> add salt", "add salt"),
        ("stir < 5 minutes and > 2", "stir < 5 minutes and > 2"),
        ("  add \t salt \u200b\n\n now ", "add salt now"),
        ("add\x00 sa\ud800lt", "add salt"),
    ],
)
def test_only_what_is_spoken_remains(raw, said):
    assert texts_of((0, 1, raw)) == [said]


@pytest.mark.parametrize("raw", ["", " \n ", "[Music]", "♪♪", "(applause)", "<i></i>"])
def test_a_cue_without_words_is_dropped(raw):
    assert texts_of((0, 1, raw), (1, 2, "add salt")) == ["add salt"]


def test_no_cues_are_no_sentences():
    assert clean([]) == ()


def test_a_sentence_ends_where_the_next_begins():
    assert clean([Sentence(0, 5, "crack"), Sentence(2, 6, "whisk")]) == (
        Sentence(0, 2, "crack"),
        Sentence(2, 6, "whisk"),
    )


def test_cues_that_start_together_are_one_sentence():
    assert clean([Sentence(1, 3, "crack"), Sentence(1, 4, "whisk")]) == (
        Sentence(1, 4, "crack whisk"),
    )


def test_a_cue_without_length_joins_the_sentence_it_touches():
    assert clean([Sentence(0, 3, "crack"), Sentence(3, 3, "eggs"), Sentence(4, 5, "whisk")]) == (
        Sentence(0, 3, "crack eggs"),
        Sentence(4, 5, "whisk"),
    )


def test_a_cue_without_length_that_touches_nothing_lasts_until_the_next_or_a_second():
    assert clean(
        [Sentence(0, 0, "crack"), Sentence(0.5, 0.5, "eggs"), Sentence(9, 9, "well")]
    ) == (
        Sentence(0, 0.5, "crack"),
        Sentence(0.5, 1.5, "eggs"),
        Sentence(9, 10, "well"),
    )


def spoken_at(sentences, time):
    """Say what is spoken at a time, the slow way: the last to have started, if not over."""
    started = [one for one in sentences if one.start <= time]
    latest = max((one.start for one in started), default=None)
    last = [one for one in started if one.start == latest]
    return " ".join(one.text for one in last) if any(time < one.end for one in last) else ""


def test_at_every_time_the_last_cue_that_started_is_spoken():
    for seed in range(20):
        rng = random.Random(seed)
        starts = [rng.randint(0, 30) for _ in range(15)]
        cues = [
            Sentence(start, start + rng.randint(1, 8), f"word{i}")
            for i, start in enumerate(starts)
        ]

        sentences = clean(cues)

        for half_second in range(80):
            time = half_second / 2
            assert " ".join(
                one.text for one in sentences if one.start <= time < one.end
            ) == spoken_at(cues, time)


def test_no_word_is_lost_and_sentences_never_overlap():
    for seed in range(20):
        rng = random.Random(seed)
        starts = [rng.choice([rng.randint(0, 30), 30 * rng.random()]) for _ in range(40)]
        cues = [
            Sentence(start, start + rng.choice([0, 0, 0.05, 3]), f"word{i}")
            for i, start in enumerate(starts)
        ]

        sentences = clean(cues)

        assert sorted(words_of(sentences)) == sorted(cue.text for cue in cues)
        assert all(one.start < one.end for one in sentences)
        assert all(a.end <= b.start for a, b in pairwise(sentences))


def plain_words(texts):
    """Split published texts the slow way: noise marks out, entities resolved."""
    text = re.sub(r"\[[^\]]*\]|\{[^}]*\}|[♪♫]", " ", "\n".join(texts))
    text = re.sub(r"\([^)]*(music|speaks|laugh|mumbles|cough)[^)]*\)", " ", text, flags=re.I)
    return html.unescape(text).split()


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "crosstask").is_dir(), reason="CrossTask narration is not here")
def test_every_word_of_crosstask_survives_exactly_once():
    for path in sorted((DATA / "crosstask" / "narration").glob("*.json")):
        texts = json.loads(path.read_text("utf-8"))["text"]
        assert words_of(read_transcript(path)) == plain_words(texts), path.name


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "howto100m").is_dir(), reason="HowTo100M narration is not here")
def test_every_word_of_howto100m_survives_exactly_once():
    videos = json.loads((DATA / "howto100m" / "raw_caption.json").read_text("utf-8"))
    for video, record in videos.items():
        sentences = transcript_from_lists(record, origin=video)
        assert words_of(sentences) == plain_words(record["text"]), video


@pytest.mark.parametrize(("line", "dropped"), [("took it", False), ("took it off", True)])
def test_two_words_said_again_may_be_said_twice(line, dropped):
    others = [(10.0 * i, 10.0 * i + 9, f"number {i} is another one") for i in range(1, 40)]

    said = texts_of((0, 1, line), (1, 2, f"{line} the stove"), *others)

    assert said[1] == ("the stove" if dropped else f"{line} the stove")
