"""The cache of embeddings: what it keeps, and what it survives."""

import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from hashlib import blake2b

import numpy as np
import pytest

from stepgraph.encoders.cache import EmbeddingCache, cache_folder

TEXTS = [f"sentence number {number}" for number in range(300)]
ROUNDS = int(os.environ.get("STEPGRAPH_SOAK", "0")) or 12
VECTORS = np.random.default_rng(0).random((300, 64), dtype=np.float32)


@pytest.fixture
def cache(tmp_path):
    """A cache that holds all texts."""
    cache = EmbeddingCache("model", tmp_path)
    cache.store(TEXTS, VECTORS)
    return cache


def test_what_was_stored_is_loaded_by_the_next(cache, tmp_path):
    found = EmbeddingCache("model", tmp_path).load([*TEXTS, "never seen"])

    assert set(found) == set(TEXTS)
    assert np.stack([found[one] for one in TEXTS]).tolist() == VECTORS.tolist()


def test_models_do_not_share_vectors(cache, tmp_path):
    assert EmbeddingCache("model/", tmp_path).load(TEXTS) == {}


def test_storing_again_replaces(cache):
    cache.store(TEXTS[:1], VECTORS[1:2])

    assert cache.load(TEXTS[:1])[TEXTS[0]].tolist() == VECTORS[1].tolist()


def test_empty_cache_finds_nothing(tmp_path):
    assert EmbeddingCache("model", tmp_path).load(TEXTS) == {}


def test_any_text_may_be_stored(tmp_path):
    texts = ["", "\x00", "卵 🥚", "lone \ud800 surrogate", "x" * 100_000]
    cache = EmbeddingCache("model", tmp_path)

    cache.store(texts, VECTORS[:5])

    assert set(cache.load(texts)) == set(texts)


def torn_in_the_middle(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def torn_within_a_page(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 777])


def garbage_at_the_beginning(path):
    path.write_bytes(b"\xaa" * 200 + path.read_bytes()[200:])


def garbage_in_the_middle(path):
    data = bytearray(path.read_bytes())
    middle = len(data) // 4096 // 2 * 4096
    data[middle : middle + 4096] = b"\xaa" * 4096
    path.write_bytes(data)


def not_a_database(path):
    path.write_text("hello " * 1000)


@pytest.mark.parametrize(
    "tear",
    [
        torn_in_the_middle,
        torn_within_a_page,
        garbage_at_the_beginning,
        garbage_in_the_middle,
        not_a_database,
    ],
)
def test_a_damaged_file_is_set_aside_with_a_warning_and_filled_anew(cache, tmp_path, tear):
    tear(cache.path)
    again = EmbeddingCache("model", tmp_path)

    with pytest.warns(UserWarning, match=r"cache is damaged \(.*set aside as .*damaged-"):
        found = again.load(TEXTS)
    again.store(TEXTS, VECTORS)

    right = dict(zip(TEXTS, VECTORS.tolist(), strict=True))
    assert all(vector.tolist() == right[one] for one, vector in found.items())
    assert len(EmbeddingCache("model", tmp_path).load(TEXTS)) == len(TEXTS)


def test_a_vector_with_flipped_bytes_is_not_given_out(cache, tmp_path):
    data = cache.path.read_bytes()
    spoilt = VECTORS[7].tobytes()[8:16]
    cache.path.write_bytes(data.replace(spoilt, b"\xff" * 8))

    found = EmbeddingCache("model", tmp_path).load(TEXTS)

    assert set(TEXTS) - set(found) == {TEXTS[7]}


RIGHT = dict(zip(TEXTS, VECTORS.tolist(), strict=True))


def flip_bytes(data, chance):
    for _ in range(chance.integers(1, 40)):
        data[chance.integers(len(data))] = chance.integers(256)
    return data


def flip_bytes_of_a_page_header(data, chance):
    """Where a few bytes say how all others are read: types and lengths of fields, and places."""
    page = chance.integers(len(data) // 32768) * 32768
    for _ in range(3):
        data[page + chance.integers(120)] = chance.integers(256)
    return data


def flip_bytes_before_vectors(data, chance):
    """The fields before a vector: how long it is, of which type, and its key."""
    for _ in range(6):
        place = data.find(VECTORS[chance.integers(300)].tobytes()[:16])
        data[place - chance.integers(1, 40)] = chance.integers(256)
    return data


def cut_off(data, chance):
    return data[: chance.integers(len(data))]


def swap_vectors(data, chance):
    """Whole records change places: each is sound, but it is of another text."""
    one, other = (VECTORS[number].tobytes() for number in chance.choice(300, 2, replace=False))
    # What stands before a vector is swapped with it, as far as its checksum may be there.
    for before in (0, 4, 8, 16):
        first, second = data.find(one) - before, data.find(other) - before
        if min(first, second) < 0:
            continue
        size = len(one) + before
        mine, theirs = data[first : first + size], data[second : second + size]
        swapped = bytearray(data)
        swapped[first : first + size], swapped[second : second + size] = theirs, mine
        yield swapped


DAMAGES = [flip_bytes, flip_bytes_of_a_page_header, flip_bytes_before_vectors, cut_off]


@pytest.mark.filterwarnings("ignore:.*the embedding cache:UserWarning")
@pytest.mark.parametrize("damage", [*DAMAGES, swap_vectors], ids=lambda damage: damage.__name__)
def test_no_damage_raises_or_gives_another_vector(cache, tmp_path, damage):
    whole = cache.path.read_bytes()
    for seed in range(ROUNDS):
        damaged = damage(bytearray(whole), np.random.default_rng(seed))
        for data in damaged if damage is swap_vectors else [damaged]:
            cache.path.write_bytes(data)
            again = EmbeddingCache("model", tmp_path)
            for found in (again.load(TEXTS), again.load(TEXTS[::-1])):
                wrong = [one for one, vector in found.items() if vector.tolist() != RIGHT[one]]
                assert not wrong, seed
            again.store(TEXTS, VECTORS)
            for left in cache.path.parent.iterdir():
                left.unlink()


@pytest.mark.filterwarnings("ignore:.*the embedding cache:UserWarning")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE embeddings SET vector = CAST(x'ff00ff' AS TEXT)",
        "UPDATE embeddings SET vector = 7",
        "UPDATE embeddings SET vector = x''",
        "UPDATE embeddings SET key = 'text' || rowid",
        "UPDATE embeddings SET vector = (SELECT vector FROM embeddings LIMIT 1)",
        "DROP TABLE embeddings",
        "ALTER TABLE embeddings RENAME COLUMN vector TO other",
        "DROP TABLE embeddings; CREATE VIEW embeddings AS SELECT 1 AS key, 2 AS vector",
    ],
)
def test_a_table_that_holds_something_else_is_survived(cache, tmp_path, change):
    with closing(sqlite3.connect(cache.path)) as database, database:
        database.executescript(change)
    again = EmbeddingCache("model", tmp_path)

    found = again.load(TEXTS)
    again.store(TEXTS, VECTORS)

    assert found.items() <= {}.items() or {one: v.tolist() for one, v in found.items()} == {
        one: RIGHT[one] for one in found
    }
    assert len(EmbeddingCache("model", tmp_path).load(TEXTS)) == 300


def test_a_cache_of_an_older_version_is_not_read(tmp_path):
    """Its checksums say nothing of the text, so that a vector may be that of another one."""
    path = EmbeddingCache("model", tmp_path).path
    path.parent.mkdir()
    vector = VECTORS[1].tobytes()
    key = blake2b(TEXTS[0].encode(), digest_size=16).digest()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        row = (key, zlib.crc32(vector).to_bytes(4, "little") + vector)
        database.execute("INSERT INTO embeddings VALUES (?, ?)", row)

    assert EmbeddingCache("model", tmp_path).load(TEXTS) == {}


def test_an_empty_file_is_an_empty_cache(cache, tmp_path):
    cache.path.write_bytes(b"")

    assert EmbeddingCache("model", tmp_path).load(TEXTS) == {}


@pytest.mark.filterwarnings("ignore:.*cache:UserWarning")
def test_a_damaged_file_that_another_process_set_aside_first_is_survived(cache, monkeypatch):
    def open_just_too_late():
        cache.path.unlink()
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(cache, "_open", open_just_too_late)

    assert cache.load(TEXTS) == {}


def test_a_file_where_the_folder_should_be_is_worked_without(tmp_path):
    (tmp_path / "embeddings").write_text("in the way")
    cache = EmbeddingCache("model", tmp_path)

    with pytest.warns(
        UserWarning, match=r"cannot be used \(.*\); going on without.*STEPGRAPH_CACHE"
    ):
        found = cache.load(TEXTS)

    assert found == {}
    assert (tmp_path / "embeddings").read_text() == "in the way"


def test_a_cache_that_cannot_be_used_is_warned_of_once(tmp_path):
    (tmp_path / "embeddings").write_text("in the way")
    cache = EmbeddingCache("model", tmp_path)

    with pytest.warns(UserWarning, match="cannot be used"):
        cache.load(TEXTS)

    cache.store(TEXTS, VECTORS)  # a second warning would be an error
    assert cache.load(TEXTS) == {}


def test_a_folder_where_the_file_should_be_is_worked_without(tmp_path):
    cache = EmbeddingCache("model", tmp_path)
    cache.path.mkdir(parents=True)

    with pytest.warns(UserWarning, match="cannot be used"):
        cache.store(TEXTS, VECTORS)


WRITER = """
import sys
from pathlib import Path
import numpy as np
from stepgraph.encoders.cache import EmbeddingCache

folder, name = Path(sys.argv[1]), sys.argv[2]
cache = EmbeddingCache("model", folder)
for number in range(int(sys.argv[3])):
    cache.store([f"{name} {number}", f"shared {number}"], np.full((2, 64), number, np.float32))
    print(number, flush=True)
"""


def writer(folder, name, number):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(folder), name, str(number)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_that_write_at_once_lose_nothing(tmp_path):
    writers = [writer(tmp_path, name, 50) for name in ("one", "other")]
    complaints = [one.communicate(timeout=300)[1] for one in writers]

    names = [f"{who} {number}" for who in ("one", "other", "shared") for number in range(50)]
    found = EmbeddingCache("model", tmp_path).load(names)

    assert complaints == ["", ""]
    assert set(found) == set(names)
    assert all(vector.tolist() == [float(one.split()[1])] * 64 for one, vector in found.items())


def test_a_process_that_is_killed_leaves_all_that_it_stored(tmp_path):
    victim = writer(tmp_path, "one", 1_000_000)
    for _ in range(5):
        victim.stdout.readline()
    victim.kill()
    victim.communicate(timeout=300)

    found = EmbeddingCache("model", tmp_path).load([f"one {number}" for number in range(5)])

    assert len(found) == 5


@pytest.mark.own_cache
def test_cache_lies_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPGRAPH_CACHE", str(tmp_path))

    EmbeddingCache("text/model: of mine").store(["stir"], VECTORS[:1])

    [path] = (tmp_path / "embeddings").iterdir()
    assert path.name.startswith("text-model-of-mine-")


@pytest.mark.own_cache
def test_cache_lies_in_the_users_own_folder_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPGRAPH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert cache_folder() == tmp_path / "stepgraph"
