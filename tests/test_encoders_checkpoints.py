"""TimeSformer as an encoder: folders of the library, and checkpoints of one's own."""

import json

import numpy as np
import pytest

from stepgraph.core import Video, Vocabulary
from stepgraph.encoders import EncoderOptions, load_encoder
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions
from stepgraph.scoring import score
from videos import write_video

torch = pytest.importorskip("torch")
COLORS = {"paint it red": (220, 20, 20), "paint it blue": (20, 20, 220), "wait": (90, 90, 90)}
VOCABULARY = Vocabulary(tuple(COLORS))
FRAMES, SIZE = 2, 32


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def library():
    from transformers import TimesformerConfig, TimesformerForVideoClassification

    config = TimesformerConfig(
        image_size=SIZE,
        num_frames=FRAMES,
        patch_size=16,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
        num_labels=7,
    )
    torch.manual_seed(0)
    model = TimesformerForVideoClassification(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return model


@pytest.fixture
def published(tmp_path, library):
    """A folder as the library writes it."""
    folder = tmp_path / "published"
    library.save_pretrained(folder)
    return folder


def change_json(path, **changes):
    content = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(content | changes))


def make_network(seed=0):
    from stepgraph.networks.timesformer import TimeSformer, TimeSformerOptions

    torch.manual_seed(seed)
    options = TimeSformerOptions(
        len(COLORS), frames=FRAMES, size=SIZE, patch=16, width=24, depth=2, heads=2
    )
    return TimeSformer(options)


@pytest.fixture(scope="module")
def colour_network():
    """A network that has learned three colours."""
    from stepgraph.networks.timesformer import normalize

    network = make_network()
    pictures = torch.tensor(list(COLORS.values()), dtype=torch.uint8)
    clips = normalize(pictures[:, None, None, None].expand(-1, FRAMES, SIZE, SIZE, -1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(network(clips), torch.arange(3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


@pytest.fixture
def checkpoint(tmp_path, colour_network):
    from stepgraph.networks.checkpoints import save_checkpoint

    path = tmp_path / "own.safetensors"
    save_checkpoint(path, colour_network, VOCABULARY.keysteps, {"window": 2.0})
    return path


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Two seconds of each colour."""
    path = tmp_path_factory.mktemp("video") / "painting.mp4"
    pictures = [np.full((48, 64, 3), color, np.uint8) for color in COLORS.values()]
    write_video(path, [picture for picture in pictures for _ in range(8)], rate=4)
    return Video("painting", 6.0, path=path)


def clips_of(count=3):
    return np.random.default_rng(0).integers(0, 256, (count, FRAMES, SIZE, SIZE, 3), np.uint8)


# --- timesformer: --------------------------------------------------------------------------


def test_published_weights_give_the_features_of_the_library(published, library):
    clips = clips_of()

    found = load_encoder(f"timesformer:{published}").model.encode_clips(clips)

    pixels = (torch.tensor(clips).permute(0, 1, 4, 2, 3) / 255 - 0.45) / 0.225
    with torch.no_grad():
        expected = library.timesformer(pixel_values=pixels).last_hidden_state[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


def test_colours_are_prepared_as_the_folder_says(published, library):
    mean, deviation = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    settings = {"image_mean": mean, "image_std": deviation}
    change_json(published / "preprocessor_config.json", **settings)
    clips = clips_of()

    found = load_encoder(f"timesformer:{published}").model.encode_clips(clips)

    pixels = torch.tensor(clips).permute(0, 1, 4, 2, 3) / 255
    pixels = (pixels - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(deviation).view(3, 1, 1)
    with torch.no_grad():
        expected = library.timesformer(pixel_values=pixels).last_hidden_state[:, 0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


def test_weights_in_a_pickle_are_read_too(published, library):
    expected = load_encoder(f"timesformer:{published}").model.encode_clips(clips_of())
    (published / "model.safetensors").unlink()
    torch.save(library.state_dict(), published / "pytorch_model.bin")

    found = load_encoder(f"timesformer:{published}").model.encode_clips(clips_of())

    np.testing.assert_array_equal(found, expected)


def test_a_video_is_encoded_row_by_row(published, video):
    encoder = load_encoder(f"timesformer:{published}")

    (features,) = encoder.encode_videos([video])

    assert encoder.clips == ClipOptions(FRAMES, 8.5, height=SIZE, width=SIZE)
    assert features.vectors.shape == (6, 24)
    np.testing.assert_allclose(np.linalg.norm(features.vectors, axis=1), 1, atol=1e-5)


def test_a_window_of_the_user_replaces_that_of_the_weights(published):
    encoder = load_encoder(EncoderOptions(f"timesformer:{published}", window=3.0))

    assert encoder.clips.window == 3.0


def test_it_knows_no_keysteps_and_says_so_without_loading_weights(published):
    (published / "model.safetensors").write_bytes(b"nothing")

    with pytest.raises(ConfigError, match=r"must encode the names of 3 keysteps, got .* features"):
        load_encoder(f"timesformer:{published}").encode_keysteps(VOCABULARY)


def test_a_checkpoint_of_ones_own_gives_features_by_that_name(checkpoint, colour_network):
    from stepgraph.networks.timesformer import normalize

    model = load_encoder(f"timesformer:{checkpoint}").model

    with torch.no_grad():
        expected = colour_network.features(normalize(torch.tensor(clips_of())))
    np.testing.assert_allclose(model.encode_clips(clips_of()), expected.numpy(), atol=1e-5)
    assert model.clips.window == 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "vivit"}, "model_type must be 'timesformer', got 'vivit'"),
        ({"attention_type": "space_only"}, "attention_type must be 'divided_space_time', got"),
        ({"intermediate_size": 50}, "intermediate_size must be 96, got 50"),
        ({"hidden_act": "relu"}, "hidden_act must be 'gelu', got 'relu'"),
        ({"num_frames": "many"}, "frames of a TimeSformer must be a whole number, .* got 'many'"),
        ({"num_hidden_layers": 3}, "must have 3 blocks, got 2"),
        ({"patch_size": 8}, "must fit the shape"),
    ],
)
def test_a_folder_of_something_else_is_refused(published, change, message):
    change_json(published / "config.json", **change)

    with pytest.raises((ConfigError, DataError), match=message) as caught:
        _ = load_encoder(f"timesformer:{published}").model

    assert str(caught.value).startswith(str(published))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [0.5, [0.5], [0.5, 0.5, "x"], [0.5, 0.5, 0]])
def test_colours_that_are_none_are_refused(published, values):
    settings = {"image_mean": [0.4, 0.4, 0.4], "image_std": values}
    change_json(published / "preprocessor_config.json", **settings)

    with pytest.raises(DataError, match=r"preprocessor_config.json: .* three numbers each, got"):
        _ = load_encoder(f"timesformer:{published}").model


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_without_a_part_is_refused(published, name):
    (published / name).unlink()
    what = "config.json" if name == "config.json" else "weights"

    with pytest.raises(ConfigError, match=rf"must .*{what}"):
        _ = load_encoder(f"timesformer:{published}").model


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/model", "~/nowhere/model"])
def test_a_path_where_nothing_is_is_refused_at_once(model):
    with pytest.raises(ConfigError, match=rf"{model}.* got a path that is no folder"):
        load_encoder(f"timesformer:{model}")


# --- own: ----------------------------------------------------------------------------------


def test_own_checkpoints_recognise_what_they_were_trained_on(checkpoint, video):
    encoder = load_encoder(EncoderOptions(f"own:{checkpoint}", window=1.0))

    (scores,) = score([video], VOCABULARY, encoder)

    assert scores.values.argmax(axis=1).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_score_is_the_root_of_a_probability(checkpoint, colour_network):
    from stepgraph.networks.timesformer import normalize

    encoder = load_encoder(f"own:{checkpoint}")
    clips = clips_of()

    scores = encoder.model.encode_clips(clips) @ encoder.encode_keysteps(VOCABULARY).T

    with torch.no_grad():
        expected = colour_network(normalize(torch.tensor(clips))).softmax(dim=1)
    np.testing.assert_allclose(scores**2, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose((scores**2).sum(axis=1), 1, atol=1e-5)


def test_the_window_is_the_one_it_was_trained_with(checkpoint):
    assert load_encoder(f"own:{checkpoint}").clips == ClipOptions(
        FRAMES, 2.0, height=SIZE, width=SIZE
    )


def test_keysteps_are_found_by_name_in_any_order(checkpoint):
    other = Vocabulary(("wait", "dance", "Paint  it Blue"))

    vectors = load_encoder(f"own:{checkpoint}").encode_keysteps(other)

    assert vectors.tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_an_exact_name_goes_before_one_that_differs_in_capitals(tmp_path):
    from stepgraph.networks.checkpoints import save_checkpoint

    path = tmp_path / "own.safetensors"
    save_checkpoint(path, make_network(), ("STIR", "stir", "pour"))

    vectors = load_encoder(f"own:{path}").encode_keysteps(Vocabulary(("stir", "STIR", "Stir")))

    assert vectors.argmax(axis=1).tolist() == [1, 0, 1]


def test_a_vocabulary_of_which_it_knows_nothing_is_refused(checkpoint):
    with pytest.raises(DataError, match=r"own.safetensors: .* got none of its 2 among the 3"):
        load_encoder(f"own:{checkpoint}").encode_keysteps(Vocabulary(("dance", "sing")))


def test_a_checkpoint_that_is_missing_is_refused_at_once():
    with pytest.raises(DataError, match=r"nowhere: must be a checkpoint .*, got no such file"):
        load_encoder("own:./nowhere")


@pytest.mark.parametrize("window", [0, -1, "long", None, 1e9])
def test_a_window_that_is_none_is_refused(tmp_path, window):
    from stepgraph.networks.checkpoints import save_checkpoint

    path = tmp_path / "own.safetensors"
    save_checkpoint(path, make_network(), VOCABULARY.keysteps, {"window": window})

    with pytest.raises(DataError, match="window must be between 0 and 3600 seconds, got"):
        _ = load_encoder(f"own:{path}").model


def test_a_video_without_a_file_is_refused(checkpoint):
    with pytest.raises(DataError, match="'heard' must have a video file to be encoded"):
        list(load_encoder(f"own:{checkpoint}").encode_videos([Video("heard", 3.0)]))
