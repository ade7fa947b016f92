"""Vocabularies that a person wrote."""

import pytest

from stepgraph.errors import DataError
from stepgraph.vocabulary import make_vocabulary, read_vocabulary
from stepgraph.vocabulary.lists import LONG_LIST


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
    assert make_vocabulary(["- boil", "-", "- pour", "* ", "- :"]).keysteps == ("boil", "pour")


@pytest.mark.parametrize("name", ["2 eggs go in", "1.5 cups of water", "-20 degrees", "a - b"])
def test_what_only_looks_like_a_list_mark_is_kept(name):
    assert make_vocabulary([name, "stir"]).keysteps == (name, "stir")


def test_white_space_is_evened_out():
    assert make_vocabulary(["  boil \t the  water ", "stir\r\n"]).keysteps == (
        "boil the water",
        "stir",
    )


@pytest.mark.parametrize(
    "box", ["- [ ] ", "- [x] ", "* [X] ", "1. [ ] ", "[ ] ", "- []", "- ☐ ", "☑ ", "  - [ ]\t"]
)
def test_boxes_to_tick_are_ignored(box):
    assert make_vocabulary([f"{box}mix", f"{box}bake"]).keysteps == ("mix", "bake")


def test_what_only_looks_like_a_box_is_kept():
    assert make_vocabulary(["[a] mix", "[ bake"]).keysteps == ("[a] mix", "[ bake")


def test_a_keystep_that_a_task_lists_twice_is_one_keystep_at_its_first_place():
    vocabulary = make_vocabulary(["# Tea", "stir", "pour", "Stir", "# Soup", "pour", "stir"])

    assert vocabulary.keysteps == ("stir", "pour")
    assert vocabulary.tasks == {"Tea": (0, 1), "Soup": (1, 0)}
    assert make_vocabulary(["boil", "stir", "Boil"]).keysteps == ("boil", "stir")


@pytest.mark.parametrize("colon", [":", " :", "："])
def test_a_line_that_ends_in_a_colon_is_a_heading(colon):
    vocabulary = make_vocabulary([f"Pancakes{colon}", "- mix", "- fry", f"Tea{colon}", "boil"])

    assert vocabulary.keysteps == ("mix", "fry", "boil")
    assert vocabulary.tasks == {"Pancakes": (0, 1), "Tea": (2,)}


def test_under_marked_headings_a_line_that_ends_in_a_colon_only_divides_a_task():
    vocabulary = make_vocabulary(["# Pancakes", "Batter:", "mix", "Pan:", "fry", "# Tea", "boil"])

    assert vocabulary.keysteps == ("mix", "fry", "boil")
    assert vocabulary.tasks == {"Pancakes": (0, 1), "Tea": (2,)}


def test_an_item_that_ends_in_a_colon_is_a_heading_where_others_are_indented_below_it():
    nested = ["- Pancakes:", "  - mix", "  - fry", "- Tea:", "  - boil"]

    assert make_vocabulary(nested).tasks == {"Pancakes": (0, 1), "Tea": (2,)}
    assert make_vocabulary(["1. mix these:", "2. fry"]).keysteps == ("mix these", "fry")


def test_a_task_twice_is_refused_with_its_line():
    with pytest.raises(DataError, match=r"^vocabulary:3: tasks must differ, got 'Tea' again;"):
        make_vocabulary(["# Tea", "boil", "# Tea", "pour"])


def test_a_heading_without_a_name_is_refused_with_its_line():
    with pytest.raises(DataError, match=r"^vocabulary:2: a heading must name a task, got '##'"):
        make_vocabulary(["boil", "## "])
    with pytest.raises(DataError, match=r"^vocabulary:1: a heading must name a task, got ':'"):
        make_vocabulary([":", "boil"])


@pytest.mark.parametrize("heading", ["# Soup", "Soup:"])
def test_a_task_without_keysteps_is_refused_with_its_line(heading):
    tea = "# Tea" if heading.startswith("#") else "Tea:"
    with pytest.raises(DataError, match=r"^vocabulary:5: task 'Soup' must have at least one key"):
        make_vocabulary([tea, "boil", "pour", "", heading])


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
    path.write_text("# Tea\nboil\npour\n\n#\nstir\n")

    with pytest.raises(DataError, match=r"steps\.txt:5: a heading must name a task, got '#'"):
        read_vocabulary(path)


def test_a_long_list_without_headings_is_warned_of_once(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_text("\n".join(f"step {number}" for number in range(LONG_LIST + 1)))

    said = f"{LONG_LIST + 1} keysteps without a heading .* a line like '# Name of the task' above"
    with pytest.warns(UserWarning, match=rf"steps\.txt: {said}") as warned:
        assert not read_vocabulary(path).tasks

    assert len(warned) == 1


def test_short_lists_and_lists_with_headings_are_not_warned_of(tmp_path):
    short, headed = tmp_path / "short.txt", tmp_path / "headed.txt"
    short.write_text("\n".join(f"step {number}" for number in range(LONG_LIST)))
    headed.write_text("# Task\n" + "\n".join(f"step {number}" for number in range(200)))

    assert len(read_vocabulary(short)) == LONG_LIST  # a warning would be an error here
    assert len(read_vocabulary(headed)) == 200
