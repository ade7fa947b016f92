"""S3D and VideoCLIP as encoders: from a folder and a video file to unit vectors of rows."""

import re
from dataclasses import replace

import numpy as np
import pytest

from stepgraph.core import Video, Vocabulary
from stepgraph.encoders import Encoder, load_encoder, milnce
from stepgraph.errors import ConfigError, DataError
from stepgraph.ingest.frames import ClipOptions, read_clips

torch = pytest.importorskip("torch")
av = pytest.importorskip("av")

WORDS = ["crack", "the", "eggs", "whisk", "heat", "a", "pan", "pour", "omelette"]
# Where bert-base-uncased has its marks, and a few words behind them.
PIECES = [f"[unused{number}]" for number in range(100)]
PIECES += ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
PIECES += ["crack", "the", "egg", "##s", "whisk", "them", "heat", "a", "pan", "pour", "every"]
PIECES += ["##thing", "fold", "ome", "##lette"]
SMALL = {"height": 32, "width": 32}
ROWS = 4


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Four seconds, each of another colour, that move."""
    path = tmp_path_factory.mktemp("video") / "talk.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(10 * ROWS):
            picture = np.full((48, 64, 3), 20, np.uint8)
            picture[:, number % 30 : number % 30 + 20, number // 10 % 3] = 90 + 40 * (number // 10)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        out.mux(stream.encode())
    return Video("talk", float(ROWS), (), path)


@pytest.fixture(scope="module")
def s3d_weights():
    from stepgraph.networks.s3d import S3D

    torch.manual_seed(0)
    return S3D(len(WORDS) + 1).state_dict()


@pytest.fixture(scope="module")
def s3d_folder(tmp_path_factory, s3d_weights):
    folder = tmp_path_factory.mktemp("s3d")
    torch.save(s3d_weights, folder / "s3d_howto100m.pth")
    np.save(folder / "s3d_dict.npy", np.array(WORDS))
    return folder


@pytest.fixture(scope="module")
def videoclip_weights():
    from stepgraph.networks.videoclip import VideoCLIP, VideoClipOptions

    torch.manual_seed(1)
    return VideoCLIP(VideoClipOptions(512, 64, 96, 1, 1, len(PIECES), 80)).state_dict()


@pytest.fixture(scope="module")
def videoclip_folder(tmp_path_factory, s3d_weights, videoclip_weights):
    folder = tmp_path_factory.mktemp("videoclip")
    torch.save(s3d_weights, folder / "s3d_howto100m.pth")
    model = {f"mmmodel.{name}": weight for name, weight in videoclip_weights.items()}
    torch.save({"model": model, "epoch": 3}, folder / "checkpoint_best.pt")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def s3d(s3d_folder):
    """Loaded once, with small pictures, so that tests are quick."""
    return small(load_encoder(f"s3d:{s3d_folder}"))


@pytest.fixture(scope="module")
def videoclip(videoclip_folder):
    return small(load_encoder(f"videoclip:{videoclip_folder}"), frames=6)


def small(encoder, **clips):
    """The same encoder with small pictures."""
    model = encoder.model
    encoder.__dict__["model"] = replace(model, clips=replace(model.clips, **SMALL, **clips))
    return encoder


def clips_of(video, options):
    return np.stack([clip.frames for clip in read_clips(video.path, options)])


def pixels(frames):
    return torch.from_numpy(frames).permute(0, 4, 1, 2, 3).float() / 255


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_s3d_encodes_each_row_by_the_clip_that_begins_with_it(s3d, video):
    [features] = s3d.encode_videos([video])

    frames = clips_of(video, ClipOptions(frames=16, window=1.6, **SMALL))
    with torch.inference_mode():
        expected = unit(s3d.model.network(pixels(frames)).numpy())
    assert isinstance(s3d, Encoder)
    assert features.vectors.shape == (ROWS, 512)
    assert features.vectors.dtype == np.float32
    np.testing.assert_allclose(features.vectors, expected, atol=1e-5)
    assert features.intervals.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_the_published_clips_are_the_default():
    s3d, videoclip = milnce._S3DModel(None, {}, "cpu"), milnce._VideoClip(None, None, None, "cpu")

    assert s3d.clips == ClipOptions(16, 1.6, 1.0, 224, 224, crop=True)
    assert videoclip.clips == ClipOptions(30, 1.0, 1.0, 224, 224, crop=True)


def test_a_window_of_the_user_changes_what_s3d_sees(s3d):
    encoder = load_encoder(replace(s3d.options, window=3.2))
    encoder.__dict__["model"] = s3d.model

    assert encoder.clips == replace(s3d.clips, window=3.2)


def test_s3d_encodes_keysteps_by_their_words(s3d):
    from stepgraph.networks.s3d import find_words

    names = ("Crack the eggs!", "crack eggs the", "pour", "beurre")

    vectors = s3d.encode_keysteps(Vocabulary(names))

    positions = {word: row for row, word in enumerate(WORDS, start=1)}
    with torch.inference_mode():
        expected = s3d.model.network.embed_words(find_words(names, positions)).numpy()
    np.testing.assert_allclose(vectors[:3], unit(expected)[:3], atol=1e-6)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    assert not vectors[3].any()


def test_keysteps_without_any_known_word_are_refused(s3d):
    with pytest.raises(
        DataError, match=r"must have a vector for a word of some keystep, got none for \['œuf'"
    ):
        s3d.encode_keysteps(Vocabulary(("œuf", "beurre")))


def test_safetensors_and_a_list_of_words_do_as_well(tmp_path, s3d, s3d_weights):
    from safetensors.torch import save_file

    save_file(s3d_weights, tmp_path / "s3d.safetensors")
    (tmp_path / "dict.txt").write_text("\n".join(WORDS), "utf-8")
    keysteps = Vocabulary(("crack", "pour the eggs"))

    vectors = load_encoder(f"s3d:{tmp_path}").encode_keysteps(keysteps)

    assert vectors.tolist() == s3d.encode_keysteps(keysteps).tolist()


@pytest.mark.parametrize("window", [None, 3.0])
def test_videoclip_encodes_each_second_among_its_neighbours(videoclip, video, window):
    from stepgraph.networks.videoclip import embed_rows

    encoder = load_encoder(replace(videoclip.options, window=window))
    encoder.__dict__["model"] = videoclip.model

    [features] = encoder.encode_videos([video])

    frames = clips_of(video, ClipOptions(frames=6, window=1.0, **SMALL))
    with torch.inference_mode():
        # What S3D gives is not scaled to length 1 before VideoCLIP reads it.
        seen = encoder.model.s3d(pixels(frames))
        expected = embed_rows(encoder.model.network, seen, window=int(window or 32)).numpy()
    assert features.vectors.shape == (ROWS, 64)
    np.testing.assert_allclose(features.vectors, unit(expected), atol=1e-4)
    assert features.intervals.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_videos_are_encoded_each_on_its_own(videoclip, video):
    other = replace(video, id="short", duration=2.0)

    one, short, again = videoclip.encode_videos([video, other, video])

    assert (one.video, short.video, len(short.vectors)) == ("talk", "short", 2)
    assert one.vectors.tolist() == again.vectors.tolist()


def test_videoclip_reads_keysteps_in_lower_case_pieces(videoclip):
    from stepgraph.networks.videoclip import pad_tokens

    vectors = videoclip.encode_keysteps(Vocabulary(("Crack the EGGS", "fold the omelette")))

    numbers = {piece: number for number, piece in enumerate(PIECES)}
    said = [["crack", "the", "egg", "##s"], ["fold", "the", "ome", "##lette"]]
    tokens = pad_tokens([[numbers[piece] for piece in text] for text in said])
    with torch.inference_mode():
        expected = videoclip.model.network.embed_texts(*tokens).numpy()
    np.testing.assert_allclose(vectors, unit(expected), atol=1e-5)


def test_a_tokenizer_json_reads_the_same(tmp_path, videoclip, videoclip_folder):
    from tokenizers import BertWordPieceTokenizer

    for path in videoclip_folder.iterdir():
        if path.name != "vocab.txt":
            (tmp_path / path.name).symlink_to(path)
    tokenizer = BertWordPieceTokenizer(str(videoclip_folder / "vocab.txt"))
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=20)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    keysteps = Vocabulary(("whisk them", "heat a pan"))

    vectors = load_encoder(f"videoclip:{tmp_path}").encode_keysteps(keysteps)

    assert vectors.tolist() == videoclip.encode_keysteps(keysteps).tolist()


MISSING = {
    ("s3d", "s3d_howto100m.pth"): r"the weights of S3D .*, got none; .* S3D_HowTo100M",
    ("s3d", "s3d_dict.npy"): r"the words of S3D \(s3d_dict.npy or .*, got none; .* S3D_HowTo100M",
    ("videoclip", "checkpoint_best.pt"): r"the checkpoint of VideoCLIP .* project MMPT of fairseq",
    ("videoclip", "s3d_howto100m.pth"): r"the weights of S3D .*, got none; .* S3D_HowTo100M",
    ("videoclip", "vocab.txt"): r"the tokenizer of bert-base-uncased \(tokenizer.json or vocab",
}


@pytest.mark.parametrize(("kind", "name"), MISSING)
def test_a_missing_file_is_named_with_who_publishes_it(request, tmp_path, kind, name):
    for path in request.getfixturevalue(f"{kind}_folder").iterdir():
        if path.name != name:
            (tmp_path / path.name).symlink_to(path)

    with pytest.raises(ConfigError, match=MISSING[kind, name]) as caught:
        load_encoder(f"{kind}:{tmp_path}")

    assert str(caught.value).startswith(f"{tmp_path}: must hold ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["s3d", "videoclip"])
def test_a_name_that_is_no_folder_is_refused(kind):
    with pytest.raises(ConfigError, match=rf"{kind} encoder 'howto' must be a folder that holds"):
        load_encoder(f"{kind}:howto")
    with pytest.raises(ConfigError, match=rf"{kind} encoder './no' .* a path that is no folder"):
        load_encoder(f"{kind}:./no")


@pytest.mark.parametrize("window", [0.5, 2.5, 33])
def test_windows_that_videoclip_cannot_read_are_refused(videoclip, window):
    with pytest.raises(ConfigError, match="whole number of seconds from 1 to 32 for VideoCLIP"):
        load_encoder(replace(videoclip.options, window=window))


def test_words_of_another_network_are_refused(tmp_path, s3d_folder):
    (tmp_path / "s3d.pth").symlink_to(s3d_folder / "s3d_howto100m.pth")
    np.save(tmp_path / "dict.npy", np.array(WORDS[:4]))

    with pytest.raises(DataError, match=r"dict.npy: must list 9 words, .* got 4; take the list"):
        load_encoder(f"s3d:{tmp_path}").model  # noqa: B018


def test_a_list_with_one_word_more_than_word_vectors_leaves_that_out(tmp_path, s3d_folder):
    (tmp_path / "s3d.pth").symlink_to(s3d_folder / "s3d_howto100m.pth")
    np.save(tmp_path / "dict.npy", np.array([*WORDS, "butter"]))

    encoder = load_encoder(f"s3d:{tmp_path}")

    vectors = encoder.encode_keysteps(Vocabulary(("pour", "butter")))
    assert vectors.any(axis=1).tolist() == [True, False]


def npy(content, shape="(2,)", kind="<U3"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + content


BAD_WORDS = {
    "empty": b"",
    "text": b"hello",
    "objects": npy(b"cos\nsystem\n(S'touch PWNED'\ntR.", kind="|O"),
    "cut off": npy(b"abc"),
    "bomb": npy(b"abc", shape="(1000000000000,)"),
    "numbers": npy(bytes(8), kind="<f4"),
    "table": npy(bytes(24), shape="(1, 2)"),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_words_that_cannot_be_read_are_refused_and_run_nothing(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s3d_dict.npy"
    path.write_bytes(BAD_WORDS[name])

    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}: must be a ") as caught:
        milnce._read_words(path)

    assert "\n" not in str(caught.value)
    assert not (tmp_path / "PWNED").exists()


BAD_TOKENIZERS = {
    "vocab.txt": r"bert-base-uncased, with 120 pieces and .* got 4 pieces and \[0, 1\]",
    "tokenizer.json": r"must be a tokenizer file of bert-base-uncased, got one that cannot",
}


@pytest.mark.parametrize("name", BAD_TOKENIZERS)
def test_a_tokenizer_of_another_model_is_refused(tmp_path, videoclip_folder, name):
    for path in videoclip_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / name).write_text("[CLS]\n[SEP]\n[UNK]\na\n", "utf-8")

    with pytest.raises(DataError, match=BAD_TOKENIZERS[name]) as caught:
        load_encoder(f"videoclip:{tmp_path}").encode_keysteps(Vocabulary(("a", "b")))

    assert "\n" not in str(caught.value)


def test_a_video_without_a_file_is_refused(s3d):
    with pytest.raises(DataError, match="video 'v' must have a video file to be encoded"):
        list(s3d.encode_videos([Video("v", 3.0)]))
