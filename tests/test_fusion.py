"""One scale for all encoders, and two modalities as one."""

import numpy as np
import pytest

from reference import make_scores
from stepgraph.core import Features, Scores, Video, Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.scoring import score
from stepgraph.scoring.fusion import (
    COMMON_MEAN,
    COMMON_SPREAD,
    Fused,
    Fusion,
    fuse,
    open_encoder,
    prioritize,
    standardize,
    to_scale,
)

TEA = Vocabulary(("boil", "pour", "stir"))


def scores(values, observed=None, video="v"):
    values = np.array(values, np.float32)
    seen = np.ones(len(values), bool) if observed is None else np.array(observed)
    return Scores(video, values, seen, TEA)


class Looking:
    """Sees the keystep whose name is the id of the video; cannot read a video called broken."""

    options = EncoderOptions("colour:motion")

    def encode_keysteps(self, vocabulary):
        return np.eye(len(vocabulary), dtype=np.float32)

    def encode_videos(self, videos):
        for video in videos:
            if video.id == "broken":
                raise DataError("broken.mp4: must be a readable video file, got nothing")
            one = TEA.index(video.id.partition("-")[0])
            vectors = np.eye(3, dtype=np.float32)[[one] * 2]
            yield Features(video.id, 2.0, vectors, np.array([[0.0, 1.0], [1.0, 2.0]]))


class Hearing(Looking):
    """Hears what comes after the dash, in the second row only."""

    options = EncoderOptions("text:minilm")

    def encode_videos(self, videos):
        for video in videos:
            one = TEA.index((video.id + "-stir").split("-")[1])
            vectors = np.eye(3, dtype=np.float32)[[one]]
            yield Features(video.id, 2.0, vectors, np.array([[1.0, 2.0]]))


def videos(*names):
    return [Video(name, 2.0) for name in names]


@pytest.mark.parametrize("factor", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("shift", [-20.0, 0.0, 7.0])
def test_any_scale_becomes_the_common_one(factor, shift):
    many = Vocabulary(tuple(f"step {number}" for number in range(60)))
    raw = np.random.default_rng(0).normal(size=(40, 60))
    values = (factor * raw + shift).astype(np.float32)

    found = standardize(Scores("v", values, np.ones(40, bool), many)).values

    assert found.mean() == pytest.approx(COMMON_MEAN, abs=1e-4)
    assert found.std() == pytest.approx(COMMON_SPREAD, abs=1e-4)
    assert (found.argmax(axis=1) == raw.argmax(axis=1)).all()


def test_unobserved_rows_and_forbidden_keysteps_have_no_say():
    part = scores([[1, 2, 3], [3, 2, 1], [900, 900, 900]], [True, True, False])
    whole = standardize(part)

    assert whole.values[:2] == pytest.approx(standardize(scores([[1, 2, 3], [3, 2, 1]])).values)
    forbidden = standardize(part.restrict([0, 1])).values
    assert np.isneginf(forbidden[:, 2]).all()
    assert np.isfinite(forbidden[:, :2]).all()


@pytest.mark.parametrize("count", [2, 3, 5, 10, 30, 200])
def test_what_is_seen_clearly_is_certain_among_few_keysteps_as_among_many(count):
    names = Vocabulary(tuple(f"step {number}" for number in range(count)))
    values = np.eye(count, dtype=np.float32)
    noise = np.random.default_rng(0).normal(size=(500, count)).astype(np.float32)

    clear = standardize(Scores("v", values, np.ones(count, bool), names)).values
    unclear = standardize(Scores("v", noise, np.ones(500, bool), names)).values

    assert (clear.max(axis=1) > 0.46).all()
    assert 0.3 < np.median(unclear.max(axis=1)) < 0.45


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.full((4, 3), 0.7)])
def test_scores_without_a_spread_stay_as_they_are(values):
    assert standardize(scores(values)).values == pytest.approx(values)


def test_scales_by_name():
    raw = scores([[-63.42, 0.0, 58.8]])

    assert to_scale(raw, "raw") is raw
    assert to_scale(raw, "common").values == pytest.approx(standardize(raw).values)
    assert to_scale(raw, "crosstask-video").values[0, [0, 2]] == pytest.approx([-1.0, 1.0])
    with pytest.raises(ConfigError, match=r"scale must be one of raw, common, .*, got 'celsius'"):
        to_scale(raw, "celsius")


@pytest.mark.parametrize("name", ["priority", "mean", "0.7", "0", "1"])
def test_a_fusion_has_a_name(name):
    assert Fusion.named(Fusion.named(name).name) == Fusion.named(name)


@pytest.mark.parametrize("name", ["", "both", "1.5", "-1", "nan"])
def test_an_unknown_fusion_is_refused(name):
    with pytest.raises(ConfigError, match=r"(fusion|weight) must be"):
        Fusion.named(name)


def test_the_first_speaks_where_it_is_certain_and_the_second_elsewhere():
    first = scores([[0.9, 0.1, 0.1], [0.3, 0.2, 0.1]])
    second = scores([[0.1, 0.8, 0.1], [0.1, 0.1, 0.7]])

    both = Fusion(threshold=0.4).join(first, second)

    assert both.values.argmax(axis=1).tolist() == [0, 2]
    assert both.values.max(axis=1) == pytest.approx([0.9, 0.7])


def test_who_just_reaches_its_threshold_is_certain():
    first = scores([[0.5, 0.1, 0.1], [0.4, 0.1, 0.1], [0.4, 0.1, 0.1]])
    second = scores([[0.1, 0.9, 0.1], [0.1, 0.25, 0.1], [0.1, 0.2, 0.1]])

    both = prioritize(first, second, first_threshold=0.5, second_threshold=0.25)

    # The last row is certain to neither, and the first goes on speaking.
    assert both.values.argmax(axis=1).tolist() == [0, 1, 0]
    assert both.values.max(axis=1) == pytest.approx([0.25, 0.25, 0.15])


def test_without_options_fusion_is_by_priority():
    assert Fusion() == Fusion.named("priority") == Fusion(None, 0.4)


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_weight_is_a_share(weight):
    with pytest.raises(ConfigError, match=r"weight must be between 0 and 1, got"):
        fuse(scores([[1, 0, 0]]), scores([[0, 1, 0]]), weight=weight)


def test_what_has_no_share_rules_nothing_out():
    first, second = scores([[1, 0, 0]]), scores([[0, -np.inf, 0]])

    assert fuse(first, second, weight=1.0).values.tolist() == [[1, 0, 0]]
    assert fuse(second, first, weight=0.0).values.tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("join", [Fusion(0.5).join, Fusion().join])
def test_only_scores_of_one_video_are_joined(join):
    with pytest.raises(DataError, match="scores to fuse must be of one video and its rows"):
        join(scores([[1, 0, 0]]), scores([[1, 0, 0]], video="w"))
    with pytest.raises(DataError, match="must share one vocabulary"):
        join(scores([[1, 0, 0]]), make_scores([[1, 0, 0]], video="v"))


def test_a_weighted_fusion_is_the_weighted_mean():
    both = Fusion(0.25).join(scores([[1, 0, 0]]), scores([[0, 1, 0]]))

    assert both.values.tolist() == [[0.25, 0.75, 0.0]]


def test_without_a_weight_both_have_the_same():
    assert fuse(scores([[1, 0, 0]]), scores([[0, 0, 1]])).values.tolist() == [[0.5, 0, 0.5]]


def test_a_row_that_one_of_two_observed_keeps_its_scores():
    first = scores([[8, 0, 0]] * 4, [True, True, False, False])
    second = scores([[0, 4, 2]] * 4, [True, False, True, False])

    both = fuse(first, second, weight=0.25)

    assert both.observed.tolist() == [True, True, True, False]
    assert both.values[:3].tolist() == [[2, 3, 1.5], [8, 0, 0], [0, 4, 2]]


def test_what_is_seen_is_brought_to_the_common_scale_and_what_is_heard_is_not():
    [seen] = score(videos("boil"), TEA, Looking())
    [heard] = score(videos("boil-pour"), TEA, Hearing())

    assert seen.values.mean() == pytest.approx(COMMON_MEAN, abs=1e-6)
    assert heard.values[1].tolist() == [0, 1, 0]


def test_a_video_that_cannot_be_encoded_stops_no_other():
    problems = Problems()

    found = list(score(videos("boil", "broken", "pour"), TEA, Looking(), problems=problems))

    assert [one.video for one in found] == ["boil", "pour"]
    assert problems.summary() == (
        "1 video that cannot be encoded (video 'broken': broken.mp4: must be a readable video "
        "file, got nothing)"
    )


def test_without_a_place_for_problems_the_first_is_an_error():
    with pytest.raises(DataError, match=r"^broken.mp4: must"):
        list(score(videos("boil", "broken"), TEA, Looking()))


@pytest.mark.parametrize("turned", [False, True])
def test_two_encoders_are_paired_by_video_even_where_one_fails(turned):
    both = (Hearing(), Looking()) if turned else (Looking(), Hearing())
    problems = Problems()

    found = list(
        score(
            videos("boil-pour", "broken", "stir-pour"),
            TEA,
            Fused(*both),
            problems=problems,
        )
    )

    assert [one.video for one in found] == ["boil-pour", "stir-pour"]
    assert problems.counts.total() == 1


def test_a_row_that_is_only_seen_is_seen():
    [both] = score(videos("boil-pour"), TEA, Fused(Looking(), Hearing(), Fusion(0.5)))

    assert both.observed.tolist() == [True, True]
    assert both.values[0].argmax() == 0


def test_no_video_gives_no_scores():
    assert list(score([], TEA, Fused(Looking(), Hearing()))) == []


def test_two_encoders_are_opened_by_one_record_and_remember_it():
    options = EncoderOptions(
        "colour:motion", context=1, blend=True, task_names=True, also="text:minilm", fusion="0.3"
    )

    both = open_encoder(options)

    assert isinstance(both, Fused)
    assert both.options == options
    assert both.first.options.context == 0
    assert both.second.options == EncoderOptions("text:minilm", 1, True, True)


def test_one_encoder_is_opened_as_itself():
    assert open_encoder(EncoderOptions()).options == EncoderOptions()


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_keysteps_that_are_ruled_out_stay_so_and_give_no_nan(weight):
    one = make_scores([[0.2, 0.6], [0.4, 0.8]]).restrict([0])
    other = make_scores([[0.4, 0.1], [0.1, 0.3]])

    both = fuse(one, other, weight=weight)

    assert not np.isnan(both.values).any()
    expected = weight * one.values[:, 0] + (1 - weight) * other.values[:, 0]
    np.testing.assert_allclose(both.values[:, 0], expected, rtol=1e-6)
    assert (both.values[:, 1] == (-np.inf if weight else other.values[:, 1])).all()
