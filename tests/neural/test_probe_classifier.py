"""The probe is a strong attacker, an honest one, and leaves no trace in global state."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from benchmarks.case_probe import representations
from skfairdp.neural import ProbeClassifier


@parametrize_with_checks([ProbeClassifier(max_steps=200)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_signal_without_linear_part_is_found():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(3000, 20))
    z = (H[:, 0] > 0) ^ (H[:, 1] > 0)
    linear = LogisticRegression().fit(H[:1500], z[:1500]).score(H[1500:], z[1500:])
    probe = ProbeClassifier(random_state=0).fit(H[:1500], z[:1500]).score(H[1500:], z[1500:])
    assert linear < 0.56, "the control: a linear attacker finds nothing"
    assert probe > 0.9


def test_a_parity_of_three_is_not_given_up():
    """The loss stands still for the first hundred steps; who stops there reports that nothing leaks."""
    rng = np.random.default_rng(3)
    H = rng.normal(size=(6000, 10))
    z = np.prod(np.sign(H[:, :3]), axis=1)
    assert ProbeClassifier(random_state=0).fit(H[:4000], z[:4000]).score(H[4000:], z[4000:]) > 0.8


def test_pure_noise_gives_back_the_frequencies():
    rng = np.random.default_rng(1)
    H, z = rng.normal(size=(2000, 100)), rng.choice(3, p=[0.6, 0.3, 0.1], size=2000)
    probe = ProbeClassifier(random_state=0).fit(H, z)
    entropy = -sum(p * np.log(p) for p in np.bincount(z) / len(z))
    fresh = rng.normal(size=(4000, 100))
    truth = rng.choice(3, p=[0.6, 0.3, 0.1], size=4000)
    assert abs(log_loss(truth, probe.predict_proba(fresh)) - entropy) < 0.02
    confident = LogisticRegression(C=10, max_iter=2000).fit(H[:200], z[:200])
    assert log_loss(truth, confident.predict_proba(fresh)) > entropy + 0.2, "what learns noise by heart pays for it"


def test_left_out_loss_is_loss_on_new_rows():
    rng = np.random.default_rng(2)
    z = rng.integers(0, 2, 5000)
    H = rng.normal(size=(5000, 100)) + 0.2 * z[:, None]
    probe = ProbeClassifier(random_state=0).fit(H[:1000], z[:1000])
    fresh = log_loss(z[1000:], probe.predict_proba(H[1000:]))
    seen = log_loss(z[:1000], probe.predict_proba(H[:1000]))
    assert abs(probe.left_out_loss_ - fresh) < 0.03
    assert abs(seen - fresh) > 0.03, "rows that were trained on look easier, and would not pass for new ones"


def test_gradient_is_the_derivative_of_the_loss():
    from skfairdp.neural._probe_classifier import _Team

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 3)).astype(np.float32)
    settings = ProbeClassifier(hidden_size=4, n_members=3)
    team = _Team(rows, np.arange(12) % 3, 3, settings, rng)
    team.weights += 0.3 * rng.normal(size=len(team.weights)).astype(np.float32)
    team.fill_gradient(np.arange(12), 0.1)

    free = torch.from_numpy(team.weights.copy()).requires_grad_(True)
    pieces = torch.split(free, [int(np.prod(shape)) for shape in team.shapes])
    layers = [piece.view(shape) for piece, shape in zip(pieces, team.shapes)]
    hidden_weights, hidden_bias, output_weights, output_bias = layers
    loss = 0.05 * (hidden_weights.square().sum() + output_weights.square().sum())
    for k in range(3):
        mine = team.part != k
        units = slice(4 * k, 4 * k + 4)
        hidden = torch.relu(torch.from_numpy(team.rows[mine]) @ hidden_weights[:, units] + hidden_bias[units])
        scores = hidden @ output_weights[k] + output_bias[k]
        loss = loss + torch.nn.functional.cross_entropy(scores, torch.from_numpy(team.class_indices[mine]))
    (by_autograd,) = torch.autograd.grad(loss, free)
    np.testing.assert_allclose(team.gradient, by_autograd.numpy(), atol=1e-6)


def test_merged_members_are_their_mean():
    from skfairdp.neural._probe_classifier import _Team

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 3)).astype(np.float32)
    team = _Team(rows, np.arange(10) % 2, 2, ProbeClassifier(hidden_size=4), rng)
    hidden_weights, hidden_bias, output_weights, output_bias = team.layers(team.kept)
    hidden = np.maximum(rows @ hidden_weights + hidden_bias, 0).reshape(10, 5, 4).transpose(1, 0, 2)
    expected = team.prior + 0.5 * ((hidden @ output_weights + output_bias).mean(axis=0) - team.prior)
    first, first_bias, second, second_bias = team.merged(0.5)
    merged = np.maximum(rows @ first + first_bias, 0) @ second + second_bias
    np.testing.assert_allclose(merged, expected, atol=1e-6)


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1.0, 7.0], [3, 10]])
def test_labels_of_any_type(labels):
    rng = np.random.default_rng(0)
    class_indices = rng.integers(0, 2, 200)
    z = np.array(labels)[class_indices]
    H = rng.normal(size=(200, 3)) + 3 * class_indices[:, None]
    probe = ProbeClassifier(random_state=0, max_steps=100).fit(H, z)
    assert probe.classes_.tolist() == labels
    assert probe.predict(H).dtype == z.dtype
    assert probe.score(H, z) > 0.95


def test_invariant_to_scale_and_offset():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 500)
    H = rng.normal(size=(500, 4)) + z[:, None]
    shifted = H * [1e-6, 1.0, 1e6, 3.0] + [0.0, 1e6, -1e9, 5.0]
    with_constant = np.column_stack([shifted, np.full(500, 0.1), np.zeros(500)])
    plain = ProbeClassifier(random_state=0).fit(H, z).predict_proba(H)
    moved = ProbeClassifier(random_state=0).fit(shifted, z).predict_proba(shifted)
    np.testing.assert_allclose(plain, moved, atol=1e-3)
    assert np.isfinite(ProbeClassifier(random_state=0).fit(with_constant, z).predict_proba(with_constant)).all()


def test_two_rows_are_enough_and_one_class_is_not():
    probe = ProbeClassifier(random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    assert probe.predict_proba([[0.5]]).shape == (1, 2)
    with pytest.raises(ValueError, match=r"^y "):
        ProbeClassifier().fit([[0.0], [1.0]], ["a", "a"])
    with pytest.raises(ValueError, match="random_state"):
        ProbeClassifier(random_state="x").fit([[0.0], [1.0]], ["a", "b"])


CODE = """
import numpy as np
from skfairdp.neural import ProbeClassifier
rng = np.random.default_rng(0)
H, z = rng.normal(size=(600, 30)), rng.integers(0, 3, 600)
H[:, 0] += z
answer = ProbeClassifier(random_state=5).fit(H, z)._layers[0].tobytes().hex()[:4000]
"""


def test_seed_reproduces_with_any_number_of_threads():
    answers = []
    for threads in (1, 2):
        made: dict = {}
        with threadpool_limits(threads):
            exec(CODE, made)
        answers.append(made["answer"])
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_seed_reproduces_in_any_process(monkeypatch):
    here: dict = {}
    exec(CODE, here)
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(threads, "1" if os.environ.get(threads) != "1" else "2")
    code = CODE + "\nprint(answer)"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == here["answer"]


@pytest.mark.slow
def test_an_attack_loads_no_torch():
    code = "import sys; from skfairdp.metrics import leakage_report; " + CODE.replace("\n", "; ").strip("; ")
    code += "; leakage_report(H, z, probe='pool'); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "False"


def test_seeds_differ_and_global_state_untouched():
    rng = np.random.default_rng(0)
    H, z = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (ProbeClassifier(random_state=seed, max_steps=50).fit(H, z) for seed in (0, 1))
    assert not np.allclose(first._layers[0], second._layers[0])
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


SOME = ("exclusive or", "radial", "rare group")


@cache
def rows_and_peer(n_train: int, names: tuple[str, ...] | None = None) -> list[tuple]:
    """Small representations, of all ten kinds or some, and the accuracy of scikit-learn's network on each."""
    found = []
    every = representations(n_train=n_train, n_test=1500, seed=1, real_data=False)
    assert len(every) >= 10
    for H, z, H_test, z_test in map(every.get, names or every):
        peer = make_pipeline(StandardScaler(), MLPClassifier(alpha=1, max_iter=1000, random_state=0)).fit(H, z)
        found.append((H, z, H_test, z_test, peer.score(H_test, z_test)))
    return found


def mean_difference(attacker: ProbeClassifier, *rows_of) -> float:
    """Mean attack accuracy minus that of scikit-learn's network, in points."""
    rows = rows_and_peer(*rows_of)
    return 100 * float(
        np.mean([attacker.fit(H, z).score(H_test, z_test) - peer for H, z, H_test, z_test, peer in rows])
    )


def test_as_strong_as_mlp_classifier():
    assert mean_difference(ProbeClassifier(random_state=0), 400, SOME) > -0.5


def test_weaker_attacker_is_noticed():
    assert mean_difference(ProbeClassifier(random_state=0, max_steps=5, min_epochs=0), 400, SOME) < -0.5


@pytest.mark.slow
@pytest.mark.parametrize("n_train", [400, 4000])
def test_as_strong_as_mlp_classifier_on_all_kinds_of_rows(n_train):
    assert mean_difference(ProbeClassifier(random_state=0), n_train) > -0.5
