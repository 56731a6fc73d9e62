"""An assessment to a plain dictionary, and that to a page."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal import __version__
from truecal._checks import require
from truecal._registry import get_estimator
from truecal.report.diagram import reliability_svg

if TYPE_CHECKING:
    from truecal.assessment import Assessment

_PURPOSE = "The report"


def render(
    assessment: Assessment,
    path: str | Path | None = None,
    *,
    title: str = "Calibration report",
    source: str | None = None,
    groups: Sequence[dict[str, Any]] = (),
    group_name: str = "group",
    recalibration: dict[str, Any] | None = None,
    plan: Sequence[dict[str, Any]] = (),
) -> str:
    """Return the report as HTML, and write it to `path`, whole or not at all.

    Parameters
    ----------
    assessment : Assessment
        What to report.
    path : str or Path, optional
        File to write.
    title, source : str
        Heading, and where the predictions came from. Both are escaped, as is all that comes from the data.
    groups : sequence of dict
        Rows of a table of groups or classes: ``name``, ``n``, ``value``, ``low``, ``high``, ``pvalue``,
        ``adjusted_pvalue``.
    group_name : str
        What the groups are called.
    recalibration : dict, optional
        Advice on recalibration: ``advice`` (a sentence) and ``rows`` (``name``, ``score``, ``gain``, ``gain_se``).
    plan : sequence of dict
        Rows ``true_error``, ``n``: rows needed to find an error of that size.
    """
    environment = require("jinja2", extra="app", purpose=_PURPOSE).Environment(
        loader=require("jinja2", extra="app", purpose=_PURPOSE).FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda value: f"{100 * value:.2f} %"
    environment.filters["number"] = lambda value: f"{value:,.10g}"
    page: str = environment.get_template("page.html").render(
        title=title,
        source=source,
        today=date.today().isoformat(),
        version=__version__,
        groups=list(groups),
        group_name=group_name,
        recalibration=recalibration,
        plan=list(plan),
        **_content(assessment),
    )
    if path is not None:
        _write(Path(path), page)
    return page


def render_notebook(assessment: Assessment) -> str:
    """Return the report inside a frame, so that its style does not touch the notebook's."""
    from markupsafe import escape

    page = escape(render(assessment))
    return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0" title="Calibration report"></iframe>'


def _content(assessment: Assessment) -> dict[str, Any]:
    """Return what the template shows, as plain values."""
    content = assessment.to_dict()
    biases = {row["estimator"]: row for row in content["advice"]["rows"]} if content["advice"] else {}
    estimates = [
        {**estimate, "bias": biases.get(estimate["estimator"]), "spec": get_estimator(estimate["estimator"])}
        for estimate in content["estimates"]
    ]
    return {
        **content,
        "estimates": estimates,
        "diagram": reliability_svg(assessment.reliability, content["scores"]["histogram"]),
        "p": _p_value(assessment.test.pvalue),
    }


def _p_value(pvalue: float) -> str:
    return "< 0.001" if pvalue < 0.001 else f"= {pvalue:.2g}"


def _write(path: Path, page: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(page)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
