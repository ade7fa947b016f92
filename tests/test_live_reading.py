"""Lines of a transcript as they come: what they mean, and what becomes of rubbish."""

import io
import threading
import time
from itertools import islice

import pytest

from stepgraph.assistant.live_reading import ArrivedSentence, LineParser, arriving, read_live
from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.problems import Problems


def read(data, problems=None, **options):
    reader = LineParser("-", problems if problems is not None else Problems())
    lines = arriving(io.BytesIO(data), clock=lambda: 0.0)
    return [one for one in read_live(lines, reader, **options) if isinstance(one, ArrivedSentence)]


def texts(data, problems=None):
    return [(now, one.start, one.end, one.text) for now, one in read(data, problems)]


def test_a_line_begins_with_its_time():
    said = b"0.0 boil it\n[0:12] pour it\n1:00:02.5 drink it\n"

    assert texts(said)[:2] == [(0, 0, 5, "boil it"), (12, 12, 17, "pour it")]
    assert texts(said)[2] == (3602.5, 3602.5, 3607.5, "drink it")


@pytest.mark.parametrize("head", ["WEBVTT\n\n", ""])
def test_cues_of_subtitles_are_known_when_they_end(head):
    said = (
        f"{head}1\n00:00:01,000 --> 00:00:03,500\nboil <i>it</i>\n\n2\n00:04.0 --> 00:06.0\npour"
    )

    assert texts(said.encode()) == [(3.5, 1, 3.5, "boil it"), (6, 4, 6, "pour")]


def test_lines_of_captions_that_are_shown_again_are_said_once():
    again = b"0:03.0 --> 0:05.0\nnow boil the water\nadd tea\n"
    said = b"0:01.0 --> 0:03.0\nnow boil the water\n\n" + again

    assert [text for *_, text in texts(said)] == ["now boil the water", "add tea"]


def test_plain_lines_are_said_when_they_arrive():
    reader = LineParser("-", Problems())

    assert reader.read("2 eggs go in", 10.0) == [
        ArrivedSentence(10.0, Sentence(5.0, 10.0, "2 eggs go in"))
    ]
    assert reader.read("7", 12.0)[0].sentence == Sentence(7.0, 12.0, "7")
    assert reader.timed is False


def test_a_number_alone_may_be_said_too():
    assert [text for *_, text in texts(b"1\nand two\n")] == ["1", "and two"]
    assert [text for *_, text in texts(b"42")] == ["42"]


def test_one_wrong_time_is_taken_as_right_after():
    problems = Problems()

    found = texts(b"0.0 a\n100.0 b\n5.0 c\n102.0 d\n9999999.0 e\n104.0 f\n", problems)

    assert [start for _, start, _, _ in found] == [0, 100, 100, 102, 102, 104]
    assert dict(problems.counts) == {"jump in time": 2}


def test_a_clock_that_begins_anew_goes_on():
    found = texts(b"0.0 a\n100.0 b\n0.0 c\n3.0 d\n9.0 e\n")

    assert [start for _, start, _, _ in found] == [0, 100, 100, 103, 109]


def test_rubbish_is_left_out_and_noted():
    problems = Problems()
    said = b"0.0 a\n\xff\xfe\x00\x01\n" + b"x" * 300_000 + b"\n\n2.0 b without newline"

    assert [text for *_, text in texts(said, problems)] == ["a", "b without newline"]
    assert dict(problems.counts) == {"line that is not text": 1, "line too long": 1}
    assert problems.found[1].where == "-:3"


def test_a_cue_that_ends_before_it_starts_is_left_out():
    problems = Problems()

    assert texts(b"0:09.0 --> 0:03.0\nboil\n\n0:10.0 --> 0:12.0\npour\n", problems) == [
        (12, 10, 12, "pour")
    ]
    assert dict(problems.counts) == {"impossible time": 1}


def test_a_file_of_plain_lines_must_have_times():
    with pytest.raises(DataError, match="lines must begin with their times"):
        read(b"boil the water\n", must_be_timed=True)


def test_nothing_gives_nothing():
    assert read(b"") == read(b"\n\n  \n") == read(b"WEBVTT\n") == []


class Stalling(io.BytesIO):
    """Lines of which each but the first lets wait."""

    def readline(self, *limit):
        if self.tell():
            time.sleep(0.2)
        return super().readline(*limit)


def test_a_stream_that_stalls_lets_time_go_by():
    lines = arriving(Stalling(b"boil it\npour it\n"), patience=0.05)
    found = list(read_live(lines, LineParser("-", Problems())))

    assert sum(isinstance(one, ArrivedSentence) for one in found) == 2
    assert any(isinstance(one, float) for one in found)


def test_a_stream_with_times_that_stalls_is_waited_for():
    lines = arriving(Stalling(b"1.0 boil it\n2.0 pour it"), patience=0.05)
    found = list(read_live(lines, LineParser("-", Problems())))

    assert [one.now for one in found] == [1.0, 2.0]


def test_a_file_that_grows_within_a_line_is_waited_for(tmp_path):
    file = tmp_path / "said.txt"
    file.write_bytes(b"1.0 boil it\n2.0 po")

    def grow():
        time.sleep(0.3)
        with file.open("ab") as more:
            more.write(b"ur it\n3.0 no end")

    threading.Thread(target=grow, daemon=True).start()
    with file.open("rb") as stream:
        lines = arriving(stream, follow=True)
        found = list(islice(read_live(lines, LineParser("-", Problems())), 2))

    assert [one.sentence.text for one in found] == ["boil it", "pour it"]
