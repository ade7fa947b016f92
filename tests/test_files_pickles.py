"""Pickles of arrays are read; pickles that ask for anything else do nothing and are refused."""

import pickle
import random
import struct
import subprocess
import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

from stepgraph.errors import DataError
from stepgraph.files.arrays import read_array

PROTOCOLS = range(6)
ROWS = [np.arange(5, dtype=np.float32)[None] / 3, np.arange(5, dtype=np.float32)[None] - 7]


@pytest.fixture
def read(tmp_path):
    """Read the bytes of a pickle."""
    path = tmp_path / "scores.pkl"

    def read(data):
        path.write_bytes(data)
        return read_array(path)

    return read


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@contextmanager
def at_most(size, seconds=5):
    """Nothing in here takes more memory, or more time."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
        assert time.process_time() - begin < seconds
    finally:
        tracemalloc.stop()


def short(text):
    return b"\x8c" + bytes([len(text)]) + text.encode()


def array(shape, content, *, code="f4", order="<"):
    """A pickle of an array, each part of it to choose."""
    sides = b"".join(b"\x8a\x08" + struct.pack("<q", side) for side in shape)
    return (
        b"\x80\x04cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR(K\x01("
        + sides
        + b"tcnumpy\ndtype\n("
        + short(code)
        + b"\x89\x88tR(K\x03"
        + short(order)
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89B"
        + struct.pack("<I", len(content))
        + content
        + b"tb."
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_come_back_as_they_were_pickled(read, protocol):
    whole = np.concatenate(ROWS)
    for value in (
        ROWS,
        list(whole),
        whole,
        np.asfortranarray(whole),
        np.concatenate([whole, whole], axis=1)[:, ::2],
        whole.astype(">f8"),
        np.zeros((0, 5), np.float32),
        [ROWS[0]] * 3,
        *(np.arange(6).reshape(2, 3).astype(kind) for kind in ("f2", "i1", "i8", "u1", "u8")),
    ):
        found = read(pickle.dumps(value, protocol))

        expected = np.concatenate(value).reshape(len(value), -1) if type(value) is list else value
        np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pickles_of_numpy_before_version_2_are_read(read, protocol):
    data = pickle.dumps(ROWS, protocol).replace(b"numpy._core", b"numpy.core")
    # The shorter name: protocol 4 counts its letters, and its frame's bytes.
    data = data.replace(b"\x16numpy.core", b"\x15numpy.core")
    data = data.replace(b"\x13numpy.core", b"\x12numpy.core")
    if protocol >= 4:
        data = data[:3] + struct.pack("<Q", len(data) - 11) + data[11:]

    np.testing.assert_array_equal(read(data), np.concatenate(ROWS))


def test_pickles_of_python_2_are_read(read):
    content = ROWS[0].tobytes()
    data = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\0\x85U\x01b"
        b"\x87Rq\x03(K\x01K\x01K\x05\x86cnumpy\ndtype\nq\x04U\x02f4K\0K\x01\x87Rq\x05(K\x03U\x01<"
        b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89U"
        + bytes([len(content)])
        + content
        + b"tb."
    )

    np.testing.assert_array_equal(read(data), ROWS[0])


HOSTILE = {
    "os.system": b"cos\nsystem\n(S'touch PWNED'\ntR.",
    "posix.system": b"cposix\nsystem\n(Vtouch PWNED\ntR.",
    "builtins.eval": b"cbuiltins\neval\n(V__import__('os').system('touch PWNED')\ntR.",
    "builtins.exec": b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x01x\x85R.",
    "builtins.getattr": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nVdump\ntR.",
    "builtins.bytearray": b"cbuiltins\nbytearray\n(J\xff\xff\xff\x7ftR.",
    "importlib.import_module": b"cimportlib\nimport_module\n(Vos\ntR.",
    "subprocess.Popen": b"csubprocess\nPopen\n(Vtouch PWNED\ntR.",
    "os.popen": b"(Vtouch PWNED\nios\npopen\n.",
    "os.abort": b"(cos\nabort\no.",
    "pickle.loads": b"cpickle\nloads\n(VI1\n.\ntR.",
    "numpy.load": b"cnumpy\nload\n(Vother.npy\ntR.",
    "numpy.fromfile": b"cnumpy\nfromfile\n(V/etc/passwd\ntR.",
    "numpy.ones": b"cnumpy\nones\n(J\xff\xff\xff\x7ftR.",
    "numpy.ndarray.dump": b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.",
    "numpy.testing._private.utils.runstring": b"cnumpy.testing._private.utils\nrunstring\n.",
    "torch.storage._load_from_bytes": b"ctorch.storage\n_load_from_bytes\n(VI1\n.\ntR.",
    "copyreg._reconstructor": b"ccopyreg\n_reconstructor\n.",
    "a\\r;b": b"ca\r;b\nc\n.",
}


@pytest.mark.parametrize("asked", HOSTILE)
def test_a_pickle_that_asks_for_code_is_refused_by_name(read, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(DataError) as caught:
        read(HOSTILE[asked])

    message = str(caught.value)
    assert f"got a call of '{asked}" in message
    assert "which was refused; if you trust the file, load it with pickle" in message
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

    with pytest.raises(DataError, match="which was refused"):
        read(data)

    assert not mark.exists()
    # The same bytes do run where they are trusted, so the test would notice.
    pickle.loads(data)
    assert mark.exists()


DESCRIBED = b"cnumpy.core.multiarray\n_reconstruct\n(tR"
TRICKS = {
    r"read \(UnpicklingError: A load persistent id": b"Pname\n.",
    r"read \(UnpicklingError: A load persistent id.": b"NQ.",
    r"read \(ValueError: unregistered extension": b"\x82\x01.",
    r"read \(UnpicklingError: pickle stream refers to out-of-band data": b"\x97.",
    "bytes in an unsupported encoding": pickle.dumps(
        Call(__import__("_codecs").encode, "x", "hex")
    ),
    r"read \(TypeError": b"cbuiltins\nbytes\n(J\xff\xff\xff\x7ftR.",
    r"read \(UnpicklingError: NEWOBJ": b"cnumpy\ndtype\n)\x81.",
    "an array of type none": b"cnumpy\ndtype\n(NtR.",
    "changes a StandIn": b"cnumpy\ndtype\n}V__doc__\nK\x01sb.",
    "changes a StandIn.": b"cnumpy\ndtype\n(N}V_play\ncnumpy\ndtype\nstb.",
    "an array of an unsupported type": b"cnumpy\ndtype\n(Vf4\ntR}V__class__\nK\x01sb.",
    "an array with an invalid description": DESCRIBED + b"}V__class__\nK\x01sb.",
    "got a list of arrays, one a row, got a array": DESCRIBED + b".",
    "cannot be read": b"K\x01)R.",
    "got a nonetype": b"cnumpy\nndarray\n.",
    "got a bytes": b"C\x01x.",
    "got a dict": b"}(K\x01tK\x02s.",
    "got a tuple": pickle.dumps(tuple(ROWS)),
    r"read \(ValueError: unsupported pickle protocol": b"\x80\x06N.",
}


@pytest.mark.parametrize("got", TRICKS)
def test_tricks_with_what_is_allowed_are_refused(read, got):
    with pytest.raises(DataError, match=rf"scores\.pkl: must .*{got.removeprefix('got a list')}"):
        read(TRICKS[got])


def test_a_stand_in_is_the_same_after_a_pickle_that_would_change_it(read):
    for trick in TRICKS.values():
        with pytest.raises(DataError):
            read(trick)

    np.testing.assert_array_equal(read(pickle.dumps(ROWS)), np.concatenate(ROWS))


@pytest.mark.parametrize(
    "code", ["O", "O8", "b1", "c8", "U4", "S4", "V8", "M8[ns]", "f16", "f4,O"]
)
def test_arrays_of_anything_but_real_numbers_are_refused(read, code):
    with pytest.raises(DataError, match=r"got an array of type '.*', not of real numbers"):
        read(array((1,), b"\0" * 4, code=code))


def test_a_pickled_object_array_is_refused(read):
    with pytest.raises(DataError, match="got an array of type 'O8', not of real numbers"):
        read(pickle.dumps(np.array([1, None])))


@pytest.mark.parametrize("shape", [(2**39, 1), (2**39, 2**39), (1, 3), (0, 2), (1, 1)])
def test_an_array_larger_or_smaller_than_its_content_is_refused(read, shape):
    with pytest.raises(DataError, match=r"must be a whole pkl file|must hold an array of at most"):
        read(array(shape, b"\0" * 8))


@pytest.mark.parametrize("shape", [(-1, 1), (-2, -1), (0, 2**62, 2**62), (2**62,)])
def test_impossible_shapes_are_refused(read, shape):
    with pytest.raises(DataError, match="got an array with an invalid description"):
        read(array(shape, b"\0" * 8))


def test_lists_that_hold_no_arrays_are_refused_soon_and_cheaply(read):
    within = []
    within.append(within)
    many = ROWS[0]
    for _ in range(12):
        many = [many] * 100
    bombs = (pickle.dumps(within), pickle.dumps(many), b"]" * 9_999 + b"a" * 9_998 + b".")
    for data in bombs:
        with at_most(30e6), pytest.raises(DataError, match=r"row 0 must be .*, got a list"):
            read(data)


def test_one_row_named_without_end_is_refused_before_it_takes_memory(read, monkeypatch):
    monkeypatch.setattr("stepgraph.files.arrays.checks.LARGEST", 1 << 20)
    wide = np.zeros((1, 100_000), np.uint8)

    with pytest.raises(DataError, match="must hold an array of at most 1 MiB, got"):
        read(pickle.dumps([wide] * 1000))


def test_bytes_spelt_as_text_are_not_copied_again_and_again(read):
    once = b"c_codecs\nencode\n(h\0Vlatin1\ntR"
    data = b"(X" + struct.pack("<I", 10**6) + b"x" * 10**6 + b"q\0" + once * 1000 + b"l."
    with at_most(30e6), pytest.raises(DataError, match="row 0 must be an array"):
        read(data)


@pytest.mark.parametrize(
    "claim",
    [
        b"\x96" + b"\xff" * 8,
        b"\x8e" + b"\xff" * 7 + b"\0",
        b"B\xff\xff\xff\xff",
        b"Nr\xff\xff\xff\x7f.",
        b"Np99999999\n.",
        b"\x95" + b"\xff" * 8,
        b"\x80\x04\x95" + b"\xff" * 7 + b"\x7fN.",
    ],
)
def test_claims_of_boundless_content_take_no_memory(read, claim):
    with at_most(10e6), pytest.raises(DataError, match=r"must be a whole pkl file|hold a list"):
        read(claim)


WIDE = b"(" + b"h\0" * 1000 + b"tq\0"
KEYS = {
    "deep": b"}(" + b")\x85q\0" + b"h\0\x86q\0" * 200 + b"Nu.",
    "wide": b"}()q\0" + WIDE * 6 + b"Nu.",
    "set": b"\x8f()q\0" + WIDE * 6 + b"\x90.",
    "frozen": b"()q\0" + WIDE * 6 + b"\x91.",
    "dict": b"()q\0" + WIDE * 6 + b"Nd.",
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_takes_for_ever_to_hash_is_refused_in_time(read, monkeypatch, name):
    read(pickle.dumps(ROWS))
    monkeypatch.setattr("stepgraph.files.arrays.reader._SECONDS", 0.3)

    with at_most(1e6), pytest.raises(DataError, match="got one at which the library that reads"):
        read(KEYS[name])


@pytest.mark.parametrize(
    "line", [b"I" + b"9" * 5000, b"L" + b"9" * 5000, b"Ix", b"Fx", b"g9", b"p1"]
)
def test_nonsense_is_refused(read, line):
    with pytest.raises(DataError, match=r"pkl: must (be a whole|hold a list)"):
        read(line + b"\n.")


def test_other_files_are_refused(read):
    for data in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\0", b"\x89PNG\r\n", b"[1, 2]", b"0.1 0.2\n"):
        with pytest.raises(DataError, match=r"scores\.pkl: must (be|hold) "):
            read(data)


def test_a_second_pickle_in_the_file_is_not_lost_silently(read):
    with pytest.raises(DataError, match="got a second pickle behind the first"):
        read(pickle.dumps(ROWS) + pickle.dumps(1))


def test_a_file_over_the_limit_is_refused(tmp_path):
    with (tmp_path / "a.pkl").open("wb") as file:
        file.truncate(257 << 20)

    with pytest.raises(DataError, match=r"pkl: must be a pickle of at most 256 MiB, got 257 MiB"):
        read_array(tmp_path / "a.pkl")


def test_a_pickle_cut_off_anywhere_is_refused(read):
    for protocol in PROTOCOLS:
        data = pickle.dumps(ROWS, protocol)
        for length in range(protocol % 3, len(data), 3):
            with pytest.raises(DataError, match="got one that cannot be read"):
                read(data[:length])


def test_a_damaged_pickle_gives_numbers_or_an_error_in_one_line(read):
    for protocol in PROTOCOLS:
        rng = random.Random(protocol)
        whole = pickle.dumps([*ROWS, {"a": (1.5, np.float32(2))}, 2**40], protocol)
        messages = []

        for _ in range(120):
            data = bytearray(whole)
            for _ in range(rng.choice([1, 1, 2, 5])):
                data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), *b"(.]})cRbtle"])
            try:
                read(bytes(data))
            except DataError as error:
                messages.append(str(error))

        assert len(messages) > 12
        assert not any("\n" in message for message in messages)
