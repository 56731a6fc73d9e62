"""Formulas as MathML, made when the site is built: no script, no web font, nothing from the network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: Spellings that the converter does not know.
_SPELLINGS = ((r"\\arg\b", r"\\mathrm{arg}\\,"),)

#: What it gets slightly wrong: bars of an absolute value are no relation, a colon is; an accent sits close.
_REPAIRS = (
    (
        '<mo stretchy="false">&#x0007C;</mo>',
        '<mo stretchy="false" lspace="0.06em" rspace="0.06em">&#x0007C;</mo>',
    ),
    ("<mi>:</mi>", "<mo>:</mo>"),
    ('<mover><mi>y</mi><mo stretchy="true">', '<mover accent="true"><mi>y</mi><mo stretchy="false">'),
    ('<mover><mi>f</mi><mo stretchy="true">', '<mover accent="true"><mi>f</mi><mo stretchy="false">'),
)


def to_mathml(formula: str, *, block: bool) -> str:
    """Return a formula as MathML."""
    for pattern, replacement in _SPELLINGS:
        formula = re.sub(pattern, replacement, formula)
    shown: str = convert(formula, display="block" if block else "inline")
    for wrong, right in _REPAIRS:
        shown = shown.replace(wrong, right)
    unknown = re.search(r"\\[a-zA-Z]+", shown)
    if unknown:
        raise ValueError(f"{unknown[0]} is not known")
    return shown


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_render(translator, node, block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{_render(translator, node, block=True)}</div>')
    raise nodes.SkipNode


def _render(translator: Any, node: nodes.Element, *, block: bool) -> str:
    try:
        return to_mathml(node.astext(), block=block)
    except Exception as error:
        logger.warning("cannot show the formula %r: %s", node.astext(), error, location=node)
        return f"<code>{translator.encode(node.astext())}</code>"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
