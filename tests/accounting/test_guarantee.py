"""The receipt: what it shows, what it refuses, and how it is written to JSON."""

import json
import math
import pickle
from dataclasses import FrozenInstanceError

import pytest

from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent
from skfairdp.random import SeedIdentity, random_stream

SEEDED = PrivacyGuarantee.of(ReleaseEvent(8.0, seed=SeedIdentity("a", "b")), mechanism="laplace")


def test_repr_as_documented():
    assert repr(PrivacyGuarantee(8.0, mechanism="laplace")) == (
        'PrivacyGuarantee(epsilon=8.0, delta=0.0, unit="record", releases=1, mechanism="laplace", '
        "published_epsilon=None)"
    )
    assert "reproducible=True" in repr(SEEDED)


def test_str_is_a_sentence():
    text = str(PrivacyGuarantee(768.0, mechanism="laplace", published_epsilon=1.0, releases=2))
    assert text == "epsilon = 768 (published as 1) for any two records, 2 releases, by laplace"
    assert str(PrivacyGuarantee(math.inf, mechanism="none")).startswith("no protection")
    assert "delta = 1e-05" in str(PrivacyGuarantee(1.0, 1e-5, mechanism="gaussian"))


def test_html_is_escaped():
    shown = PrivacyGuarantee(1.0, mechanism="<script>", covers="a & b")._repr_html_()
    assert "<script>" not in shown
    assert "a &amp; b" in shown
    assert "does_not_cover" in shown


def test_it_is_frozen_hashable_and_normalised():
    guarantee = PrivacyGuarantee(1, mechanism="laplace")
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 0.1
    assert isinstance(guarantee.epsilon, float)
    assert hash(guarantee) == hash(PrivacyGuarantee(1.0, mechanism="laplace"))
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


@pytest.mark.parametrize("epsilon", [0.0, 1 / 3, math.inf])
def test_json_round_trip(epsilon):
    event = ReleaseEvent(epsilon, gaussian_mu=0.1, seed=SeedIdentity("a", "b"))
    guarantee = PrivacyGuarantee.of(event, mechanism="x", published_epsilon=math.inf)
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    assert PrivacyGuarantee.from_dict(json.loads(text)) == guarantee


def test_seeded_noise_names_who_knows_the_seed():
    guarantee = SEEDED
    assert sum("seed" in sentence for sentence in guarantee.does_not_cover) == 1
    again = PrivacyGuarantee.from_dict(guarantee.to_dict())
    assert again.does_not_cover == guarantee.does_not_cover
    assert not any("seed" in s for s in PrivacyGuarantee(1.0, mechanism="laplace").does_not_cover)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"unit": "person"}, "unit"),
        ({"releases": 0}, "releases"),
        ({"releases": 1.5}, "releases"),
        ({"published_epsilon": -1.0}, "published_epsilon"),
        ({"mechanism": None}, "mechanism"),
        ({"does_not_cover": "a sentence"}, "does_not_cover"),
    ],
)
def test_bad_fields_are_named(fields, name):
    with pytest.raises((ValueError, TypeError), match=name):
        PrivacyGuarantee(**{"epsilon": 1.0, "mechanism": "laplace", **fields})


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"gaussian_mu": -1.0}, "gaussian_mu"), ({"sampling_error": 2.0}, "sampling_error"), ({"seed": 0}, "seed")],
)
def test_bad_events_are_named(fields, name):
    with pytest.raises((ValueError, TypeError), match=name):
        ReleaseEvent(1.0, **fields)


def test_the_seed_itself_is_not_on_the_receipt():
    stream = random_stream(123456)
    guarantee = PrivacyGuarantee.of(ReleaseEvent(1.0, seed=stream.identity), mechanism="laplace")
    assert "123456" not in json.dumps(guarantee.to_dict())
    assert any("anybody who sees two releases" in sentence for sentence in guarantee.does_not_cover)
