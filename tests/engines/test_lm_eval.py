"""lm-evaluation-harness itself, with a local task and its dummy model, offline."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("lm_eval", reason="lm_eval is not installed: pip install 'truecal[llm]'")

import truecal
from truecal.integrations.llm import read_lm_eval_samples

TASK = """
task: local_choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: answer
process_results: !function utils.process_results
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: calibration_error, aggregation: truecal_error, higher_is_better: false}}
  - {{metric: calibration_low, aggregation: truecal_low, higher_is_better: false}}
  - {{metric: calibration_high, aggregation: truecal_high, higher_is_better: false}}
"""
REPEATS = """
task: local_repeats
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
repeats: 3
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""
UTILS = """
import numpy as np
from scipy.special import softmax
from truecal.integrations.lm_eval import register

register()

def process_results(doc, results):
    likelihood = [float(value) for value, _ in results]
    right = float(np.argmax(likelihood) == doc["answer"])
    item = (float(softmax(likelihood).max()), right)
    return {"acc": right, "calibration_error": item, "calibration_low": item, "calibration_high": item}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm_eval")
    data = folder / "data.jsonl"
    lines = [
        {"question": f"{k} + 1 =", "choices": [str(k), str(k + 1), str(k + 2)], "answer": 1, "page": k // 5}
        for k in range(200)
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "local.yaml").write_text(TASK.format(data=data))
    (folder / "repeats.yaml").write_text(REPEATS.format(data=data))
    (folder / "utils.py").write_text(UTILS)
    command = [
        sys.executable, "-m", "lm_eval", "run", "--model", "dummy", "--tasks", "local_choice,local_repeats",
        "--include_path", str(folder), "--output_path", str(folder / "out"), "--log_samples",
    ]  # fmt: skip
    settings = {
        **os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        command, env=settings, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (results,) = (folder / "out").rglob("results_*.json")
    return folder / "out", json.loads(results.read_text())["results"]["local_choice"]


def test_the_log_of_the_harness_is_read(run):
    folder, results = run
    answers = read_lm_eval_samples(
        sorted(folder.rglob("samples_local_choice*")), metric="acc", cluster="page"
    )
    assert answers.n == 200
    assert answers.task == "local_choice"
    assert answers.accuracy == pytest.approx(results["acc,none"])
    assert len(np.unique(answers.cluster)) == 40
    assert (answers.confidence > 1 / 3).all()


def test_the_aggregations_of_the_harness_agree_with_the_log(run):
    folder, results = run
    answers = read_lm_eval_samples(sorted(folder.rglob("samples_local_choice*")), metric="acc")
    expected = truecal.estimate(answers.correct, answers.confidence, confidence_level=0.95)
    assert results["calibration_error,none"] == pytest.approx(expected.value)
    assert results["calibration_low,none"] == pytest.approx(expected.interval.low)
    assert results["calibration_high,none"] == pytest.approx(expected.interval.high)


def test_repeats_are_one_cluster(run):
    """The dummy model answers without a confidence, so that one is made up here."""
    folder, _ = run
    files = sorted(folder.rglob("samples_local_repeats*"))
    grade, number = (lambda sample: sample["doc_id"] % 2 == 0), iter(range(10**6))
    answers = read_lm_eval_samples(files, grade=grade, confidence=lambda _: 0.5 + next(number) % 3 / 10)
    assert (answers.n, answers.n_questions) == (600, 200)
    assert answers.accuracy == 0.5
    assert len(np.unique(answers.clusters)) == 200
