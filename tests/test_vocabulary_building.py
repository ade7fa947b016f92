"""Vocabularies from articles: the titles of tasks, the rule for HowTo100M, and noise."""

import re
from collections import Counter

import pytest

from reference import make_graph
from stepgraph.core import Vocabulary
from stepgraph.errors import ConfigError, DataError
from stepgraph.export.artefacts import save
from stepgraph.problems import Problems
from stepgraph.vocabulary import (
    Article,
    add_noise,
    make_vocabulary,
    read_articles,
    read_vocabulary,
    vocabulary_from_articles,
)
from stepgraph.vocabulary.articles import join_methods, match_articles
from stepgraph.vocabulary.lists import save_vocabulary

TEA = Article("Make Tea", ("Boil water", "Add the leaves", "Serve"))
SOUP = Article("Make Soup", ("Chop", "boil  Water", "Stir", "Serve"))
OTHERS = tuple(f"other {number}" for number in range(40))


# titles


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How to Make Tea", "make tea"),
        ("HOW TO: Make Tea!", "Make  Tea"),
        ("Get Rid of a Wasp's Nest", "Get Rid of Wasps Nest"),
        ("Get Rid of a Wasp’s Nest", "get rid of the wasp%27s nest"),
        ("Make Macaroni & Cheese", "Make Macaroni and Cheese"),
        ("Make Macaroni &amp; Cheese", "Make Macaroni and Cheese"),
        ("Be an Organized Artist1", "How to Be Organized Artist"),
        ("Be Cool (for Girls)12", "Be Cool for Girls"),
        ("Sauté Vegetables", "Saute Vegetables"),
        ("Saut%C3%A9 Vegetables", "Saute\u0301 vegetables"),
        ("Make Self‐Rising Flour", "Make Self-Rising Flour"),
        ("Make Self Rising Flour", "Make Self-Rising Flour"),
        ("“Dust” Hair", '"Dust" hair.'),
        ("ＭＡＫＥ Tea", "Make Tea"),
    ],
)
def test_an_article_is_found_however_its_title_is_written(one, other):
    assert found_for(other, one) == [one]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Make Tea", "Make Iced Tea"),
        ("Install Windows 7", "Install Windows 8"),
        ("Play 31", "Play 3"),
        ("Learn C", "Learn C++"),
        ("Get Vitamin A", "Get Vitamin"),
        ("か", "が"),
        ("How to", "To How"),
    ],
)
def test_an_article_of_another_task_is_not_found(one, other):
    assert not found_for(other, one)
    assert not found_for(one, other)


def found_for(name, *titles):
    """The title of the article that is found among some; its step is its title as given."""
    known = [Article(title, (title,)) for title in titles]
    matched = match_articles([name], known)
    return list(matched[name].steps) if matched else []


def test_the_exact_title_is_preferred_then_the_nearest_then_the_first():
    titles = ["make the pie", "Make a Pie", "make pie", "Make Pie", "Make a pie"]

    assert found_for("Make Pie", *titles) == ["Make Pie"]
    assert found_for("How to Make Pie", *titles) == ["make pie"]
    assert found_for("How to Make an Pie", *titles) == ["make the pie"]
    assert found_for("Make Pie", *reversed(titles)) == ["Make Pie"]


def test_of_two_articles_with_one_title_the_first_is_found():
    tea = Article("Make Tea", ("Sleep", "Drink"))

    assert match_articles(["make tea"], [TEA, tea]) == {"make tea": TEA}


def test_methods_of_an_article_are_found_as_one_in_order_of_their_numbers():
    titles = ["How to Make Pesto10", "How to Make Pesto2", "How to Make Pesto1"]

    assert found_for("make pesto", *titles) == titles[::-1]


def test_an_article_without_a_number_is_preferred_to_methods():
    assert found_for("Make Pesto", "Make Pesto1", "Make Pesto", "Make Pesto2") == ["Make Pesto"]


def test_numbers_of_a_name_are_not_those_of_methods():
    assert found_for("Repair a PS3", "Repair a PS4", "Repair a PS31", "Repair PS3") == [
        "Repair PS3"
    ]
    assert found_for("Repair a PS3", "Repair a PS4") == []
    assert found_for("Repair a PS", "Repair a PS31", "Repair a PS32") == []
    assert found_for("Repair a PS3", "Repair a PS31", "Repair a PS32") == [
        "Repair a PS31",
        "Repair a PS32",
    ]


def test_a_method_number_after_a_number_needs_a_first_and_a_second():
    assert found_for("Play 3", "Play 31") == []
    assert found_for("Use Windows 1", "Use Windows 10", "Use Windows 11") == []
    assert found_for("Use Windows 8", "Use Windows 82", "Use Windows 81") == [
        "Use Windows 81",
        "Use Windows 82",
    ]


def test_what_has_no_words_matches_nothing():
    assert match_articles(["?!"], [Article("...", ("Wait",))]) == {}


def test_tasks_share_an_article_and_keep_their_order():
    names = ["make soup", "Make a Soup", "drink", "make tea"]

    found = match_articles(names, iter([TEA, SOUP]))

    assert list(found) == ["make soup", "Make a Soup", "make tea"]
    assert found["make soup"] == found["Make a Soup"] == SOUP


def test_methods_are_joined_only_where_there_are_two():
    known = [
        Article("Make Pesto2", ("c",)),
        Article("Use an MP3", ("d",)),
        Article("Make Pesto1", ("a", "b")),
        Article("Make Soup", ("e",)),
    ]

    assert join_methods(known, Problems()) == [
        Article("Make Pesto", ("a", "b", "c")),
        Article("Use an MP3", ("d",)),
        Article("Make Soup", ("e",)),
    ]


def test_an_article_that_comes_again_is_reported_and_left_out():
    problems = Problems()

    assert join_methods([TEA, SOUP, Article("Make Tea", ("Sleep",))], problems) == [TEA, SOUP]
    assert problems.summary().startswith("1 article repeated (articles: ")


# the rule


def test_headlines_of_the_tasks_articles_become_keysteps():
    vocabulary = vocabulary_from_articles(
        [("How to Make Tea", 100), ("How to Make a Soup", 250)], [SOUP, TEA]
    )

    assert vocabulary.keysteps == ("Boil water", "Add the leaves", "Serve", "Chop", "Stir")
    assert vocabulary.tasks == {"How to Make Tea": (0, 1, 2), "How to Make a Soup": (3, 0, 4, 2)}


def test_a_headline_of_several_tasks_is_one_keystep_that_knows_them_all():
    vocabulary = vocabulary_from_articles([("Make Tea", 100), ("Make Soup", 100)], [TEA, SOUP])

    assert vocabulary.tasks_of(vocabulary.index("Boil water")) == ("Make Tea", "Make Soup")


def test_a_headline_twice_in_an_article_is_listed_once():
    article = Article("Sing", ("Breathe", "Sing", "breathe", "Sing"))

    assert vocabulary_from_articles([("sing", 100)], [article]).tasks == {"sing": (0, 1)}


def test_tasks_with_too_few_videos_are_left_out_without_a_problem():
    problems = Problems(strict=True)

    vocabulary = vocabulary_from_articles(
        [("Make Tea", 100), ("Make Soup", 99)], [TEA, SOUP], problems=problems
    )

    assert list(vocabulary.tasks) == ["Make Tea"]
    assert list(
        vocabulary_from_articles(
            [("Make Tea", 3), ("Make Soup", 2)], [TEA, SOUP], min_videos=3
        ).tasks
    ) == ["Make Tea"]


def test_videos_of_a_task_listed_twice_are_added_up():
    vocabulary = vocabulary_from_articles([("Make Tea", 60), ("Make Tea", 40)], [TEA])

    assert list(vocabulary.tasks) == ["Make Tea"]


def test_only_the_first_steps_are_taken_on_request():
    vocabulary = vocabulary_from_articles(
        [("Make Tea", 100), ("Make Soup", 100)], [TEA, SOUP], max_steps=2
    )

    assert vocabulary.keysteps == ("Boil water", "Add the leaves", "Chop")
    assert vocabulary.tasks == {"Make Tea": (0, 1), "Make Soup": (2, 0)}


def test_a_task_without_an_article_is_a_problem_and_the_rest_goes_on():
    problems = Problems()

    vocabulary = vocabulary_from_articles(
        [("Fly", 500), ("Make Tea", 100)], [TEA, SOUP], problems=problems
    )

    assert list(vocabulary.tasks) == ["Make Tea"]
    assert problems.counts == Counter({"task without article": 1})
    assert str(problems.found[0]) == (
        "task 'Fly': a task must have an article of the same title, got none among 2"
    )


def test_a_task_without_an_article_stops_strict_building():
    with pytest.raises(DataError, match=r"^task 'Fly': a task must have an article"):
        vocabulary_from_articles(
            [("Fly", 500), ("Make Tea", 100)], [TEA], problems=Problems(strict=True)
        )


def test_without_tasks_every_article_is_one():
    vocabulary = vocabulary_from_articles(
        None, [TEA, Article("Sing1", ("Breathe",)), SOUP, Article("Sing2", ("Serve",))]
    )

    assert vocabulary.tasks == {"Make Tea": (0, 1, 2), "Sing": (3, 2), "Make Soup": (4, 0, 5, 2)}


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        (
            [("Make Tea", 99)],
            {},
            r"^min_videos must leave some of the 1 tasks, got 100, .* has 99",
        ),
        ([], {}, r"^min_videos must leave some of the 0 tasks, got 100, .* has 0; lower it"),
        (
            [("Fly", 7)],
            {"min_videos": 5},
            r"^tasks must have .* none for the 1 .* 5 videos, such a",
        ),
        (
            [("Make Tea", 100)],
            {"max_steps": 1},
            r"^articles must have at least 2 .* got 1; .*\(1\)",
        ),
    ],
)
def test_nothing_left_is_an_error_that_names_the_numbers_to_change(tasks, options, message):
    with pytest.raises(DataError, match=message):
        vocabulary_from_articles(tasks, [TEA, SOUP], **options)


def test_no_articles_at_all_are_an_error():
    with pytest.raises(DataError, match="must have at least 2 different steps in all, got 0"):
        vocabulary_from_articles(None, [])


@pytest.mark.parametrize("number", [0, -1])
def test_max_steps_below_one_is_refused(number):
    with pytest.raises(ConfigError, match=rf"max_steps must be at least 1, .* got {number}"):
        vocabulary_from_articles(None, [TEA], max_steps=number)


# saved vocabularies and lists


def test_a_saved_vocabulary_and_a_list_are_told_apart_by_content(tmp_path):
    vocabulary = make_vocabulary(["# Make tea", "boil water", "add leaves"])
    save_vocabulary(vocabulary, tmp_path / "steps.txt")
    (tmp_path / "vocabulary.json").write_text("# Make tea\nboil water\nadd leaves\n")

    assert read_vocabulary(tmp_path / "steps.txt") == vocabulary
    assert read_vocabulary(str(tmp_path / "vocabulary.json")) == vocabulary


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_saved_vocabulary_is_known_behind_a_byte_order_mark(tmp_path, encoding):
    vocabulary = make_vocabulary(["bouillir", "verser le thé"])
    path = tmp_path / "vocabulary.json"
    save_vocabulary(vocabulary, path)
    path.write_text("\n " + path.read_text("utf-8"), encoding)

    assert read_vocabulary(path) == vocabulary


def test_keysteps_that_begin_with_a_bracket_are_still_a_list(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_text("{optional} boil water\n[twice] stir\n")

    assert read_vocabulary(path).keysteps == ("{optional} boil water", "[twice] stir")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"must be complete JSON, got an end at line 1"),
        (
            '{"keysteps": ["a", "b"]}',
            r"must be a vocabulary \(format 'stepgraph-v.*, got None; make",
        ),
        ("{}", r"must be a vocabulary \(format 'stepgraph-vocabulary'\), got None; make one with"),
    ],
)
def test_json_that_is_no_vocabulary_is_not_taken_for_a_list(tmp_path, text, message):
    path = tmp_path / "vocabulary.json"
    path.write_text(text)

    with pytest.raises(DataError, match=rf"vocabulary\.json: {message}"):
        read_vocabulary(path)


def test_a_graph_is_no_vocabulary(tmp_path):
    save(make_graph([[0, 1], [0, 0]]), tmp_path / "graph.json")

    with pytest.raises(DataError, match=r"must be a vocabulary .*, got 'stepgraph-graph'; make"):
        read_vocabulary(tmp_path / "graph.json")


# noise


@pytest.mark.parametrize(
    ("factor", "size"), [(0, 5), (0.5, 7), (1, 10), (3, 20), (4, 25), (8, 45), (0.09, 5)]
)
def test_noise_is_so_many_times_as_large_as_the_vocabulary(vocabulary, factor, size):
    noisy = add_noise(vocabulary, OTHERS, factor=factor)

    assert len(noisy) == size
    assert noisy.keysteps[:5] == vocabulary.keysteps
    assert noisy.tasks == vocabulary.tasks
    assert set(noisy.keysteps[5:]) <= set(OTHERS)


def test_the_seed_decides_what_is_drawn(vocabulary):
    drawn = [add_noise(vocabulary, OTHERS, factor=1, seed=seed) for seed in (0, 1, 0)]

    assert drawn[0] == drawn[2]
    assert drawn[0] != drawn[1]


def test_a_smaller_factor_draws_the_first_of_a_larger_one(vocabulary):
    sizes = [add_noise(vocabulary, OTHERS, factor=factor, seed=3) for factor in (0.5, 2, 8)]

    assert sizes[1].keysteps[: len(sizes[0])] == sizes[0].keysteps
    assert sizes[2].keysteps[: len(sizes[1])] == sizes[1].keysteps


def test_the_order_of_the_others_does_not_change_the_draw(vocabulary):
    assert add_noise(vocabulary, OTHERS, factor=2) == add_noise(vocabulary, OTHERS[::-1], factor=2)


def test_every_other_keystep_is_as_likely_as_any(vocabulary):
    drawn = Counter(
        name
        for seed in range(400)
        for name in add_noise(vocabulary, OTHERS, factor=2, seed=seed).keysteps[5:]
    )

    assert len(drawn) == len(OTHERS)
    assert 60 < min(drawn.values()) < max(drawn.values()) < 140  # 100 expected


def test_keysteps_already_there_are_not_drawn(vocabulary):
    others = ["Whisk  THEM", "mow the lawn", "Mow the  lawn", " ", "HEAT a pan", "saw"]

    noisy = add_noise(vocabulary, others, factor=0.4)

    assert set(noisy.keysteps[5:]) == {"mow the lawn", "saw"}


def test_noise_of_another_vocabulary_belongs_to_no_task(vocabulary):
    other = Vocabulary(OTHERS, {"Other": tuple(range(40))})

    noisy = add_noise(vocabulary, other, factor=1)

    assert noisy == add_noise(vocabulary, OTHERS, factor=1)
    assert not noisy.tasks_of(7)


def test_too_few_others_are_refused_with_the_largest_factor(vocabulary):
    with pytest.raises(
        ConfigError,
        match=r"factor .* must be at most 8\.00 with 40 other keysteps for 5, got 8\.2;",
    ):
        add_noise(vocabulary, OTHERS, factor=8.2)


@pytest.mark.parametrize("factor", [-0.1, float("nan"), float("inf")])
def test_an_impossible_factor_is_refused(vocabulary, factor):
    with pytest.raises(ConfigError, match=rf"must be at least 0, got {re.escape(repr(factor))}"):
        add_noise(vocabulary, OTHERS, factor=factor)


# real data


def real_tasks(folder):
    """Names of the tasks, with the number of videos of each."""
    table = (folder / "howto100m" / "task_ids.csv").read_text().splitlines()
    names = dict(line.split("\t") for line in table)
    videos = (folder / "howto100m" / "HowTo100M_v1.csv").read_text().splitlines()[1:]
    counts = Counter(row.split(",")[-1] for row in videos)
    return [(name, counts[number]) for number, name in names.items()]


@pytest.mark.data
def test_eleven_of_the_fifteen_real_tasks_have_an_article(real_data):
    table = (real_data / "howto100m" / "task_ids.csv").read_text().splitlines()
    names = [line.split("\t")[1] for line in table]

    found = match_articles(
        names, read_articles(real_data / "wikihow_articles.jsonl", problems=Problems())
    )

    assert [name for name in names if name not in found] == [
        "How to Polish Stainless Steel",
        "How to Make a Paper Hat",
        "How to Grill Steak",
        "How to Make Caramel Apples",
    ]
    assert found["How to Get Rid of a Wasp's Nest"].title == "Get Rid of a Wasp's Nest"


@pytest.mark.data
def test_the_rule_builds_a_vocabulary_of_the_real_sample(real_data, tmp_path):
    problems = Problems()
    articles = read_articles(real_data / "wikihow_articles.jsonl", problems=problems)

    vocabulary = vocabulary_from_articles(
        real_tasks(real_data), articles, min_videos=10, problems=problems
    )

    assert len(vocabulary.tasks) == 11
    assert problems.counts == Counter({"task without article": 4})
    assert len(vocabulary) == len({name.casefold() for name in vocabulary.keysteps})
    save_vocabulary(vocabulary, tmp_path / "vocabulary.json")
    assert read_vocabulary(tmp_path / "vocabulary.json") == vocabulary


@pytest.mark.data
def test_every_real_article_is_a_task(real_data):
    articles = read_articles(real_data / "wikihow_articles.jsonl", problems=Problems(strict=True))

    vocabulary = vocabulary_from_articles(None, articles, problems=Problems(strict=True))

    assert len(vocabulary.tasks) == 2110
    assert len(vocabulary.tasks_of(vocabulary.index("Gather your supplies"))) == 13
