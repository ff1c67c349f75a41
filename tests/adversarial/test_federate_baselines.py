"""The methods of the paper."""

import math

import numpy as np
import sklearn

from skfairdp import FederateClassifier
from skfairdp.adversarial import federate_baselines


def test_baselines_are_the_methods_of_the_paper():
    methods = federate_baselines(4.0, 0.7, random_state=0, max_epochs=3, channel="codes")
    epsilons = {name: getattr(m, "epsilon", None) for name, m in methods.items()}
    weights = {name: getattr(m, "adversary_weight", None) for name, m in methods.items()}
    assert epsilons == {
        "Unconstrained": math.inf,
        "Noise": 4.0,
        "Adversarial": math.inf,
        "Adversarial + Multiple": math.inf,
        "FEDERATE": 4.0,
        "INLP": None,
        "Random": None,
    }
    assert [weights[n] for n in ("Unconstrained", "Noise", "Adversarial", "FEDERATE")] == [0.0, 0.0, 0.7, 0.7]
    assert methods["Adversarial + Multiple"].n_adversaries == 3


def test_all_baselines_fit_and_answer():
    rng = np.random.default_rng(0)
    z, y = rng.integers(2, size=300), rng.integers(2, size=300)
    X = rng.normal(size=(300, 5)) + 2.0 * y[:, None] + z[:, None] * np.array([0, 0, 0, 0, 3.0])
    with sklearn.config_context(enable_metadata_routing=True):
        for name, method in federate_baselines(n_iterations=1, random_state=0, max_epochs=5, n_components=3).items():
            params = {} if name == "Random" else {"sensitive_features": z}
            if isinstance(method, FederateClassifier):
                method.set_fit_request(sensitive_features=True)
            accuracy = method.fit(X, y, **params).score(X, y)
            assert accuracy > (0.4 if name == "Random" else 0.7), name
