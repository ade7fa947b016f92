"""Small whole files of arrays and of video, in all formats in which others write them."""

import io
import pickle
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

ROWS = (np.arange(18).reshape(6, 3) / 18).astype(np.float32)


def made(make):
    """All that a function writes into a folder, as an input."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def numpy_arrays():
    def as_npz(**arrays):
        out = io.BytesIO()
        np.savez(out, **arrays)
        return out.getvalue()

    def as_npy(array):
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    return [
        {"v.npy": as_npy(ROWS)},
        {"v.npy": as_npy(np.asfortranarray(ROWS.astype(">f8")))},
        {"v.npz": as_npz(rows=ROWS.astype(np.float16))},
        {"all.npz": as_npz(v=ROWS, w=ROWS[:2].astype(np.int64))},
        {"v.npy": as_npy(ROWS), "keysteps.npy": as_npy(np.eye(3))},
    ]


def pickled_arrays():
    array, rows = pickle.dumps(ROWS), pickle.dumps(list(ROWS), protocol=2)
    return [{"v.pkl": array}, {"v.pkl": rows}, {"v.pkl": pickle.dumps([*ROWS], protocol=0)}]


def torch_saved(content, **how):
    import torch

    out = io.BytesIO()
    torch.save(content, out, **how)
    return out.getvalue()


def torch_arrays():
    import torch

    rows = torch.from_numpy(ROWS)
    both = {"v": rows, "w": rows[:2].bfloat16()}
    return [
        {"v.pt": torch_saved(rows)},
        {"v.pt": torch_saved({"x": rows.t().contiguous().t()})},
        {"v.pt": torch_saved(rows, _use_new_zipfile_serialization=False)},
        {"all.pt": torch_saved(both)},
    ]


def hdf5_arrays():
    import h5py

    def make(folder, name, **how):
        with h5py.File(folder / name, "w", **how) as file:
            file.create_dataset("v", data=ROWS)
            packed = {"compression": "gzip", "shuffle": True, "fletcher32": True}
            file.create_dataset("w/rows", data=ROWS[:2], chunks=(1, 3), **packed)

    def alone(folder):
        with h5py.File(folder / "v.h5", "w") as file:
            file.create_dataset("rows", data=ROWS.astype("f8"))

    return [
        made(lambda folder: make(folder, "all.h5")),
        made(lambda folder: make(folder, "all.hdf5", libver="latest")),
        made(alone),
    ]


def parquet_arrays():
    import pyarrow as pa
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)
    names = pa.array(["v"] * 4 + ["w"] * 2)
    tables = {
        "all.parquet": pa.table({"video": names, "vector": lists}),
        "v.parquet": pa.table({"vector": pa.array(ROWS.tolist())}),
    }
    columns = pa.table({name: ROWS[:, place] for place, name in enumerate("abc")})

    def write(table, name, **how):
        return made(lambda folder: parquet.write_table(table, folder / name, **how))

    plain = {"compression": "none", "use_dictionary": False}
    return [write(table, name, **plain) for name, table in tables.items()] + [
        write(columns, "v.parquet"),
        write(tables["all.parquet"], "all.parquet", row_group_size=2, compression="zstd"),
    ]


def _write_video(path, codec, payload):
    """Two seconds of grey with a text track."""
    import av

    with av.open(str(path), "w") as container:
        picture = container.add_stream("mpeg4", rate=5)
        picture.width, picture.height, picture.pix_fmt = 32, 32, "yuv420p"
        track = container.add_stream(codec)
        track.codec_context.subtitle_header = b"[Script Info]\n"
        for number in range(10):
            pixels = np.full((32, 32, 3), 20 * number, np.uint8)
            container.mux(picture.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(picture.encode())
        for start, text in enumerate(("boil the water", "pour it")):
            packet = av.Packet(payload(text))
            packet.stream, packet.time_base = track, Fraction(1, 1000)
            packet.pts = packet.dts = 1000 * start
            packet.duration = 900
            container.mux(packet)


def write_talk(path):
    """Write a video of two seconds with a text track as phones and sites write it."""
    _write_video(path, "mov_text", lambda text: len(text).to_bytes(2, "big") + text.encode())


def media():
    def as_ass(text):
        return f"0,0,Default,,0,0,0,,{{\\an8}}{text}".encode()

    return [
        made(lambda folder: write_talk(folder / "talk.mp4")),
        made(lambda folder: _write_video(folder / "talk.mkv", "subrip", str.encode)),
        made(lambda folder: _write_video(folder / "talk.mkv", "ass", as_ass)),
    ]
