"""Features are computed once, found again, and never those of another model or document."""

import numpy as np
import pytest

from skfairdp.adversarial import _feature_cache as cache
from skfairdp.adversarial import forget_features


class Lengths:
    """Features of a document: its length and its number of words; counts what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, documents):
        self.asked += documents
        return np.array([[len(d), len(d.split())] for d in documents], dtype=np.float32)


@pytest.fixture(params=["memory", "file", "nowhere"])
def where(request, tmp_path):
    forget_features()
    yield {"memory": "memory", "file": tmp_path / "folder" / "features.sqlite", "nowhere": None}[request.param]
    forget_features()


def test_each_document_is_computed_once(where):
    compute = Lengths()
    texts = ["a b", "c", "a b", "d e f"]
    for _ in range(2):
        rows = cache.cached_features(texts, b"model", compute, where)
        assert rows.tolist() == [[3, 2], [1, 1], [3, 2], [5, 3]]
        assert rows.dtype == np.float32
    assert compute.asked == (["a b", "c", "d e f"] if where is not None else 2 * texts)


def test_another_model_has_other_features(where):
    first = cache.cached_features(["a"], b"one", lambda d: np.array([[1.0]]), where)
    second = cache.cached_features(["a"], b"two", lambda d: np.array([[2.0]]), where)
    assert (first.item(), second.item()) == (1.0, 2.0)


def test_memory_is_bounded(monkeypatch):
    forget_features()
    monkeypatch.setattr(cache, "_MOST_BYTES", 3 * 8)
    compute = Lengths()
    cache.cached_features(["a", "b", "c"], b"", compute, "memory")
    cache.cached_features(["a"], b"", compute, "memory")  # asked for again, so that b is the oldest
    cache.cached_features(["d"], b"", compute, "memory")
    assert len(cache._kept) == 3
    compute.asked.clear()
    cache.cached_features(["a", "b"], b"", compute, "memory")
    assert compute.asked == ["b"]
    forget_features()
    assert len(cache._kept) == 0


def test_kept_rows_cannot_be_changed_from_outside():
    forget_features()
    for _ in range(2):
        rows = cache.cached_features(["a b"], b"", Lengths(), "memory")
        assert rows.tolist() == [[3, 2]]
        rows[:] = 0
    forget_features()


def test_many_documents_in_a_file(tmp_path):
    texts = [f"document {i}" for i in range(1234)]
    compute = Lengths()
    for _ in range(2):
        rows = cache.cached_features(texts, b"", compute, tmp_path / "features")
        assert rows[:, 0].tolist() == [len(text) for text in texts]
    assert len(compute.asked) == 1234


def test_no_document_is_in_the_file(tmp_path):
    cache.cached_features(["a very private sentence"], b"", Lengths(), tmp_path / "features")
    assert b"private" not in (tmp_path / "features").read_bytes()


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(ValueError, match=r"cache='.*notes\.txt' must be the path of a file that this package has made"):
        cache.cached_features(["a"], b"", Lengths(), path)
