"""What is said, as a recogniser hears it: on the clock of the file, and never downloaded."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import videos
from stepgraph.core import Sentence
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.ingest import whisper
from stepgraph.ingest.whisper import transcribe
from videos import plain, write_video

HEARD = [(0.5, 2.0, " Crack the eggs."), (2.0, 3.5, " [Music]"), (3.5, 5.0, " Whisk them well.")]


@pytest.fixture(autouse=True)
def _forget_models():
    whisper._load_whisper.cache_clear()
    yield
    whisper._load_whisper.cache_clear()


@pytest.fixture
def talk(tmp_path):
    return write_video(tmp_path / "talk.mp4", plain(0, 50), sound=2.0)


@pytest.fixture
def model(tmp_path):
    """A folder that looks like a model."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in whisper.MODEL_FILES:
        (folder / name).write_bytes(b"{}")
    return folder


@pytest.fixture
def loaded(monkeypatch):
    """Put a recogniser in place that always hears the same; return how it was made."""
    made = []

    class WhisperModel:
        def __init__(self, folder, **options):
            made.append((folder, options))

        def transcribe(self, path, *, vad_filter=False):
            assert vad_filter, "recognisers make up words for music"
            heard = (SimpleNamespace(start=a, end=b, text=text) for a, b, text in HEARD)
            return heard, SimpleNamespace(language="en")

    whisper = SimpleNamespace(WhisperModel=WhisperModel)
    monkeypatch.setitem(sys.modules, "faster_whisper", whisper)
    return made


def test_what_is_heard_becomes_clean_sentences(talk, model, loaded):
    sentences = transcribe(talk, model)

    assert [sentence.text for sentence in sentences] == ["Crack the eggs.", "Whisk them well."]
    assert sentences[0] == Sentence(0.5, 2.0, "Crack the eggs.")


def test_what_is_heard_may_come_in_any_order(talk, model, loaded, monkeypatch):
    late = [(30.0, 31.0, "Fold it."), (0.5, 2.0, "Crack the eggs."), (2.5, 3.0, "Whisk them.")]
    monkeypatch.setattr(sys.modules[__name__], "HEARD", late)

    assert [one.start for one in transcribe(talk, model)] == [0.5, 2.5, 30.0]


def test_a_model_is_loaded_once_and_never_fetched(talk, model, loaded):
    for _ in range(3):
        transcribe(talk, model)

    ((folder, options),) = loaded
    assert folder == str(model)
    assert options["local_files_only"]


def test_times_are_those_of_the_file_where_the_sound_begins_late(tmp_path, model, loaded):
    av = pytest.importorskip("av")
    path = tmp_path / "late.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        sound = videos.add_sound(container)
        for picture in plain(0, 100):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode())
        videos.write_silence(container, sound, 2.0, start=1.5)

    first, _ = transcribe(path, model)

    assert first.start == pytest.approx(0.5 + 1.5, abs=0.1)
    assert first.end == pytest.approx(2.0 + 1.5, abs=0.1)


def test_a_video_without_sound_is_refused(tmp_path, model, loaded):
    path = write_video(tmp_path / "mute.mp4", plain(0, 5))

    with pytest.raises(DataError, match=r"mute.mp4: must have sound to be transcribed, got none"):
        transcribe(path, model)


@pytest.mark.parametrize(
    ("remove", "got"),
    [
        (["model.bin"], "got no model.bin; nothing is downloaded"),
        (["tokenizer.json"], "got no tokenizer.json; nothing is downloaded"),
        (list(whisper.MODEL_FILES), "got no model.bin and no config.json and no tokenizer.json"),
    ],
)
def test_a_folder_without_a_model_is_refused(talk, model, loaded, remove, got):
    for name in remove:
        (model / name).unlink()

    with pytest.raises(DataError, match=r"must be the folder of a faster-whisper model") as caught:
        transcribe(talk, model)
    assert got in str(caught.value)
    assert "(model.bin, config.json, tokenizer.json)" in str(caught.value)
    assert not loaded


def test_a_missing_folder_is_refused(talk, tmp_path, loaded):
    with pytest.raises(DataError, match=r"large-v3: must be the folder .*, got no such folder; n"):
        transcribe(talk, tmp_path / "large-v3")


def test_without_the_extra_the_error_names_the_install_command(talk, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "faster_whisper", None)

    with pytest.raises(
        MissingExtraError, match=r"needs the 'speech' extra; run: pip install 'stepgraph\[speech\]"
    ):
        transcribe(talk, model)


def test_a_broken_model_is_refused_in_one_line(talk, model):
    pytest.importorskip("faster_whisper")

    with pytest.raises(DataError, match="must be a readable faster-whisper model, got ") as caught:
        transcribe(talk, model)
    assert "\n" not in str(caught.value)


def test_sound_that_cannot_be_decoded_is_refused(talk, model, loaded, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no frames\nat all")

    monkeypatch.setattr(sys.modules["faster_whisper"].WhisperModel, "transcribe", fail)

    with pytest.raises(DataError, match=r"talk.mp4: sound must be .*, got no frames at all; "):
        transcribe(talk, model)


def write_model(folder, width=16):
    """Write a whole Whisper of one layer and random weights, which says random things."""
    specs = pytest.importorskip("ctranslate2.specs.whisper_spec")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = ("endoftext", "startoftranscript", "en", "translate", "transcribe", "startoflm")
    marks += ("startofprev", "nospeech", "notimestamps")
    special = [f"<|{mark}|>" for mark in marks] + [f"<|{at / 50:.2f}|>" for at in range(1501)]
    tokens = letters + special
    tokenizer = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))

    spec = specs.WhisperSpec(1, 2, 1, 2)
    _fill(spec, len(tokens), width, np.random.default_rng(0))
    spec.register_vocabulary(tokens)
    spec.config.suppress_ids = spec.config.suppress_ids_begin = []
    spec.config.lang_ids, spec.config.alignment_heads = [], [[0, 0]]
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
    return folder


def _fill(spec, tokens, width, rng):
    def draw(*shape):
        return (0.3 * rng.standard_normal(shape)).astype(np.float32)

    def fill(part, *shape):
        part.weight, part.bias = draw(*shape), draw(shape[0])

    def fill_norm(part):
        part.gamma, part.beta = draw(width) + 1, draw(width)

    encoder, decoder = spec.encoder, spec.decoder
    fill(encoder.conv1, width, 80, 3)
    fill(encoder.conv2, width, width, 3)
    encoder.position_encodings.encodings = draw(1500, width)
    decoder.position_encodings.encodings = draw(448, width)
    decoder.embeddings.weight = decoder.projection.weight = draw(tokens, width)
    for part in (encoder, decoder):
        fill_norm(part.layer_norm)
    for layer in (*encoder.layer, *decoder.layer):
        fill_norm(layer.self_attention.layer_norm)
        fill(layer.self_attention.linear[0], 3 * width, width)
        fill(layer.self_attention.linear[1], width, width)
        fill_norm(layer.ffn.layer_norm)
        fill(layer.ffn.linear_0, 2 * width, width)
        fill(layer.ffn.linear_1, width, 2 * width)
    across = decoder.layer[0].attention
    fill_norm(across.layer_norm)
    for part, times in zip(across.linear, (1, 2, 1), strict=True):
        fill(part, times * width, width)


def test_a_whole_model_is_run_on_the_sound_of_a_file(talk, tmp_path, monkeypatch):
    pytest.importorskip("faster_whisper")
    model = write_model(tmp_path / "tiny")
    assert transcribe(talk, model) == ()  # silence is passed over

    monkeypatch.setattr(
        "faster_whisper.transcribe.get_speech_timestamps",
        lambda sound, *_, **__: [{"start": 0, "end": len(sound)}],
    )
    sentences = transcribe(talk, model)

    assert sentences
    assert all(sentence.text.strip() for sentence in sentences)
    assert all(0 <= sentence.start < sentence.end <= 30.1 for sentence in sentences)


@pytest.mark.parametrize(
    ("sound", "file", "begin"),
    [
        (None, None, 0.0),
        (3, None, 1.5),
        (3, 500_000, 1.0),
        (None, 500_000, 0.0),
        (None, -500_000, 0.5),
    ],
)
def test_sound_begins_when_players_say_so(monkeypatch, sound, file, begin):
    track = SimpleNamespace(start_time=sound, time_base=0.5)
    other = SimpleNamespace(start_time=9, time_base=0.5)  # recognisers listen to the first
    container = SimpleNamespace(streams=SimpleNamespace(audio=[track, other]), start_time=file)
    monkeypatch.setattr(whisper, "opened", lambda path: nullcontext(container))

    assert whisper._begin_of_sound(Path("talk.mp4")) == begin
