"""Data whose bias has knobs, and real data that papers use."""

from skfairdp.datasets._celeba import fetch_celeba_attributes
from skfairdp.datasets._classification import make_biased_classification
from skfairdp.datasets._corpora import fetch_ag_entities, fetch_mrpc, fetch_sentiment_sentences, fetch_snips
from skfairdp.datasets._glove import load_glove
from skfairdp.datasets._tabular import fetch_adult, fetch_bank_marketing, fetch_credit_default, fetch_parkinsons
from skfairdp.datasets._text import make_biased_text

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
