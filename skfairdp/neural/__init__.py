"""The torch toolbox: the only folder that imports torch or skorch, and only when one of its names is used."""

import importlib
from typing import Any

#: Which file each name lives in.
_FILE = {
    "AdversarySchedule": "_federate_net",
    "BagOfEmbeddings": "_networks",
    "CodeChannel": "_federate_module",
    "FederateLoss": "_federate_loss",
    "FederateModule": "_federate_module",
    "FederateNet": "_federate_net",
    "LaplaceChannel": "_federate_module",
    "NetworkEnsemble": "_network_ensemble",
    "OpenChannel": "_federate_module",
    "ProbeClassifier": "_probe_classifier",
    "TabularEncoder": "_tabular_encoder",
    "TransformerNetwork": "_transformer_network",
    "adversary_columns": "_federate_module",
    "class_probabilities": "_federate_net",
    "column_statistics": "_tabular_encoder",
    "encode": "_federate_net",
    "expected_gap": "_federate_loss",
    "frozen_features": "_transformer_network",
    "layers_behind": "_transformer_network",
    "limit_threads": "_torch_state",
    "load_tokenizer": "_transformer_network",
    "load_transformer": "_transformer_network",
    "make_classification_loss": "_federate_loss",
    "mlp": "_networks",
    "noiseless_answers": "_federate_net",
    "reverse_gradient": "_federate_module",
    "token_ids": "_transformer_network",
    "torch_generator": "_torch_state",
    "train_by_opacus": "_dp_sgd",
    "train_ensemble": "_network_ensemble",
    "train_net": "_federate_net",
    "transformer_fingerprint": "_transformer_network",
    "values_to_release": "_federate_net",
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
