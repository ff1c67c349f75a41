"""The torch toolbox: the only folder that imports torch or skorch, and only when one of its names is used."""

import importlib
from typing import Any

#: Which file each name lives in.
_FILE = {
    "BagOfEmbeddings": "_text",
    "CodeChannel": "_channels",
    "FederateLoss": "_losses",
    "FederateModule": "_networks",
    "FederateNet": "_training",
    "FederateSettings": "_federate",
    "LaplaceChannel": "_channels",
    "NetworkEnsemble": "_ensemble",
    "OpenChannel": "_channels",
    "ProbeClassifier": "_probe",
    "class_probabilities": "_federate",
    "encode": "_federate",
    "expected_gap": "_losses",
    "limit_threads": "_threads",
    "mlp": "_networks",
    "reverse_gradient": "_reversal",
    "torch_generator": "_random",
    "train_ensemble": "_ensemble",
    "train_net": "_federate",
    "values_to_release": "_federate",
}

__all__ = list(_FILE)


def __getattr__(name: str) -> Any:
    if name in _FILE:
        value = getattr(importlib.import_module(f"{__name__}.{_FILE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
