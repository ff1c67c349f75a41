"""Fixtures that several folders share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_home():
    """The folder of the real data sets, for tests marked ``data``."""
    folder = os.environ.get("SKFAIRDP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data are not here: set SKFAIRDP_DATA to a folder that has them")
    return Path(folder)
