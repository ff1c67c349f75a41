"""Dask arrays and data frames as lists of blocks, one after the other."""

from typing import Any


def import_dask() -> Any:
    """Return the package, or say how to install it."""
    try:
        import dask
    except ImportError:
        raise ImportError("skfairdp.dask needs Dask; install it by: pip install 'skfairdp[dask]'") from None
    return dask


def is_frame(data: Any) -> bool:
    """Whether a Dask collection is a data frame; raise if it is neither that nor an array of rows."""
    import_dask()
    if hasattr(data, "map_partitions") and hasattr(data, "columns") and getattr(data, "ndim", 2) == 2:
        return True
    if hasattr(data, "map_blocks") and getattr(data, "ndim", 0) == 2:
        return False
    raise TypeError(
        f"data must be a Dask data frame, or a Dask array of two dimensions; got {type(data).__name__}. "
        "dask.dataframe.from_pandas and dask.array.from_array make one."
    )


def blocks_of_collection(data: Any) -> list[Any]:
    """Return one delayed block of rows for each partition; a Series or an array of one dimension is welcome too."""
    if hasattr(data, "map_partitions"):
        return list(data.to_delayed())
    if hasattr(data, "map_blocks"):
        if data.ndim == 2 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})  # all values of a row are in one block
        return list(data.to_delayed().ravel())
    raise TypeError(f"a Dask array, Series or data frame is needed; got {type(data).__name__}.")
