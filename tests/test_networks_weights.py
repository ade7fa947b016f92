"""Weights are read from any file that holds some; no file can do anything but hold them."""

import argparse
import io
import pickle
import random
import struct
import subprocess
import tarfile
import time
import zipfile
from collections import Counter, OrderedDict, defaultdict
from contextlib import suppress
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from stepgraph.errors import DataError
from stepgraph.networks.weights import read_weights

WEIGHTS = {
    "fc.weight": torch.arange(12.0).reshape(3, 4) / 7,
    "fc.bias": torch.tensor([1.5, -2.0, 3.0]),
    "bn.num_batches_tracked": torch.tensor(41),
}
LAYOUTS = {"archive": True, "legacy": False}


class Settings(argparse.Namespace):
    """A class of another project, which is not here when its file is read."""


class Listed(list):
    """A list of another project."""


class Held(dict):
    """A dict of another project."""


class Colour(Enum):
    """A choice of another project."""

    RED = "red"


class Call:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@pytest.fixture(params=LAYOUTS)
def save(request, tmp_path):
    """Save anything as torch does, in the layout of today and in that before 1.6."""

    def save(content, name="weights.pt"):
        path = tmp_path / name
        torch.save(content, path, _use_new_zipfile_serialization=LAYOUTS[request.param])
        return path

    return save


def assert_same(found, expected=WEIGHTS):
    assert list(found) == list(expected)
    for name, weight in expected.items():
        assert found[name].dtype == weight.dtype
        assert torch.equal(found[name], weight), name


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt"])
def test_a_state_dict_comes_back_as_it_was_saved(save, suffix):
    assert_same(read_weights(save(OrderedDict(WEIGHTS), f"a{suffix}")))


def test_safetensors_are_read(tmp_path):
    save_file(WEIGHTS, tmp_path / "a.safetensors")

    found = read_weights(tmp_path / "a.safetensors")

    assert_same({name: found[name] for name in WEIGHTS})


@pytest.mark.parametrize("holder", ["state_dict", "model", "model_state", "weights"])
def test_a_checkpoint_gives_its_weights_only(save, holder):
    optimizer = {"state": {0: {"step": 3, "exp_avg": torch.ones(3, 4)}}, "groups": [{"lr": 0.1}]}

    found = read_weights(save({"epoch": 3, "optimizer": optimizer, holder: WEIGHTS}))

    assert_same(found)


def test_objects_of_other_projects_are_dropped(save):
    settings = Settings(lr=0.1, names=["a"], shape=(1, 2))
    checkpoint = {
        "args": settings,
        "cfg": {"task": settings, "tags": {"a", "b"}, "frozen": frozenset({1}), "path": b"x"},
        "model": OrderedDict(WEIGHTS, _extra=settings),
        "extra_state": {"time": 1.5, ("a", 1): None, "big": 2**80, "history": [settings, {}]},
        "more": [Listed([1, 2, 3]), Held(a=1, b=Held(c=2)), {Colour.RED: Colour.RED}],
        "numbers": [np.float64(0.5), np.arange(3), defaultdict(list, a=[1]), Counter("aab")],
        "places": [Path("a"), torch.float32, torch.device("cpu"), torch.Size([1, 2]), slice(2)],
        "sparse": torch.eye(2).to_sparse(),
    }

    assert_same(read_weights(save(checkpoint)))


def test_the_wrapper_of_training_on_several_gpus_is_taken_off(save):
    wrapped = {f"module.{name}": weight for name, weight in WEIGHTS.items()}

    assert_same(read_weights(save(wrapped)))


def test_a_module_gives_its_parameters_and_buffers(save):
    module = torch.nn.Sequential(torch.nn.Conv3d(2, 3, 1, bias=False), torch.nn.BatchNorm3d(3))

    assert_same(read_weights(save(module.state_dict())), module.state_dict())


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"],
)
def test_every_kind_of_number_is_read(save, dtype):
    weights = {"a": torch.tensor([0, 1, 2, 100]).to(getattr(torch, dtype))}

    assert_same(read_weights(save(weights)), weights)


def test_views_parameters_and_empty_weights_are_read(save):
    base = torch.arange(20.0).reshape(4, 5)
    weights = {
        "rows": base[1:3],
        "columns": base.T,
        "whole": base,
        "empty": torch.zeros(0, 7),
        "one": torch.tensor(2.5),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }

    assert_same(read_weights(save(weights)), weights)


def test_what_is_no_weight_may_repeat_its_numbers(save):
    repeated = torch.ones(1).expand(1000)

    assert_same(read_weights(save({"model": WEIGHTS, "optimizer": {"step": repeated}})))
    with pytest.raises(DataError, match="got one without any named weights"):
        read_weights(save({"model": {"a": repeated}}))


def test_what_shares_numbers_in_the_file_shares_them_here(save):
    shared = torch.ones(5)

    found = read_weights(save({"a": shared, "b": shared}))

    assert found["a"].data_ptr() == found["b"].data_ptr()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle_is_read(tmp_path, protocol):
    torch.save({"model": WEIGHTS}, tmp_path / "a.pt", pickle_protocol=protocol)

    assert_same(read_weights(tmp_path / "a.pt"))


@pytest.mark.parametrize("place", ["beside", "inside", "instead", "as a key of settings"])
def test_a_call_of_the_shell_is_not_made(save, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    call = Call(subprocess.run, ["touch", "PWNED"])
    evil = {
        "beside": {"model": WEIGHTS, "args": call},
        "inside": {"model": {**WEIGHTS, "evil": call}},
        "instead": {"model": call, "state_dict": WEIGHTS},
        "as a key of settings": {"model": WEIGHTS, "args": {call: call}},
    }[place]

    found = read_weights(save(evil))

    assert_same(found)
    assert not (tmp_path / "PWNED").exists()


def archive(path, pickled, **files):
    """Write an archive as torch does, its pickle and files to choose."""
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a/data.pkl", pickled)
        out.writestr("a/version", "3\n")
        for name, content in files.items():
            out.writestr(f"a/data/{name.removeprefix('k')}", content)
    return path


HOSTILE = {
    "os.system": b"cos\nsystem\n(S'touch PWNED'\ntR.",
    "eval": b"cbuiltins\neval\n(V__import__('os').system('touch PWNED')\ntR.",
    "inst": b"(S'touch PWNED'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'touch PWNED'\no.",
    "newobj": b"\x80\x02cos\nsystem\n(S'touch PWNED'\nt\x81.",
    "newobj_ex": b"\x80\x04\x8c\x02os\x8c\x06system\x93(S'touch PWNED'\nt}\x92.",
    "build": b"}(S'__setstate__'\ncos\nsystem\nubS'touch PWNED'\nb.",
    "persid": b"Ptouch PWNED\n.",
    "persid of a call": b"cos\nsystem\n(S'touch PWNED'\ntRQ.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_pickle_of_calls_alone_does_nothing_and_has_no_weights(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = archive(tmp_path / "evil.pt", HOSTILE[name])

    with pytest.raises(DataError, match=r"evil.pt: must be a whole file of weights .*, got "):
        read_weights(path)

    assert not (tmp_path / "PWNED").exists()


def tensor(shape, strides, *, offset=0, length=4, key=b"0"):
    """A pickle of a dict with one float tensor, each part of it to choose."""

    def numbers(values):
        return b"(" + b"".join(b"\x8a\x09" + n.to_bytes(9, "little") for n in values) + b"t"

    return (
        b"\x80\x02}(X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
        b"ctorch\nFloatStorage\nX\x01\0\0\0" + key + b"X\x03\0\0\0cpu\x8a\x09"
        + length.to_bytes(9, "little") + b"tQ\x8a\x09" + offset.to_bytes(9, "little")
        + numbers(shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtRu."
    )  # fmt: skip


FOUR = struct.pack("<4f", 1, 2, 3, 4)
LIES = {
    "repeated": (tensor([1 << 30], [0]), "got one without any named weights"),
    "too large": (tensor([5], [1]), "got one that cannot be read .RuntimeError: "),
    "past the end": (tensor([2], [1], offset=3), "got one that cannot be read .RuntimeError: "),
    "strided past the end": (tensor([2, 2], [3, 1]), "got one that cannot be read .RuntimeError"),
    "storage larger": (tensor([4], [1], length=1 << 35), "got an error .record size"),
    "storage without end": (tensor([4], [1], length=1 << 70), "got an error .record size"),
    "no storage": (tensor([4], [1], key=b"7"), "got one that cannot be read .RuntimeError: "),
    "one stride": (tensor([2, 2], [1]), "got one that cannot be read .RuntimeError: unequal size"),
    "enormous": (tensor([1 << 62], [1]), "got one that cannot be read .RuntimeError: Storage si"),
}


def test_a_tensor_written_by_hand_is_read(tmp_path):
    path = archive(tmp_path / "a.pt", tensor([2, 2], [2, 1]), k0=FOUR)

    assert_same(read_weights(path), {"a": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})


@pytest.mark.parametrize("lie", LIES)
def test_a_weight_that_claims_more_than_it_has_is_refused(tmp_path, lie):
    pickled, said = LIES[lie]

    with pytest.raises(DataError, match=rf"must be a whole file of weights .*{said}"):
        read_weights(archive(tmp_path / "a.pt", pickled, k0=FOUR))


BOMBS = {
    "memo": b"Nr\xff\xff\xff\x7f0h\0.",
    "bytes": b"\x80\x05\x96\xff\xff\xff\xff\xff\0\0\0.",
    "text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\0\0\0.",
    "frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
    "such a key out of a call": b"}(ctorch._utils\n_rebuild_parameter\n()\x85q\0"
    + b"h\0\x86q\0" * 200
    + b"tRNu.",
    "memo that is used": b"(lr\xff\xff\xff\x0f.",
    "nested": b"]" * 100_000 + b"a" * 99_999 + b".",
    "extension": b"\x82\x01.",
    "buffer": b"\x80\x05\x97.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_pickle_that_would_fill_memory_or_time_is_refused_at_once(tmp_path, name):
    path = archive(tmp_path / "bomb.pt", BOMBS[name])
    begun = time.process_time()

    with pytest.raises(DataError, match=r"bomb.pt: must be a whole file of weights"):
        read_weights(path)

    assert time.process_time() - begun < 10


def test_a_key_that_takes_for_ever_to_hash_is_refused_in_time(tmp_path, monkeypatch):
    read_weights(archive(tmp_path / "a.pt", tensor([4], [1]), k0=FOUR))
    monkeypatch.setattr("stepgraph.files.arrays.reader._SECONDS", 0.3)
    path = archive(tmp_path / "bomb.pt", b"}()\x85q\0" + b"h\0\x86q\0" * 200 + b"Nu.")

    with pytest.raises(DataError, match="got one at which the library that reads it fails"):
        read_weights(path)


def test_a_program_of_torchscript_is_refused(tmp_path):
    path = archive(tmp_path / "a.pt", tensor([4], [1]), k0=FOUR)
    with zipfile.ZipFile(path, "a") as out:
        out.writestr("a/constants.pkl", b"N.")

    with pytest.raises(DataError, match="got a program of TorchScript; save its state_dict"):
        read_weights(tmp_path / "a.pt")


def test_a_tar_archive_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with tarfile.open("a.pt", "w", format=tarfile.USTAR_FORMAT, encoding="latin1") as out:
        for name in ("\x80\x02", "storages", "tensors", "pickle"):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path / "PWNED")
            out.addfile(info)

    with pytest.raises(DataError, match="got one that cannot be read"):
        read_weights(tmp_path / "a.pt")

    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_compressed_archive_is_refused(tmp_path):
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a/data.pkl", tensor([1 << 20], [1], length=1 << 20))
        out.writestr("a/data/0", bytes(4 << 20))

    with pytest.raises(DataError, match="got content that is compressed; load it with torch"):
        read_weights(path)


FOREIGN = {
    "empty": (b"", "got an empty file"),
    "page": (b"<!DOCTYPE html><html>", "got a web page"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    "text": (b"hello", "something that begins b'hello'"),
    "zip": (archive(io.BytesIO(), b"N.").getvalue(), "without any named weights"),
    "half a zip": (b"PK\x03\x04" + bytes(50), "archive that is cut off or damaged"),
    "pickle": (pickle.dumps(WEIGHTS["fc.bias"].tolist()), "RuntimeError: Invalid magic number"),
    "half a pickle": (pickle.dumps(list("abc"))[:-3], "one that cannot be read .UnpicklingError"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_in_one_line(tmp_path, name):
    content, said = FOREIGN[name]
    path = tmp_path / "a.pt"
    path.write_bytes(content)

    with pytest.raises(DataError, match=rf"a.pt: must be a whole file .*{said}.*; ") as caught:
        read_weights(path)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello world", b"\xff" * 100])
def test_safetensors_that_are_none_are_refused(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)

    with pytest.raises(DataError, match=r"a.safetensors: must be a whole file of weights"):
        read_weights(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DataError, match="must be a file of weights, got no such file"):
        read_weights(tmp_path / "a.pt")
    with pytest.raises(DataError, match="must be a file of weights, got a folder"):
        read_weights(tmp_path)


def test_a_whole_model_and_a_lone_tensor_are_no_weights(save):
    for content in (torch.nn.Linear(2, 2), torch.ones(3), {"a": 1}, {}):
        with pytest.raises(DataError, match=r"without any named weights.*save its state_dict"):
            read_weights(save(content))


def test_names_that_only_the_wrapper_tells_apart_are_refused(save):
    with pytest.raises(DataError, match=r"got names that differ only by 'module\.'"):
        read_weights(save({"module.a": torch.ones(1), "a": torch.ones(1)}))


def test_a_file_cut_off_anywhere_is_refused(save):
    path = save({"model": WEIGHTS, "args": Settings(a=1)})
    whole = path.read_bytes()

    for size in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="must be a whole file of weights"):
            read_weights(path)


def test_a_damaged_file_is_refused_or_read_but_nothing_else(save):
    path = save({"model": WEIGHTS, "args": Settings(a=1)})
    whole = path.read_bytes()
    chance = random.Random(5)

    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        with suppress(DataError):
            assert all(isinstance(weight, torch.Tensor) for weight in read_weights(path).values())
