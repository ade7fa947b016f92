"""Progress: shown only where somebody is watching, and never in the way."""

import io
from contextlib import contextmanager, redirect_stderr

import pytest

from stepgraph import progress
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder


class Terminal(io.StringIO):
    def isatty(self):
        return True


@contextmanager
def watched():
    """Somebody watches a terminal; give what is drawn on it."""
    with redirect_stderr(Terminal()) as terminal:
        yield terminal


@pytest.fixture
def bars():
    """The bars of an open block, as numbers."""
    with watched(), progress.shown():
        yield progress._drawing.get()


def test_items_pass_unchanged():
    assert list(progress.track(iter("abc"), "reading")) == ["a", "b", "c"]


def test_nothing_is_drawn_unless_it_is_turned_on():
    with watched() as terminal, progress.counting("reading", 3) as done:
        done(1)

    assert terminal.getvalue() == ""


def test_nothing_is_drawn_where_nobody_watches(capsys):
    with progress.shown():
        list(progress.track(range(3), "reading"))

    assert capsys.readouterr() == ("", "")


def test_progress_is_drawn_on_a_terminal(capsys):
    with watched() as terminal, progress.shown(), progress.counting("reading", 3):
        progress._drawing.get().refresh()

    assert "reading" in terminal.getvalue()
    assert capsys.readouterr().out == ""


NAMED = "reading tea\x1b]0;owned\x07\nstepgraph: error: no"  # as a file may be called
SPELT = r"reading tea\u001b]0;owned\u0007\u000astepgraph: error: no"


def test_the_name_of_a_file_is_said_in_one_line_without_control_characters(capsys):
    with progress.shown():
        progress.note(NAMED)

    assert capsys.readouterr().err == f"stepgraph: {SPELT}\n"


def test_the_name_of_a_file_beside_a_bar_has_no_control_characters(bars, monkeypatch):
    said = []
    monkeypatch.setattr(bars.console, "print", lambda text, **_: said.append(text))
    progress.note(NAMED)

    with progress.counting(NAMED, 3):
        [task] = bars.tasks

    assert said == [f"stepgraph: {SPELT}"]
    assert task.description == SPELT


def test_each_item_counts_when_the_next_is_asked_for(bars):
    items = progress.track(["a", "b"], "reading")

    done = [bars.tasks[0].completed for _ in items]

    assert done == [0, 1]


def test_the_length_of_a_list_is_the_total(bars):
    items = progress.track(["a", "b"], "reading")
    next(items)

    assert bars.tasks[0].total == 2


@pytest.mark.parametrize("total", [None, 7])
def test_the_total_of_a_generator_is_what_is_said(bars, total):
    items = progress.track(iter("ab"), "reading", total=total)
    next(items)

    assert bars.tasks[0].total == total


def test_a_bar_goes_away_when_its_work_is_done(bars):
    list(progress.track(range(3), "reading"))

    assert bars.tasks == []


def test_a_bar_goes_away_when_its_work_is_given_up(bars):
    items = progress.track(range(3), "reading")
    next(items)
    items.close()

    assert bars.tasks == []


def test_a_bar_goes_away_when_its_work_fails(bars):
    with pytest.raises(ValueError, match="stop"), progress.counting("reading", 3):
        raise ValueError("stop")

    assert bars.tasks == []


def test_counting_adds_up_what_is_done(bars):
    with progress.counting("encoding", 10) as done:
        done(3)
        done(4)
        completed = bars.tasks[0].completed

    assert completed == 7


def test_counting_without_drawing_does_nothing():
    with progress.counting("encoding", 10) as done:
        assert done(3) is None


def test_work_within_work_has_two_bars(bars):
    with progress.counting("outer"), progress.counting("inner"):
        labels = [task.description for task in bars.tasks]

    assert labels == ["outer", "inner"]


def test_drawing_ends_with_its_block():
    with pytest.raises(ValueError, match="stop"), watched(), progress.shown():
        raise ValueError("stop")

    assert progress._drawing.get() is None


def test_no_items_are_no_problem(bars):
    assert list(progress.track([], "reading")) == []


def test_what_takes_longer_than_a_second_has_a_rate(bars):
    with progress.counting("looking", 10) as done:
        clock = iter([0.0, 20.0, 40.0, 60.0])
        bars.get_time = lambda: next(clock, 60.0)
        for _ in range(3):
            done(1)
        drawn = [column(bars.tasks[0]).plain for column in bars.columns if "Rate" in str(column)]

    assert drawn == ["3/min"]


def test_loading_a_model_is_said(bars, monkeypatch):
    encoder, said = TextEncoder(EncoderOptions()), []
    shown = lambda self: said.extend(task.description for task in bars.tasks)  # noqa: E731
    monkeypatch.setattr(TextEncoder, "_load", shown)

    assert encoder._model is None
    assert said == ["loading text:minilm"]
