"""Files that end, fill or stop the process that reads arrays are refused; the next is read."""

import base64
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stepgraph.errors import DataError
from stepgraph.files.arrays import open_arrays, read_array, serving
from stepgraph.files.arrays.reader import READER
from stepgraph.labelling.clips import read_footer
from test_files_arrays import TABLE, save

# Two rows of lists, with one byte of what describes them changed: pyarrow 26 aborts at it.
ONE = base64.b64decode(
    "UEFSMRUEFQgVCEwVAhUAEgAAAAAAABUAFR4VHiwVCBUQFQYVBhwYBAAAAAAYBAAAAIAWACgEAAAAABgEAAAAgBERAA"
    "AAAgAAAAMKAgAAAAgDAQgAFQQZTDUAGAZzY2hlbWEVAgA1ABgGdmVjdG9yFQIVBkw8AAAANQQYBGxpc3QVAgAVCCUC"
    "GAdlbGVtZW50ABYEGRwZHCYAHBUIGTUABhAZOAZ2ZWN0b3IEbGlzdAdlbGVtZW50FQAWCBagARagASYsJggcGAQAAA"
    "AAGAQAAACAFgAoBAAAAAAYBAAAAIAREQAZLBUEFQAVAgAVABUQFQIAPCkmBAQZRgAAAAgAAAAWoAEWBCYIFqABACgg"
    "cGFycXVldC1jcHAtYXJyb3cgdmVyc2lvbiAyNi4wLjEZHBwAAADgAAAAUEFSMQ=="
)
MANY = base64.b64decode(
    "UEFSMRUEFRQVFEwVBBUAEgAAAQAAAGEBAAAAYhUAFRIVEiwVBBUQFQYVBhw2ACgBYhgBYRERAAAAAgAAAAQBAQMCFQ"
    "QVCBUITBUCFQASAAAAAAAAFQAVHhUeLBUIFRAVBhUGHBgEAAAAABgEAAAAgBYAKAQAAAAAGAQAAACAEREAAAACAAAA"
    "AwoCAAAACAMBCAAVBBlcNQAYBnNjaGVtYRUEABUMJQIYBXZpZGVvJQBMHAAAADUAGAZ2ZWN0b3IVAhUGTDwAAAA1BB"
    "gEbGlzdBUCABUIJQIYB2VsZW1lbnQAFgQZHBksJgAcFQwZNQAGEBkYBXZpZGVvFQAWBBZ8FnwmOCYIHDYAKAFiGAFh"
    "EREAGSwVBBUAFQIAFQAVEBUCADwWBBkGGSYABAAAACYAHBUIGTUABhAZOAZ2ZWN0b3IEbGlzdAdlbGVtZW50FQAWCB"
    "agARagASaoASaEARwYBAAAAAAYBAAAAIAWACgEAAAAABgEAAAAgBERABksFQQVABUCABUAFRAVAgA8KSYEBBlGAAAA"
    "CAAAABacAhYEJggWnAIAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRksHAAAHAAAAD0BAABQQVIx"
)


def test_a_parquet_file_that_ends_its_reader_is_refused_and_the_next_is_read(tmp_path):
    good = save(tmp_path, layout=".parquet")
    (tmp_path / "bad.parquet").write_bytes(ONE)
    (tmp_path / "many.parquet").write_bytes(MANY)

    for _ in range(2):
        with pytest.raises(DataError, match=r"bad\.parquet: must be a whole parquet file of "):
            read_array(tmp_path / "bad.parquet")
        np.testing.assert_array_equal(read_array(good), TABLE)
        with pytest.raises(DataError, match=r"many\.parquet:b: must be a whole parquet file "):
            open_arrays(tmp_path / "many.parquet").read("b")
        np.testing.assert_array_equal(read_array(good), TABLE)


@pytest.mark.parametrize("layout", [".parquet", ".h5"])
def test_a_reader_that_was_ended_is_started_again(tmp_path, layout):
    good = save(tmp_path, layout=layout)
    read_array(good)

    os.kill(READER._child.pid, signal.SIGKILL)
    READER._child.wait()

    np.testing.assert_array_equal(read_array(good), TABLE)


@pytest.mark.parametrize("layout", [".parquet", ".h5"])
def test_a_reader_that_takes_too_long_is_ended(tmp_path, monkeypatch, layout):
    good = save(tmp_path, layout=layout)
    read_array(good)
    monkeypatch.setattr("stepgraph.files.arrays.reader._SECONDS", 0.2)
    os.kill(READER._child.pid, signal.SIGSTOP)

    with pytest.raises(DataError, match="one at which the library that reads it fails"):
        read_array(good)

    monkeypatch.undo()
    np.testing.assert_array_equal(read_array(good), TABLE)


def test_several_threads_read_one_after_the_other(tmp_path):
    good, found = save(tmp_path, layout=".parquet"), []
    threads = [threading.Thread(target=lambda: found.append(read_array(good))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert all(np.array_equal(one, TABLE) for one in found)


@pytest.mark.parametrize("layout", [".parquet", ".h5"])
def test_the_process_that_reads_takes_no_module_from_where_we_are(tmp_path, monkeypatch, layout):
    path = save(tmp_path, layout=layout)
    monkeypatch.chdir(tmp_path)
    for name in ("numpy.py", "json.py", "pyarrow.py", "h5py.py"):
        (tmp_path / name).write_text("open('pwned', 'w')")
    READER.stop()

    np.testing.assert_array_equal(read_array(Path(path.name)), TABLE)

    assert not (tmp_path / "pwned").exists()


def test_an_archive_that_unpacks_without_end_is_refused_and_takes_no_memory_here(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("stepgraph.files.arrays.checks.LARGEST", 8 << 20)
    header = {"descr": "<f4", "fortran_order": False, "shape": (10 << 20, 1)}
    archive = zipfile.ZipFile(tmp_path / "talk.npz", "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("a.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(10):
            member.write(bytes(4 << 20))

    tracemalloc.start()
    with pytest.raises(DataError, match="must hold an array of at most 8 MiB, got 40 MiB"):
        read_array(tmp_path / "talk.npz")
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("does", "refused"),
    [
        ("socket.socket()", "PermissionError: socket"),
        ("subprocess.run(['true'])", "PermissionError: subprocess"),
        ("os.system('true')", "PermissionError: os.system"),
        ("os.fork()", "PermissionError: os.fork"),
        ("bytearray(5 << 30)", "MemoryError"),
        ("os.write(os.open('x', os.O_WRONLY | os.O_CREAT), b'x')", "OSError: [Errno 27] File too"),
    ],
)
def test_the_process_that_reads_reaches_starts_takes_and_writes_nothing(tmp_path, does, refused):
    code = (
        f"import os, socket, subprocess; from {serving.__name__} import _limit; _limit(); {does}"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)

    assert done.returncode == 1
    assert refused in done.stderr.decode().splitlines()[-1]


def test_files_of_one_array_and_of_many_are_read_again_when_they_change(tmp_path):
    for table in (TABLE, -TABLE):
        path = save(tmp_path, table, layout=".h5")
        found = open_arrays(path)
        for read in (lambda path=path: read_array(path), lambda one=found: one.read("features")):
            np.testing.assert_array_equal(read(), table)


def test_a_fork_reads_with_a_process_of_its_own_also_while_ours_is_asked(tmp_path):
    good = save(tmp_path, layout=".h5")
    code = (
        "import os, sys; from pathlib import Path;"
        "from stepgraph.files.arrays import read_array, reader;"
        f"good = Path({str(good)!r}); read_array(good);"
        "lock = reader.READER._lock; thread = __import__('threading').Thread(target=lock.acquire);"
        "thread.start(); thread.join(); pid = os.fork();"
        "pid or (read_array(good), reader.READER.stop(), os._exit(7));"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 7


def test_a_source_without_arrays_starts_no_process(tmp_path):
    code = (
        "from pathlib import Path; from stepgraph.files.arrays import open_arrays, reader;"
        f"assert open_arrays(Path({str(tmp_path)!r})).names('talk') == [];"
        "assert reader.READER._child is None"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_list_without_end_takes_no_memory_here(tmp_path):
    # Ten million equal numbers in one row take a few bytes in the file.
    column = pa.array([np.zeros(10_000_000, np.float32)], pa.list_(pa.float32()))
    parquet.write_table(pa.table({"vector": column}), tmp_path / "talk.parquet")

    tracemalloc.start()
    with pytest.raises(DataError, match=r"must have shape \(rows, 5\), got \(1, 10000000\)"):
        read_array(tmp_path / "talk.parquet", width=5)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


def test_labels_whose_columns_have_no_name_in_unicode_are_refused(tmp_path):
    path = tmp_path / "labels.parquet"
    parquet.write_table(pa.table({"keystep": [1], "video": ["a"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"keystep", b"\xffeystep"))

    with pytest.raises(DataError, match=r"labels\.parquet: must be a whole file of labels, got "):
        read_footer(path)
