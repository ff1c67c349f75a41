"""Time of an epoch of FederateClassifier: against a bare PyTorch loop, and against fairlearn."""

from functools import cache, partial

import numpy as np
import torch
from torch import nn

from benchmarks import Timings, case

ROWS, FEATURES = 30_000, 60
EPOCHS = 5


@cache
def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """30,000 rows of 60 features, a binary label and a binary group that both show in them."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=ROWS)
    labels = rng.integers(2, size=ROWS)
    rows = rng.normal(size=(ROWS, FEATURES)) + 0.3 * labels[:, None] + 0.2 * groups[:, None]
    return rows.astype(np.float32), labels, groups


def ours(batch_size: int, epochs: int = EPOCHS, **settings):
    from skfairdp.adversarial import published_federate

    rows, labels, groups = table()
    clf = published_federate(batch_size=batch_size, max_epochs=epochs, random_state=0, **settings)
    clf.fit(rows, labels, sensitive_features=groups)
    return clf


def bare_loop(batch_size: int, epsilon: float = 8.0, n_components: int = 2) -> None:
    """The same networks, objective, noise, optimiser and gradient reversal, written by hand."""

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -grad

    def network(n_in, n_out, *hidden):
        layers = []
        for width in hidden:
            layers += [nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(0.1)]
            n_in = width
        return nn.Sequential(*layers, nn.Linear(n_in, n_out))

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as ours does for a network of this size
    rows, labels, groups = (torch.tensor(part) for part in table())
    encoder, head = network(FEATURES, n_components, 100, 50), network(n_components, 2)
    adversary = network(n_components, 2, 100, 50)
    parameters = [*encoder.parameters(), *head.parameters(), *adversary.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.005)
    laplace = torch.distributions.Laplace(0.0, 2.0 / epsilon)
    for _ in range(EPOCHS):
        total = 0.0
        order = torch.randperm(ROWS)
        for start in range(0, ROWS, batch_size):
            index = order[start : start + batch_size]
            x, y, z = rows[index], labels[index], groups[index]
            optimiser.zero_grad()
            h = nn.functional.normalize(encoder(x), p=1.0, dim=1)
            h = h + laplace.sample(h.shape)
            loss = nn.functional.cross_entropy(head(h), y)
            loss = loss + nn.functional.cross_entropy(adversary(Reverse.apply(h)), z)
            loss.backward()
            optimiser.step()
            total += loss.item()
    torch.set_num_threads(threads)


@case("federate", f"fit, {ROWS:,} x {FEATURES}, batches of 2000, against a bare PyTorch loop", ratio_at_most=1.15)
def large_batches() -> Timings:
    return Timings(ours=lambda: ours(2000), other=lambda: bare_loop(2000), repeats=5)


@case("federate", f"fit, {ROWS:,} x {FEATURES}, batches of 256, against a bare PyTorch loop", ratio_at_most=1.15)
def small_batches() -> Timings:
    return Timings(ours=lambda: ours(256), other=lambda: bare_loop(256), repeats=5)


@case(
    "federate",
    f"one epoch, {ROWS:,} x {FEATURES}, batches of 256, against fairlearn's adversarial classifier",
    speedup_at_least=1.0,
)
def against_fairlearn() -> Timings:
    from fairlearn.adversarial import AdversarialFairnessClassifier

    rows, labels, groups = table()

    def theirs() -> None:
        # Equal layers: an encoder with a linear head is their predictor; their adversary reads its output.
        model = AdversarialFairnessClassifier(
            backend="torch",
            predictor_model=[100, nn.ReLU(), 50, nn.ReLU(), 2, nn.ReLU()],
            adversary_model=[100, nn.ReLU(), 50, nn.ReLU()],
            batch_size=256,
            epochs=1,
            random_state=0,
        )
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as ours
        model.fit(rows, labels, sensitive_features=groups)
        torch.set_num_threads(threads)

    ours_once = partial(ours, 256, epochs=1, epsilon=float("inf"), dropout=0.0)
    return Timings(ours=ours_once, other=theirs, repeats=3)


@case("federate", "grid of eight fits, two workers against one (needs two free cores)", ratio_at_most=0.85)
def two_workers() -> Timings:
    from sklearn.model_selection import GridSearchCV

    from skfairdp.adversarial import published_federate

    rows, labels, _ = table()

    def search(n_jobs: int) -> None:
        clf = published_federate(adversary_weight=0.0, max_epochs=EPOCHS, random_state=0)
        grid = {"epsilon": [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]}
        halves = [(np.arange(ROWS // 2), np.arange(ROWS // 2, ROWS))]
        GridSearchCV(clf, grid, cv=halves, refit=False, n_jobs=n_jobs).fit(rows, labels)

    return Timings(ours=lambda: search(2), other=lambda: search(1), repeats=3)
