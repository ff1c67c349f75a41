"""Classifiers that learn a private representation against an adversary."""

from skfairdp.adversarial._bag_of_embeddings import BagOfEmbeddingsEncoder
from skfairdp.adversarial._feature_cache import forget_features
from skfairdp.adversarial._federate import FederateClassifier
from skfairdp.adversarial._federate_baselines import federate_baselines, published_federate
from skfairdp.adversarial._federate_halves import FederateEncoder, FederateHead
from skfairdp.adversarial._transformers_encoder import TransformersEncoder

__all__ = [
    "BagOfEmbeddingsEncoder",
    "FederateClassifier",
    "FederateEncoder",
    "FederateHead",
    "TransformersEncoder",
    "federate_baselines",
    "forget_features",
    "published_federate",
]
