"""Reading text that may be anything, and writing files whole or not at all."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from stepgraph.errors import DataError
from stepgraph.files.disk import read_json, read_text, replacing, write_text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read_with_and_without_a_byte_order_mark(tmp_path, encoding):
    path = tmp_path / "steps.txt"
    path.write_bytes("crème brûlée ✓\n".encode(encoding))

    assert read_text(path) == "crème brûlée ✓\n"


def test_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match=r"gone\.txt: must be a file, got no such file"):
        read_text(tmp_path / "gone.txt")


def test_file_below_a_file_is_an_error_in_words(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match=r"file/steps\.txt: must be a file, got no such file"):
        read_text(tmp_path / "file" / "steps.txt")


def test_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="must be a file, got a folder"):
        read_text(tmp_path)


def test_too_large_a_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "film.txt"
    with path.open("wb") as file:
        file.truncate(3 << 20)

    with pytest.raises(DataError, match=r"film\.txt: must be at most 1 MiB, got 3 MiB; is it"):
        read_text(path, limit=1 << 20)


def test_file_of_exactly_the_limit_is_read(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_bytes(b"x" * 100)

    assert len(read_text(path, limit=100)) == 100


def test_binary_data_is_refused_with_its_position(tmp_path):
    path = tmp_path / "film.txt"
    path.write_bytes(b"\x89PNG\x00")

    with pytest.raises(DataError, match=r"must be UTF-8 text, got a zero byte at position 4"):
        read_text(path)


def test_another_encoding_is_refused_with_a_remedy(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_bytes("crème".encode("latin-1"))

    with pytest.raises(DataError, match=r"got byte 0xe8 at position 2; .* iconv -f latin1 -t utf"):
        read_text(path)


def test_utf16_cut_in_half_is_refused(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_bytes("boil".encode("utf-16")[:-1])

    with pytest.raises(DataError, match=r"steps\.txt: must be whole UTF-16 text, got"):
        read_text(path)


def test_json_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, 2.5, null]}')

    assert read_json(path) == {"a": [1, 2.5, None]}


@pytest.mark.parametrize("text", ["", '{"a": [1, 2', "{'a': 1}", "[1]]", '"' + "1" * 10, "nope"])
def test_json_that_is_none_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)

    with pytest.raises(DataError, match=r"a\.json(:1)?: must be (complete )?JSON, got"):
        read_json(path)


def test_json_with_an_endless_number_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[" + "9" * 5000 + "]")

    with pytest.raises(DataError, match=r"a\.json: must be JSON with ordinary numbers"):
        read_json(path)


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_json_nested_without_end_is_refused(tmp_path, bracket):
    path = tmp_path / "a.json"
    path.write_text(bracket * 100_000)

    with pytest.raises(DataError, match="must be JSON nested a few levels deep, got too many"):
        read_json(path)


def test_replacing_puts_the_new_file_in_place(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text("old")

    with replacing(path) as partial:
        partial.write_text("new")

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def write_half(path, error):
    with replacing(path) as partial:
        partial.write_text("half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, DataError])
def test_replacing_keeps_the_old_file_when_the_block_fails(tmp_path, error):
    path = tmp_path / "graph.json"
    path.write_text("old")

    with pytest.raises(error, match="stop"):
        write_half(path, error("stop"))

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_keeps_the_old_file_and_is_told_in_words(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text("old")

    with pytest.raises(
        DataError, match=r"graph\.json: cannot be written: No space left.* output path"
    ):
        write_half(path, OSError(28, "No space left on device"))

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "c.txt", "there")

    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "there"


def test_a_file_where_a_folder_should_be_is_an_error_in_words(tmp_path):
    (tmp_path / "a").touch()

    with pytest.raises(DataError, match=r"a/c\.txt: cannot be written: (File|Not)"):
        write_text(tmp_path / "a" / "c.txt", "nowhere")


def test_a_folder_where_the_file_should_be_stays(tmp_path):
    (tmp_path / "c.txt").mkdir()

    with pytest.raises(DataError, match=r"c\.txt: cannot be written: Is a directory"):
        write_text(tmp_path / "c.txt", "nowhere")

    assert list(tmp_path.iterdir()) == [tmp_path / "c.txt"]


def test_text_is_written_with_the_same_bytes_on_every_system(tmp_path):
    write_text(tmp_path / "a.txt", "é\nb\n")

    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\nb\n"


def test_text_from_an_undecodable_file_name_is_written_or_refused_in_words(tmp_path):
    path = tmp_path / "a.txt"
    name_of_a_latin1_file = b"caf\xe9".decode("utf-8", "surrogateescape")

    with suppress(DataError):
        write_text(path, name_of_a_latin1_file)

    assert set(tmp_path.iterdir()) <= {path}


def test_what_is_written_through_a_link_goes_to_where_it_leads(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, chain = tmp_path / "there" / "a.txt", tmp_path / "link", tmp_path / "chain"
    target.write_text("old")
    link.symlink_to(target)
    chain.symlink_to("link")

    write_text(chain, "new")

    assert (chain.is_symlink(), link.is_symlink(), target.is_symlink()) == (True, True, False)
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]
    assert set(tmp_path.iterdir()) == {target.parent, link, chain}


def test_a_link_to_nothing_makes_the_file_that_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to("new/a.txt")

    write_text(tmp_path / "link", "there")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new" / "a.txt").read_text() == "there"


def test_a_link_to_itself_is_an_error_in_words(tmp_path):
    (tmp_path / "link").symlink_to("link")

    with pytest.raises(DataError, match=r"link: cannot be written: Too many levels of symbolic"):
        write_text(tmp_path / "link", "nowhere")


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_not_replaced_and_nothing_is_written(tmp_path, linked):
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "link" if linked else tmp_path / "pipe"
    if linked:
        path.symlink_to("pipe")
    before = set(tmp_path.iterdir())

    message = r"must be a regular file or a new one, got a FIFO or a device; choose another output"
    with pytest.raises(DataError, match=message), replacing(path) as partial:
        partial.write_text("never")  # pragma: no cover

    assert (tmp_path / "pipe").is_fifo()
    assert set(tmp_path.iterdir()) == before


WRITER = """
import sys
from pathlib import Path
from stepgraph.files.disk import replacing

with replacing(Path(sys.argv[1])) as partial:
    partial.write_text("half")
    print(partial, flush=True)
    sys.stdin.readline()
    partial.write_text("whole")
"""


@pytest.fixture
def writer():
    """Start processes that write half of a file, and go on when they are told to."""
    started = []

    def start(path):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path, writer):
    living, half = writer(tmp_path / "a.txt")
    killed, left = writer(tmp_path / "b.txt")
    killed.kill()
    killed.wait()
    assert half.exists()
    assert left.exists()

    write_text(tmp_path / "c.txt", "whole")

    assert half.exists()
    assert not left.exists()
    living.communicate("go on\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "c.txt"]
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_sweeping_touches_nothing_that_is_not_ours(tmp_path):
    os.mkfifo(tmp_path / ".pipe.1-0123abcd.partial")
    (tmp_path / ".link.1-0123abcd.partial").symlink_to("kept")
    for name in ("kept", ".odd.partial", ".a.partial.1-0123abcd", "a.1-0123abcd.partial"):
        (tmp_path / name).write_text("kept")
    before = set(tmp_path.iterdir()) - {tmp_path / ".pipe.1-0123abcd.partial"}

    write_text(tmp_path / "new", "new")

    assert before <= set(tmp_path.iterdir())
    assert (tmp_path / "kept").read_text() == "kept"
