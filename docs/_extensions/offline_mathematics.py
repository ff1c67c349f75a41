"""Formulas become MathML while the pages are built: a browser shows them without a script and without a network.

The font comes with the pages too (``_static/mathematics``), because not every system has one with large brackets.
"""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

_log = logging.getLogger(__name__)


def _mathml(node: nodes.Element, display: str) -> str:
    try:
        # The slash of a fraction within a line stands close, as in TeX.
        return convert(node.astext().strip(), display=display).replace("<mo>/</mo>", '<mo lspace="0" rspace="0">/</mo>')
    except Exception as error:
        _log.warning("this formula cannot be shown: %s (%r)", node.astext(), error, location=node)
        return ""


def _inline(writer, node: nodes.math) -> None:
    writer.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _display(writer, node: nodes.math_block) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
    writer.body.append(f'<div class="math-block"{anchor}>{_mathml(node, "block")}{number}</div>')
    raise nodes.SkipNode


def setup(app) -> dict:
    """Offer the way of showing formulas that ``html_math_renderer`` asks for."""
    app.add_html_math_renderer("offline", (_inline, None), (_display, None))
    app.add_css_file("mathematics/mathematics.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
