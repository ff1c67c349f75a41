"""Data whose bias has knobs, and real data that papers use."""

__all__: list[str] = []
