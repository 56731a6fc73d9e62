"""Logs as Inspect lays them out; tests/engines reads those that it wrote itself."""

import json
import zipfile

import pytest

from truecal.exceptions import InputError
from truecal.integrations.llm import read_eval_log


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
    with pytest.raises(InputError, match="Sample 0 has no 'passage' in its metadata"):
        read_eval_log(log.parent / "other.eval", cluster="passage")


def test_a_log_of_several_scorers_needs_a_choice(tmp_path):
    two = sample(1, 1, "C", "90%")
    two["scores"]["strict"] = {"value": "I"}
    path = write(tmp_path / "two.eval", [two])
    with pytest.raises(InputError, match="The log has the scorers graded, strict; choose one with scorer="):
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
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(InputError, match=r"it has no header\.json"):
        read_eval_log(text)


def test_an_unfinished_log_has_a_journal_only(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(HEADER))
        archive.writestr("samples/1_epoch_1.json", json.dumps(SAMPLES[0]))
    assert read_eval_log(path).model == "mock/model"


def test_a_folder_with_one_log(tmp_path):
    write(tmp_path / "one.eval")
    assert read_eval_log(tmp_path).n == 4
    write(tmp_path / "two.eval")
    with pytest.raises(InputError, match=r"has 2 logs: 'one\.eval', 'two\.eval'\. Pass one"):
        read_eval_log(tmp_path)
