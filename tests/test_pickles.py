"""Pickles of numbers are read; pickles that ask for anything else do nothing and are refused."""

import pickle
import random
import struct
import subprocess
import time
import tracemalloc

import numpy as np
import pytest

from stepgraph.errors import DataError
from stepgraph.files.pickles import read_numbers

PROTOCOLS = range(6)
ROWS = [np.arange(5, dtype=np.float32)[None] / 3, np.arange(5, dtype=np.float32)[None] - 7]


@pytest.fixture
def read(tmp_path):
    """Read the bytes of a pickle."""
    path = tmp_path / "scores.pkl"

    def read(data, **options):
        path.write_bytes(data)
        return read_numbers(path, **options)

    return read


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments, *([] if state is None else [state]))

    def __reduce__(self):
        return self.reduced


def short(text):
    return b"\x8c" + bytes([len(text)]) + text.encode()


def array(shape, content, *, code="f4", order="<", shape_code=None):
    """A pickle of an array, each part of it to choose; dtype is memo 0."""
    dims = shape_code or b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", n) for n in shape) + b"t"
    return (
        b"\x80\x04cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR(K\x01"
        + dims
        + b"cnumpy\ndtype\n("
        + short(code)
        + b"\x89\x88tR(K\x03"
        + short(order)
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89B"
        + struct.pack("<I", len(content))
        + content
        + b"tb."
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        tuple(ROWS),
        {"scores": ROWS[0], 3: [ROWS[1]]},
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12, dtype=">f8").reshape(3, 4)[:, ::2],
        np.zeros((0, 5), np.float32),
        np.array(2.5),
        [np.float32(0.1), np.float64(0.1), np.int64(-3)],
        [np.array([1, 2], dtype=kind) for kind in ("f2", "i1", "i2", "i4", "i8", "u1", "u8")],
        [0, 1, -1, 255, 65_536, -(2**31), 2**40, -(2**63), 0.1, -1e300, True, False, None],
        ["crème", "a\nb\\u0041", "", "x" * 300],
        [[], (), {}, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        7,
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_come_back_as_they_were_pickled(read, value, protocol):
    data = pickle.dumps(value, protocol)

    found = read(data)

    np.testing.assert_equal(found, value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickles_of_numpy_before_version_2_are_read(read, protocol):
    data = pickle.dumps(ROWS, protocol).replace(b"numpy._core", b"numpy.core")
    # The shorter name: protocol 4 counts its letters, and its frame's bytes, which nobody checks.
    data = data.replace(b"\x16numpy.core", b"\x15numpy.core")
    data = data.replace(b"\x13numpy.core", b"\x12numpy.core")

    np.testing.assert_equal(read(data), ROWS)


def test_a_row_named_twice_is_there_twice(read):
    found = read(pickle.dumps([ROWS[0]] * 3))

    np.testing.assert_equal(found, [ROWS[0]] * 3)


HOSTILE = {
    "os.system": b"cos\nsystem\n(S'touch PWNED'\ntR.",
    "posix.system": b"cposix\nsystem\n(Vtouch PWNED\ntR.",
    "builtins.eval": b"cbuiltins\neval\n(V__import__('os').system('touch PWNED')\ntR.",
    "builtins.exec": b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x01x\x85R.",
    "builtins.getattr": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nVdump\ntR.",
    "builtins.bytearray": b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
    "importlib.import_module": b"cimportlib\nimport_module\n(Vos\ntR.",
    "operator.attrgetter": b"coperator\nattrgetter\n(V__class__.__base__\ntR.",
    "subprocess.Popen": b"csubprocess\nPopen\n(Vtouch PWNED\ntR.",
    "pickle.loads": b"cpickle\nloads\n(VI1\n.\ntR.",
    "numpy.load": b"cnumpy\nload\n(Vother.npy\ntR.",
    "numpy.fromfile": b"cnumpy\nfromfile\n(V/etc/passwd\ntR.",
    "numpy.ones": b"cnumpy\nones\n(J\xff\xff\xff\x7ftR.",
    "numpy.matrix": b"cnumpy\nmatrix\n.",
    "numpy.ndarray.dump": b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
    "numpy.testing._private.utils.runstring": b"cnumpy.testing._private.utils\nrunstring\n.",
    "torch.storage._load_from_bytes": b"ctorch.storage\n_load_from_bytes\n(VI1\n.\ntR.",
    "torch._utils._rebuild_tensor_v2": b"ctorch._utils\n_rebuild_tensor_v2\n.",
    "copyreg._reconstructor": b"ccopyreg\n_reconstructor\n.",
    "a\\r;b": b"ca\r;b\n\n.",
}


@pytest.mark.parametrize("asked", HOSTILE)
def test_a_pickle_that_asks_for_code_is_refused_by_name(read, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(DataError) as caught:
        read(HOSTILE[asked])

    message = str(caught.value)
    assert f"got a call for '{asked}" in message
    assert "could run code, and was not run; if you trust the file" in message
    assert "\n" not in message
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "call",
    [lambda *a: Call(subprocess.run, a), lambda *a: Call(eval, f"open({a[1]!r}, 'w').close()")],
)
def test_a_hostile_pickle_does_not_run(read, tmp_path, protocol, call):
    mark = tmp_path / "pwned"
    data = pickle.dumps([*ROWS, call("touch", str(mark))], protocol)

    with pytest.raises(DataError, match="which could run code, and was not run"):
        read(data)

    assert not mark.exists()
    # The same bytes do run where they are trusted, so the test would notice.
    pickle.loads(data)
    assert mark.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    {
        "PERSID": b"Pname\n.",
        "BINPERSID": b"NQ.",
        "EXT1": b"\x82\x01.",
        "EXT4": b"\x84\x01\0\0\0.",
        "INST": b"(ios\nsystem\n.",
        "OBJ": b"(cnumpy\ndtype\no.",
        "NEWOBJ": b"cnumpy\ndtype\n)\x81.",
        "NEWOBJ_EX": b"cnumpy\ndtype\n)}\x92.",
        "NEXT_BUFFER": b"\x97.",
        "DUP": b"K\x012.",
        "LONG4": b"\x8b\x01\0\0\0\x01.",
        "FROZENSET": b"(\x91.",
        "0xff, which does not exist": b"\xff.",
    }.items(),
)
def test_instructions_that_numbers_do_not_need_are_refused(read, name, data):
    with pytest.raises(DataError, match=f"must hold nothing but numbers.* instruction {name}"):
        read(data)


@pytest.mark.parametrize(
    ("what", "data"),
    {
        "a strange call of 'encode'": pickle.dumps(Call(__import__("_codecs").encode, "x", "zip")),
        "a strange call of 'bytes'": b"cbuiltins\nbytes\n(J\xff\xff\xff\x7ftR.",
        "a strange call of 'reconstruct'": b"cnumpy.core.multiarray\n_reconstruct\n"
        b"(cnumpy\ndtype\n(K\0tC\x01btR.",
        "a strange call of 'ndarray'": b"cnumpy\nndarray\n((J\xff\xff\xff\x7fttR.",
        "a strange call of 'frombuffer'": b"cnumpy.core.numeric\n_frombuffer\n(NNtR.",
        "a call of something that is no function": b"K\x01)R.",
        "a strange state": b"cnumpy\ndtype\n}V__doc__\nK\x01sb.",
        "an array strangely described": b"cnumpy.core.multiarray\nscalar\n(NNtR.",
        "a whole number of more than 64 bits": b"\x8a\x09" + b"\xff" * 8 + b"\x01.",
        "a dict whose keys": b"}(K\x01tK\x02s.",
        "protocol 6": b"\x80\x06N.",
        r"a piece of an array \(global\) alone": b"cnumpy\nndarray\n.",
        r"a piece of an array \(bytes\) alone": b"C\x01x.",
        r"a piece of an array \(array\) alone": b"cnumpy.core.multiarray\n_reconstruct\n"
        b"(cnumpy\nndarray\n(K\0tC\x01btR.",
    }.items(),
)
def test_tricks_with_what_is_allowed_are_refused(read, what, data):
    with pytest.raises(DataError, match=f"must hold nothing but numbers.* got {what}"):
        read(data)


@pytest.mark.parametrize(
    "code", ["O", "O8", "b1", "c8", "U4", "S4", "V8", "M8[ns]", "f16", "f4,O"]
)
def test_arrays_of_anything_but_real_numbers_are_refused(read, code):
    with pytest.raises(DataError, match=r"got an array of type '.*', not of real numbers"):
        read(array((1,), b"\0" * 4, code=code))


def test_a_pickled_object_array_is_refused(read):
    with pytest.raises(DataError, match="got an array of type 'O8', not of real numbers"):
        read(pickle.dumps(np.array([1, None])))


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40), (1, 3), (0,), (), (2**62, 4)])
def test_an_array_larger_or_smaller_than_its_content_is_refused(read, shape):
    with pytest.raises(DataError, match=r"got an array of .* bytes with 8 bytes of content"):
        read(array(shape, b"\0" * 8))


@pytest.mark.parametrize(
    ("shape", "content"), [((-1,), b"\0" * 8), ((-2, -1), b"\0" * 8), ((1,) * 9, b"\0" * 4)]
)
def test_impossible_shapes_are_refused(read, shape, content):
    with pytest.raises(DataError, match="got an array strangely described"):
        read(array(shape, content))


def test_an_empty_array_with_a_boundless_side_is_an_error_in_words(read):
    with pytest.raises(DataError, match=r"scores\.pkl: must be a whole pickle, got nonsense"):
        read(array((0, 2**62, 2**62), b""))


def test_a_list_inside_itself_is_refused(read):
    value = []
    value.append(value)

    with pytest.raises(DataError, match="got lists in lists, more than 16 levels"):
        read(pickle.dumps(value))


@pytest.mark.parametrize(
    "data", [b"]" * 99_999 + b"a" * 99_998 + b".", b")" + b"\x85" * 10**6 + b"."]
)
def test_nesting_without_end_is_refused(read, data):
    with pytest.raises(DataError, match="got lists in lists, more than 16 levels"):
        read(data)


def test_lists_that_multiply_are_refused_soon_and_cheaply(read):
    value = ROWS[0]
    for _ in range(12):
        value = [value] * 100
    data = pickle.dumps(value)
    tracemalloc.start()
    begin = time.monotonic()

    with pytest.raises(DataError, match="lists that repeat themselves to more than 256 MiB"):
        read(data)

    assert time.monotonic() - begin < 5
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_a_large_text_turned_into_bytes_again_and_again_is_refused(read):
    once = b"c_codecs\nencode\n(h\0Vlatin1\ntR"
    data = b"(X" + struct.pack("<I", 10**6) + b"x" * 10**6 + b"q\0" + once * 1000 + b"l."

    with pytest.raises(DataError, match="got more bytes than the file has"):
        read(data)


def test_too_many_instructions_are_refused(read, monkeypatch):
    monkeypatch.setattr("stepgraph.files.pickles._INSTRUCTIONS", 10_000)

    with pytest.raises(DataError, match="got more than 10,000 instructions"):
        read(b"(" + b"}" * 10_000 + b"t.")


def test_claims_of_boundless_content_take_no_memory(read):
    for claim in (
        b"\x96" + b"\xff" * 8,
        b"B\xff\xff\xff\xff",
        b"r\xff\xff\xff\xff",
        b"\x95" + b"\xff" * 8,
    ):
        with pytest.raises(DataError, match="must be a whole pickle"):
            read(claim)


@pytest.mark.parametrize(
    "line", [b"I" + b"9" * 5000, b"L" + b"9" * 5000, b"Ix", b"Fx", b"g9", b"p1"]
)
def test_nonsense_is_refused(read, line):
    with pytest.raises(DataError, match=r"got nonsense at byte 0 \(\w+\); the file is damaged"):
        read(line + b"\n.")


def test_other_files_are_refused(read):
    for data in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\0", b"\x89PNG\r\n", b"[1, 2]", b"0.1 0.2\n"):
        with pytest.raises(DataError, match=r"scores\.pkl: must (be|hold) "):
            read(data)


def test_a_second_pickle_in_the_file_is_not_lost_silently(read):
    with pytest.raises(DataError, match="must hold one pickle, got 5 bytes after it"):
        read(pickle.dumps(ROWS) + pickle.dumps(1))


def test_a_file_over_the_limit_is_refused(read):
    with pytest.raises(DataError, match=r"must be a pickle of at most 1 MiB, got 2 MiB"):
        read(b"x" * (2 << 20), limit=1 << 20)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"gone\.pkl: must be a pickle file, got no such file"):
        read_numbers(tmp_path / "gone.pkl")
    with pytest.raises(DataError, match="must be a pickle file, got a folder"):
        read_numbers(tmp_path)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_cut_off_anywhere_is_refused(read, protocol):
    data = pickle.dumps(ROWS, protocol)

    for length in range(len(data)):
        with pytest.raises(DataError, match="must be a whole pickle"):
            read(data[:length])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_damaged_pickle_gives_numbers_or_an_error_in_one_line(read, protocol):
    rng = random.Random(protocol)
    whole = pickle.dumps([*ROWS, {"a": (1.5, np.float32(2))}, 2**40], protocol)
    messages = []

    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 5])):
            data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), *b"(.]})cRbtleu0qh"])
        try:
            read(bytes(data))
        except DataError as error:
            messages.append(str(error))

    assert len(messages) > 100
    assert not any("\n" in message for message in messages)
