"""Stored tables: all formats, of one video or of many, give the same numbers or one clear line."""

import io
import random
import sys
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from reference import read_scores
from stepgraph.core import Video
from stepgraph.errors import DataError, MissingExtraError
from stepgraph.files.arrays import ArrayContent, open_arrays, read_array
from stepgraph.problems import Problems

ROWS, WIDTH = 40, 5
RNG = np.random.default_rng(6)
TABLES = {
    "talk": RNG.normal(size=(ROWS, WIDTH)).astype(np.float32),
    "monday/v1.part2": RNG.normal(size=(7, WIDTH)).astype(np.float32),
    "short": RNG.normal(size=(1, WIDTH)).astype(np.float32),
}
TABLE = TABLES["talk"]
SCORES = ArrayContent("scores", "keystep", ("a", "b", "c", "d", "e"), "another vocabulary?")


def as_columns(table):
    return {f"c{place}": column for place, column in enumerate(table.T)}


def as_vectors(table, kind=None):
    kind = kind or pa.list_(pa.from_numpy_dtype(table.dtype), table.shape[1])
    return {"vector": pa.array(list(table), kind)}


def save_h5(path, table, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=table, **options)


def save(folder, table=TABLE, *, layout, name="talk"):
    """Write the file of one video; a layout is a suffix, and more where there are several."""
    suffix = layout.split()[0]
    path = folder / f"{name}{suffix}"
    if suffix == ".parquet":
        columns = as_columns(table) if "columns" in layout else as_vectors(table)
        parquet.write_table(pa.table(columns), path, row_group_size=16)
    elif "gzip" in layout:
        options = {"shuffle": "shuffle" in layout, "fletcher32": "checksum" in layout}
        save_h5(path, table, chunks=(9, 2), compression="gzip", **options)
    elif "pieces" in layout:
        save_h5(path, table, chunks=(9, 2))
    else:
        save_h5(path, table)
    return path


ONE = (
    ".h5",
    ".hdf5",
    ".h5 pieces",
    ".h5 gzip",
    ".h5 gzip shuffle",
    ".h5 gzip shuffle checksum",
    ".parquet",
    ".parquet columns",
)


def save_all(folder, tables=None, *, layout):
    """Write one file of all videos."""
    tables = TABLES if tables is None else tables
    path = folder / f"all{layout.split()[0]}"
    if layout == ".npz":
        np.savez(path, **tables)
    elif layout == ".pt":
        import torch

        torch.save({name: torch.from_numpy(table) for name, table in tables.items()}, path)
    elif layout.startswith(".h5"):
        with h5py.File(path, "w") as file:
            for name, table in tables.items():
                file[f"{name}/features" if "groups" in layout else name] = table
    else:
        names = np.repeat(list(tables), [len(table) for table in tables.values()])
        whole = np.concatenate(list(tables.values()))
        columns = as_columns(whole) if "columns" in layout else as_vectors(whole)
        parquet.write_table(pa.table({"video": names, **columns}), path, row_group_size=16)
    return path


ALL = (".npz", ".pt", ".h5", ".h5 groups", ".parquet", ".parquet columns")


@pytest.mark.parametrize("layout", ONE)
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i8", "u1"])
def test_every_file_of_one_table_gives_its_numbers(tmp_path, layout, dtype):
    table = (TABLE * 50 + 100).astype(dtype)
    path = save(tmp_path, table, layout=layout)

    for found in (read_array(path), read_array(path, width=WIDTH)):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, table.astype(np.float32))


@pytest.mark.parametrize("layout", ONE[:6])
def test_numbers_of_the_other_byte_order_are_read(tmp_path, layout):
    path = save(tmp_path, TABLE.astype(">f4"), layout=layout)

    np.testing.assert_array_equal(read_array(path), TABLE)


@pytest.mark.parametrize("layout", ALL)
def test_one_file_of_all_videos_gives_each_its_numbers(tmp_path, layout):
    tables = open_arrays(save_all(tmp_path, layout=layout))

    for name in (*TABLES, *reversed(TABLES), "talk", "short"):
        assert tables.names(name) == [name]
        np.testing.assert_array_equal(tables.read(name, WIDTH), TABLES[name])


def test_a_folder_gives_each_video_its_numbers(tmp_path):
    save(tmp_path, layout=".h5")
    (tmp_path / "monday").mkdir()
    np.save(tmp_path / "monday" / "v1.part2.npy", TABLES["monday/v1.part2"])
    save(tmp_path, TABLES["short"], layout=".parquet", name="short")

    tables = open_arrays(tmp_path)

    assert tables.names("talk") == ["talk.h5"]
    for name, table in TABLES.items():
        np.testing.assert_array_equal(tables.read(name), table)


@pytest.mark.parametrize("layout", [*ALL, "folder"])
@pytest.mark.parametrize(
    "video", ["gone", "", "/", ".", "..", "talk/", "/talk", "a\0b", "x" * 5000]
)
def test_ids_without_a_table_find_nothing(tmp_path, layout, video):
    tables = open_arrays(tmp_path if layout == "folder" else save_all(tmp_path, layout=layout))

    assert tables.names(video) == []
    with pytest.raises(DataError, match=r"must be an? (array|file) of stored features .*got none"):
        tables.read(video)


@pytest.mark.parametrize("layout", [".npz", ".pt", ".h5", ".parquet"])
def test_of_one_file_only_the_table_asked_for_is_read(tmp_path, layout):
    big = {"talk": TABLE, "damaged": RNG.normal(size=(512, WIDTH)).astype(np.float32)}
    path = save_all(tmp_path, big, layout=layout)
    content = path.read_bytes()
    place = content.find(big["damaged"].tobytes()[-40:])
    if layout == ".parquet":  # its numbers are compressed, so the beginning of a row group
        place = parquet.ParquetFile(path).metadata.row_group(20).column(1).data_page_offset
    path.write_bytes(content[:place] + b"\xff" * 8 + content[place + 8 :])

    tables = open_arrays(path)

    np.testing.assert_array_equal(tables.read("talk"), TABLE)
    with pytest.raises(DataError, match=r"all\.\w+:damaged: "):
        tables.read("damaged")


@pytest.mark.parametrize("layout", ["folder", *ALL])
def test_tables_of_another_width_or_with_other_numbers_are_refused(tmp_path, layout):
    bad = TABLES | {"talk": np.where(np.arange(WIDTH) == 3, np.inf, TABLE).astype(np.float32)}
    if layout == "folder":
        save(tmp_path, bad["talk"], layout=".h5")
        tables = open_arrays(tmp_path, SCORES)
    else:
        tables = open_arrays(save_all(tmp_path, bad, layout=layout), SCORES)

    with pytest.raises(DataError, match=r"talk(\.h5)?: scores must be finite, got inf in row 0 f"):
        tables.read("talk", WIDTH)
    with pytest.raises(DataError, match=r"scores must have shape \(rows, 4\), got \(40, 5\); ano"):
        tables.read("talk", 4)


@pytest.mark.parametrize("shape", [(), (5,), (6, 1, 5), (6, 0)])
def test_datasets_that_are_no_table_are_refused(tmp_path, shape):
    save_h5(tmp_path / "talk.h5", np.zeros(shape, np.float32))

    with pytest.raises(DataError, match=r"features must have shape \(rows, columns\), got \("):
        read_array(tmp_path / "talk.h5")


@pytest.mark.parametrize(
    "content",
    [
        np.zeros((6, 5), "?"),
        np.zeros((6, 5), "c8"),
        np.zeros((6, 5), "S3"),
        np.zeros((6, 5), [("a", "f4")]),
        np.full((6, 5), "text", object),
    ],
    ids=lambda content: str(content.dtype),
)
def test_datasets_of_other_things_are_refused(tmp_path, content):
    save_h5(tmp_path / "talk.h5", content)

    with pytest.raises(DataError, match=r"talk\.h5: features must be real numbers, got values of"):
        read_array(tmp_path / "talk.h5")


def linked(file, tmp_path):
    file["soft"] = h5py.SoftLink("/elsewhere")


def linked_out(file, tmp_path):
    save_h5(tmp_path / "secret.h5", TABLE)
    file["talk"] = h5py.ExternalLink("secret.h5", "/features")


def virtual(file, tmp_path):
    save_h5(tmp_path / "secret.h5", TABLE)
    layout = h5py.VirtualLayout(TABLE.shape, "f4")
    layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "features", TABLE.shape)
    file.create_virtual_dataset("talk", layout)


def outside(file, tmp_path):
    (tmp_path / "secret.bin").write_bytes(TABLE.tobytes())
    file.create_dataset(
        "talk", TABLE.shape, "f4", external=[(str(tmp_path / "secret.bin"), 0, TABLE.nbytes)]
    )


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (linked, "itself, got a soft link"),
        (linked_out, "itself, got an external link"),
        (virtual, "itself, got a dataset that lies in other files"),
        (outside, "itself, got a dataset that lies in other files"),
        (
            lambda file, _: file.create_dataset("t", (6, 5), "f4"),
            "must be complete, got a part of it",
        ),
        (
            lambda file, _: file.create_dataset("t", (10**12, 5), "f4", chunks=(64, 5)),
            "must hold an array of at most 1,024 MiB, got",
        ),
        (
            lambda file, _: file.create_dataset("t", (600, 5), "f4", chunks=(64, 5)),
            "must be complete, got a part of it",
        ),
        (
            lambda file, _: file.create_dataset("t", data=TABLE, compression="lzf"),
            r"must be compressed with gzip or not at all, got filters \[32000\]",
        ),
        (lambda file, _: file.create_group("empty"), "must hold one array, got 0"),
        (lambda file, _: file.update({"b": 1, "a": 2}), r"one array, got 2: \['a', 'b'\]"),
        (lambda file, _: file.update({"self": file["/"]}), "must hold one array, got 0"),
    ],
)
def test_files_that_lead_elsewhere_or_claim_too_much_are_refused(tmp_path, make, got):
    with h5py.File(tmp_path / "talk.h5", "w") as file:
        make(file, tmp_path)

    with pytest.raises(DataError, match=rf"talk\.h5: .*{got}"):
        read_array(tmp_path / "talk.h5")
    with h5py.File(tmp_path / "talk.h5") as file:
        names = [name for name in file if name not in ("self", "empty")]
    for name in names[:1] if len(names) == 1 else []:
        with pytest.raises(DataError, match=rf"talk\.h5:{name}: .*{got}"):
            open_arrays(tmp_path / "talk.h5").read(name)


def test_chunks_that_do_not_shrink_are_read(tmp_path):
    noise = RNG.integers(0, 256, (64, 64), dtype=np.uint8)
    for checksum in (False, True):
        options = {"compression": "gzip", "fletcher32": checksum}
        save_h5(tmp_path / f"{checksum}.h5", noise, chunks=(64, 64), **options)

        np.testing.assert_array_equal(read_array(tmp_path / f"{checksum}.h5"), noise)


@pytest.mark.parametrize("content", [b"\0" * (1 << 20), b"", TABLE[:, :3].tobytes()])
def test_a_piece_that_unpacks_to_another_size_is_refused(tmp_path, content):
    import zlib

    with h5py.File(tmp_path / "talk.h5", "w") as file:
        dataset = file.create_dataset("t", (8, 5), "f4", chunks=(8, 5), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(content))

    with pytest.raises(DataError, match="must have chunks of the stated size, got one of another"):
        read_array(tmp_path / "talk.h5")


@pytest.mark.parametrize(
    ("columns", "got"),
    [
        ({"c0": [1.0], "name": ["x"]}, "real numbers, got column 'name' of type string"),
        ({"vector": [["x"]]}, "real numbers, got column 'vector' of type list"),
        ({"vector": [True]}, "real numbers, got column 'vector' of type bool"),
        ({"vector": [[1.0, 2.0], [1.0]]}, "rows must have the same length, at least 1, got"),
        ({"vector": [[1.0, None]]}, "must be finite, got a null"),
        ({"vector": [[1.0], None]}, "must be finite, got a null"),
        (
            {"vector": pa.array([[]], pa.list_(pa.float32()))},
            r"rows must have the same length, at least 1, got \[0\]",
        ),
        ({"c0": [1.0, None]}, "must be finite, got a null"),
        ({"c0": [1.0, np.nan]}, "must be finite, got nan in row 1 for column 0"),
        (
            {"c0": [1.0], "when": pa.array([1], pa.timestamp("s"))},
            "got column 'when' of type time",
        ),
        ({}, "must have columns of different names, got"),
        ({"video": ["talk"]}, "must have columns of different names, got"),
    ],
)
def test_columns_that_make_no_table_are_refused(tmp_path, columns, got):
    parquet.write_table(pa.table(columns), tmp_path / "talk.parquet")

    with pytest.raises(DataError, match=rf"talk\.parquet: .*{got}"):
        read_array(tmp_path / "talk.parquet")


def test_other_spellings_of_columns_are_read(tmp_path):
    spelt = {
        "list": as_vectors(TABLE, pa.list_(pa.float32())),
        "large list": as_vectors(TABLE, pa.large_list(pa.float64())),
        "one fixed list": {"features": as_vectors(TABLE)["vector"], "time": np.arange(ROWS)},
        "index": as_columns(TABLE) | {"__index_level_0__": np.arange(ROWS)},
        "mixed": as_columns(TABLE) | {"c0": TABLE[:, 0].astype("f8")},
    }

    for name, columns in spelt.items():
        parquet.write_table(pa.table(columns), tmp_path / "talk.parquet", row_group_size=7)
        np.testing.assert_array_equal(read_array(tmp_path / "talk.parquet"), TABLE, name)


def test_a_constant_column_cannot_take_more_memory_than_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("stepgraph.files.arrays.checks.LARGEST", 1 << 20)
    zeros = np.zeros(200_000)
    parquet.write_table(pa.table({"c0": zeros, "c1": zeros}), tmp_path / "talk.parquet")

    assert (tmp_path / "talk.parquet").stat().st_size < 10_000
    with pytest.raises(DataError, match="must hold an array of at most 1 MiB, got 2 MiB"):
        read_array(tmp_path / "talk.parquet")


def test_rows_of_a_video_must_stand_together_and_have_a_name(tmp_path):
    path = tmp_path / "all.parquet"
    for names, got in (
        (["a", "b", "a"], r"must be contiguous, got 'a' again in row 2; sort"),
        (["a", None, "a"], "column 'video' must name a video in each row, got none in one"),
    ):
        parquet.write_table(pa.table({"video": names, "c0": [1.0, 2.0, 3.0]}), path)
        with pytest.raises(DataError, match=got):
            open_arrays(path)
    parquet.write_table(pa.table({"c0": [1.0]}), path)
    with pytest.raises(DataError, match=r"must have a column 'video' .*, got \['c0'\]; put the"):
        open_arrays(path)


def test_videos_called_by_numbers_are_found(tmp_path):
    path = tmp_path / "all.parquet"
    parquet.write_table(pa.table({"video": [7, 7, 8], "c0": [1.0, 2.0, 3.0]}), path)

    assert open_arrays(path).read("7").tolist() == [[1.0], [2.0]]


def test_a_path_that_is_no_folder_and_no_such_file_is_refused(tmp_path):
    np.save(tmp_path / "talk.npy", TABLE)

    with pytest.raises(DataError, match=r"folder of stored features, got no folder and no file;"):
        open_arrays(tmp_path / "gone")
    with pytest.raises(
        DataError, match=r"one file with an array .*, got a file \.npy; put the fil"
    ):
        open_arrays(tmp_path / "talk.npy")


def test_one_tensor_is_no_file_of_all_videos(tmp_path):
    import torch

    torch.save(torch.from_numpy(TABLE), tmp_path / "all.pt")

    with pytest.raises(DataError, match=r"all\.pt: must hold a dict of tensors, .* got a tensor;"):
        open_arrays(tmp_path / "all.pt")


@pytest.mark.parametrize("shape", [(10**12, 5), (-1, 5), (7, 5)])
def test_an_array_of_one_file_that_claims_more_than_it_has_is_refused(tmp_path, shape):
    file = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    with zipfile.ZipFile(tmp_path / "all.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("talk.npy", file.getvalue() + b"\0" * 24)

    with pytest.raises(DataError, match=r"all\.npz:talk: must be a whole npz file of stored feat"):
        open_arrays(tmp_path / "all.npz").read("talk")


@pytest.mark.parametrize("layout", ALL)
def test_a_file_of_all_that_is_cut_off_or_foreign_is_refused(tmp_path, layout):
    whole = save_all(tmp_path, layout=layout).read_bytes()

    cut = [whole[:length] for length in range(0, len(whole), 1 + len(whole) // 20)]
    for number, content in enumerate((*cut, b"<html>not found</html>\n", b"PK\5\6" + b"\0" * 18)):
        path = tmp_path / f"{number}{layout.split()[0]}"  # HDF5 knows a file that it has open
        path.write_bytes(content)
        with pytest.raises(DataError, match=r": must "):
            open_arrays(path).read("talk")


@pytest.mark.parametrize("layout", [*ALL, ".h5 gzip shuffle"])
def test_a_damaged_file_gives_numbers_or_an_error_in_one_line(tmp_path, layout):
    rng = random.Random(layout)
    path = save(tmp_path, layout=layout) if "gzip" in layout else save_all(tmp_path, layout=layout)
    whole = path.read_bytes()
    messages = []

    for number in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8, 64])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = tmp_path / f"{number}{layout.split()[0]}"
        path.write_bytes(data)
        try:
            tables = open_arrays(path)
            tables.read("features" if "gzip" in layout else "talk")
        except DataError as error:
            messages.append(str(error))

    assert len(messages) > 5
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("layout", ALL)
def test_scores_are_read_from_one_file(tmp_path, vocabulary, layout):
    videos = [Video(name, float(len(table))) for name, table in TABLES.items()]
    path = save_all(tmp_path, layout=layout)

    found = list(read_scores(videos, vocabulary, path, problems=Problems(strict=True)))

    for scores, table in zip(found, TABLES.values(), strict=True):
        assert scores.observed.all()
        np.testing.assert_array_equal(scores.values, table)


@pytest.mark.parametrize("broken", ["cut off", "another vocabulary", "no number"])
def test_scores_of_one_video_that_cannot_be_read_leave_the_others(tmp_path, vocabulary, broken):
    for name in ("a", "b", "c"):
        np.save(tmp_path / f"{name}.npy", TABLE)
    bad = {"another vocabulary": TABLE[:, :4], "no number": TABLE * np.nan}
    np.save(tmp_path / "b.npy", bad.get(broken, TABLE))
    if broken == "cut off":
        (tmp_path / "b.npy").write_bytes((tmp_path / "b.npy").read_bytes()[:-9])
    videos = [Video(name, float(ROWS)) for name in ("a", "b", "c", "gone")]
    problems = Problems()

    found = list(read_scores(videos, vocabulary, tmp_path, problems=problems))

    assert [scores.observed.all() for scores in found] == [True, False, True, False]
    assert not found[1].observed.any()
    assert problems.counts["unreadable stored scores"] == 1
    assert f"unreadable stored scores ({tmp_path}/b.npy: " in problems.summary()
    assert problems.summary().count("b.npy") == 1
    with pytest.raises(DataError, match=r"^[^:]+b\.npy: (\w+ must|must be a whole npy file)"):
        list(read_scores(videos, vocabulary, tmp_path, problems=Problems(strict=True)))


def test_scores_of_which_none_can_be_read_are_an_error(tmp_path, vocabulary):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", TABLE[:, :4])
    videos = [Video(name, float(ROWS)) for name in ("a", "b", "gone")]

    with pytest.raises(
        DataError, match=r"a\.npy: scores must have shape \(rows, 5\), got \(40, 4"
    ):
        list(read_scores(videos, vocabulary, tmp_path, problems=Problems()))


@pytest.mark.parametrize(("library", "layout"), [("h5py", ".h5"), ("pyarrow", ".parquet")])
def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch, library, layout):
    path = save(tmp_path, layout=layout)
    monkeypatch.setitem(sys.modules, library, None)

    for read in (read_array, open_arrays):
        with pytest.raises(MissingExtraError, match=rf"needs the .* extra; run: .* {library}"):
            read(path)
