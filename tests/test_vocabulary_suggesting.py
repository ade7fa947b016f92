"""Phrases of doing, groups of videos and proposed steps, without a model."""

from itertools import combinations

import numpy as np
import pytest

from conftest import WordEncoder
from stepgraph.core import Sentence
from stepgraph.errors import ConfigError
from stepgraph.vocabulary import make_vocabulary
from stepgraph.vocabulary.grouping import group_videos, likeness
from stepgraph.vocabulary.phrases import (
    Usage,
    content_words,
    find_phrases,
    find_titles,
    joining_share,
    read_name,
    words_of_name,
)
from stepgraph.vocabulary.suggested import SuggestOptions
from stepgraph.vocabulary.suggesting import (
    NEAR,
    choose,
    collect,
    cover,
    nearness,
    stood_for,
)


def said(*texts):
    return [Sentence(10.0 * n, 10.0 * n + 9.0, text) for n, text in enumerate(texts)]


def phrases_in(*texts):
    return [phrase.text for phrase in find_phrases(said(*texts), Usage([said(*texts)]))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("we're going to whisk three eggs in a bowl", ["whisk three eggs"]),
        ("then you loosen the lug nuts", ["loosen the lug nuts"]),
        ("I'm adding a teaspoon of vanilla", ["add vanilla"]),
        ("now you can jack the car up", ["jack the car up"]),
        # The dictionary has *pan* as a verb alone.
        ("now you heat the pan", ["heat the pan"]),
        (
            "you put the spare tire on and then you put it back",
            ["put the spare tire on", "put it"],
        ),
        ("we put the lug nuts back on", ["put the lug nuts back on"]),
        (
            "you put the bread on top and I put the eggs in the pan",
            ["put the bread", "put the eggs"],
        ),
        # Talk, wishes, ingredients, opinions and what must not be done are no steps.
        ("thanks for watching please subscribe to my channel", []),
        ("you will need two eggs and I love this pan", []),
        ("you don't want to don't flip the bread", []),
        ("powdered sugar and cooking spray", []),
        ("", []),
    ],
)
def test_what_is_said_to_be_done(text, found):
    assert phrases_in(text) == found


def test_a_phrase_may_run_across_captions_but_not_across_a_pause():
    across = [Sentence(0, 2, "so you whisk the"), Sentence(2, 4, "eggs now")]
    apart = [Sentence(0, 2, "so you whisk the"), Sentence(9, 11, "eggs now")]

    assert [one.text for one in find_phrases(across, Usage([across]))] == ["whisk the eggs"]
    assert find_phrases(apart, Usage([apart])) == []


def test_it_is_what_was_last_named():
    text = said("you dip the bread and then you flip it in the skillet")

    dip, flip = find_phrases(text, Usage([text]))

    assert (dip.key, flip.key, flip.where) == ("dip bread", "flip bread", "in the skillet")


def test_use_tells_what_is_a_noun_too():
    usage = Usage([said("a pan of the pan in pan they loosen we loosen of loosen in loosen")])

    assert (usage.noun("pan"), usage.noun("pans"), usage.noun("egg")) == ("pan", "pan", "egg")
    assert (usage.noun("loosen"), usage.noun("loosened", "the"), usage.noun("gives")) == (
        "",
        "",
        "",
    )
    assert Usage([]).noun("lug") == ""
    assert Usage([]).noun("lug", "the") == "lug"


@pytest.mark.parametrize(
    ("text", "particle"),
    [
        ("you jack the car up", "up"),
        ("you put the wheel back on and", "on"),
        ("you take it off of the car", "off"),
        ("you put the wheel on the hub", ""),
        ("you put the wheel on there", ""),
        ("you add in the milk", ""),
    ],
)
def test_a_particle_belongs_to_the_verb(text, particle):
    before = said("first you lift the wheel", text)

    assert find_phrases(before, Usage([before]))[-1].particle == particle


def test_to_take_is_no_step_but_to_take_off_is():
    texts = ["now you take the bread", "you take off the wheel", "you whisk the eggs"]
    kinds = collect([find_phrases(said(*texts), Usage([]))] * 3, [30.0] * 3)

    found = choose(kinds, WordEncoder().encode_texts, most=5, fewest=2, often=2)

    assert {one.kind.name for one in found} == {"take off the wheel", "whisk the eggs"}


def test_titles_come_from_speech_and_from_file_names():
    text = said("today I'll show you how to change a tire")
    [title] = find_titles(text, Usage([text]))
    [named] = find_titles([], Usage([]), words_of_name("how-to-make-tea-3"))

    assert (title.text, named.text) == ("change a tire", "make tea")
    assert words_of_name("dQw4w9WgXcQ") == ""
    assert read_name("brake on") is None


def test_other_languages_hardly_have_english_words_that_join():
    german = said("jetzt schlagen wir die Eier auf und geben die Milch dazu")
    english = said("now we crack the eggs and then we add the milk to it")

    assert joining_share(german) < 0.2 < joining_share(english)
    assert joining_share([]) == 0


def test_likeness_is_that_of_plain_sums():
    words = [["egg", "egg", "pan"], ["egg", "pan", "milk"], ["jack", "tyre"], ["tyre", "egg"], []]
    videos = {w: sum(w in one for one in words) for one in words for w in one}

    def vector(one):
        return {
            w: (1 + np.log(one.count(w))) * (1 + np.log(6 / (1 + videos[w])))
            for w in set(one)
            if videos[w] > 1
        }

    found = likeness(words)

    for one, other in combinations(range(4), 2):
        a, b = vector(words[one]), vector(words[other])
        product = sum(a[w] * b[w] for w in a.keys() & b.keys())
        lengths = np.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
        assert found[one, other] == pytest.approx(product / lengths)
    assert not found[4].any()


def test_groups_of_nothing_of_one_and_of_two_tasks():
    rng = np.random.default_rng(0)
    tea, tyre = ["boil", "tea", "pour", "leaf", "cup"], ["tyre", "jack", "nut", "lift", "car"]
    videos = [list(rng.permutation(task)[:4]) for task in (tea, tyre) * 10]

    assert group_videos([]).tolist() == []
    assert group_videos([tea]).tolist() == [0]
    assert group_videos(videos).tolist() == [0, 1] * 10
    assert group_videos(videos[:12:2]).tolist() == [0] * 6


def test_cover_is_never_much_worse_than_the_best_choice():
    rng = np.random.default_rng(1)
    for _ in range(20):
        weight, worth = rng.random(6), rng.random((6, 5)) * (rng.random((6, 5)) > 0.5)

        def total(chosen, weight=weight, worth=worth):
            return weight @ worth[:, list(chosen)].max(axis=1, initial=0.0)

        best = max(total(one) for one in combinations(range(5), 2))
        assert total(cover(weight, worth, 2)) >= (1 - 1 / np.e) * best - 1e-12
    assert cover(np.zeros(0), np.zeros((0, 0)), 3) == []


def corpus():
    texts = ["you crack the eggs then you whisk the eggs then you melt the butter"] * 4
    texts[0] += " and we feed the goldfish"
    usage = Usage([said(text) for text in texts])
    return collect([find_phrases(said(text), usage) for text in texts], [10.0] * 4)


def test_only_what_recurs_is_chosen():
    encode = WordEncoder().encode_texts

    found = choose(corpus(), encode, most=5, fewest=2, often=2)

    assert {one.kind.name for one in found} == {
        "crack the eggs",
        "whisk the eggs",
        "melt the butter",
    }
    assert all(one.videos == {0, 1, 2, 3} for one in found)
    assert choose([], encode, most=5, fewest=2, often=2) == []


def test_what_says_little_is_heard_in_what_says_more_about_the_same():
    texts = ["you add the milk", "you pour the milk", "you put the lamp there"]
    kinds = collect([find_phrases(said(*texts), Usage([]))], [30.0])
    place = {kind.name: at for at, kind in enumerate(kinds)}
    add, pour, lamp = (place[name] for name in ("add the milk", "pour the milk", "put the lamp"))

    kinds = [kind._replace(place=0.5) for kind in kinds]
    near = nearness(kinds, kinds, WordEncoder().encode_texts)

    assert near[add, pour] >= NEAR > near[lamp, pour]
    assert near[pour, add] == -1
    assert nearness([], kinds, WordEncoder().encode_texts).shape == (0, 3)


def test_a_step_stands_for_what_is_near():
    listed = {"crack the eggs": 0.0, "melt the butter": 0.8}

    kinds = corpus()

    stands = stood_for(kinds, listed, WordEncoder().encode_texts)

    missing = {kind.name for kind, is_listed in zip(kinds, stands, strict=True) if not is_listed}
    assert missing == {"whisk the eggs", "feed the goldfish"}
    assert stood_for([], listed, WordEncoder().encode_texts).shape == (0,)


def test_lists_may_have_comments():
    words = make_vocabulary(["// mine", "# Tea", "boil water", "  // said in 3 videos", "pour it"])

    assert (words.keysteps, words.tasks) == (("boil water", "pour it"), {"Tea": (0, 1)})


def test_options_are_checked():
    with pytest.raises(ConfigError, match="steps must be at least 2, got 1"):
        SuggestOptions(steps=1)
    with pytest.raises(ConfigError, match="tasks must be at least 1, got 0"):
        SuggestOptions(tasks=0)
    assert SuggestOptions().fewest(250) == 25
    assert SuggestOptions().fewest(3) == 2
    assert content_words([]) == []
