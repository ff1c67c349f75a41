"""What a skorch user expects: callbacks, double-underscore parameters, own networks, and a net that answers."""

import math
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    GradientNormClipping,
    LRScheduler,
    PrintLog,
)
from torch import nn

from skfairdp import BagOfEmbeddingsEncoder, FederateClassifier, PrivacyLedger

FAST = {
    "adversary_weight": 0.0,
    "max_epochs": 3,
    "batch_size": 50,
    "learning_rate": 0.01,
    "early_stopping": False,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y, z = rng.integers(2, size=300), rng.integers(2, size=300)
    return rng.normal(size=(300, 4)) + 2.0 * y[:, None] + z[:, None], np.array(["no", "yes"])[y], z


def fit(data, **settings):
    return FederateClassifier(**{**FAST, **settings}).fit(*data[:2])


@pytest.mark.parametrize(
    ("channel", "on_train", "use_caching"),
    [
        ("laplace", False, True),
        ("laplace", True, False),
        ("codes", False, False),
        ("codes", False, True),
        ("codes", True, True),
    ],
)
def test_epoch_scoring(data, channel, on_train, use_caching):
    scoring = EpochScoring("accuracy", lower_is_better=False, on_train=on_train, use_caching=use_caching)
    found = fit(data, channel=channel, callbacks=[scoring], max_epochs=8).history_
    assert len(found["accuracy"]) == 8
    assert found["accuracy"].iloc[-1] > 0.8
    assert found["accuracy_best"].any()
    assert ("valid_loss" in found) is not on_train  # rows are kept out only for callbacks that look at them


def test_scoring_by_probabilities_and_batches(data):
    found = fit(
        data,
        channel="codes",
        callbacks=[
            EpochScoring("roc_auc", lower_is_better=False),
            EpochScoring("neg_log_loss", lower_is_better=False),
            BatchScoring("accuracy", lower_is_better=False, name="batch_accuracy", on_train=True),
        ],
    ).history_
    assert found["roc_auc"].iloc[-1] > 0.7
    assert np.isfinite(found[["neg_log_loss", "batch_accuracy"]]).all(axis=None)


def test_scoring_sees_the_noise_of_codes(data):
    # At epsilon 0.1 two codes are nearly a coin, however well the encoder knows the class.
    scoring = EpochScoring("accuracy", lower_is_better=False, name="valid_accuracy")
    clf = fit(data, epsilon=0.1, channel="codes", callbacks=[scoring], validation_fraction=0.5, max_epochs=10)
    assert clf.history_["valid_accuracy"].mean() < 0.65
    assert (
        clf.net_.module_.encoder(torch.tensor(data[0]).float()).argmax(dim=1) == (data[1] == "yes")
    ).float().mean() > 0.8


def test_early_stopping_callback(data):
    clf = fit(data, callbacks=[EarlyStopping(patience=2, threshold=0.5)], max_epochs=30)
    assert clf.stopped_early_
    assert clf.n_iter_ < 30


def test_early_stopping_parameters(data):
    settings = {"early_stopping": True, "n_iter_no_change": 1, "max_epochs": 30}
    eager = fit(data, **settings, callbacks__early_stopping__threshold=0.9)
    assert eager.n_iter_ == 2
    score = ("score", EpochScoring("accuracy", lower_is_better=False))
    by_score = {"callbacks__early_stopping__monitor": "accuracy", "callbacks__early_stopping__lower_is_better": False}
    clf = fit(data, **settings, **by_score, callbacks=[score])
    history = clf.history_["accuracy"].to_numpy()
    assert history[-1] <= history[-2]


def test_lr_scheduler(data):
    class Rates(Callback):
        def on_epoch_begin(self, net, **kwargs):
            net.history.record("rate", net.optimizer_.param_groups[0]["lr"])

    schedule = LRScheduler(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=0.5)
    rates = fit(data, learning_rate=0.01, callbacks=[schedule, Rates()]).history_["rate"]
    assert rates.tolist() == pytest.approx([0.01, 0.005, 0.0025])


def test_checkpoint(data, tmp_path):
    checkpoint = Checkpoint(dirname=tmp_path, load_best=True)
    clf = fit(data, callbacks=[checkpoint])
    best = torch.load(tmp_path / "params.pt", weights_only=True)
    assert all(torch.equal(best[name], value) for name, value in clf.net_.module_.state_dict().items())


def test_gradient_norm_clipping(data):
    class Norms(Callback):
        def on_batch_end(self, net, training, **kwargs):
            norm = torch.nn.utils.get_total_norm([p.grad for p in net.module_.parameters() if p.grad is not None])
            net.history.record_batch("norm", float(norm))

    clf = fit(data, callbacks=[GradientNormClipping(1e-3), Norms()])
    norms = np.concatenate(clf.net_.history[:, "batches", :, "norm"])
    assert norms.max() <= 1e-3 * (1 + 1e-4)


def test_print_log_by_class_and_name(data, capsys):
    messages = []
    fit(data, callbacks=[("table", PrintLog)], callbacks__table__sink=messages.append, verbose=1)
    assert any("train_loss" in str(message) for message in messages)
    capsys.readouterr()


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_net_answers_with_noise_and_without_receipt(data, channel):
    X, y, _ = data
    clf = fit(data, channel=channel, epsilon=2.0, max_epochs=9)
    net, truth = clf.net_, y == "yes"
    with PrivacyLedger() as ledger:
        log_p = net.forward(X)
        probabilities, answers = net.predict_proba(X), net.predict(X)
    assert ledger.total().epsilon == 0
    assert log_p.shape == probabilities.shape == (300, 2)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(300), abs=1e-5)
    assert set(answers) <= {0, 1}
    assert accuracy_score(truth, answers) > 0.6
    assert not torch.equal(log_p, net.forward(X))  # a new draw each time: nothing comes out clean by surprise
    assert (net.predict(X) != net.predict(X)).any()


def test_net_is_exact_at_infinite_epsilon(data):
    clf = fit(data, epsilon=math.inf)
    assert np.allclose(clf.net_.predict_proba(data[0]), clf.predict_proba(data[0]), atol=1e-6)
    assert np.array_equal(clf.classes_[clf.net_.predict(data[0])], clf.predict(data[0]))


def test_net_pickles_saves_and_fits_again(data, tmp_path):
    clf = fit(data, epsilon=math.inf)
    net = pickle.loads(pickle.dumps(clf.net_))
    assert np.array_equal(net.predict(data[0]), clf.net_.predict(data[0]))
    with torch.random.fork_rng(devices=[]):
        again = clone(clf.net_).fit(data[0].astype(np.float32), (data[1] == "yes").astype(int))
    assert (again.predict(data[0]) == (data[1] == "yes")).mean() > 0.8
    net.save_params(f_params=tmp_path / "weights.pt")
    again.load_params(f_params=tmp_path / "weights.pt")
    assert np.array_equal(again.predict(data[0]), net.predict(data[0]))


@pytest.mark.parametrize("device", [torch.device("cpu"), "cpu", "auto"])
def test_torch_device(data, device):
    clf = fit(data, device=device, max_epochs=1)
    assert clone(clf).device == device
    assert clf.predict(data[0]).shape == (300,)


def test_optimizer_parameters(data):
    clf = fit(data, optimizer="sgd", optimizer__momentum=0.9, optimizer__weight_decay=0.01)
    group = clf.net_.optimizer_.param_groups[0]
    assert (group["momentum"], group["weight_decay"]) == (0.9, 0.01)
    groups = [("encoder*", {"lr": 0.0})]
    frozen = fit(data, encoder="mlp", optimizer__param_groups=groups, max_epochs=1).net_.module_
    moved = fit(data, encoder="mlp", optimizer__param_groups=groups, max_epochs=3).net_.module_
    assert torch.equal(frozen.encoder[0].weight, moved.encoder[0].weight)
    assert not torch.equal(frozen.head[0].weight, moved.head[0].weight)


def test_iterator_and_module_parameters(data):
    clf = fit(data, iterator_train__drop_last=True, batch_size=128, module__sharpness=5.0, module__dropout=0.0)
    assert clf.net_.history[0, "train_batch_count"] == 2
    assert clf.net_.module_.sharpness == 5.0
    assert not [m for m in clf.net_.module_.modules() if isinstance(m, nn.Dropout)]


def test_params_get_set_clone(data):
    clf = FederateClassifier(**FAST, optimizer__weight_decay=0.01)
    assert clf.get_params(deep=False)["optimizer__weight_decay"] == 0.01
    assert "optimizer__weight_decay=0.01" in repr(clf)
    clf.set_params(optimizer__weight_decay=0.2, callbacks__print_log=None, epsilon=3.0)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert copy.get_params()["callbacks__print_log"] is None
    assert copy.fit(*data[:2]).net_.optimizer_.param_groups[0]["weight_decay"] == 0.2


@pytest.mark.parametrize("name", ["optimiser__weight_decay", "lr", "optimizer_weight_decay", "net__lr", "module__"])
def test_unknown_parameter_is_named(name):
    with pytest.raises(TypeError, match=f"no parameter '{name}'"):
        FederateClassifier(**{name: 1})
    with pytest.raises(ValueError, match="Invalid parameter"):
        FederateClassifier().set_params(**{name: 1})


@pytest.mark.parametrize(
    "settings",
    [{"optimizer__wheight_decay": 1.0}, {"module__depth": 3}, {"iterator_train__n": 3}, {"criterion__smoothing": 0.1}],
)
def test_unknown_argument_of_a_component_is_named(data, settings):
    with pytest.raises(TypeError, match=next(iter(settings)).split("__")[1]):
        fit(data, **settings)


def test_grid_search_over_passed_on_parameters(data):
    grid = {"optimizer__weight_decay": [0.0, 10.0], "encoder__width": [3, 6]}
    search = GridSearchCV(FederateClassifier(**FAST, encoder=Encoder), grid, cv=2).fit(*data[:2])
    assert search.best_params_["optimizer__weight_decay"] == 0.0
    assert search.best_estimator_.net_.module_.encoder[0].first.out_features == search.best_params_["encoder__width"]


class Encoder(nn.Module):
    """A network that is no ``Sequential``."""

    def __init__(self, n_features, width=5):
        super().__init__()
        self.first = nn.Linear(n_features, width)

    def forward(self, x):
        return torch.tanh(self.first(x))


class Bilinear(nn.Module):
    """A head or adversary that is no ``Sequential``."""

    def __init__(self, n_inputs, n_outputs, gain=1.0):
        super().__init__()
        self.gain = gain
        self.layer = nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return self.gain * self.layer(x)


@pytest.mark.parametrize(
    ("network", "channel"),
    [
        (Bilinear, "laplace"),
        (Bilinear, "codes"),
        ("module", "codes"),
        ("wide module", "laplace"),
        (lambda i, o: nn.Linear(i, o), "codes"),
    ],
)
def test_own_head_and_adversary(data, channel, network):
    X, y, z = data
    if isinstance(network, str):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = Bilinear(2, 2) if network == "module" else nn.Linear(2, 7)
    settings = {**FAST, "max_epochs": 15, "learning_rate": 0.03, "adversary_weight": 0.1, "channel": channel}
    clf = FederateClassifier(**settings, classifier=network, adversary=network).fit(X, y, sensitive_features=z)
    assert clf.score(X, y) > 0.8
    assert np.isfinite(clf.history_["adversary_loss"]).all()
    encoder, head = clf.split()
    assert (head.predict(encoder.transform(X)) == y).mean() > 0.8
    if isinstance(network, nn.Module):  # copied, never trained in place
        trained = next(clf.net_.module_.head.parameters())
        assert not torch.equal(next(network.parameters()), trained)


def test_arguments_of_own_networks(data):
    X, y, z = data
    settings = {"classifier": Bilinear, "classifier__gain": 3.0, "adversary": Bilinear, "adversary__gain": 2.0}
    clf = FederateClassifier(**{**FAST, "adversary_weight": 1.0}, **settings).fit(X, y, sensitive_features=z)
    assert clf.net_.module_.head.gain == 3.0
    assert clf.net_.module_.adversaries[0].gain == 2.0


def test_text_encoder_parameters():
    clf = FederateClassifier(**FAST, encoder=BagOfEmbeddingsEncoder(4))
    clf.set_params(encoder__embedding_size=6)
    assert clf.encoder.embedding_size == 6
    given = FederateClassifier(**FAST, encoder=BagOfEmbeddingsEncoder(4), encoder__embedding_size=7)
    given.fit(["good film", "bad film"] * 5, [0, 1] * 5)
    assert given.text_encoder_.embedding_size == 7
    assert given.encoder.embedding_size == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classifier": lambda i, o: "head"}, "classifier"),
        ({"classifier": nn.Flatten(0)}, "classifier"),
        ({"classifier": nn.Linear(2, 2), "classifier__bias": False}, "classifier__bias .* give the class"),
        ({"criterion": nn.CrossEntropyLoss(), "criterion__label_smoothing": 0.1}, "criterion__label_smoothing"),
        ({"criterion": lambda reduction: 3.0}, "criterion must be a torch loss"),
        ({"device": "abacus"}, "device must be"),
        ({"module__n_outputs": 5}, "module__n_outputs is decided by fit"),
    ],
)
def test_bad_networks_are_named(data, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(data, **settings)


def test_bad_adversaries_are_named(data):
    X, y, z = data
    settings = {**FAST, "adversary_weight": 1.0, "n_adversaries": 2}
    with pytest.raises(ValueError, match="copies of one module"):
        FederateClassifier(**settings, adversary=nn.Linear(2, 2)).fit(X, y, sensitive_features=z)
    with pytest.raises(ValueError, match=r"orthogonality=1\.0 compares"):
        FederateClassifier(**settings, adversary=Bilinear, orthogonality=1.0).fit(X, y, sensitive_features=z)


class PowerLoss(nn.Module):
    """A loss of one's own: the probability that is missing, to some power."""

    def __init__(self, power=2.0, reduction="mean"):
        super().__init__()
        self.power, self.reduction = power, reduction

    def forward(self, log_p, y):
        losses = (1 - log_p.gather(1, y[:, None])[:, 0].exp()) ** self.power
        return losses if self.reduction == "none" else losses.mean()


@pytest.mark.parametrize("channel", ["laplace", "codes"])
@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": nn.NLLLoss},
        {"criterion": nn.CrossEntropyLoss, "criterion__label_smoothing": 0.1},
        {"criterion__label_smoothing": 0.1},
        {"criterion": nn.MultiMarginLoss()},
        {"criterion": PowerLoss, "criterion__power": 1.0},
    ],
)
def test_own_criterion(data, channel, settings):
    clf = fit(data, channel=channel, max_epochs=8, **settings)
    assert clf.score(*data[:2]) > 0.8


def test_criterion_takes_row_weights(data):
    X, y, _ = data
    weight = np.random.default_rng(1).integers(0, 4, size=300)
    repeat = np.repeat(np.arange(300), weight)
    settings = {**FAST, "epsilon": math.inf, "criterion": PowerLoss}
    weighted = FederateClassifier(**settings).fit(X, y, sample_weight=weight)
    repeated = FederateClassifier(**settings).fit(X[repeat], y[repeat])
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


def test_plain_criterion_equals_default(data):
    for channel in ("laplace", "codes"):
        plain, named = (fit(data, channel=channel, criterion=c) for c in ("cross_entropy", nn.NLLLoss))
        pairs = zip(plain.net_.module_.parameters(), named.net_.module_.parameters(), strict=True)
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)


class MeanLoss(nn.Module):
    """A loss that cannot say what a row costs."""

    def forward(self, log_p, y):
        return -log_p.gather(1, y[:, None]).mean()


def test_criterion_must_keep_rows_apart(data):
    with pytest.raises(ValueError, match="one loss for each of 50 rows"):
        fit(data, channel="laplace", criterion=MeanLoss())


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"channel": "codes", "n_components": 3}, "n_components"),
        ({"channel": "codes", "norm": "l2"}, "norm"),
        ({"channel": "codes", "calibration": "published"}, "calibration"),
        ({"channel": "laplace", "n_codes": 4}, "n_codes"),
        ({"n_components": 3}, "n_components=3 does nothing with channel='auto', which takes 'codes' for epsilon=8"),
        ({"norm": "l2"}, "norm"),
        ({"epsilon": math.inf, "n_codes": 4}, "n_codes"),
        ({"encoder": Encoder, "alpha": 1.0}, "alpha"),
        ({"encoder": Encoder, "encoder_hidden_sizes": [5]}, "encoder_hidden_sizes"),
        ({"classifier": Bilinear, "classifier_hidden_sizes": (5,)}, "classifier_hidden_sizes"),
        ({"adversary": Bilinear, "adversary_hidden_sizes": (5,)}, "adversary_hidden_sizes=.* does nothing"),
    ],
)
def test_idle_parameter_raises(data, settings, named):
    with pytest.raises(ValueError, match=named):
        fit(data, **settings)


def test_default_given_outright_is_not_idle(data):
    fit(data, channel="codes", n_components=1, max_epochs=1)  # a code is one value
    fit(data, channel="codes", n_components=None, norm="l1", calibration="exact", max_epochs=1)
    fit(data, encoder=Encoder, encoder_hidden_sizes="auto", classifier_hidden_sizes=[], max_epochs=1)
