"""Synthetic data whose bias can be set, and real data that papers use."""

from skfairdp.datasets._biased_classification import make_biased_classification
from skfairdp.datasets._biased_text import make_biased_text
from skfairdp.datasets._tabular import (
    fetch_adult,
    fetch_bank_marketing,
    fetch_celeba_attributes,
    fetch_credit_default,
    fetch_parkinsons,
)
from skfairdp.datasets._text_corpora import (
    fetch_ag_entities,
    fetch_mrpc,
    fetch_sentiment_sentences,
    fetch_snips,
    load_glove,
)

__all__ = [
    "fetch_adult",
    "fetch_ag_entities",
    "fetch_bank_marketing",
    "fetch_celeba_attributes",
    "fetch_credit_default",
    "fetch_mrpc",
    "fetch_parkinsons",
    "fetch_sentiment_sentences",
    "fetch_snips",
    "load_glove",
    "make_biased_classification",
    "make_biased_text",
]
