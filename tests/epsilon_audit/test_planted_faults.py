"""Faults that single pairs and single rows do not show: every one must be convicted, by the default arguments."""

import numpy as np
import pytest

from skfairdp.epsilon_audit import audit_epsilon
from skfairdp.preprocessing import LaplacePrivatizer
from tests.epsilon_audit._releases import FAULTS_BETWEEN_ROWS, FAULTS_OF_A_ROW, planted, planted_floats

WIDTHS = [2, 8, 50]


def widths(*quick):
    """All widths; those that are not named run in the full suite only."""
    marked = [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in WIDTHS]
    return pytest.mark.parametrize("n_features", marked)


#: Each norm in one width; the full suite tries them in every width.
NORMS = [("l1", 2), ("l2", 50), ("minmax", 8), ("clip", 50)]
ALL_NORMS = [
    (norm, n) if (norm, n) in NORMS else pytest.param(norm, n, marks=pytest.mark.slow)
    for norm in ("l1", "l2", "minmax", "clip")
    for n in WIDTHS
]


def convictions(release_of, n_audits, **arguments):
    """How many of the audits convict."""
    return sum(audit_epsilon(release_of(seed), random_state=seed, **arguments).contradicts for seed in range(n_audits))


@widths(2, 50)
@pytest.mark.parametrize("fault", FAULTS_OF_A_ROW)
def test_a_fault_in_a_row_is_convicted(fault, n_features):
    audit = audit_epsilon(planted(FAULTS_OF_A_ROW[fault], n_features, 1), random_state=1)
    assert audit.epsilon_lower > 1, str(audit)
    assert audit.contradicts


@pytest.mark.parametrize(("norm", "n_features"), ALL_NORMS)
def test_noise_in_floating_point_is_convicted(n_features, norm):
    assert audit_epsilon(planted_floats(n_features, 1, norm), random_state=1).contradicts


@widths(8)
@pytest.mark.parametrize("fault", FAULTS_BETWEEN_ROWS)
def test_noise_that_rows_share_is_convicted(fault, n_features):
    audit = audit_epsilon(planted(FAULTS_BETWEEN_ROWS[fault], n_features, 1), random_state=1)
    assert audit.contradicts
    assert audit.dependence is not None
    assert "Rows are not released independently" in audit.verdict


@pytest.mark.parametrize(("norm", "n_features"), ALL_NORMS)
def test_the_same_privatizer_without_a_fault_passes(n_features, norm):
    """The control: what the faults are planted into, rounded in the same way."""
    release = planted(lambda rng, n_features: lambda noise: noise, n_features, 1, norm)
    audit = audit_epsilon(release, confidence_level=0.9999, random_state=1)
    assert not audit.contradicts, str(audit)
    assert audit.dependence is None


@widths(8)
@pytest.mark.parametrize("norm", ["l2", "minmax", "clip"])
def test_coordinate_without_noise_is_convicted(norm, n_features):
    release = planted(FAULTS_OF_A_ROW["one coordinate without noise"], n_features, 2, norm)
    assert audit_epsilon(release, random_state=2).contradicts


def test_the_pair_that_moves_the_quiet_coordinate_is_found():
    """With 50 coordinates no list has a pair for each; the one with a tenth of the noise is seen by its spread."""

    def plant(rng, n_features):
        def spoil(noise):
            noise[:, 33] /= 10
            return noise

        return spoil

    audit = audit_epsilon(planted(plant, 50, 0), random_state=0)
    assert np.flatnonzero(audit.x).tolist() == [33]
    assert audit.epsilon_lower > 5
    assert audit.n_pairs == 5


def test_the_number_of_releases_stays_the_same():
    """All pairs share the trials: as many as one pair would take, and one to see how wide the outputs are."""
    drawn = []

    class Counting(LaplacePrivatizer):
        def transform(self, X):
            drawn.append(len(X))
            return super().transform(X)

    audit = audit_epsilon(Counting(random_state=0).fit(np.zeros((1, 8))), n_trials=5000)
    assert audit.n_pairs > 3
    assert sum(drawn) == 2 * (5000 + 1)


@pytest.mark.slow
@pytest.mark.parametrize("n_features", WIDTHS)
def test_ten_of_eleven_audits_convict(n_features):
    faults = {**FAULTS_OF_A_ROW, **FAULTS_BETWEEN_ROWS}
    found = {
        name: convictions(lambda seed, fault=fault: planted(fault, n_features, seed), 11)
        for name, fault in faults.items()
    }
    found["floats"] = convictions(lambda seed: planted_floats(n_features, seed), 11)
    assert min(found.values()) >= 10, found
