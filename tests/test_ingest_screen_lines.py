"""What is made of lines on a screen, without reading any: sentences with their times."""

from types import SimpleNamespace

import numpy as np
import pytest

from stepgraph.core import Sentence
from stepgraph.ingest import screen
from stepgraph.ingest.screen import ScreenLine, alike, is_text, to_sentences
from test_ingest_screen import FOLD, WHISK, line


def sentences(*rows):
    """Sentences of pictures, each given by its lines or texts."""
    lines = [[one if isinstance(one, ScreenLine) else line(one) for one in row] for row in rows]
    return [tuple(one) for one in to_sentences(lines, float(len(rows)))]


def test_a_line_that_stays_is_one_sentence():
    assert sentences([], [WHISK], [WHISK], [], [], [], [FOLD], [FOLD]) == [
        (0.5, 3.5, WHISK),
        (5.5, 8.0, FOLD),
    ]


def test_the_time_between_two_sentences_is_shared():
    assert sentences([WHISK], [], [], [], [FOLD], [], [WHISK]) == [
        (0.0, 1.5, WHISK),
        (3.5, 5.5, FOLD),
        (5.5, 7.0, WHISK),
    ]
    assert [one[:2] for one in sentences([WHISK], [FOLD])] == [(0.0, 1.0), (1.0, 2.0)]


def test_a_line_that_is_not_read_once_goes_on():
    assert sentences([WHISK], [], [WHISK]) == [(0.0, 3.0, WHISK)]


def test_the_last_sentence_ends_with_the_video():
    assert to_sentences([[line(WHISK)], [line(WHISK)]], 1.3) == (Sentence(0.0, 1.3, WHISK),)


def test_of_half_faded_readings_the_best_is_taken():
    faded = line("sk the eggs and", 0.8, left=40.0)
    misread = line("whisk the egqs and milk", 0.85)

    assert sentences([faded], [WHISK], [misread], [faded]) == [(0.0, 4.0, WHISK)]


def test_a_caption_that_is_typed_letter_by_letter_is_one_sentence():
    assert sentences(["whisk"], ["whisk the eggs"], [WHISK], [WHISK]) == [(0.0, 4.0, WHISK)]


def test_captions_that_differ_by_a_word_stay_two():
    flour, sugar = "add two cups of flour", "add two cups of sugar"

    assert [text for *_, text in sentences([flour], [flour], [sugar], [sugar])] == [flour, sugar]


def test_a_word_elsewhere_is_not_part_of_a_caption():
    label = line("milk", top=10.0)

    assert len(sentences([label], [label], [WHISK], [WHISK])) == 2


def test_lines_that_come_and_go_together_are_one_sentence():
    caption = [line("and the milk", top=122.0), line("whisk the eggs", top=100.0)]

    assert sentences(caption, caption) == [(0.0, 2.0, "whisk the eggs and the milk")]


def test_a_line_belongs_to_a_text_if_it_is_near_to_one_of_its_lines():
    words = ["whisk the eggs", "and the milk", "and the sugar", "until it is foamy"]
    caption = [line(text, top=100.0 + 22 * at) for at, text in enumerate(words)]

    assert sentences(caption, caption) == [(0.0, 2.0, " ".join(words))]


def test_a_text_lasts_from_its_first_line_to_its_last():
    above, below = line("whisk the eggs", top=100.0), line("and the milk", top=122.0)

    text = "whisk the eggs and the milk"
    assert sentences([above], [above, below], [above, below], [below]) == [(0.0, 4.0, text)]
    assert sentences([below], [above, below], [above, below], [above]) == [(0.0, 4.0, text)]


def test_captions_after_each_other_are_not_joined():
    assert [text for *_, text in sentences([WHISK], [FOLD])] == [WHISK, FOLD]


def test_of_a_list_that_grows_the_newest_line_is_said():
    eggs, milk = line("two eggs", top=10.0), line("a pint of milk", top=40.0)

    assert sentences([eggs], [eggs], [eggs, milk], [eggs, milk], [eggs]) == [
        (0.0, 2.0, "two eggs"),
        (2.0, 4.0, "a pint of milk"),
        (4.0, 5.0, "two eggs"),
    ]


def test_a_line_that_is_seen_once_must_be_certain():
    assert sentences([line(WHISK, 0.85)]) == []
    assert len(sentences([line(WHISK, 0.95)])) == 1
    assert len(sentences([line(WHISK, 0.85)], [line(WHISK, 0.85)])) == 1


def test_what_is_there_throughout_is_left_out_and_subtitles_that_change_are_not():
    names = [line("Workshop Weekly", top=5.0), line("Workshop Weekiy", 0.8, top=5.0)]
    rows = [[names[number % 5 == 0], f"{word} the thing"] for number, word in enumerate(WORDS)]

    texts = [text for *_, text in sentences(*rows)]

    assert len(rows) == 40
    assert texts == [f"{word} the thing" for word in WORDS[::2]]


@pytest.mark.parametrize(
    ("seconds", "of", "lasts"), [(20, 30, True), (19, 30, False), (30, 60, True), (29, 60, False)]
)
def test_what_lasts_half_a_video_and_twenty_seconds_is_there_throughout(seconds, of, lasts):
    rows = [[WHISK]] * seconds + [[]] * (of - seconds)

    assert (sentences(*rows) == []) is lasts


def test_a_line_that_is_gone_for_two_seconds_comes_anew():
    assert [one[:2] for one in sentences([WHISK], [], [], [WHISK])] == [(0.0, 1.5), (2.5, 4.0)]


def test_of_texts_that_come_at_once_the_longer_is_said_and_none_begins_before_the_video():
    both = [line("stir the pot", top=10.0), line(WHISK, top=200.0)]

    assert sentences(both, both) == [(0.0, 2.0, WHISK)]
    assert sentences(both[::-1], both[::-1]) == [(0.0, 2.0, WHISK)]


def test_a_text_is_joined_with_one_of_the_nine_that_came_last():
    def shown(between):
        tops = [100.0 + 60 * number for number in range(1, between + 1)]
        others = [line(f"{VERBS[at]} the thing", top=top) for at, top in enumerate(tops)]
        lines = [line("and two cups of the milk", top=30.0), *others, line("so", top=52.0)]
        return sentences(lines, lines)

    assert shown(8)[0][2] == "and two cups of the milk so"
    assert shown(9)[0][2] == "and two cups of the milk"


VERBS = ("lift", "turn", "glue", "sand", "drill", "paint", "press", "hold", "wipe", "bend")
WORDS = [verb + tail for verb in VERBS for tail in (" down", " up") for _ in range(2)]


def test_one_caption_of_a_short_clip_is_no_watermark():
    assert sentences(*[[WHISK]] * 8) == [(0.0, 8.0, WHISK)]


@pytest.mark.parametrize(
    "text",
    ["000", "88", "1717", "m", "口", "00:12", "xkrtz", "|||", "A", "3/4", "l1l1 ao 0o0", ""],
)
def test_rubbish_is_no_text(text):
    assert not is_text(text)


@pytest.mark.parametrize(
    "text",
    ["REFRIGERATE 1 HOUR MINIMUM", "fill about 3/4 full", "Mix", "crème brûlée", "加入两个鸡蛋"],
)
def test_captions_are_text(text):
    assert is_text(text)


def test_texts_without_letters_are_alike_only_if_they_are_the_same():
    assert alike("", "")
    assert not alike("", WHISK)
    assert not alike("ab", "abc")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("abcdefghijklmnop", "abcdefghijklmn", True),  # all of the shorter
        ("abcdefghijklmnop", "abcdefghijklmnxy", True),  # two of sixteen letters
        ("abcdefghijklmnop", "abcdefghijklmxyz", False),
        ("abcdefg", "abcdefx", False),  # less than one of seven
        ("abcd", "abcx", False),
        ("abc", "xabcx", True),
        ("ab-c", "A.B c", True),
        ("abc def", "ab-cxdef", True),
        ("abXcdYefZghWij", "abcdefghij", False),  # no three letters in a row
    ],
)
def test_readings_share_all_but_an_eighth_in_runs_of_three(one, other, same):
    assert alike(one, other) is alike(other, one) is same


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Mix", True), ("me", False), ("mix 123", True), ("mix 1234", False), ("aw kst kst", False)],
)
def test_half_of_a_text_is_words_and_one_has_three_letters(text, expected):
    assert is_text(text) is expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("lengths", False),
        ("lengthy", True),
        ("ngths", False),
        ("strngth", False),
        ("éclair", True),
    ],
)
def test_five_consonants_in_a_row_are_no_word(word, expected):
    assert screen._is_word(word) is expected


def box_of(rng):
    left, top, width, height = rng.integers(1, 30, 4)
    return (left, top, left + width, top + height)


def test_pixels_between_boxes_are_those_between_their_nearest_sides():
    rng = np.random.default_rng(0)

    for _ in range(50):
        one, other = box_of(rng), box_of(rng)
        across, down = (max(one[at] - other[at + 2], other[at] - one[at + 2]) for at in (0, 1))
        found = screen._gap(one, other)
        assert max(0, found) == max(0, across, down)
        assert found == screen._gap(other, one)


def shown_from(first, last, top, height=20.0, left=0.0):
    box = (left, top, left + 100.0, top + height)
    return screen._Shown(first, last, ScreenLine("any", 0.9, box))


@pytest.mark.parametrize(
    ("other", "joined"),
    [
        (shown_from(0, 9, 40.0), True),  # as far below as it is high
        (shown_from(0, 9, 41.0), False),
        (shown_from(0, 9, 30.0, height=9.0), False),  # of two heights the smaller
        (shown_from(0, 9, 0.0, left=120.0), True),
        (shown_from(0, 9, 0.0, left=121.0), False),
        (shown_from(5, 9, 20.0), True),  # half of the time
        (shown_from(6, 9, 20.0), False),
        (shown_from(0, 19, 20.0), True),
        (shown_from(1, 20, 20.0), False),
        (shown_from(10, 19, 20.0), False),
    ],
)
def test_lines_belong_together_that_are_near_for_half_of_their_time(other, joined):
    one = shown_from(0, 9, 0.0)

    assert one.belongs_to(other) is other.belongs_to(one) is joined


def test_a_line_is_the_same_only_where_it_was():
    one = screen._Shown(0, 0, line("whisk the eggs", left=10.0))
    right = one.best.box[2]

    assert one.is_again(line("whisk the eggz", left=right))
    assert not one.is_again(line("whisk the eggz", left=right + 1))
    assert one.is_again(line("Whisk, the eggs!", left=right + 500))


def test_the_best_reading_is_long_and_certain():
    one = screen._Shown(0, 0, line("whisk the eggs", 0.8))
    for row, other in enumerate([line("whisk the", 0.99), line("whisk the eggs", 0.9)], 1):
        one.go_on(row, other)

    assert (one.last, one.seen, one.best.confidence) == (2, 3, 0.9)
    assert one.height == 20.0


def test_lines_of_a_text_are_read_from_above_and_from_the_left():
    lines = [
        line("milk", top=122.0, left=380.0),
        line("cups of", top=104.0, left=400.0),
        line("add two", top=108.0, left=320.0),
    ]

    assert sentences(lines, lines) == [(0.0, 2.0, "add two cups of milk")]


def test_only_lines_that_are_likely_text_are_taken_and_each_once(monkeypatch):
    corners = np.array([[3.0, 4.0], [9.0, 4.0], [9.0, 6.0], [3.0, 6.0]])
    texts, sure = ("fold  it", "add milk", "Fold it", "xkrtz"), (0.7, 0.69, 0.95, 0.99)
    asked = []

    def read(picture):
        asked.append(picture)
        return SimpleNamespace(
            txts=texts, scores=sure, boxes=[corners, corners, 2 * corners, corners]
        )

    monkeypatch.setattr(screen, "_load_reader", lambda: read)
    picture = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)

    assert screen._lines_in(picture) == [ScreenLine("fold it", 0.7, (3.0, 4.0, 9.0, 6.0))]
    assert asked[0][0, 0].tolist() == [2, 1, 0]  # blue, green, red
    monkeypatch.setattr(
        screen,
        "_load_reader",
        lambda: lambda _: SimpleNamespace(txts=None, scores=None, boxes=None),
    )
    assert screen._lines_in(picture) == []
