"""Stored scores: every layout gives the same rows, and no file can do harm or pass unnoticed."""

import io
import pickle
import random
import re
import zipfile

import numpy as np
import pytest

from reference import read_scores, read_stored
from stepgraph.core import Video
from stepgraph.errors import ConfigError, DataError
from stepgraph.problems import Problems
from stepgraph.scoring import StoredScores

ROWS, KEYSTEPS = 6, 5
TABLE = np.random.default_rng(3).normal(size=(ROWS, KEYSTEPS)).astype(np.float32)
VIDEO = Video("talk", float(ROWS))


def save(folder, table=TABLE, *, suffix=".npy", video="talk"):
    """Write a table in one of the layouts."""
    path = folder / f"{video}{suffix}"
    if suffix == ".npy":
        np.save(path, table)
    elif suffix == ".npz":
        np.savez_compressed(path, scores=table)
    elif suffix == ".pkl":
        path.write_bytes(pickle.dumps([row[None] for row in table]))
    else:
        import torch

        torch.save(torch.from_numpy(table), path)
    return path


@pytest.fixture
def read(tmp_path, vocabulary):
    """Read the scores of videos from the folder of the test."""

    def read(*videos, problems=None, **options):
        problems = Problems() if problems is None else problems
        wanted = videos or (VIDEO,)
        return list(read_scores(wanted, vocabulary, tmp_path, problems=problems, **options))

    return read


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pkl"])
def test_every_layout_gives_the_same_scores(tmp_path, vocabulary, read, suffix):
    save(tmp_path, suffix=suffix)
    problems = Problems(strict=True)

    [scores] = read(problems=problems)

    assert (scores.video, scores.hop, scores.vocabulary) == ("talk", 1.0, vocabulary)
    assert scores.values.dtype == np.float32
    np.testing.assert_array_equal(scores.values, TABLE)
    assert scores.observed.all()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pkl"])
@pytest.mark.parametrize("dtype", ["f2", "f8", "i8", "u1"])
def test_any_real_numbers_become_single_precision(tmp_path, vocabulary, suffix, dtype):
    table = np.arange(10).reshape(2, 5).astype(dtype)

    found = read_stored(save(tmp_path, table, suffix=suffix), vocabulary)

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, table)


def test_other_spellings_of_a_table_are_read(tmp_path, vocabulary):
    import torch

    tensor = torch.from_numpy(TABLE)
    torch.save({"scores": tensor, "video": "talk"}, tmp_path / "dict.pt")
    torch.save(torch.nn.Parameter(tensor), tmp_path / "parameter.pt")
    torch.save(tensor.T.contiguous().T, tmp_path / "transposed.pt")
    torch.save(torch.cat([tensor, tensor])[:ROWS], tmp_path / "part.pt")
    np.save(tmp_path / "fortran.npy", np.asfortranarray(TABLE))
    (tmp_path / "flat.pkl").write_bytes(pickle.dumps(list(TABLE)))
    (tmp_path / "array.pkl").write_bytes(pickle.dumps(TABLE))

    for path in tmp_path.iterdir():
        np.testing.assert_array_equal(read_stored(path, vocabulary), TABLE, str(path))
    torch.save(tensor.bfloat16(), tmp_path / "bfloat16.pt")
    np.testing.assert_allclose(read_stored(tmp_path / "bfloat16.pt", vocabulary), TABLE, rtol=0.01)


def test_a_video_without_file_is_noted_and_unobserved(tmp_path, read):
    save(tmp_path)
    problems = Problems()

    gone, talk = read(Video("gone", 3.0), VIDEO, problems=problems)

    assert gone.values.shape == (3, KEYSTEPS)
    assert not gone.observed.any()
    assert talk.observed.all()
    assert dict(problems.counts) == {"video without stored scores": 1}
    with pytest.raises(DataError, match=r"gone: must be a file of stored scores \(\.npy, .* none"):
        read(Video("gone", 3.0), problems=Problems(strict=True))


def test_videos_without_scores_are_left_out_and_the_others_read_by_the_second(
    tmp_path, vocabulary
):
    save(tmp_path)
    videos = [Video("gone", 3.0), VIDEO]

    [(video, scores)] = StoredScores(tmp_path).read_each(videos, vocabulary, problems=Problems())

    assert (video, scores.hop, len(scores)) == (VIDEO, 1.0, ROWS)
    np.testing.assert_array_equal(scores.values, TABLE)
    with pytest.raises(DataError, match="gone: must be a file of stored scores"):
        list(StoredScores(tmp_path).read_each(videos, vocabulary))


@pytest.mark.parametrize("video", ["../talk", "a/../../talk", "x" * 5000, "a\0b", ""])
def test_odd_ids_find_no_file(tmp_path, vocabulary, video):
    save(tmp_path)
    folder = tmp_path / "scores"
    folder.mkdir()

    [scores] = read_scores([Video(video, 2.0)], vocabulary, folder, problems=Problems())

    assert not scores.observed.any()


def test_ids_with_folders_and_dots_find_their_file(tmp_path, read):
    (tmp_path / "monday").mkdir()
    save(tmp_path / "monday", video="v1.part2")

    [scores] = read(Video("monday/v1.part2", 6.0), problems=Problems(strict=True))

    assert scores.observed.all()


def test_a_folder_given_from_above_is_read(tmp_path, vocabulary, monkeypatch):
    save(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    above = type(tmp_path)("..")

    [scores] = read_scores([VIDEO], vocabulary, above, problems=Problems(strict=True))

    assert scores.observed.all()


def test_of_several_files_the_first_is_read_and_noted(tmp_path, read):
    save(tmp_path, suffix=".pkl", table=-TABLE)
    save(tmp_path, suffix=".npy")
    problems = Problems()

    [scores] = read(problems=problems)

    np.testing.assert_array_equal(scores.values, TABLE)
    assert "must be the only file of its video, got talk.npy, talk.pkl" in problems.summary()


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (9.5, "shorter .*: must have 10 rows of 1 s, got 6; the rest of the video is unobserved"),
        (3.5, "longer .*: must have 4 rows of 1 s, got 6; those past its end are left out"),
    ],
)
def test_a_file_of_another_length_is_noted_and_cut_or_unobserved(tmp_path, read, duration, said):
    save(tmp_path)
    problems = Problems()

    [scores] = read(Video("talk", duration), problems=problems)

    assert scores.observed.tolist() == ([True] * 6 + [False] * 4)[: len(scores)]
    np.testing.assert_array_equal(scores.values[:6], TABLE[: len(scores)])
    assert not scores.values[6:].any()
    assert re.search(f"^1 scores {said}", problems.summary())


def test_one_row_more_or_less_is_no_problem(tmp_path, read):
    save(tmp_path)

    for duration in (5.0, 5.2, 6.0, 7.0):
        [scores] = read(Video("talk", duration), problems=Problems(strict=True))
        assert scores.observed.sum() == min(ROWS, len(scores))


@pytest.mark.parametrize(
    ("hop", "seconds_per_row", "taken"),
    [
        (1.0, 2.0, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        (2.0, 1.0, [1, 3, 5]),
        (1.0, 0.5, [1, 3, 5]),
        (0.5, 1.0, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        (3.0, 2.0, [0, 2, 3, 5]),
        (0.2, 0.3, [0, 1, 1, 2, 3, 3, 4, 5, 5]),
    ],
)
def test_another_rate_takes_the_stored_row_at_the_middle(
    tmp_path, read, hop, seconds_per_row, taken
):
    save(tmp_path)
    video = Video("talk", ROWS * seconds_per_row)

    [scores] = read(
        video, hop=hop, seconds_per_row=seconds_per_row, problems=Problems(strict=True)
    )

    assert scores.hop == hop
    assert scores.observed.all()
    np.testing.assert_array_equal(scores.values, TABLE[taken])


@pytest.mark.parametrize("suffix", [".npy", ".pt", ".pkl"])
def test_no_rows_leave_the_video_unobserved(tmp_path, read, suffix):
    save(tmp_path, TABLE[:0], suffix=suffix)
    problems = Problems()

    [scores] = read(problems=problems)

    assert not scores.observed.any()
    assert "must have 6 rows of 1 s, got 0" in problems.summary()


def test_videos_are_read_one_at_a_time(tmp_path, vocabulary):
    save(tmp_path)
    (tmp_path / "bad.npy").write_bytes(b"no")
    videos = (Video(name, 6.0) for name in ("talk", "bad"))

    first = next(iter(read_scores(videos, vocabulary, tmp_path, problems=Problems())))

    assert first.video == "talk"


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt"])
@pytest.mark.parametrize("shape", [(6, 4), (5,), (), (6, 1, 5)])
def test_scores_of_another_vocabulary_or_no_table_are_refused(tmp_path, read, suffix, shape):
    save(tmp_path, np.zeros(shape, np.float32), suffix=suffix)

    with pytest.raises(
        DataError, match=r"must have shape \(rows, 5\), .* another vocabulary\?"
    ) as caught:
        read()

    assert f"got {shape}; " in str(caught.value)


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ([TABLE[:1], TABLE[:1, :4]], r"row 1 must be an array of shape \(1, 5\), got \(1, 4\)"),
        ([TABLE], r"row 0 must be an array of shape \(1, 5\), got \(6, 5\); save one array of"),
        ([0.5], "row 0 must be an array .*, got a float"),
        ({"a": TABLE}, "must hold a list of arrays, one a row, got a dict"),
        (TABLE[0], r"scores must have shape \(rows, 5\), got \(5,\)"),
        (None, "must hold a list of arrays, one a row, got a nonetype"),
    ],
)
def test_pickles_of_other_shapes_are_refused(tmp_path, read, content, got):
    (tmp_path / "talk.pkl").write_bytes(pickle.dumps(content))

    with pytest.raises(DataError, match=rf"talk\.pkl: {got}"):
        read()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pkl"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_number_are_refused_with_their_row(tmp_path, read, suffix, value):
    table = TABLE.copy()
    table[3, 1] = value
    save(tmp_path, table, suffix=suffix)

    with pytest.raises(
        DataError, match=rf"must be finite, got {value} in row 3 for keystep 1 \('whisk them'\)"
    ):
        read()


def test_scores_too_large_for_single_precision_are_refused(tmp_path, read):
    save(tmp_path, np.full((6, 5), 1e300))

    with pytest.raises(DataError, match="scores must be finite, got inf in row 0"):
        read()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt"])
@pytest.mark.parametrize("dtype", ["c8", "?"])
def test_scores_that_are_no_real_numbers_are_refused(tmp_path, read, suffix, dtype):
    save(tmp_path, np.zeros((6, 5), dtype), suffix=suffix)

    with pytest.raises(DataError, match=r"(must be|no dense tensor of) real numbers"):
        read()


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", [("a", "f4")]])
def test_arrays_of_other_things_are_refused(tmp_path, read, dtype):
    np.save(tmp_path / "talk.npy", np.zeros((6, 5), dtype), allow_pickle=True)

    with pytest.raises(
        DataError, match=r"talk\.npy: .*(must be real numbers, got |Python objects)"
    ):
        read()


def test_an_archive_of_two_arrays_is_refused(tmp_path, read):
    np.savez(tmp_path / "talk.npz", a=TABLE, b=TABLE)

    with pytest.raises(DataError, match=r"talk\.npz: must hold one array, got 2: \['a', "):
        read()


def npy(shape, content=b"", descr="<f4"):
    """The bytes of an array with any claim in its header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + content


@pytest.mark.parametrize("shape", [(10**12, 5), (-1, 5), (7, 5)])
def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path, vocabulary, shape):
    (tmp_path / "talk.npy").write_bytes(npy(shape, b"\0" * 24))
    with zipfile.ZipFile(tmp_path / "talk.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(shape, b"\0" * 24))

    for name in ("talk.npy", "talk.npz"):
        with pytest.raises(DataError, match=rf"{name}: must be a whole np[yz] file of stored"):
            read_stored(tmp_path / name, vocabulary)


def test_a_large_file_is_refused_before_it_is_read(tmp_path, read):
    with (tmp_path / "talk.npy").open("wb") as file:
        file.truncate(2 << 30)

    with pytest.raises(DataError, match=r"talk\.npy: must be at most 1 GiB, got 2,048 MiB"):
        read()


def test_tensors_that_are_no_table_of_their_own_are_refused(tmp_path, vocabulary):
    import torch

    tensor = torch.from_numpy(TABLE)
    expected = {
        r"must hold one tensor, alone or in a dict, got a list": [tensor],
        r"must hold one array, got 2: \['a', 'b'\]": {"a": tensor, "b": tensor},
        r"must hold one array, got 0": {},
        r"got something that is no dense tensor of real num": tensor[:1].expand(10**6, 5),
        r"must hold one tensor, .* got something that is no dense tensor": tensor.to_sparse(),
        r"must hold one tensor, .* got something that is no dense tensor of re": TABLE,
    }

    for message, content in expected.items():
        torch.save(content, tmp_path / "talk.pt")
        with pytest.raises(DataError, match=message):
            read_stored(tmp_path / "talk.pt", vocabulary)


class Touch:
    """Pickles as a call that makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return eval, (f"open({self.path!r}, 'w').close()",)


@pytest.mark.parametrize("suffix", [".pkl", ".pt", ".npy"])
def test_a_hostile_file_does_not_run(tmp_path, read, suffix):
    import torch

    mark, path = tmp_path / "pwned", tmp_path / f"talk{suffix}"
    if suffix == ".pkl":
        path.write_bytes(pickle.dumps([TABLE[:1], Touch(mark)]))
    elif suffix == ".pt":
        torch.save([torch.from_numpy(TABLE), Touch(mark)], path)
    else:
        np.save(path, np.array([Touch(mark)], dtype=object), allow_pickle=True)

    with pytest.raises(DataError, match=r"which was refused; if|Python objects|one tensor, "):
        read()

    assert not mark.exists()


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Change the pickle inside a file of torch.save."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, change(content) if name.endswith(".pkl") else content)


@pytest.mark.parametrize(
    "pickled",
    [
        b"cos\nsystem\n(X\x01\0\0\0xtR.",
        b"cbuiltins\nbytearray\n(\x8a\x05\0\0\0\0\x10tR.",
        b"\x8c\x02os\x8c\x06system\x93.",
        b"ctorch\nTensor\n(\x8a\x05\0\0\0\0\x10tR.",
    ],
)
def test_files_that_ask_for_more_than_tensors_are_refused(tmp_path, read, pickled):
    rewritten(save(tmp_path, suffix=".pt"), lambda _: b"\x80\x02" + pickled)

    with pytest.raises(DataError, match=r"talk\.pt: must hold one tensor, .* got something that"):
        read()


def test_a_compressed_tensor_is_refused(tmp_path, read):
    rewritten(save(tmp_path, suffix=".pt"), bytes, compression=zipfile.ZIP_DEFLATED)

    with pytest.raises(DataError, match=r"got content that is compressed; load it with torch"):
        read()


def test_a_tensor_of_the_old_format_is_read(tmp_path, read):
    import torch

    torch.save(torch.from_numpy(TABLE), tmp_path / "talk.pt", _use_new_zipfile_serialization=False)

    np.testing.assert_array_equal(read()[0].values, TABLE)


def test_what_lies_beside_a_tensor_is_dropped_and_does_nothing(tmp_path, read):
    import torch

    content = {"scores": torch.from_numpy(TABLE), "by": Touch(tmp_path / "pwned")}
    torch.save(content, tmp_path / "talk.pt")

    np.testing.assert_array_equal(read()[0].values, TABLE)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pkl"])
def test_a_file_cut_off_or_foreign_is_refused(tmp_path, read, suffix):
    path = save(tmp_path, suffix=suffix)
    whole = path.read_bytes()

    cut = [whole[:length] for length in range(0, len(whole), 1 + len(whole) // 60)]
    for content in (*cut, b"<html>not found</html>\n", b"PK\x05\x06" + b"\0" * 18):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"talk\.\w+: must "):
            read()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".pkl", "inside a .pt"])
def test_a_damaged_file_gives_scores_or_an_error_in_one_line(tmp_path, read, suffix):
    rng = random.Random(suffix)
    path = save(tmp_path, suffix=suffix.removeprefix("inside a "))
    whole = path.read_bytes()
    messages = []

    def damaged(content):
        data = bytearray(content)
        for _ in range(rng.choice([1, 2, 8])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)

    for _ in range(200):
        path.write_bytes(whole if "inside" in suffix else damaged(whole))
        if "inside" in suffix:
            rewritten(path, damaged)
        try:
            read()
        except DataError as error:
            messages.append(str(error))

    assert len(messages) > 10
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("option", ["hop", "seconds_per_row"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-320])
def test_impossible_rates_and_folders_are_refused_at_once(tmp_path, vocabulary, option, value):
    with pytest.raises(
        ConfigError, match=f"{option} must be between 0.001 seconds and a week, got"
    ):
        read_scores([], vocabulary, tmp_path, problems=Problems(), **{option: value})
    with pytest.raises(DataError, match="gone: must be a folder of stored scores, got no folder"):
        read_scores([VIDEO], vocabulary, tmp_path / "gone", problems=Problems())
