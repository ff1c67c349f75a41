"""The fixtures and settings of the package's own tests."""

from tests.conftest import data_home

__all__ = ["data_home"]
