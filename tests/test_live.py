"""Telling while somebody speaks: the same evidence as of the whole, and never a look ahead."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

from stepgraph.assistant.live import FixedLagOutput, Live, LiveOptions
from stepgraph.assistant.live_following import Lengths, OnlineHMM, likely_lengths
from stepgraph.assistant.live_model import OnlineModel
from stepgraph.assistant.live_recognition import OnlineRecognizer
from stepgraph.core import Scores, Sentence, Video, Vocabulary
from stepgraph.decoders.learning import learn_graph
from stepgraph.decoders.observations import observe
from stepgraph.decoders.task_markov import Expected
from stepgraph.decoders.tasks import task_log_evidence
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import unit
from stepgraph.errors import ConfigError
from stepgraph.graph.chains import marginals
from stepgraph.scoring import score_features

TASKS = {
    "make tea": ("boil the water", "warm the pot", "add the leaves", "pour the tea"),
    "fry eggs": ("heat the pan", "crack the eggs", "season with salt", "slide onto a plate"),
}
NAMES = tuple(name for names in TASKS.values() for name in names)
VOCABULARY = Vocabulary(NAMES, {"make tea": (0, 1, 2, 3), "fry eggs": (4, 5, 6, 7)})


class Words:
    """An encoder that knows words and no meaning."""

    options = EncoderOptions(context=1, task_names=True, blend=True)
    encode_keysteps = TextEncoder.encode_keysteps
    encode_tasks = TextEncoder.encode_tasks
    encode_videos = TextEncoder.encode_videos

    def encode_texts(self, texts):
        vectors = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in text.lower().replace(":", "").split():
                row[zlib.crc32(word.encode()) % 64] += 1
        return unit(vectors)


def spoken(task, video, every=6.0):
    """A narration that goes through a task, with talk around it."""
    lines = ["hello and welcome", *(f"now {name} like so" for name in TASKS[task]), "good bye"]
    lines = [line for line in lines for _ in range(2)]
    said = tuple(Sentence(every * n, every * n + 4.4, line) for n, line in enumerate(lines))
    return Video(video, every * len(lines), said, task=task)


VIDEOS = [spoken(task, f"{task} {every}", every) for task in TASKS for every in (5.0, 6.0, 8.0)]


def scored(video):
    encoder = Words()
    [features] = encoder.encode_videos([video])
    keysteps, tasks = encoder.encode_keysteps(VOCABULARY), encoder.encode_tasks(VOCABULARY)
    return score_features(features, keysteps, VOCABULARY, encoder.options, tasks=tasks)


@pytest.fixture(scope="module")
def model():
    graph = learn_graph([scored(video) for video in VIDEOS], VOCABULARY, encoder=Words.options)
    return OnlineModel.of_graph(graph, Words())


def told(model, sentences, until, **options):
    live = Live(model, LiveOptions(**options))
    return [
        state for now in range(1, until + 1) for state in live.feed(now, sentences.pop(now, ()))
    ]


def by_end(sentences):
    """Sentences by the second in which each is over, as they would be fed."""
    found = {}
    for one in sentences:
        found.setdefault(int(np.ceil(one.end)), []).append(one)
    return found


# --- The kernels beside what has the whole video


@pytest.mark.parametrize("rows", [1, 2, 37])
def test_with_one_length_looking_back_over_all_is_forward_backward(rows):
    rng = np.random.default_rng(rows)
    expected = Expected(rng.normal(size=(3, 20)), rng.dirichlet(np.ones(3), size=3))
    emission = rng.normal(size=(rows, 3))
    follower = OnlineHMM(expected, Lengths(np.array([float(rows)]), np.zeros(1)))
    follower.follow(emission)

    when = np.arange(rows) * 20 // rows
    whole = marginals(emission + expected.log_timing[:, when].T, expected.transitions)
    assert follower.look_back(rows) == pytest.approx(whole)
    assert follower.look_back(99) == pytest.approx(whole)


def test_several_lengths_are_as_many_models_each_as_probable_as_it_is():
    rng = np.random.default_rng(0)
    expected = Expected(rng.normal(size=(3, 20)), rng.dirichlet(np.ones(3), size=3))
    emission, lengths = rng.normal(size=(20, 3)), np.array([10.0, 25.0, 60.0])
    follower = OnlineHMM(expected, Lengths(lengths, np.log([0.5, 0.3, 0.2])))
    follower.follow(emission)

    slow = np.zeros((20, 3))
    for length, share in ((25, 0.6), (60, 0.4)):  # the shortest is over
        when = np.arange(20) * 20 // length
        slow += share * marginals(emission + expected.log_timing[:, when].T, expected.transitions)
    assert follower.length_shares() == pytest.approx([0, 0.6, 0.4])
    assert follower.look_back(20) == pytest.approx(slow)


def test_rows_that_are_observed_anew_are_followed_as_if_for_the_first_time():
    rng = np.random.default_rng(1)
    expected = Expected(rng.normal(size=(2, 20)), np.array([[0.9, 0.1], [0.2, 0.8]]))
    emission = rng.normal(size=(30, 2))
    known = Lengths(np.array([30.0]), np.zeros(1))
    once, twice = OnlineHMM(expected, known), OnlineHMM(expected, known)
    once.follow(emission)
    twice.follow(rng.normal(size=(25, 2)))
    twice.rewind(10)
    twice.follow(emission[10:])
    twice.rewind(0)
    twice.follow(emission)

    assert twice.rows == 30
    assert np.array_equal(once.look_back(30), twice.look_back(30))


def test_rows_that_are_not_kept_still_count():
    rng = np.random.default_rng(2)
    expected = Expected(rng.normal(size=(3, 20)), rng.dirichlet(np.ones(3), size=3))
    emission = rng.normal(size=(300, 3))
    at_once = OnlineHMM(expected, Lengths(np.array([300.0]), np.zeros(1)))
    one_by_one = OnlineHMM(expected, Lengths(np.array([300.0]), np.zeros(1)))
    at_once.follow(emission)
    for row in emission:
        one_by_one.follow(row[None])
    one_by_one.rewind(0)  # only what is kept can be heard anew
    assert one_by_one.rows == 300 - 64
    one_by_one.follow(emission[-64:])

    whole = marginals(emission + expected.log_timing[:, np.arange(300) // 15].T, expected[1])
    assert at_once.look_back(30) == pytest.approx(whole[-30:])
    assert np.array_equal(at_once.look_back(64), one_by_one.look_back(64))


def test_what_was_done_is_what_was_surest_on_any_row_before():
    sure = np.log([[0.98, 0.01, 0.01]] * 3 + [[0.01, 0.98, 0.01]] * 200 + [[0.01, 0.01, 0.98]] * 5)
    expected = Expected(np.zeros((3, 20)), np.full((3, 3), 1 / 3))
    follower = OnlineHMM(expected, Lengths(np.array([500.0]), np.zeros(1)))
    assert follower.done(0).tolist() == [0, 0, 0]
    follower.follow(sure)

    assert follower.done(0) == pytest.approx([0.98, 0.98, 0.98])
    assert follower.done(5) == pytest.approx([0.98, 0.98, 0.01])


def test_a_video_longer_than_any_is_at_its_end():
    follower = OnlineHMM(
        Expected(np.zeros((2, 20)), np.full((2, 2), 0.5)), Lengths(np.array([3.0]), np.zeros(1))
    )
    follower.follow(np.zeros((2000, 2)))

    assert follower.rows == 2000
    assert follower.length_shares().tolist() == [1.0]
    assert follower.look_back(5) == pytest.approx(np.full((5, 2), 0.5))


def test_lengths_are_those_of_the_corpus_or_of_any_order():
    known, unknown = likely_lengths([100.0] * 5 + [200.0] * 5), likely_lengths([7.0])

    assert np.exp(known.log_prior).sum() == pytest.approx(1)
    assert 100 < known.rows @ np.exp(known.log_prior) < 200
    assert (unknown.rows[0], unknown.rows[-1]) == (pytest.approx(60), pytest.approx(86_400))
    assert np.ptp(unknown.log_prior) == 0


@pytest.mark.parametrize("video", VIDEOS[::2], ids=lambda video: video.id)
def test_what_speaks_for_each_task_in_the_end_is_what_the_whole_video_says(model, video):
    recognizer = OnlineRecognizer(model)
    recognizer.take(np.inf, video.transcript)
    for _ in range(int(video.duration)):
        recognizer.listen()

    observed = observe(scored(video))
    assert recognizer._state.log_evidence == pytest.approx(
        task_log_evidence(observed, model.tasks), rel=1e-4
    )
    assert recognizer._evidence.part == observed.index.tolist()
    close = observed.similarity(video.task, model.tasks[video.task])
    ahead = close.title - close.keysteps.max(axis=1)
    number = list(model.tasks).index(video.task)
    assert recognizer._state.ahead[number] == pytest.approx(
        np.average(ahead, weights=observed.weight), abs=1e-5
    )


# --- What is told


@pytest.mark.parametrize("delay", [0, 4, 30])
@pytest.mark.parametrize("length", [None, 72.0])
def test_the_same_is_told_whether_the_future_exists_or_not(model, delay, length):
    video = VIDEOS[1]
    whole = told(model, by_end(video.transcript), 72, delay=delay, length=length)
    for until in (1, 13, 40):
        known = [one for one in video.transcript if one.end <= until]
        assert (
            told(model, by_end(known), until, delay=delay, length=length)
            == whole[: max(0, until - delay)]
        )


@pytest.mark.parametrize("delay", [0, 10])
def test_a_future_that_lies_at_hand_is_not_looked_at(model, delay):
    def states(sentences, rows):
        recognizer, teller = OnlineRecognizer(model), FixedLagOutput(delay)
        recognizer.take(np.inf, sentences)
        found = []
        for _ in range(rows):
            recognizer.listen()
            found.append(teller.emit(recognizer))
        return found

    first, second = VIDEOS[0].transcript, VIDEOS[5].transcript  # the second task begins at 60
    later = [Sentence(one.start + 60, one.end + 60, one.text) for one in second]
    whole = states([*first, *later], 150)
    for until in (8, 33, 70, 94, 126):
        # Soon after each something ends, which is said otherwise, or not at all.
        known = [one for one in [*first, *later] if one.end <= until]
        rest = [
            Sentence(one.start, one.end, "slide onto a plate") for one in first if one not in known
        ]
        assert states(known, until) == states([*known, *rest], until) == whole[:until]


def test_how_often_it_is_fed_makes_no_difference(model):
    video, live = VIDEOS[4], Live(model)

    known = [one for one in video.transcript if one.end <= 60]
    at_once = live.feed(60.0, known)

    assert at_once == told(model, by_end(known), 60)
    assert [state.at for state in at_once] == list(range(50))


@pytest.mark.parametrize("length", [None, 72.0])
def test_task_keystep_and_what_comes_next_are_told(model, length):
    live = Live(model, LiveOptions(delay=5, length=length))
    states = live.feed(72.0, VIDEOS[1].transcript) + live.finish()

    assert [state.at for state in states] == list(range(72))
    assert {state.task for state in states[20:]} == {"make tea"}
    assert [states[at].keystep for at in (18, 30, 42, 54)] == list(TASKS["make tea"])
    assert states[18].next[0].keystep == "warm the pot"
    overs = [state.progress for state in states]
    assert 0 <= min(overs) <= max(overs) <= 1
    assert overs[60] > overs[10]


def test_what_comes_before_and_was_not_done_is_missing(model):
    recognizer, teller = OnlineRecognizer(model), FixedLagOutput(0)
    recognizer.task = "make tea"
    assert teller._missing(recognizer) == ()
    teller._last, teller._done = ("make tea", 3), {0: 1.0, 1: 0.1, 2: 1.0, 3: 0.2}

    [found] = teller._missing(recognizer)

    way = model.task_order("make tea")
    assert found.keystep == "warm the pot"
    assert found.probability == pytest.approx(way.shown[1] * way.before[1, 3] * 0.9)


def test_silence_is_told_as_nothing(model):
    live = Live(model, LiveOptions(delay=2))

    states = live.feed(9.5) + live.finish()

    assert [state.at for state in states] == list(range(9))
    assert {(state.task, state.keystep, state.next) for state in states} == {(None, None, ())}
    assert Live(model).finish() == []


def test_one_sentence_without_any_length_is_observed(model):
    live = Live(model, LiveOptions(delay=0))

    [state] = live.feed(1.0, [Sentence(0.0, 0.0, "boil the water")])

    assert state.task is None  # it is on no row
    assert live.feed(3.0, [Sentence(1.0, 3.0, "boil the water")])[-1].task == "make tea"


def test_time_that_goes_back_is_observed_where_it_was(model):
    live = Live(model, LiveOptions(delay=0))
    live.feed(20.0, [Sentence(14.0, 19.0, "boil the water")])

    assert live.feed(5.0, [Sentence(1.0, 4.0, "pour the tea")]) == []
    assert len(live.feed(30.0)) == 10


def test_a_task_that_takes_the_lead_late_is_told_once_it_is_caught_up_with(model, monkeypatch):
    monkeypatch.setattr("stepgraph.assistant.live_recognition._SIDE_BY_SIDE", 1)
    shares = iter([np.array([0.9, 0.1])] * 100 + [np.array([0.1, 0.9])] * 20)
    monkeypatch.setattr(
        "stepgraph.assistant.live_recognition.task_shares", lambda *_: next(shares)
    )
    live, recognizer = Live(model, LiveOptions(delay=0)), OnlineRecognizer(model)
    said = [Sentence(float(at), at + 1.0, "add it") for at in range(120)]
    states = live.feed(120.0, said)

    assert [states[at].task for at in (99, 103, 104)] == ["make tea", "make tea", "fry eggs"]
    assert states[103].tasks == {"make tea": 0.1, "fry eggs": 0.9}
    # It is followed as if it had been all along.
    other = iter([np.array([0.1, 0.9])] * 120)
    monkeypatch.setattr("stepgraph.assistant.live_recognition.task_shares", lambda *_: next(other))
    again = Live(model, LiveOptions(delay=0)).feed(120.0, said)
    assert again[110].keysteps[0].keystep == states[110].keysteps[0].keystep
    assert recognizer.follower is None


def test_what_is_known_of_all_tasks_can_be_prepared(model):
    fresh = replace(model, _made={})
    fresh.prepare()

    assert len(fresh._made) == 3 * len(TASKS)
    states = Live(fresh).feed(40.0, VIDEOS[1].transcript)
    assert states == Live(model).feed(40.0, VIDEOS[1].transcript)


def test_a_task_that_is_followed_by_another_is_left(model, monkeypatch):
    first, second = VIDEOS[2].transcript, VIDEOS[5].transcript
    later = [Sentence(one.start + 96, one.end + 96, one.text) for one in second]
    ears = []
    for at_hand, reheard in ((256, 99), (256, 1), (0, 6)):  # at once, and in parts
        monkeypatch.setattr("stepgraph.assistant.live_evidence._AT_HAND", at_hand)
        monkeypatch.setattr("stepgraph.assistant.live_recognition._REHEARD", reheard)
        recognizer, teller, seen = OnlineRecognizer(model), FixedLagOutput(0), []
        recognizer.take(np.inf, [*first, *later])
        for _ in range(220):  # it is noticed at 188
            recognizer.listen()
            seen.append(teller.emit(recognizer).task)
        ears.append(recognizer)

        assert (seen[80], seen[-1]) == ("make tea", "fry eggs")
        assert 64 < recognizer.origin < 112  # in the talk between both

    for other in ears[1:]:
        assert (other.origin, other._evidence.part) == (ears[0].origin, ears[0]._evidence.part)
        assert other._state.log_evidence == pytest.approx(ears[0]._state.log_evidence)


def test_who_begins_to_speak_late_is_followed_from_the_beginning_in_parts(model):
    live = Live(model, LiveOptions(delay=0))
    states = live.feed(420.0, [Sentence(399.0 + n, 400.0 + n, "boil the water") for n in range(9)])

    assert [states[at].task for at in (398, 400, 405)] == [None, None, "make tea"]


def test_a_graph_without_parameters_or_traces_is_enough(model):
    bare = replace(model, graph=replace(model.graph, parameters=None, traces=None), _made={})
    states = Live(bare, LiveOptions(delay=5)).feed(72.0, VIDEOS[1].transcript)

    assert states[-1].task == "make tea"
    assert states[30].keysteps[0].keystep == "warm the pot"


# --- Rows that are seen


def seen(video):
    """The scores of a video as another encoder would make them, NaN where nothing is said."""
    scores = scored(video)
    return np.where(scores.observed[:, None], scores.values, np.nan)


def test_rows_of_scores_are_as_good_as_sentences(model):
    video = VIDEOS[1]
    live = Live(OnlineModel.of_scores(model.graph), LiveOptions(delay=5))
    states = live.feed_scores(seen(video)) + live.finish()

    assert [state.at for state in states] == list(range(72))
    assert {state.task for state in states[20:]} == {"make tea"}
    assert [states[at].keystep for at in (18, 30, 42, 54)] == list(TASKS["make tea"])
    plain = Scores(video.id, scored(video).values, scored(video).observed, VOCABULARY)
    evidence = task_log_evidence(observe(plain), model.tasks)
    assert live._recognizer._state.log_evidence == pytest.approx(evidence, rel=1e-4)


def test_the_same_is_told_of_scores_whether_more_come_or_not(model):
    bare, rows = OnlineModel.of_scores(model.graph), seen(VIDEOS[4])
    whole = Live(bare).feed_scores(rows)

    assert Live(bare).feed_scores(rows[:33]) == whole[:23]
    one_by_one = Live(bare)
    assert [state for row in rows for state in one_by_one.feed_scores(row[None])] == whole
    assert Live(bare).feed_scores(np.zeros((0, 8))) == Live(bare).finish() == []


def test_what_are_no_scores_is_refused(model):
    bare = OnlineModel.of_scores(model.graph)
    with pytest.raises(ConfigError, match=r"shape \(k, 8\), got \(2, 3\)"):
        Live(bare).feed_scores(np.zeros((2, 3)))
    with pytest.raises(ConfigError, match="must be finite"):
        Live(bare).feed_scores(np.full((1, 8), np.inf))
    with pytest.raises(ConfigError, match="fed without an encoder"):
        Live(model).feed_scores(np.zeros((1, 8)))
    with pytest.raises(ConfigError, match="sentences require an encoder"):
        Live(bare).feed(3.0, [Sentence(0.0, 1.0, "boil")])


def test_a_state_is_plain_json(model):
    state = Live(model).feed(40.0, VIDEOS[1].transcript)[-1]

    content = state.to_json()
    assert (content["task"], content["at"]) == ("make tea", 29.0)
    assert {"keystep", "probability"} == content["next"][0].keys()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": 31}, "delay must be from 0 to 30 seconds, got 31"),
        ({"delay": float("nan")}, "delay must be from 0 to 30 seconds, got nan"),
        ({"length": 0.0}, "length must be between a second and a week, got 0.0"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        LiveOptions(**options)
