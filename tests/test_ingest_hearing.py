"""What is made of sound and of what a recogniser says of it, without listening to anything."""

import hashlib
import json
import os
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stepgraph.core import Sentence
from stepgraph.errors import DataError
from stepgraph.files.disk import cache_folder
from stepgraph.ingest import speech
from stepgraph.problems import Problems

RATE = speech.RATE


@pytest.mark.parametrize(
    "damage",
    [
        {"sentences": [[3, 1, "x"]]},
        {"sentences": [[-1, 1, "x"]]},
        {"sentences": [[1, 1, "x"]]},
        {"sentences": [[1, 1e999, "x"]]},
        {"sentences": [[2, 3, "x"], [1, 2, "y"]]},
        {"sentences": [[1, 2, " "]]},
        {"sentences": [[1, 2, "\ud800"]]},
        {"sentences": ["123"]},
        {"end": 1e999},
        {"end": -1.0},
        {"damaged": 1e999},
        {"language": None},
        {"unsure": 1.001},
        {"unsure": -0.001},
    ],
)
def test_what_nobody_can_have_heard_is_not_recalled(tmp_path, damage, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    (path := tmp_path / "talk.wav").write_bytes(b"never opened")
    heard = speech.Transcription((Sentence(0, 1, "x"), Sentence(1, 2, "y")), 9.0, 0, "en")
    monkeypatch.setattr(speech, "_listen", lambda _: heard)
    speech.hear(path)
    assert speech.recall(path) == heard
    [kept] = cache_folder().rglob("*.json")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **damage}))

    assert speech.recall(path) is None


def test_what_was_heard_lies_where_the_next_release_looks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    (path := tmp_path / "talk.wav").write_bytes(b"never opened" * 200_000)  # more than a block
    heard = speech.Transcription((Sentence(0.5, 1, "crème"),), 9.0, 2, "en", 1.0)
    monkeypatch.setattr(speech, "_listen", lambda _: heard)
    speech.hear(path, problems=Problems())

    name = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    place = tmp_path / "cache" / "speech" / "moonshine-94e90a46-3" / f"{name}.json"
    assert place.read_text("utf-8") == (
        '{"format": "stepgraph-speech", "version": 3, "sentences": [[0.5, 1, "crème"]], '
        '"end": 9.0, "damaged": 2, "language": "en", "unsure": 1.0}'
    )
    assert speech.recall(path) == heard


def test_what_models_heard_is_told_apart_by_their_files(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    (path := tmp_path / "talk.wav").write_bytes(b"never opened")
    for name in speech.MODEL_FILES:
        (tmp_path / name).write_bytes(b"model")
        os.utime(tmp_path / name, ns=(1, 1))
    before = speech._cache_path(path, tmp_path)

    os.utime(tmp_path / name, ns=(2, 2))
    after = speech._cache_path(path, tmp_path)

    sizes = repr([(5, 1)] * 3).encode()
    digest = hashlib.blake2b(sizes, digest_size=4).hexdigest()
    assert before.parent.name == f"whisper-{digest}-3" != after.parent.name


def recogniser(*lines):
    """One that hears the same lines in every piece."""
    made = [
        SimpleNamespace(start_time=a + speech._HUSH, duration=b - a, text=text)
        for a, b, text in lines
    ]
    return SimpleNamespace(transcribe_without_streaming=lambda *_: SimpleNamespace(lines=made))


@pytest.mark.parametrize(("samples", "heard"), [(1, 512), (512, 512), (513, 1024)])
def test_a_piece_is_heard_after_a_second_of_silence_and_in_whole_windows(samples, heard):
    given = []
    model = SimpleNamespace(
        transcribe_without_streaming=lambda *told: given.append(told) or SimpleNamespace(lines=[])
    )

    assert not list(speech._heard_in(model, 0.0, np.ones(samples, np.float32)))

    [(sound, rate)] = given
    before, said, after = np.split(sound, [32 * 512, 32 * 512 + samples])
    assert (rate, len(sound)) == (RATE, 32 * 512 + heard)
    assert said.all()
    assert not before.any()
    assert not after.any()


def test_what_a_recogniser_makes_of_music_is_left_out():
    loop = "The first is " * 20
    heard = speech._heard_in(
        recogniser((0, 8, loop), (8, 8.3, "You"), (8.3, 9, "Stir it."), (9, 9.5, " - ")),
        100.0,
        np.zeros(9 * RATE, np.float32),
    )

    assert list(heard) == [Sentence(108.3, 109.0, "Stir it.")]


def test_lines_are_split_at_the_ends_of_sentences_in_proportion():
    lines = [Sentence(10.0, 20.0, "Crack the eggs. Whisk it, then pour it in slowly.")]

    split = list(speech._split(lines))

    assert [one.text for one in split] == ["Crack the eggs.", "Whisk it, then pour it in slowly."]
    assert split[0].end == split[1].start == pytest.approx(13.2, abs=0.2)
    assert (split[0].start, split[1].end) == (10.0, 20.0)


def test_a_word_at_a_border_counts_once():
    lines = [Sentence(0, 10, "now add the flour"), Sentence(9.5, 15, "Flour, and stir.")]

    assert [one.text for one in speech._split(lines)] == ["now add the flour", "and stir."]
    apart = [Sentence(0, 9, "it was very"), Sentence(9.5, 15, "Very good.")]
    assert [one.text for one in speech._split(apart)] == ["it was very", "Very good."]


def test_pieces_hold_all_sound_once_and_are_cut_in_pauses():
    rng = np.random.default_rng(0)
    sound = rng.standard_normal(40 * RATE).astype(np.float32)
    for pause in (6, 13, 21, 29, 36):
        sound[pause * RATE : int((pause + 0.5) * RATE)] = 0.0
    chunks = np.split(sound, range(1000, len(sound), 1000))

    pieces = list(speech.cut((0.0 if at == 0 else None, one) for at, one in enumerate(chunks)))

    assert np.array_equal(np.concatenate([piece for _, piece in pieces]), sound)
    assert [at for at, _ in pieces] == pytest.approx(
        [0, 6.25, 13.25, 21.25, 29.25, 36.25], abs=0.06
    )
    assert max(len(piece) for _, piece in pieces) <= speech.LONGEST_PIECE * RATE


def test_sound_without_a_pause_is_cut_all_the_same():
    pieces = list(speech.cut([(2.0, np.ones(100 * RATE, np.float32))]))

    lengths = [len(piece) / RATE for _, piece in pieces]
    assert sum(lengths) == pytest.approx(100)
    assert max(lengths) <= speech.LONGEST_PIECE
    assert min(lengths[:-1]) >= speech.SHORTEST_PIECE


def test_a_gap_in_the_times_begins_a_new_piece():
    second = np.ones(RATE, np.float32)

    pieces = list(speech.cut([(0.0, second), (None, second), (60.0, second)]))

    assert [(at, len(piece) / RATE) for at, piece in pieces] == [(0.0, 2.0), (60.0, 1.0)]


@pytest.mark.parametrize(
    ("text", "length", "kept"),
    [
        ("Stir it.", 0.4, True),
        ("Stir it.", 0.39, False),
        ("- 12 -", 2.0, False),
        ("the first is " * 4, 3.0, True),  # a quarter of twelve words differ
        ("the the the the the the the the the the the", 3.0, True),  # eleven
        ("the the the the the the the the the the the the", 3.0, False),
    ],
)
def test_few_words_again_and_again_and_what_is_too_short_are_no_speech(text, length, kept):
    heard = speech._heard_in(recogniser((0.0, length, text)), 5.0, np.zeros(9 * RATE, np.float32))

    assert list(heard) == [Sentence(5.0, 5.0 + length, " ".join(text.split()))] * kept


def test_a_line_ends_where_its_piece_does():
    heard = speech._heard_in(recogniser((1.0, 4.0, "Stir.")), 5.0, np.zeros(3 * RATE, np.float32))

    assert list(heard) == [Sentence(6.0, 8.0, "Stir.")]


def test_sentences_of_a_line_share_its_time_by_their_letters():
    lines = [Sentence(0, 4, "Stir. Add."), Sentence(3.9, 6, "So it is."), Sentence(2, 6, "No.")]

    # Ten letters and spaces, of which six belong to the first.
    assert list(speech._split(lines)) == [
        *(Sentence(0.0, 2.4, "Stir."), Sentence(2.4, 4.0, "Add.")),
        Sentence(4.0, 6.0, "So it is."),
    ]


def test_times_are_told_to_a_millisecond():
    [first, second] = speech._split([Sentence(0.00049, 1.00006, "Stir it. Do.")])

    assert (first.start, first.end, second.start, second.end) == (0.0, 0.75, 0.75, 1.0)


def test_sentences_share_milliseconds_and_none_lasts_no_time():
    halves = speech._split([Sentence(0, 1, "Stir. Add it.")])
    short = list(speech._split([Sentence(0, 0.002, "A. B. C. D. E.")]))

    assert [(one.start, one.end) for one in halves] == [(0.0, 0.462), (0.462, 1.0)]
    assert short == []


def test_lines_that_touch_or_were_heard_already_hide_no_other():
    lines = [Sentence(0, 10, "add flour"), Sentence(10, 12, "Flour it."), Sentence(3, 9, "No.")]

    assert [one.text for one in speech._split([*lines, Sentence(12, 13, "Stir.")])] == [
        *("add flour", "Flour it.", "Stir.")
    ]


@pytest.mark.parametrize("said", [(Sentence(1.0, 4.5, "Stir."),), ()])
def test_what_another_model_hears_is_kept_with_its_end(tmp_path, monkeypatch, said):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(speech, "transcribe", lambda path, model: said)
    for name in speech.MODEL_FILES:
        (tmp_path / name).write_bytes(b"model")
    (path := tmp_path / "talk.wav").write_bytes(b"never opened")

    heard = speech.hear(path, tmp_path, problems=Problems())

    # What it could not decode, and how sure it is, that model does not say.
    assert heard == speech.Transcription(
        said, 4.5 if said else 0.0, damaged=0, language="", unsure=0.0
    )
    assert speech.recall(path, tmp_path) == heard
    assert speech.recall(path) is None


def test_only_the_built_in_model_wants_english(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    (path := tmp_path / "talk.wav").write_bytes(b"never opened")
    heard = speech.Transcription((Sentence(0, 1, "x"),), 1.0, 0, "de")
    monkeypatch.setattr(speech, "recall", lambda *_: heard)
    own, other = Problems(), Problems()

    speech.hear(path, problems=own)
    speech.hear(path, tmp_path, problems=other)

    assert own.counts == {"foreign speech": 1}
    assert not other


def test_warnings_name_the_line_that_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "cache"))
    (path := tmp_path / "talk.wav").write_bytes(b"never opened")
    monkeypatch.setattr(speech, "_listen", lambda path: speech.Transcription((), 1.0))

    with pytest.warns(UserWarning, match="1 video without speech") as heard:
        speech.hear(path)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="the transcript cannot be cached") as unkept:
        speech.hear(path, problems=Problems())

    assert {one.filename for one in (*heard, *unkept)} == {__file__}


def test_a_file_is_heard_piece_by_piece_and_its_seconds_are_counted(monkeypatch):
    counted, asked = [], []

    @contextmanager
    def counting(*given):
        asked.append(given)
        yield counted.append

    two = np.ones(2 * RATE, np.float32)
    sound = SimpleNamespace(end=62.34567, damaged=3, language="en", stated=62)
    sound.runs = lambda: [(0.0, two), (60.0, two)]
    monkeypatch.setattr(speech, "opened", lambda path: nullcontext())
    monkeypatch.setattr(speech, "_Sound", lambda *_: sound)
    monkeypatch.setattr(speech, "_load_moonshine", lambda: recogniser((0.5, 1.5, "Stir.")))
    monkeypatch.setattr(speech.progress, "counting", counting)

    heard = speech._listen(Path("talk.wav"))

    assert heard.sentences == (Sentence(0.5, 1.5, "Stir."), Sentence(60.5, 61.5, "Stir."))
    assert heard[1:] == (62.346, 3, "en", 0.0)
    assert (asked, counted) == ([("transcribing talk.wav", 62)], [2, 2])


def test_the_only_word_of_a_line_is_kept_even_if_it_was_said_before():
    lines = [Sentence(0, 5, "add flour"), Sentence(4.5, 6, "Flour."), Sentence(5.5, 8, "flour it")]

    assert [one.text for one in speech._split(lines)] == ["add flour", "Flour.", "it"]


def test_a_piece_is_cut_in_the_middle_of_its_quietest_moment():
    sound = np.ones(10 * RATE, np.float32)
    sound[5 * RATE : int(5.4 * RATE)] = 0.0
    sound[: 2 * RATE] = 0.0  # before the shortest piece ends

    [(first, piece), (second, rest)] = speech.cut([(1.0, sound)])

    assert (first, second) == (1.0, pytest.approx(6.2, abs=1.5 / RATE))
    assert len(piece) == pytest.approx(5.2 * RATE, abs=1.5)
    assert len(piece) + len(rest) == len(sound)


def test_sound_of_just_the_longest_piece_is_not_cut():
    longest = np.ones(int(9.5 * RATE), np.float32)

    assert [(at, len(one)) for at, one in speech.cut([(0.0, longest)])] == [(0.0, len(longest))]
    assert len(list(speech.cut([(0.0, longest), (None, longest[:1])]))) == 2
    assert [at for at, _ in speech.cut([(None, longest)])] == [0.0]
    assert list(speech.cut([])) == []
    assert list(speech.cut([(1.0, longest[:0])])) == []


@pytest.mark.parametrize(
    ("language", "english", "said"),
    [
        *[(tag, True, []) for tag in ("", "und", "mul", "zxx", "eng", "EN-us")],
        *[("de", True, ["foreign speech"]), ("de", False, [])],
    ],
)
def test_only_a_mark_tells_another_language(language, english, said):
    heard = speech.Transcription((Sentence(0, 1, "x"),), 1.0, 0, language)

    assert [kind for kind, _ in speech._blemishes(heard, english=english)] == said


@pytest.mark.parametrize(("unsure", "said"), [(0.5, []), (0.501, ["foreign speech"])])
def test_half_of_the_words_may_change(unsure, said):
    heard = speech.Transcription((Sentence(0, 1, "x"),), 1.0, 0, "en", unsure)

    assert [kind for kind, _ in speech._blemishes(heard, english=True)] == said


def test_silence_and_damage_are_told_in_any_language():
    heard = speech.Transcription((), 1.0, 1, "de")

    kinds = [kind for kind, _ in speech._blemishes(heard, english=True)]

    assert kinds == ["video without speech", "damaged sound"]


def sound_of(*frames, begins=None):
    """The sound of a file of these frames: when each begins (None: it does not say), and lasts."""
    av = pytest.importorskip("av")
    made = []
    for at, seconds, rate in frames:
        samples = np.zeros((1, round(seconds * rate)), np.float32)
        frame = av.AudioFrame.from_ndarray(samples, format="flt", layout="mono")
        frame.sample_rate, frame.time_base = rate, Fraction(1, rate)
        frame.pts = None if at is None else round(at * rate)
        made.append(frame)
    sound = object.__new__(speech._Sound)
    sound._container = SimpleNamespace(start_time=begins)
    sound._path, sound.end = Path("talk.mp4"), 0.0
    sound._frames = lambda: iter(made)
    return sound


@pytest.mark.parametrize(
    ("second", "begins"),
    [
        (1.0, None),
        (1.2, None),
        (1.25, 1.25),
        (601.0, None),
        (600.5, 600.5),
        (0.5, None),
        (None, None),
    ],
)
def test_times_are_taken_from_the_file_where_sound_is_missing(second, begins):
    sound = sound_of((0.0, 1.0, RATE), (second, 1.0, RATE))

    found = [(start, len(samples)) for start, samples in sound.runs() if len(samples)]

    assert found == [(0.0, RATE), (begins, RATE)]
    last = 1.0 if second is None else second
    assert sound.end == pytest.approx(max(1.0, last + 1.0))


def test_sound_begins_where_players_show_the_beginning_and_never_before():
    late, early = (
        sound_of((2.5, 1.0, RATE), begins=500_000),
        sound_of((0.25, 1.0, RATE), begins=500_000),
    )

    assert [start for start, _ in late.runs()][:1] == [2.0]
    assert late.end == 3.0
    assert [start for start, _ in early.runs()][:1] == [0.0]
    assert early.end == 0.75


def test_sound_without_any_times_begins_at_0():
    sound = sound_of((None, 1.0, RATE), (None, 1.0, RATE))

    assert [start for start, _ in sound.runs()][:2] == [0.0, None]
    assert sound.end == 2.0


def test_sound_of_any_rate_is_heard_at_one():
    sound = sound_of((0.0, 1.0, 48_000), (1.0, 1.0, RATE), (2.0, 1.0, 8_000))

    assert sum(len(samples) for _, samples in sound.runs()) == pytest.approx(3 * RATE, rel=0.02)


def test_a_file_without_any_frame_is_refused():
    with pytest.raises(DataError, match=r"talk.mp4: sound must be decodable, got none that is"):
        list(sound_of().runs())


@pytest.mark.parametrize(("stated", "known"), [(None, None), (999_999, None), (61_000_000, 61)])
def test_a_file_may_state_how_long_it_is(stated, known):
    track = SimpleNamespace(metadata={"language": "eng"})
    container = SimpleNamespace(duration=stated, streams=SimpleNamespace(audio=[track]))

    sound = speech._Sound(container, Path("talk.mp4"))

    assert (sound.stated, sound.language, sound.damaged, sound.end) == (known, "eng", 0, 0.0)


def test_a_line_that_is_over_before_it_may_begin_is_not_the_last_one():
    lines = [Sentence(0, 3, "boil water"), Sentence(1, 3, "pour it"), Sentence(2, 6, "it is hot")]

    assert [one.text for one in speech._split(lines)] == ["boil water", "it is hot"]
