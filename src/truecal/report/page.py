"""An assessment to a plain dictionary, and that to a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal import __version__
from truecal._lib.checks import require
from truecal._lib.files import write_text
from truecal.estimators._registry import get_estimator
from truecal.report.diagram import bin_rows, by_rank, by_score

if TYPE_CHECKING:
    from truecal.assessment.assess import Assessment

#: Scores are skewed if this share of them lies so near to 0 or 1; they get a second diagram, by rank.
_SKEWED_SHARE, _NEAR = 0.4, 0.05
#: An error of this size that could be hidden means that the data said next to nothing.
_MUCH = 0.1


def render(
    assessment: Assessment,
    path: str | Path | None = None,
    *,
    title: str = "Calibration report",
    source: str | None = None,
    groups: Sequence[dict[str, Any]] = (),
    group_name: str = "group",
    classes: Sequence[dict[str, Any]] = (),
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
    groups, classes : sequence of dict
        Rows of tables of groups and of classes: ``name``, ``n``, ``value``, ``low``, ``high``,
        ``adjusted_pvalue``.
    group_name : str
        What the groups are called.
    recalibration : dict, optional
        Advice on recalibration: ``advice`` (a sentence), ``criterion`` (its name) and ``rows`` (``name``,
        ``criterion``, ``brier_gain``, ``log_loss_gain``, ``chosen``).
    plan : sequence of dict
        Rows ``true_error``, ``n``: rows needed to find an error of that size.
    """
    jinja2 = require("jinja2", extra="app", purpose="The report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"percent": _percent, "number": _number, "decimal": _decimal, "p": _p_value}
    page: str = environment.get_template("page.html").render(
        title=title,
        source=source,
        today=date.today().isoformat(),
        version=__version__,
        tables=[
            {"id": "groups", "name": group_name, "heading": f"By {group_name}", "rows": list(groups)},
            {
                "id": "classes",
                "name": "class",
                "heading": "Each class against the rest",
                "rows": list(classes),
            },
        ],
        recalibration=recalibration,
        plan=list(plan),
        **_content(assessment),
    )
    if path is not None:
        write_text(path, page)
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
    scores = content["scores"]
    diagrams = [by_score(assessment.reliability, scores["histogram"])]
    if _is_skewed(assessment):
        diagrams.append(by_rank(assessment.reliability, assessment.sample))
    return {
        **content,
        "estimates": estimates,
        "diagrams": diagrams,
        "bins": bin_rows(assessment.reliability),
        "state": _state(assessment),
        "verdict": assessment.verdict.replace(" %", "\u00a0%"),
    }


def _is_skewed(assessment: Assessment) -> bool:
    sample = assessment.sample
    inner = (sample.score > 0) & (sample.score < 1)
    near = (sample.score < _NEAR) | (sample.score > 1 - _NEAR)
    return bool(sample.count[near].sum() >= _SKEWED_SHARE * sample.n and (near & inner).any())


def _state(assessment: Assessment) -> str:
    """Return "bad", "good", or "open" where the data cannot tell."""
    if assessment.miscalibrated:
        return "bad"
    return "open" if assessment.interval.high >= _MUCH or assessment.interval.low > 0 else "good"


def _percent(value: float, digits: int = 2) -> str:
    return f"{100 * value:.{digits}f}\u00a0%"


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _decimal(value: float | None, sign: str = "") -> str:
    return "infinite" if value is None else f"{value:{sign}.4f}".replace("-", "−")


def _p_value(pvalue: float | None) -> str:
    return "–" if pvalue is None else "below\u00a00.001" if pvalue < 0.001 else f"{pvalue:.2g}"
