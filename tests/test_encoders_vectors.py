"""Vectors of the keysteps of each task, and of their titles."""

import numpy as np
import pytest

from stepgraph.core import Vocabulary
from stepgraph.encoders import EncoderOptions
from stepgraph.encoders.text import TextEncoder
from stepgraph.encoders.vectors import task_vectors

SHARED = Vocabulary(
    ("whip cream", "boil water", "add leaves"), {"cake": (0,), "empty": (), "coffee": (1, 0)}
)


def encode(texts):
    """A direction for each text, the same every time."""
    vectors = [np.random.default_rng([*text.encode()]).normal(size=16) for text in map(str, texts)]
    table = np.array(vectors).reshape(-1, 16)
    return (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)


def titled(tasks):
    """The texts that are encoded for tasks of one keystep each."""
    seen = []

    def noting(texts):
        seen.append([*texts])
        return encode(texts)

    task_vectors(Vocabulary(("a", "b"), dict.fromkeys(tasks, (0,))), noting)
    return seen[-1]


def test_every_task_has_a_block_of_its_keysteps_in_order_with_its_title_behind_them():
    found = task_vectors(SHARED, encode)

    own = {task: found.keysteps[block].tolist() for task, block in found.blocks.items()}
    assert own == {"cake": [0, -1], "empty": [-1], "coffee": [1, 0, -1]}
    assert len(found.vectors) == len(found.keysteps) == 6


def test_the_vector_of_a_keystep_is_the_mean_of_it_alone_and_behind_its_title():
    found = task_vectors(SHARED, encode)

    for task, block in found.blocks.items():
        for keystep, vector in zip(found.keysteps[block], found.vectors[block], strict=True):
            if keystep < 0:
                [expected] = encode([task])
            else:
                name = SHARED.keysteps[keystep]
                both = encode([name, f"{task}: {name}"]).sum(axis=0)
                expected = both / np.linalg.norm(both)
            assert vector == pytest.approx(expected, abs=1e-6)


def test_what_tasks_share_has_a_vector_in_each():
    found = task_vectors(SHARED, encode)

    in_cake, in_coffee = found.vectors[found.keysteps == 0]
    assert not np.allclose(in_cake, in_coffee)


def test_all_vectors_are_of_unit_length():
    assert np.linalg.norm(task_vectors(SHARED, encode).vectors, axis=1) == pytest.approx(1)


def test_what_was_encoded_is_left_as_it_was():
    """An encoder may give what it keeps."""
    kept = {}

    def keeping(texts):
        return kept.setdefault(tuple(texts), encode(texts))

    task_vectors(SHARED, keeping)

    for texts, vectors in kept.items():
        assert np.array_equal(vectors, encode(texts))


def test_one_task_of_one_keystep_has_two_vectors():
    found = task_vectors(Vocabulary(("a", "b"), {"task": (1,)}), encode)

    assert found.keysteps.tolist() == [1, -1]
    assert found.blocks == {"task": slice(0, 2)}


@pytest.mark.parametrize(
    ("tasks", "titles"),
    [
        (["Pizza 1", "Pizza 2"], ["Pizza", "Pizza"]),
        (["Pizza #1", "Pizza #2", "Tea"], ["Pizza", "Pizza", "Tea"]),
        (["Pizza", "Pizza 2"], ["Pizza", "Pizza"]),
        (["Windows 10", "Tea"], ["Windows 10", "Tea"]),
        (["1", "2"], ["1", "2"]),
        (["7 eggs", "8 eggs"], ["7 eggs", "8 eggs"]),
    ],
    ids=str,
)
def test_a_number_is_no_part_of_a_title_where_several_differ_in_nothing_else(tasks, titles):
    assert titled(tasks) == [text for title in titles for text in (f"{title}: a", title)]


def test_titles_are_encoded_only_where_they_are_to_be_used():
    with_titles = TextEncoder(EncoderOptions(task_names=True))

    assert TextEncoder(EncoderOptions()).encode_tasks(SHARED) is None
    assert with_titles.encode_tasks(Vocabulary(("a", "b"))) is None
    assert [*with_titles.encode_tasks(SHARED).blocks] == [*SHARED.tasks]
