"""CLIP, SigLIP and X-CLIP: what the library computes, from pixels that were prepared here."""

import json
import shutil

import numpy as np
import pytest

from stepgraph.core import Video, Vocabulary
from stepgraph.encoders import load_encoder
from stepgraph.encoders.pretrained import FAMILIES, load_model, make_pixels
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions
from stepgraph.scoring.lazy import LazyScores
from videos import write_video

KINDS = ("clip", "siglip", "xclip")
WORDS = ("[unk]", "[pad]", "boil", "pour", "stir", "the", "water", "tea", "a", "cup", "[end]")
TEXTS = ["boil the water", "pour a cup", "stir", "pour the water a cup the tea boil a water"]
SIDE, FRAMES = 32, 4
SETTINGS = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}


def tiny_network(kind):
    """A network of some thousand random weights."""
    import torch
    import transformers

    small = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    small |= {"num_attention_heads": 2}
    words = {"vocab_size": len(WORDS), "max_position_embeddings": 12}
    words |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": len(WORDS) - 1}
    sight = {"image_size": SIDE, "patch_size": 8}
    whole = {} if kind == "siglip" else {"projection_dim": 16}
    if kind == "xclip":
        sight |= {"num_frames": FRAMES, "mit_hidden_size": 16, "mit_intermediate_size": 24}
        sight |= {"mit_num_attention_heads": 2}
        whole |= {"prompt_num_attention_heads": 2}
    name = FAMILIES[kind]["model"]
    config = getattr(transformers, name.replace("Model", "Config"))(
        text_config=small | words, vision_config=small | sight, **whole
    )
    torch.manual_seed(1)
    network = getattr(transformers, name)(config).eval()
    with torch.no_grad():  # the library's first weights are so small that all vectors are alike
        for weight in network.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return network


def write_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(WORDS)}
    inner = Tokenizer(models.WordLevel(numbers, unk_token="[unk]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    end = ("[end]", numbers["[end]"])
    inner.post_processor = processors.TemplateProcessing(single="$A [end]", special_tokens=[end])
    tokens = {"unk_token": "[unk]", "pad_token": "[pad]", "eos_token": "[end]"}
    PreTrainedTokenizerFast(tokenizer_object=inner, **tokens).save_pretrained(folder)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A whole folder of each kind, as save_pretrained and the hub write it."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    found = {}
    for kind in KINDS:
        folder = found[kind] = tmp_path_factory.mktemp(kind)
        tiny_network(kind).save_pretrained(folder)
        write_tokenizer(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(SETTINGS))
    return found


@pytest.fixture
def own_folder(folders, tmp_path):
    """A copy of the CLIP folder, to be damaged."""
    return shutil.copytree(folders["clip"], tmp_path / "model")


@pytest.fixture(scope="session")
def frames():
    shape = (6, FRAMES, SIDE, SIDE, 3)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def pixels_by_hand(frames):
    import torch

    mean, std = np.array(SETTINGS["image_mean"]), np.array(SETTINGS["image_std"])
    wanted = np.moveaxis((frames / 255 - mean) / std, -1, -3)
    return torch.tensor(wanted, dtype=torch.float32)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_pictures_are_those_of_the_library_pooled(kind, folders, frames):
    import torch

    network = tiny_network(kind)
    with torch.no_grad():
        each = [
            [network.get_image_features(picture[None]).pooler_output[0].numpy() for picture in one]
            for one in pixels_by_hand(frames)
        ]

    found = load_model(kind, str(folders[kind])).encode_clips(frames)

    assert found == pytest.approx(unit(np.array(each)).mean(axis=1), abs=1e-5)
    assert found.dtype == np.float32
    assert np.ptp(unit(found), axis=0).max() > 0.02  # else it would not show a mistake


def test_clips_of_xclip_are_those_of_the_library(folders, frames):
    import torch

    network = tiny_network("xclip")
    with torch.no_grad():
        wanted = network(
            input_ids=torch.tensor([[2, 10]]), pixel_values=pixels_by_hand(frames)
        ).video_embeds.numpy()

    found = load_model("xclip", str(folders["xclip"])).encode_clips(frames)

    assert unit(found) == pytest.approx(wanted, abs=1e-5)
    assert np.ptp(wanted, axis=0).max() > 0.02


def ids_of(text, length=None):
    ids = [WORDS.index(word) for word in text.split()] + [len(WORDS) - 1]
    return ids + [1] * ((length or len(ids)) - len(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_the_library(kind, folders):
    import torch

    network = tiny_network(kind)
    length = 12 if kind == "siglip" else None  # SigLIP reads what it is filled up with
    with torch.no_grad():
        wanted = [
            network.get_text_features(torch.tensor([ids_of(text, length)])).pooler_output[0]
            for text in TEXTS
        ]

    found = load_model(kind, str(folders[kind])).encode_texts(TEXTS)

    assert found == pytest.approx(np.stack([one.numpy() for one in wanted]), abs=1e-5)
    assert np.ptp(unit(found), axis=0).max() > 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_do_not_depend_on_what_is_encoded_with_them(kind, folders, frames):
    model = load_model(kind, str(folders[kind]))

    for encode, given in ((model.encode_clips, frames), (model.encode_texts, TEXTS)):
        alone = np.concatenate([encode(given[n : n + 1]) for n in range(len(given))])
        assert encode(given) == pytest.approx(alone, abs=1e-5)


def test_siglip_reads_neither_capitals_nor_punctuation(folders):
    model = load_model("siglip", str(folders["siglip"]))

    one, other = model.encode_texts(["Pour the  water, (a cup)!", "pour the water a cup"])

    assert one == pytest.approx(other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_name_is_cut_to_what_the_model_reads(kind, folders):
    found = load_model(kind, str(folders[kind])).encode_texts(["boil the water " * 30, "stir"])

    assert found.shape == (2, 32 if kind == "siglip" else 16)


@pytest.mark.parametrize(
    ("kind", "window", "frames", "seconds"),
    [
        ("clip", None, 1, 1.0),
        ("clip", 0.5, 1, 0.5),
        ("siglip", 3.5, 4, 3.5),
        ("siglip", 100.0, 16, 100.0),
        ("xclip", None, FRAMES, 2.0),
        ("xclip", 8.0, FRAMES, 8.0),
    ],
)
def test_a_window_is_looked_at_once_a_second_or_as_the_model_wants(
    kind, window, frames, seconds, folders
):
    clips = load_model(kind, str(folders[kind]), window).clips

    crop = kind != "siglip"
    assert clips == ClipOptions(frames, seconds, height=SIDE, width=SIDE, crop=crop)


# --- how pictures are prepared


@pytest.mark.parametrize(
    ("kind", "settings", "size", "read", "crop"),
    [
        ("clip", {}, (32, 32), (32, 32), True),
        ("siglip", {}, (32, 32), (32, 32), False),
        ("clip", {"size": 32, "crop_size": 32}, (32, 32), (32, 32), True),
        ("clip", {"size": {"shortest_edge": 40}, "crop_size": 32}, (32, 32), (40, 40), True),
        (
            "xclip",
            {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}},
            (32, 32),
            (32, 32),
            True,
        ),
        ("siglip", {"size": {"height": 32, "width": 48}}, (32, 48), (32, 48), False),
        ("clip", {"size": {"height": 32, "width": 32}}, (32, 32), (32, 32), False),
    ],
)
def test_sizes_are_read_however_they_are_written(kind, settings, size, read, crop):
    pixels = make_pixels(kind, (32, 32), settings)

    assert (pixels.size, pixels.read, pixels.crop) == (size, read, crop)


def test_the_middle_of_a_larger_picture_is_seen():
    pixels = make_pixels("clip", (2, 2), {"size": 4, "crop_size": 2, "do_normalize": False})
    frames = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(1, 1, 4, 4, 3)

    seen = pixels.prepare(frames, "cpu")

    assert (seen * 255)[0, 0, 0].flatten().tolist() == pytest.approx([15, 18, 27, 30])


def test_colours_of_a_kind_are_used_where_the_folder_does_not_tell():
    pixels = make_pixels("siglip", (1, 1), {})
    frames = np.array([0, 255, 51], np.uint8).reshape(1, 1, 1, 1, 3)

    assert pixels.prepare(frames, "cpu").flatten().tolist() == pytest.approx([-1, 1, -0.6])


def test_newer_folders_keep_their_settings_elsewhere(own_folder, frames):
    before = load_model("clip", str(own_folder)).encode_clips(frames[:1])
    (own_folder / "preprocessor_config.json").unlink()
    (own_folder / "processor_config.json").write_text(json.dumps({"image_processor": SETTINGS}))

    assert load_model("clip", str(own_folder)).encode_clips(frames[:1]).tolist() == before.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_mean": [0.5]}, "must be the settings of an image processor, got: 1 colours"),
        ({"image_mean": None}, "must be the settings of an image processor, got: 'NoneType'"),
        (SETTINGS | {"size": 64, "crop_size": 64}, "pictures must be 32 x 32 .*, got 64 x 64"),
    ],
)
def test_settings_that_do_not_fit_are_refused(own_folder, settings, message):
    (own_folder / "preprocessor_config.json").write_text(json.dumps(settings))

    with pytest.raises(DataError, match=rf"model/preprocessor_config.json: {message}"):
        load_model("clip", str(own_folder))


# --- folders that are not whole, or of another model


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model_type": "siglip"}, "must be 'clip', got 'siglip'; use siglip:.*model"),
        ({"model_type": "xclip"}, "must be 'clip', got 'xclip'; use xclip:.*model"),
        ({"model_type": "mpnet"}, "must be 'clip', got 'mpnet'; use text:.*model"),
        ({"model_type": "llama"}, "must be 'clip', got 'llama'; give the folder of a clip model"),
        ({"model_type": "siglip2"}, "must be 'clip', got 'siglip2'; .* use one of fixed resoluti"),
        ({}, "must be 'clip', got None"),
        ([], "must be 'clip', got None"),
    ],
)
def test_another_model_is_refused_by_its_type(own_folder, content, message):
    (own_folder / "config.json").write_text(json.dumps(content))

    with pytest.raises(ConfigError, match=rf"config\.json: model_type {message}"):
        load_model("clip", str(own_folder))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", "must be the folder of a clip model, got one without config.json"),
        ("model.safetensors", r"must contain weights \(model.safetensors or .*, got none"),
        ("tokenizer.json", r"must contain a tokenizer \(tokenizer.json or .*, got none"),
    ],
)
def test_a_folder_that_lacks_something_is_refused(own_folder, file, message):
    (own_folder / file).unlink()

    with pytest.raises(ConfigError, match=rf"^{own_folder}: {message}"):
        load_model("clip", str(own_folder))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_that_is_cut_off_is_refused_in_one_line(own_folder, file):
    whole = (own_folder / file).read_bytes()
    (own_folder / file).write_bytes(whole[: len(whole) // 2])

    with pytest.raises(DataError) as caught:
        load_model("clip", str(own_folder))

    assert str(caught.value).startswith(str(own_folder))
    assert "\n" not in str(caught.value)


def test_a_tokenizer_without_words_is_refused(own_folder):
    # A file that nothing reads, and a class that makes do without.
    (own_folder / "tokenizer.json").rename(own_folder / "tokenizer.model")
    (own_folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CLIPTokenizer"}')

    with pytest.raises(DataError, match=r"the tokenizer of a clip model.*, got.*; copy the whole"):
        load_model("clip", str(own_folder))


def test_a_tokenizer_of_another_model_is_refused(own_folder):
    path = own_folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"stir": 4', '"stir": 400'))
    model = load_model("clip", str(own_folder))

    with pytest.raises(DataError, match="tokens must be below the 11 of the clip model, got 400"):
        model.encode_texts(["stir"])


def test_weights_that_lack_some_are_refused_rather_than_filled_at_random(own_folder):
    from safetensors.torch import load_file, save_file

    path = own_folder / "model.safetensors"
    weights = load_file(path)
    del weights["text_projection.weight"]
    save_file(weights, path, metadata={"format": "pt"})

    with pytest.raises(
        DataError, match=r"all weights of a CLIPModel, got none for 1 .* text_proj"
    ):
        load_model("clip", str(own_folder))


def test_older_files_of_weights_are_read(own_folder, frames):
    import torch
    from safetensors.torch import load_file

    before = load_model("clip", str(own_folder)).encode_clips(frames[:1])
    torch.save(load_file(own_folder / "model.safetensors"), own_folder / "pytorch_model.bin")
    (own_folder / "model.safetensors").unlink()

    assert load_model("clip", str(own_folder)).encode_clips(frames[:1]).tolist() == before.tolist()


def test_weights_that_run_code_are_refused(own_folder):
    import pickle

    class Hostile:
        def __reduce__(self):
            return (print, ("this must not be printed",))

    (own_folder / "model.safetensors").unlink()
    (own_folder / "pytorch_model.bin").write_bytes(
        pickle.dumps({"weight": Hostile(), "as many bytes as its config says": bytes(10**6)})
    )

    with pytest.raises(DataError, match="must hold the weights of a CLIPModel, got: "):
        load_model("clip", str(own_folder))


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_where_no_folder_is_is_refused_at_once(kind):
    with pytest.raises(ConfigError, match=f"{kind} encoder './nowhere' must be the folder of a"):
        load_encoder(f"{kind}:./nowhere")


@pytest.mark.parametrize("kind", KINDS)
def test_loading_and_encoding_say_nothing(kind, folders, frames, capfd):
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar

    enable_progress_bar()

    model = load_model(kind, str(folders[kind]))
    model.encode_clips(frames)
    model.encode_texts(TEXTS)

    disable_progress_bar()
    assert capfd.readouterr() == ("", "")


# --- from a file


@pytest.fixture(scope="session")
def filmed(tmp_path_factory):
    """Four seconds of film: two of one picture, two of another."""
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    rng = np.random.default_rng(3)
    pictures = rng.integers(0, 256, (2, 6, 8, 3), dtype=np.uint8).repeat(8, 1).repeat(8, 2)
    return write_video(path, pictures.repeat(16, 0), rate=8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_film_becomes_features_and_scores(kind, folders, filmed):
    encoder = load_encoder(f"{kind}:{folders[kind]}")
    video = Video("film", 4.0, path=filmed)
    vocabulary = Vocabulary(("boil the water", "pour a cup"))

    [features] = encoder.encode_videos([video])
    keysteps = encoder.encode_keysteps(vocabulary)
    scores = LazyScores(features, keysteps, vocabulary)

    assert encoder.options.name == f"{kind}:{folders[kind]}"
    assert np.linalg.norm(features.vectors, axis=1) == pytest.approx(1.0)
    assert features.intervals.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert features.vectors[0] @ features.vectors[3] < 0.999  # another picture
    if kind != "xclip":  # whose second row looks at the third, too
        assert features.vectors[0] @ features.vectors[1] > 0.999
    assert scores.values == pytest.approx(features.vectors @ keysteps.T, abs=1e-6)
    assert scores.observed.all()
