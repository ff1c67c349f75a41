"""Fixtures that several folders share."""

import os
from pathlib import Path

import hypothesis
import pytest

# Tests never ask a hub: said before anything imports its client, which reads this once.
os.environ["HF_HUB_OFFLINE"] = "1"

# No deadline: a busy machine must not fail a test.
hypothesis.settings.register_profile("default", deadline=None, max_examples=25)
hypothesis.settings.register_profile("full", deadline=None, max_examples=200)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data_home():
    """The folder of the real data sets, for tests marked ``data``."""
    folder = os.environ.get("SKFAIRDP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data are not here: set SKFAIRDP_DATA to a folder that has them")
    return Path(folder)
