"""From an assessment to a page. Nothing is computed here."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal import __version__
from truecal._lib.checks import require
from truecal._lib.files import write_text
from truecal._lib.text import counted, format_pvalue, level, p_equals, percent, printable
from truecal.assessment._groups import breakdowns
from truecal.assessment._verdict import CONTRADICTED, NOT_CONTRADICTED
from truecal.estimators._registry import get_estimator
from truecal.report._diagram import by_rank, by_score, decision_curve, thumbnail, timeline

if TYPE_CHECKING:
    from truecal.assessment._assess import Assessment

#: Scores are skewed if this share of them lies so near to 0 or 1; they get a second diagram, by rank.
_SKEWED_SHARE, _NEAR = 0.4, 0.05
#: More groups than these are shown without pictures.
_MOST_PICTURES = 60
_CLASS_HEADINGS = {
    "class": "Each class against the rest",
    "predicted class": "The top label in each predicted class",
    "label": "Each label by itself",
}


def render(
    assessment: Assessment,
    path: str | Path | None = None,
    *,
    title: str = "Calibration report",
    source: str | None = None,
) -> str:
    """Return the report as one HTML page that needs nothing else, and write it to `path` if that is given.

    Parameters
    ----------
    assessment : Assessment
        What to report.
    path : str or Path, optional
        File to write, whole or not at all.
    title : str
        Heading of the page.
    source : str, optional
        Where the predictions come from. Title and source are escaped, as is all text from the data.
    """
    jinja2 = require("jinja2", extra="app", purpose="The report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "percent": percent,
        "level": level,
        "number": lambda value: f"{value:,.10g}",
        "decimal": _decimal,
        "short": _short_pvalue,
    }
    diagrams = [by_score(assessment.reliability, assessment.histogram, notes=_statistics(assessment))]
    if _is_skewed(assessment):
        diagrams.append(by_rank(assessment.reliability, assessment.sample))
    recalibration = assessment.recalibration
    after = None
    if recalibration is not None and recalibration.reliability is not None:
        after = by_score(recalibration.reliability, name="recalibrated")
    page: str = environment.get_template("page.html").render(
        a=assessment,
        title=title,
        source=source,
        today=date.today().isoformat(),
        version=__version__,
        heading=_heading(assessment),
        contents=_contents(assessment),
        diagrams=diagrams,
        after=after,
        decisions=None if assessment.clinical is None else decision_curve(assessment.clinical.decision_curve),
        history=None if assessment.over_time is None else timeline(assessment.over_time),
        spec=get_estimator,
        pvalue=p_equals,
        counted=counted,
        thumbnail=thumbnail,
        pictures=_MOST_PICTURES,
        breakdowns=_breakdowns(assessment),
    )
    page = printable(page)  # names may have control characters, which a browser or an editor might interpret
    if path is not None:
        write_text(path, page)
    return page


def render_notebook(assessment: Assessment) -> str:
    """Return the report inside a frame that takes the height of the page.

    The frame keeps the style of the page apart from the notebook's. A line of script, which notebooks run when
    they show a result, sets its height; without it the frame can be scrolled and resized.

    Parameters
    ----------
    assessment : Assessment
        What to report.
    """
    from markupsafe import escape

    page = escape(render(assessment))
    fit = "this.style.height=this.contentDocument.documentElement.scrollHeight+'px'"
    style = "width:100%;height:80vh;min-height:640px;border:0;resize:vertical"
    return f'<iframe srcdoc="{page}" style="{style}" onload="{fit}" title="Calibration report"></iframe>'


def _heading(assessment: Assessment) -> tuple[str, str]:
    """Return the colour of the heading, and the heading."""
    if assessment.state == CONTRADICTED:
        return "bad", "Evidence of miscalibration"
    for parts, name in breakdowns(assessment.groups, assessment.classes):
        if parts.miscalibrated:
            return "bad", f"Evidence of miscalibration in some {name}"
    if assessment.state == NOT_CONTRADICTED:
        return "good", "No evidence of miscalibration"
    return "open", "Too few rows to tell"


def _contents(assessment: Assessment) -> list[tuple[str, str]]:
    """Return the sections of the page: their identifiers and short names."""
    sections = [
        ("diagram", "Curve", True),
        ("clinical", "Clinical validation", assessment.clinical is not None),
        ("size", "How large", True),
        ("test", "Chance", assessment.test is not None or bool(assessment.plan)),
        ("recalibration", "What to do", assessment.recalibration is not None),
        ("time", "Over time", assessment.over_time is not None),
        *((table["id"], table["heading"], True) for table in _breakdowns(assessment)),
        ("scores", "Brier score and log loss", True),
        ("data", "Data", True),
        ("method", "Methods", True),
    ]
    return [(identifier, name) for identifier, name, shown in sections if shown]


def _statistics(assessment: Assessment) -> list[str]:
    """Return what clinical diagrams show in a corner: intercept, slope and C statistic."""
    if assessment.clinical is None:
        return []
    weak, c = assessment.weak, assessment.clinical.c_statistic
    parts = (("intercept", weak.intercept.value, 2), ("slope", weak.slope.value, 2), ("C", c.value, 3))
    return [f"{name} {_decimal(value, digits)}" for name, value, digits in parts]


def _breakdowns(assessment: Assessment) -> list[dict[str, Any]]:
    """Return the tables of groups and of classes."""
    tables = []
    if assessment.groups is not None:
        name = ", ".join(assessment.groups.columns)
        tables.append({"id": "groups", "name": name, "heading": f"By {name}", "parts": assessment.groups})
    if assessment.classes is not None:
        (column,) = assessment.classes.columns
        heading = _CLASS_HEADINGS[column]
        tables.append({"id": "classes", "name": column, "heading": heading, "parts": assessment.classes})
    return tables


def _is_skewed(assessment: Assessment) -> bool:
    sample = assessment.sample
    inner = (sample.score > 0) & (sample.score < 1)
    near = (sample.score < _NEAR) | (sample.score > 1 - _NEAR)
    return bool(sample.count[near].sum() >= _SKEWED_SHARE * sample.n and (near & inner).any())


def _decimal(value: float, digits: int = 4, sign: str = "") -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite" if value > 0 else "−infinite"
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}".replace("-", "−")


def _short_pvalue(pvalue: float | None) -> str:
    return "–" if pvalue is None else format_pvalue(pvalue)
