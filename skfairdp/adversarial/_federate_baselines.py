"""The methods that FEDERATE was compared with, as settings of one estimator."""

import math
from typing import Any

from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from skfairdp.adversarial._federate import FederateClassifier
from skfairdp.random import RandomState

# Network and training of the published method, where the defaults of FederateClassifier differ.
_PUBLISHED = {
    "encoder": "mlp",
    "dropout": 0.1,
    "alpha": 0.0,
    "fairness_penalty": 0.0,
    "max_epochs": 50,
    "batch_size": 256,
    "learning_rate": 0.005,
    "early_stopping": False,
}


def published_federate(epsilon: float = 8.0, adversary_weight: float = 1.0, **params: Any) -> FederateClassifier:
    """Make a classifier with the network and training of the paper instead of defaults that adapt to the data.

    Laplace noise on two components, hidden layers on the rows as they are, no L2 penalty, no fairness penalty, 50
    epochs in batches of 256 without early stopping.

    Parameters
    ----------
    epsilon : float, default=8.0
        Exact privacy loss of one release of one record.
    adversary_weight : float, default=1.0
        Weight of the adversary.
    **params
        What is to differ from this.

    Returns
    -------
    FederateClassifier

    Examples
    --------
    >>> from skfairdp.adversarial import published_federate
    >>> published_federate(4.0).n_components
    2
    """
    channel = params.get("channel", "laplace")
    settings = {**_PUBLISHED, "channel": channel, "n_components": None if channel == "codes" else 2, **params}
    return FederateClassifier(epsilon, adversary_weight=adversary_weight, **settings)


def federate_baselines(
    epsilon: float = 8.0,
    adversary_weight: float = 1.0,
    *,
    n_iterations: int = 5,
    random_state: RandomState = None,
    **params: Any,
) -> dict[str, Any]:
    """Make ready estimators for the methods of the paper, by their names there.

    =======================  ===========  ======================  =====================================
    name                     ``epsilon``  ``adversary_weight``    what it is
    =======================  ===========  ======================  =====================================
    Unconstrained            inf          0                       plain network
    Noise                    epsilon      0                       DPNR's robust training, corrected
    Adversarial              inf          adversary_weight        one adversary, no noise
    Adversarial + Multiple   inf          adversary_weight        3 adversaries, ``orthogonality=1``
    FEDERATE                 epsilon      adversary_weight        noise and adversary
    INLP                     inf          0                       plain network, then projection
    Random                   \\-           \\-                      a label at random
    =======================  ===========  ======================  =====================================

    Parameters
    ----------
    epsilon : float, default=8.0
        For the methods with noise.
    adversary_weight : float, default=1.0
        For the methods with an adversary.
    n_iterations : int, default=5
        Projections of INLP.
    random_state : int, Generator, RandomState or None, default=None
        For all of them.
    **params
        Further parameters of every ``FederateClassifier``, whose network and training are the published ones
        (see ``published_federate``) and not its defaults.

    Returns
    -------
    dict of str to estimator
        INLP is a pipeline, encoder, ``INLPEraser`` and logistic regression; with metadata routing switched on it
        takes ``sensitive_features`` in ``fit`` like the others. Without routing they cannot reach the eraser, and
        its ``fit`` raises.

    Examples
    --------
    >>> from skfairdp.adversarial import federate_baselines
    >>> list(federate_baselines())
    ['Unconstrained', 'Noise', 'Adversarial', 'Adversarial + Multiple', 'FEDERATE', 'INLP', 'Random']
    """
    from skfairdp.preprocessing import INLPEraser

    def federate(epsilon: float, weight: float, **more: Any) -> FederateClassifier:
        settings = {"epsilon": epsilon, "adversary_weight": weight, "random_state": random_state, **params, **more}
        return published_federate(**settings)

    plain = federate(math.inf, 0.0)
    eraser = INLPEraser(n_iterations=n_iterations)
    if hasattr(eraser, "set_fit_request"):
        from skfairdp._sklearn import routing_enabled

        if routing_enabled():
            eraser.set_fit_request(sensitive_features=True)
            plain.set_fit_request(sensitive_features=False)
    return {
        "Unconstrained": federate(math.inf, 0.0),
        "Noise": federate(epsilon, 0.0),
        "Adversarial": federate(math.inf, adversary_weight),
        "Adversarial + Multiple": federate(math.inf, adversary_weight, n_adversaries=3, orthogonality=1.0),
        "FEDERATE": federate(epsilon, adversary_weight),
        "INLP": Pipeline([("encoder", plain), ("eraser", eraser), ("classifier", LogisticRegression(max_iter=1000))]),
        "Random": DummyClassifier(strategy="uniform", random_state=_sklearn_seed(random_state)),
    }


def _sklearn_seed(random_state: RandomState) -> Any:
    """scikit-learn takes ints, RandomState and None; other sources give it an int."""
    import numpy as np

    from skfairdp.random import random_stream

    if random_state is None or isinstance(random_state, int | np.integer | np.random.RandomState):
        return random_state
    return random_stream(random_state).seed()
