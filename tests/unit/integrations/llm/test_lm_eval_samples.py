"""Samples as lm-evaluation-harness 0.4.13 logs them; tests/engines reads those that it wrote itself."""

import json

import numpy as np
import pytest
from scipy.special import softmax

from truecal.exceptions import CalibrationWarning, InputError
from truecal.integrations.llm import read_lm_eval_samples

TIME = "2026-11-16T14-17-14.869352"


def choice(number, likelihood, acc, **more):
    return {
        "doc_id": number,
        "doc": {"passage": f"p{number // 2}"},
        "target": "1",
        "filtered_resps": [[str(value), "False"] for value in likelihood],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "acc": acc,
        "acc_norm": 1.0 - acc,
        **more,
    }


def text(number, answer, match, **more):
    return {
        "doc_id": number, "doc": {}, "filtered_resps": [answer], "filter": "none", "metrics": ["exact_match"],
        "exact_match": match, **more,
    }  # fmt: skip


def write(folder, task, samples):
    path = folder / f"samples_{task}_{TIME}.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    return path


def test_multiple_choice(tmp_path):
    likelihood = [[-1.0, -0.2, -3.0], [-0.5, -0.6, -0.1], [-2.0, -2.0, -2.0]]
    path = write(tmp_path, "my_task", [choice(k, one, k % 2) for k, one in enumerate(likelihood)])
    answers = read_lm_eval_samples(path, model="dummy")
    assert answers.confidence.tolist() == pytest.approx([softmax(one).max() for one in likelihood])
    assert answers.correct.tolist() == [False, True, False]
    assert answers.question.tolist() == ["my_task/0", "my_task/1", "my_task/2"]
    assert (answers.task, answers.model) == ("my_task", "dummy")
    assert read_lm_eval_samples(path, metric="acc_norm").correct.tolist() == [True, False, True]
    assert read_lm_eval_samples(path, cluster="passage").cluster.tolist() == ["p0", "p0", "p1"]
    with pytest.raises(InputError, match="line 1: there is no metric 'f1'; there are 'acc', 'acc_norm'"):
        read_lm_eval_samples(path, metric="f1")
    with pytest.raises(InputError, match="line 1: document 0 of my_task has no 'author'"):
        read_lm_eval_samples(path, cluster="author")


def test_generated_text(tmp_path):
    lines = [text(0, "4\nConfidence: 90%", 1.0), text(1, "5", 0.0), text(2, "6\nConfidence: 20%", 0.0)]
    answers = read_lm_eval_samples(write(tmp_path, "gen", lines))
    assert answers.confidence.tolist() == [0.9, 0.2]
    assert answers.n_unparsed == 1
    other = read_lm_eval_samples(tmp_path, confidence=lambda sample: 0.5)
    assert other.confidence.tolist() == [0.5] * 3


def test_several_tasks_in_a_folder(tmp_path):
    for task in ("a", "b"):
        write(tmp_path, task, [choice(0, [-1, -2], 1.0)])
    answers = read_lm_eval_samples(tmp_path)
    assert answers.question.tolist() == ["a/0", "b/0"]
    assert answers.task == "a, b"


def test_what_is_refused(tmp_path):
    path = write(tmp_path, "x", [text(0, "1%", 1.0), text(0, "1%", 1.0, filter="strict")])
    with pytest.raises(InputError, match=r"has the filters 'none', 'strict'\. Choose one with filter="):
        read_lm_eval_samples(path)
    assert read_lm_eval_samples(path, filter="strict").n == 1
    with pytest.raises(InputError, match="has no filter 'lax'"):
        read_lm_eval_samples(path, filter="lax")
    with pytest.raises(InputError, match=r"line 2: answer 1 to question 'x/0' was also in .*, line 2"):
        read_lm_eval_samples([path, path], filter="strict")
    path.write_text("{}\n")
    with pytest.raises(InputError, match=r"line 1 is not a logged sample"):
        read_lm_eval_samples(path)
    with pytest.raises(InputError, match="is not a file"):
        read_lm_eval_samples(tmp_path / "absent.jsonl")
    two = write(tmp_path, "y", [text(0, "1%", 1.0, metrics=["bleu", "rouge"])])
    with pytest.raises(InputError, match="line 1: there are the metrics 'bleu', 'rouge'"):
        read_lm_eval_samples(two)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"doc_id": [1]}, "line 2: 'doc_id' must be a whole number or text"),
        ({"filtered_resps": "x"}, "line 2: 'filtered_resps' must be a list"),
        ({"filter": ["none"]}, "line 2: 'filter' must be text"),
        ({"metrics": 3}, "line 2: 'metrics' must be a list"),
        ({"metrics": []}, "line 2: there are the metrics none"),
        ({"doc": [1]}, "line 2: 'doc' must be an object"),
        ({"doc": {"passage": None}}, "line 2: document 1 of x has no 'passage'"),
    ],
)
def test_a_bad_sample_is_named(change, says, tmp_path):
    path = write(tmp_path, "x", [choice(0, [-1, -2], 1.0), choice(1, [-1, -2], 1.0) | change])
    with pytest.raises(InputError, match=says):
        read_lm_eval_samples(path, cluster="passage")


@pytest.mark.parametrize("likelihood", [["x", "y"], [None, -1], ["-inf", "-inf"], ["nan", "-1"], [[1], 2]])
def test_likelihoods_without_a_probability_are_counted(likelihood, tmp_path):
    odd = choice(0, [-1, -2], 1.0) | {"filtered_resps": [[one, "False"] for one in likelihood]}
    answers = read_lm_eval_samples(write(tmp_path, "x", [odd, choice(1, [-1, -2], 1.0)]))
    assert (answers.n, answers.n_unparsed) == (1, 1)


def test_an_empty_file(tmp_path):
    with pytest.raises(InputError, match="has no samples"):
        read_lm_eval_samples(write(tmp_path, "x", []))


def test_repeats_are_one_cluster(tmp_path):
    """A task with repeats: all answers are logged in resps, and the filter take_first keeps one."""
    texts = [
        ["4 (90% sure)", "5 (60% sure)", "4 (no idea)"],
        ["7 (80% sure)", "7 (70% sure)", "7 (90% sure)"],
    ]
    lines = [text(k, every[0], 1.0, resps=[every], target="47"[k]) for k, every in enumerate(texts)]
    path = write(tmp_path, "gen", lines)
    assert read_lm_eval_samples(path).n == 2  # graded by the harness
    answers = read_lm_eval_samples(path, grade=lambda one: one["filtered_resps"][0].startswith(one["target"]))
    assert answers.confidence.tolist() == [0.9, 0.6, 0.8, 0.7, 0.9]
    assert answers.correct.tolist() == [True, False, True, True, True]
    assert answers.clusters.tolist() == 2 * ["gen/0"] + 3 * ["gen/1"]
    assert answers.repeat.tolist() == [1, 2, 1, 2, 3]
    assert answers.n_unparsed == 1


def test_a_grade_for_each_repeat(tmp_path):
    every = ["4 (90% sure)", "5 (60% sure)"]
    lines = [text(0, every, [1, 0]), text(1, every[0], [0, 1], resps=[every])]
    assert read_lm_eval_samples(write(tmp_path, "gen", lines)).correct.tolist() == [True, False, False, True]
    with pytest.raises(InputError, match="line 1: document 0 has 3 grades and 2 answers"):
        read_lm_eval_samples(write(tmp_path, "gen", [text(0, every, [1, 0, 1])]))
    with pytest.raises(InputError, match="line 1: document 0 has 2 answers and one grade"):
        read_lm_eval_samples(write(tmp_path, "gen", [text(0, every, 1.0)]))


def test_a_likelihood_is_not_a_repeat(tmp_path):
    path = write(tmp_path, "lambada", [text(0, ["-0.25", "True"], 1.0)])
    answers = read_lm_eval_samples(
        path, confidence=lambda one: float(np.exp(float(one["filtered_resps"][0][0])))
    )
    assert answers.confidence.tolist() == pytest.approx([np.exp(-0.25)])


def test_a_metric_that_is_a_judge_is_reported(tmp_path):
    graded = [text(k, "Confidence: 70%", 1, metrics=["llm_judge"], llm_judge=k % 2) for k in range(4)]
    path = write(tmp_path, "open_ended", graded)
    with pytest.warns(CalibrationWarning, match=r"graded by a model \(llm_judge\).*look wrong by 0.005"):
        answers = read_lm_eval_samples(path)
    assert answers.judge == "llm_judge"
    assert read_lm_eval_samples(path, grade=lambda one: True).judge == ""
