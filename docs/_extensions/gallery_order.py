"""The order of the gallery: that in which ``examples/README.rst`` names the examples."""

from pathlib import Path

README = Path(__file__).resolve().parents[2] / "examples" / "README.rst"


def order_of_readme(filename: str) -> int:
    """Return where the list names an example; one that it leaves out stops the build."""
    return README.read_text(encoding="utf-8").index(f"sphx_glr_auto_examples_{Path(filename).name}")
