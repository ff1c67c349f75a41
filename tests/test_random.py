"""Streams: the operating system's by default, reproducible on request, never shared."""

import copy
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import random
from skfairdp.random import clone_with_seed, noise_stream, random_stream, training_and_noise_streams


def words(stream, n=64):
    return stream.uint64(n).tolist()


def test_none_leaves_global_streams_alone(monkeypatch):
    asked = []
    real = __import__("os").urandom
    monkeypatch.setattr("os.urandom", lambda n: asked.append(n) or real(n))
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    stream = random_stream(None)
    assert stream.secure
    assert words(stream) != words(stream)
    assert asked == [512, 512]
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_the_global_seed_changes_nothing():
    np.random.seed(0)  # noqa: NPY002
    first = words(random_stream(None))
    np.random.seed(0)  # noqa: NPY002
    assert words(random_stream(None)) != first


@pytest.mark.parametrize(
    "make", [lambda: 7, lambda: np.random.SeedSequence(7), lambda: np.random.default_rng(7), lambda: np.int64(7)]
)
def test_a_seed_reproduces_and_never_repeats(make):
    first, second = random_stream(make()), random_stream(make())
    a, b = words(first), words(first)
    assert (words(second), words(second)) == (a, b)
    assert len(set(a + b)) == len(a + b)
    assert not first.secure


def test_shared_generator_gives_different_words():
    generator = np.random.default_rng(0)
    assert words(random_stream(generator)) != words(random_stream(generator))
    legacy = np.random.RandomState(0)
    assert words(random_stream(legacy)) != words(random_stream(legacy))


@pytest.mark.parametrize("bad", [-1, 1.5, "0", True, np.nan])
def test_bad_seeds_are_named(bad):
    with pytest.raises(ValueError, match="random_state must be None"):
        random_stream(bad)


@pytest.mark.parametrize("random_state", [None, 3])
def test_spawned_streams_differ_and_repeat_with_seed(random_state):
    streams = [words(s) for s in random_stream(random_state).spawn(4)]
    assert len({word for row in streams for word in row}) == 4 * 64
    if random_state is not None:
        assert [words(s) for s in random_stream(random_state).spawn(4)] == streams


def test_spawning_twice_gives_new_streams():
    stream = random_stream(0)
    assert words(stream.spawn(1)[0]) != words(stream.spawn(1)[0])


def test_words_cover_their_whole_range():
    stream = random_stream(0)
    assert stream.uint32(1).dtype == np.uint32
    # Missing the top bit, or one of the low ones, would fail with all but certainty.
    for draw, bits in ((stream.uint32(4096), 32), (stream.uint64(4096), 64)):
        ones = [(int((draw >> np.uint64(b) & np.uint64(1)).sum())) for b in range(bits)]
        assert min(ones) > 1800
        assert max(ones) < 2300


def test_a_copy_never_draws_the_words_of_the_original():
    stream = random_stream(None)
    drawn = [words(one) for one in (stream, pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream))]
    assert len({word for row in drawn for word in row}) == 3 * 64


def test_a_seeded_copy_goes_on_under_an_identity_of_its_own():
    stream = random_stream(0)
    words(stream)
    copies = [pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)]
    expected = words(stream)
    assert all(words(one) == expected for one in copies)
    assert len({one.identity.stream for one in (stream, *copies)}) == 3
    assert {one.identity.seed for one in (stream, *copies)} == {stream.identity.seed}


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_noise_never_follows_a_generator(make):
    """scikit-learn's clone copies generators, and two clones must not draw the same noise."""
    first, second = noise_stream(make(0)), noise_stream(make(0))
    assert first.secure
    assert words(first) != words(second)
    training, noise = training_and_noise_streams(make(0))
    assert noise.secure
    assert words(training) == words(training_and_noise_streams(make(0))[0])


def test_an_identity_tells_seeds_and_streams_apart():
    first, again, other = random_stream(0).identity, random_stream(np.random.SeedSequence(0)).identity, random_stream(1)
    assert first.seed == again.seed != other.identity.seed
    assert first.stream != again.stream
    children = [random_stream(0).spawn(1)[0].identity.seed for _ in range(2)]
    assert children[0] == children[1] != first.seed
    assert random_stream(None).identity is None


def _draw(stream):
    return words(stream)


def test_joblib_workers_never_share_a_stream():
    stream = random_stream(0)
    drawn = Parallel(n_jobs=2)(delayed(_draw)(stream) for _ in range(4))
    drawn.append(words(stream))
    assert len({word for row in drawn for word in row}) == 5 * 64


def test_the_test_above_has_power():
    # A bare NumPy generator, sent to workers, does repeat itself.
    generator = np.random.default_rng(0)
    drawn = Parallel(n_jobs=2, batch_size=1)(delayed(_integers)(generator) for _ in range(2))
    assert drawn[0] == drawn[1]


def _integers(generator):
    return generator.integers(0, 2**63, 64).tolist()


def _draw_into(queue, stream):
    queue.put(words(stream))


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_forked_children_never_share_a_stream():
    context = multiprocessing.get_context("fork")
    stream = random_stream(0)
    words(stream)  # the generator exists before the fork
    queue = context.Queue()
    children = [context.Process(target=_draw_into, args=(queue, stream)) for _ in range(3)]
    for child in children:
        child.start()
    drawn = [queue.get(timeout=60) for _ in children] + [words(stream)]
    for child in children:
        child.join()
    assert len({word for row in drawn for word in row}) == 4 * 64


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_forked_child_does_not_wait_for_lost_thread():
    context = multiprocessing.get_context("fork")
    stream, queue = random_stream(0), context.Queue()
    child = context.Process(target=_draw_into, args=(queue, stream))
    with random._waking:  # as another thread would hold it that is waking a stream at this moment
        child.start()
    try:
        assert len(queue.get(timeout=20)) == 64
    finally:
        child.kill()
        child.join()


def test_threads_never_draw_the_same_words():
    stream = random_stream(0)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: words(stream), range(32)))
    assert len({word for row in drawn for word in row}) == 32 * 64


def test_a_seed_reaches_splitters():
    """Models that are trained side by side must not share NumPy's global stream."""
    folds = StratifiedKFold(3, shuffle=True)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=folds)
    assert clone_with_seed(search, 7).cv.random_state == 7
    assert folds.random_state is None
    seeded = GridSearchCV(LogisticRegression(), {}, cv=KFold(3, shuffle=True, random_state=1))
    assert clone_with_seed(seeded, 7).cv.random_state == 1


@pytest.mark.parametrize(("overwrite", "given_becomes"), [(False, 3), (True, 7)])
def test_a_seed_reaches_every_part_that_has_none(overwrite, given_becomes):
    model = make_pipeline(StandardScaler(), PCA(), LogisticRegression(random_state=3))
    _, pca, classifier = (step for _, step in clone_with_seed(model, 7, overwrite=overwrite).steps)
    assert (pca.random_state, classifier.random_state) == (7, given_becomes)
    assert (model[1].random_state, model[2].random_state) == (None, 3), "the original stays as the user made it"
    assert clone_with_seed(PCA(), 7).random_state == 7
    assert clone_with_seed(StandardScaler(), 7).get_params() == StandardScaler().get_params()
