"""WordDropout: documents out as they came in, and a word-level statement that is no more than true."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks, get_tags

from skfairdp import WordDropout
from skfairdp.accounting import PrivacyGuarantee

DOCUMENTS = ["the cat sat on the mat", "a dog  barked\nloudly", ""]


def release(epsilon=1.0, **fields):
    return PrivacyGuarantee(epsilon, mechanism="laplace", **fields)


# The guarantee


@pytest.mark.parametrize(
    ("epsilon", "rate", "n_changed", "amplified"),
    [
        (1, 0.1, 1, 0.934702),
        (1, 0.5, 1, 0.620115),
        (1, 0.5, 2, 0.827989),
        (1, 0.5, 4, 0.959691),
        (1, 0.9, 1, 0.158565),
        (0.05, 0.5, 1, 0.025312),
        (5, 0.95, 1, 2.124732),
        (8, 0.5, 1, 7.307188),
    ],
)
def test_amplification(epsilon, rate, n_changed, amplified):
    dropout = WordDropout(rate).fit()
    guarantee = dropout.amplify(release(epsilon), n_changed=n_changed)
    assert guarantee.epsilon == pytest.approx(amplified, abs=6e-7)
    assert guarantee.unit == "word"
    assert not guarantee.reproducible


def test_amplification_at_its_ends():
    assert WordDropout(0).fit().amplify(release()).epsilon == 1.0
    assert WordDropout(1).fit().amplify(release()).epsilon == 0.0
    assert WordDropout(0.5).fit().amplify(release(delta=1e-5)).delta == pytest.approx(5e-6)


def test_sensitive_words_change_no_epsilon():
    plain = WordDropout(0.3).fit().amplify(release())
    assert WordDropout(0.3, sensitive_words=["cat"]).fit().amplify(release()).epsilon == plain.epsilon
    assert WordDropout(0, sensitive_words=["cat"]).fit().amplify(release()).epsilon == 1.0


def test_seeded_masks_are_marked():
    guarantee = WordDropout(random_state=0).fit().amplify(release())
    assert guarantee.reproducible
    assert any("seed" in sentence for sentence in guarantee.does_not_cover)


def test_the_rate_is_that_of_the_integers():
    assert WordDropout(0.3).fit().dropout_rate_ == 0.3
    tiny = WordDropout(1.3e-19).fit().dropout_rate_
    assert tiny == 2 * 2.0**-64 <= 1.3e-19


# Documents


def test_lengths_stay_and_masks_stand_for_words():
    out = WordDropout(0.5, random_state=1).fit_transform(DOCUMENTS * 20)
    assert isinstance(out, list)
    for document, masked in zip(DOCUMENTS * 20, out):
        pairs = list(zip(document.split(), masked.split(), strict=True))
        assert all(seen in (word, "[MASK]") for word, seen in pairs)
    words = " ".join(out).split()
    assert 0.3 < words.count("[MASK]") / len(words) < 0.7


def test_at_the_ends():
    assert WordDropout(0.0).fit_transform(DOCUMENTS) == [" ".join(d.split()) for d in DOCUMENTS]
    assert WordDropout(1.0, mask_token="_").fit_transform(DOCUMENTS) == ["_ _ _ _ _ _", "_ _ _ _", ""]


def test_sensitive_words_are_always_masked():
    dropout = WordDropout(0.0, sensitive_words=["Cat", "loudly"], mask_token="_")
    assert dropout.fit_transform(["The CAT, the cat's mat", "Loudly!"]) == ["The _ the _ mat", "_"]
    strict = WordDropout(0.0, sensitive_words={"Cat"}, case_sensitive=True, mask_token="_")
    assert strict.fit_transform(["Cat cat"]) == ["_ cat"]


def test_a_tokenizer_decides_what_a_word_is():
    dropout = WordDropout(1.0, tokenizer=lambda text: text.split(","), mask_token="_")
    assert dropout.fit_transform(["a b,c", "d"]) == ["_ _", "_"]
    with pytest.raises(ValueError, match="tokenizer"):
        WordDropout(tokenizer=lambda text: [1, 2]).fit_transform(["a"])


@pytest.mark.parametrize("dtype", [object, "string", "category", "str"])
def test_pandas(dtype):
    series = pd.Series(DOCUMENTS, index=[4, 5, 9], name="text", dtype=dtype)
    out = WordDropout(1.0, mask_token="_").fit_transform(series)
    assert out.tolist() == ["_ _ _ _ _ _", "_ _ _ _", ""]
    assert out.index.tolist() == [4, 5, 9]
    assert out.name == "text"


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_polars(dtype):
    series = pl.Series("text", DOCUMENTS, dtype=dtype)
    out = WordDropout(1.0, mask_token="_").fit_transform(series)
    assert isinstance(out, pl.Series)
    assert out.name == "text"
    assert out.to_list() == ["_ _ _ _ _ _", "_ _ _ _", ""]


def test_numpy_keeps_long_documents_whole():
    out = WordDropout(1.0).fit_transform(np.array(["a b c"]))
    assert out.tolist() == ["[MASK] [MASK] [MASK]"]
    assert isinstance(out, np.ndarray)


def test_every_call_draws_fresh_masks():
    documents = ["one two three four five six seven eight nine ten"] * 20
    for random_state in (None, 0):
        dropout = WordDropout(random_state=random_state).fit()
        assert dropout.transform(documents) != dropout.transform(documents)
    first, second = (WordDropout(random_state=0).fit_transform(documents) for _ in range(2))
    assert first == second


# Manners


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one document", TypeError, r"X must be a collection of documents \(strings\); got a single str"),
        (["a", None], TypeError, "X must hold strings; row 1 holds None"),
        (pd.DataFrame({"text": ["a"]}), ValueError, "X must be one-dimensional"),
        ([], ValueError, "X holds no document"),
    ],
    ids=str,
)
def test_bad_documents_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        WordDropout().fit_transform(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": 1.5}, "rate"),
        ({"rate": math.nan}, "rate"),
        ({"mask_token": None}, "mask_token"),
        ({"mask_token": "two words"}, "mask_token"),
        ({"mask_token": ""}, "mask_token"),
        ({"sensitive_words": "Alice"}, "sensitive_words"),
        ({"sensitive_words": ["New York"]}, "New York"),
        ({"sensitive_words": [""]}, "non-empty strings"),
        ({"tokenizer": "spaces"}, "tokenizer"),
        ({"random_state": -1}, "random_state"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(parameters, message):
    dropout = WordDropout(**parameters)
    with pytest.raises(ValueError, match=message):
        dropout.fit(DOCUMENTS)
    assert not hasattr(dropout, "dropout_rate_")


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_mixin_order",
    ],
)
def test_checks_of_scikit_learn_that_need_no_matrix(check):
    """The tag for text input makes scikit-learn skip its list, as it does for its own vectorizers."""
    getattr(estimator_checks, check)("WordDropout", WordDropout())


def test_tags_and_state():
    tags = get_tags(WordDropout())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.non_deterministic
    for use in (lambda d: d.transform(DOCUMENTS), lambda d: d.amplify(release())):
        with pytest.raises(NotFittedError):
            use(WordDropout())


def test_pickle_clone_pipeline_and_search():
    documents = ["good film"] * 30 + ["bad film"] * 30
    labels = [1] * 30 + [0] * 30
    dropout = pickle.loads(pickle.dumps(WordDropout(0.2).fit(documents)))
    assert len(clone(dropout).fit(documents).transform(documents)) == len(dropout.transform(documents)) == 60
    pipeline = make_pipeline(WordDropout(random_state=0), CountVectorizer(), LogisticRegression())
    search = GridSearchCV(pipeline, {"worddropout__rate": [0.0, 0.9]}, cv=3).fit(documents, labels)
    assert search.best_params_ == {"worddropout__rate": 0.0}
    assert search.best_score_ == 1.0
