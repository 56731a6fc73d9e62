"""Logs as Inspect lays them out; tests/engines reads those that it wrote itself."""

import json
import warnings
import zipfile

import numpy as np
import pytest

from truecal.exceptions import CalibrationWarning, InputError
from truecal.integrations.llm import compare_answers, read_eval_log


def sample(question, epoch, value, text, **score):
    return {
        "id": question,
        "epoch": epoch,
        "metadata": {"topic": f"t{question % 2}"},
        "output": {"choices": [{"message": {"content": text}}], "completion": text},
        "scores": {"graded": {"value": value, **score}},
    }


SAMPLES = [
    sample(1, 1, "C", "Answer: A\nConfidence: 90%"),
    sample(1, 2, "I", "Answer: B\nConfidence: 70%"),
    sample(2, 1, 1.0, "whatever", metadata={"confidence": 0.4}),
    sample(2, 2, {"correct": 0, "confidence": "60%"}, "whatever"),
    sample(3, 1, "N", "I cannot say."),
    sample(3, 2, "P", "Confidence: 50%"),
    sample(4, 1, "C", "surely"),
    {"id": 4, "epoch": 2, "scores": {}, "error": {"message": "timeout"}},
]
HEADER = {"status": "success", "eval": {"model": "mock/model", "task": "quiz"}}


def write(path, samples=SAMPLES, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_journal/start.json", json.dumps(HEADER))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("header.json", json.dumps(HEADER))
    return path


@pytest.fixture(params=["eval", "json"])
def log(request, tmp_path):
    if request.param == "eval":
        return write(tmp_path / "log.eval")
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": SAMPLES}))
    return path


def test_grades_confidences_questions_and_epochs(log):
    answers = read_eval_log(log)
    assert answers.correct.tolist() == [True, False, True, False]
    assert answers.confidence.tolist() == [0.9, 0.7, 0.4, 0.6]
    assert answers.question.tolist() == ["1", "1", "2", "2"]
    assert answers.repeat.tolist() == [1, 2, 1, 2]
    assert (answers.n_refused, answers.n_ungraded, answers.n_unparsed) == (1, 2, 1)
    assert (answers.model, answers.task) == ("mock/model", "quiz")
    assert answers.clusters.tolist() == answers.question.tolist()


def test_clusters_and_confidences_from_elsewhere(log):
    samples = [sample(q, 1, "C", "x") for q in range(4)]
    write(log.parent / "other.eval", samples)
    answers = read_eval_log(
        log.parent / "other.eval", cluster="topic", confidence=lambda one, score: one["id"] / 10
    )
    assert answers.cluster.tolist() == ["t0", "t1", "t0", "t1"]
    assert answers.confidence.tolist() == [0, 0.1, 0.2, 0.3]
    with pytest.raises(InputError, match="sample '0' has no 'passage' in its metadata"):
        read_eval_log(log.parent / "other.eval", cluster="passage")


def test_a_log_of_several_scorers_needs_a_choice(tmp_path):
    two = sample(1, 1, "C", "90%")
    two["scores"]["strict"] = {"value": "I"}
    path = write(tmp_path / "two.eval", [two])
    with pytest.raises(
        InputError, match=r"two\.eval, samples/1_epoch_1\.json has the scorers 'graded', 'strict'\. Choose"
    ):
        read_eval_log(path)
    assert read_eval_log(path, scorer="strict").correct.tolist() == [False]
    with pytest.raises(InputError, match="no scorer 'lax'"):
        read_eval_log(path, scorer="lax")


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        read_eval_log(tmp_path / "absent.eval")
    text = tmp_path / "text.eval"
    text.write_text("hello")
    with pytest.raises(InputError, match="neither a zip file nor JSON"):
        read_eval_log(text)
    text.write_text("[1]")
    with pytest.raises(InputError, match="it has no samples"):
        read_eval_log(text)
    text.write_text('{"samples": null}')
    with pytest.raises(InputError, match=r"text\.eval has no samples"):
        read_eval_log(text)
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(InputError, match=r"it has no header\.json"):
        read_eval_log(text)


def test_a_file_that_was_not_copied_whole(tmp_path):
    path = write(tmp_path / "log.eval")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"log\.eval is a zip file without its end\. Copy the log again"):
        read_eval_log(path)


def test_an_unfinished_log_has_a_journal_only(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(HEADER))
        archive.writestr("samples/1_epoch_1.json", json.dumps(SAMPLES[0]))
    with pytest.warns(CalibrationWarning, match=r"log\.eval: The evaluation did not finish"):
        assert read_eval_log(path).model == "mock/model"


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"status": "error"}, "The evaluation did not finish (status: error)."),
        (
            {
                "status": "cancelled",
                "eval": {"dataset": {"sample_ids": list(range(20))}, "config": {"epochs": 3}},
            },
            "The evaluation did not finish (status: cancelled): 8 of 60 answers are in its log.",
        ),
        (
            {"status": "success", "eval": {"dataset": {"samples": 10}}},
            "The evaluation is not complete: 8 of 10 answers are in its log.",
        ),
        ({"status": "success", "eval": {"dataset": {"samples": 4}, "config": {"epochs": 2}}}, ""),
        ({}, ""),
    ],
)
def test_an_evaluation_that_stopped_is_not_reported_as_whole(header, says, tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**header, "samples": SAMPLES}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = read_eval_log(path)
    assert [str(one.message) for one in caught] == ([f"log.json: {says}"] if says else [])
    assert answers.incomplete == says
    assert answers.sentence().endswith(says)


def test_the_same_question_twice_is_refused(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [*SAMPLES, SAMPLES[0]]}))
    with pytest.raises(
        InputError, match=r"log\.json, sample 9: answer 1 to question '1' was also in log\.json, sample 1"
    ):
        read_eval_log(path)
    whole = write(tmp_path / "log.eval")
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("samples/copy.json", json.dumps(SAMPLES[0]))
    with pytest.raises(
        InputError, match=r"samples/copy\.json: answer 1 to question '1' was also in .*samples/1_epoch_1"
    ):
        read_eval_log(whole)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": None}, "sample 1: 'id' must be a whole number or text"),
        ({"epoch": "x"}, "sample 1: 'epoch' must be a whole number"),
        ({"epoch": 2**70}, "sample 1: 'epoch' must be the number of an epoch"),
        ({"scores": [1]}, "sample 1: 'scores' must be an object"),
        ({"scores": {"graded": None}}, "sample 1: the score of 'graded' must be an object"),
        ({"scores": {"graded": {"value": "C", "metadata": [1]}}}, "sample 1: 'metadata' must be an object"),
        ({"output": "x"}, "sample 1: 'output' must be an object"),
    ],
)
def test_a_bad_sample_is_named(change, says, tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [{**SAMPLES[0], **change}, *SAMPLES[1:]]}))
    with pytest.raises(InputError, match=f"^log\\.json, {says}"):
        read_eval_log(path)


@pytest.mark.parametrize(
    ("output", "confidence"),
    [
        ({"choices": [{"message": {"content": [{"type": "text", "text": "90%"}]}}]}, 0.9),
        ({"choices": [{"message": {"content": [{"type": "text", "text": 3}, "x"]}}]}, None),
        ({"choices": [None]}, None),
        ({"completion": 90}, None),
        ({}, None),
    ],
)
def test_texts_without_a_confidence_are_counted(output, confidence, tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [{**SAMPLES[0], "output": output}, *SAMPLES[1:]]}))
    answers = read_eval_log(path)
    assert answers.n_unparsed == 1 + (confidence is None)
    assert (0.9 in answers.confidence) == (confidence is not None)


def test_a_folder_with_one_log(tmp_path):
    write(tmp_path / "one.eval")
    assert read_eval_log(tmp_path).n == 4
    write(tmp_path / "two.eval")
    with pytest.raises(InputError, match=r"has 2 logs: 'one\.eval', 'two\.eval'\. Pass one"):
        read_eval_log(tmp_path)


def test_grades_by_a_model_are_reported_with_the_distortion_of_a_good_judge(tmp_path):
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 2, 600)
    right = rng.random(600) < confidence
    samples = [
        {
            "id": i,
            "epoch": 1,
            "scores": {
                "model_graded_qa": {"value": "C" if y else "I", "metadata": {"confidence": c}},
            },
        }
        for i, (y, c) in enumerate(zip(right.tolist(), confidence.tolist(), strict=True))
    ]
    write(tmp_path / "log.eval", samples)
    with pytest.warns(CalibrationWarning) as caught:
        answers = read_eval_log(tmp_path / "log.eval")
    told = [str(one.message) for one in caught if "graded by a model" in str(one.message)]
    size = np.sqrt(np.mean((0.15 * confidence - 0.1) ** 2))
    assert len(told) == 1
    assert f"look wrong by {size:.3f}" in told[0]
    assert "truecal.labels.judged" in told[0]
    assert answers.judge == "model_graded_qa"
    assert told[0].endswith(answers.doubt)
    assert answers.doubt in answers.sentence()

    gold = answers.with_gold({i: int(right[i]) for i in range(0, 600, 5)})
    assert gold.doubt == ""
    assert gold.estimate().label_kind == "judge + 120 gold"
    assert "graded by model_graded_qa and corrected with 120 gold labels" in gold.sentence()
    refused = [
        ({"x": 1}, "names none of the 600 questions"),
        ({0: 1, 1: 0}, "too few"),
    ]
    for labels, words in refused:
        with pytest.raises(InputError, match=words):
            answers.with_gold(labels)
    with pytest.raises(InputError, match="has gold labels"):
        compare_answers(gold, answers)


def test_gold_labels_of_repeated_answers_name_the_attempt(tmp_path):
    samples = [sample(i // 2, i % 2 + 1, "CI"[i % 3 == 0], "Confidence: 80%") for i in range(200)]
    write(tmp_path / "log.eval", samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        answers = read_eval_log(tmp_path / "log.eval")
    with pytest.raises(InputError, match="answered several times"):
        answers.with_gold({0: 1})
    gold = answers.with_gold({(i // 2, 1): int(i % 3 != 0) for i in range(0, 200, 2)})
    assert np.count_nonzero(~np.isnan(gold.gold)) == 100
    assert np.isnan(gold.gold[gold.repeat == 2]).all()
