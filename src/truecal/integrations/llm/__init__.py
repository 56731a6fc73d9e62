"""Answers of language models: stated confidences, log files, and calibration with questions as clusters.

The readers need the standard library only; the packages that write the logs do not have to be installed.
"""

from truecal.integrations.llm._answers import AnswerComparison, Answers, compare_answers
from truecal.integrations.llm._log_files import read_eval_log, read_lm_eval_samples
from truecal.integrations.llm._verbal import parse_confidence

__all__ = [
    "AnswerComparison",
    "Answers",
    "compare_answers",
    "parse_confidence",
    "read_eval_log",
    "read_lm_eval_samples",
]
