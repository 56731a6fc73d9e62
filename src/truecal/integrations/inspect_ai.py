"""A metric for Inspect: the calibration error of an evaluation, with its interval.

Put it beside `accuracy` in a scorer that stores the confidence of each answer:

.. code-block:: python

    from inspect_ai.scorer import Score, accuracy, scorer
    from truecal.integrations.inspect_ai import calibration

    @scorer(metrics=[accuracy(), calibration()])
    def graded():
        async def score(state, target):
            text = state.output.completion
            return Score(value="C" if target.text in text else "I", metadata={"confidence": text})
        return score

For logs that exist already see `truecal.integrations.llm.read_eval_log`, which also draws and compares.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from truecal._lib.checks import check_choice, require
from truecal._lib.types import NormLike
from truecal.exceptions import InputError
from truecal.integrations.llm._answers import Answer, Answers
from truecal.integrations.llm._log_files import grade, is_refusal, stated
from truecal.integrations.llm._verbal import SCALES


def calibration(
    confidence: str = "confidence",
    *,
    cluster: str | None = None,
    scale: str = "fraction",
    norm: NormLike = 2,
    confidence_level: float = 0.95,
) -> Any:
    """Return a metric of Inspect with the keys calibration_error, low, high, answers, unparsed and refused.

    It sees the answers of every epoch, before Inspect averages them, and takes those to one question as a cluster.
    Without any answer that has a grade and a confidence the error is NaN.

    Parameters
    ----------
    confidence : str
        Key of the confidence in ``Score.metadata`` or in ``Score.value``: a number, or text for `parse_confidence`.
    cluster : str, optional
        Key of the sample's metadata that names what questions belong together by. By default each question is a
        cluster.
    scale : {"fraction", "percent"}
        As in `parse_confidence`.
    norm : {1, 2, "l1", "l2"}
        Order of the norm.
    confidence_level : float
        Level of the interval.

    Returns
    -------
    Metric
    """
    check_choice("scale", scale, SCALES)
    return _registered()(confidence, cluster, scale, norm, confidence_level)


@cache
def _registered() -> Any:
    """Return the metric as Inspect registers it; once, when it is first used."""
    inspect = require("inspect_ai.scorer", extra="llm", purpose="The metric for Inspect")

    def factory(
        confidence: str, cluster: str | None, scale: str, norm: NormLike, confidence_level: float
    ) -> Any:
        def compute(scores: list[Any]) -> dict[str, float]:
            rows = [_row(score, confidence, cluster) for score in scores]
            try:
                answers = Answers.from_rows(rows, scale=scale)
            except InputError:
                refused = sum(row.refused for row in rows)
                nothing = dict.fromkeys(("calibration_error", "low", "high"), math.nan)
                return {**nothing, "answers": 0, "unparsed": len(rows) - refused, "refused": refused}
            found = answers.estimate(norm=norm, confidence_level=confidence_level)
            assert found.interval is not None
            return {
                "calibration_error": found.value,
                "low": found.interval.low,
                "high": found.interval.high,
                "answers": answers.n,
                "unparsed": answers.n_unparsed,
                "refused": answers.n_refused,
            }

        return compute

    return inspect.metric(name="truecal/calibration", scores="unreduced")(factory)


def _row(sample: Any, key: str, cluster: str | None) -> Answer:
    score = sample.score.model_dump()
    group = None
    if cluster is not None:
        metadata = sample.sample_metadata or {}
        if metadata.get(cluster) is None:
            raise InputError(f"Sample {sample.sample_id} has no {cluster!r} in its metadata")
        group = str(metadata[cluster])
    return Answer(
        str(sample.sample_id), 1, grade(score["value"]), stated(score, key), is_refusal(score), cluster=group
    )
