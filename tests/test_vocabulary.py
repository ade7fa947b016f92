"""Vocabularies that a person wrote."""

import pytest

from stepgraph.errors import DataError
from stepgraph.vocabulary import make_vocabulary, read_vocabulary


def test_headings_name_tasks():
    vocabulary = make_vocabulary(["# Tea", "boil", "pour", "", "## Soup", "chop", "stir"])

    assert vocabulary.keysteps == ("boil", "pour", "chop", "stir")
    assert vocabulary.tasks == {"Tea": (0, 1), "Soup": (2, 3)}


def test_keysteps_without_a_heading_belong_to_no_task():
    vocabulary = make_vocabulary(["boil", "pour", "# Soup", "stir"])

    assert vocabulary.keysteps == ("boil", "pour", "stir")
    assert vocabulary.tasks == {"Soup": (2,)}


def test_a_keystep_under_two_headings_is_one_keystep_of_two_tasks():
    vocabulary = make_vocabulary(["# Tea", "boil", "pour", "# Soup", "Boil", "stir"])

    assert vocabulary.keysteps == ("boil", "pour", "stir")
    assert vocabulary.tasks == {"Tea": (0, 1), "Soup": (0, 2)}


@pytest.mark.parametrize("mark", ["- ", "* ", "• ", "1. ", "12) ", "  -   ", "\t1.\t"])
def test_list_marks_are_ignored(mark):
    assert make_vocabulary([f"{mark}boil", f"{mark}pour"]).keysteps == ("boil", "pour")


def test_a_list_mark_alone_is_a_blank_line():
    assert make_vocabulary(["- boil", "-", "- pour", "* "]).keysteps == ("boil", "pour")


@pytest.mark.parametrize("name", ["2 eggs go in", "1.5 cups of water", "-20 degrees", "a - b"])
def test_what_only_looks_like_a_list_mark_is_kept(name):
    assert make_vocabulary([name, "stir"]).keysteps == (name, "stir")


def test_white_space_is_evened_out():
    assert make_vocabulary(["  boil \t the  water ", "stir\r\n"]).keysteps == (
        "boil the water",
        "stir",
    )


@pytest.mark.parametrize(
    ("lines", "number"), [(["boil", "stir", "Boil"], 3), (["# Tea", "boil", "", "boil"], 4)]
)
def test_a_keystep_twice_in_a_task_is_refused_with_its_line(lines, number):
    with pytest.raises(DataError, match=rf"^vocabulary:{number}: .* must differ, got '[bB]oil'"):
        make_vocabulary(lines)


def test_a_task_twice_is_refused_with_its_line():
    with pytest.raises(DataError, match=r"^vocabulary:3: tasks must differ, got 'Tea' again;"):
        make_vocabulary(["# Tea", "boil", "# Tea", "pour"])


def test_a_heading_without_a_name_is_refused_with_its_line():
    with pytest.raises(DataError, match=r"^vocabulary:2: a heading must name a task, got '##'"):
        make_vocabulary(["boil", "## "])


def test_a_task_without_keysteps_is_refused():
    with pytest.raises(DataError, match="task 'Soup' must have at least one keystep, got none"):
        make_vocabulary(["# Tea", "boil", "pour", "# Soup"])


@pytest.mark.parametrize(
    ("lines", "got"), [([], "none"), (["", " "], "none"), (["boil"], "only 'boil'")]
)
def test_too_few_keysteps_are_refused(lines, got):
    with pytest.raises(DataError, match=rf"must list at least 2 keysteps.*, got {got};"):
        make_vocabulary(lines)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_file_is_read_whatever_its_line_ends(tmp_path, ending):
    path = tmp_path / "steps.txt"
    path.write_bytes(b"\xef\xbb\xbf" + ending.join(["# Thé", "bouillir", "verser", ""]).encode())

    vocabulary = read_vocabulary(str(path))

    assert vocabulary.keysteps == ("bouillir", "verser")
    assert vocabulary.tasks == {"Thé": (0, 1)}


def test_error_of_a_file_begins_with_its_path_and_line(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_text("boil\npour\nboil\n")

    with pytest.raises(DataError, match=r"steps\.txt:3: keysteps of a task must differ"):
        read_vocabulary(path)
