"""Tables that a cluster holds: releases that are drawn once however often Dask computes, counts, and samples."""

from skfairdp.dask._count_and_sample import group_counts, sample_rows
from skfairdp.dask._release_to_parquet import release_to_parquet

__all__ = ["group_counts", "release_to_parquet", "sample_rows"]
