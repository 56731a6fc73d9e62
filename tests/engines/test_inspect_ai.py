"""A real evaluation by Inspect on its mock model: the metric while it runs, and the reader of the log it wrote."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed: pip install 'truecal[llm]'")

from inspect_ai import Epochs, Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score, accuracy, scorer, stderr
from inspect_ai.solver import generate

import truecal
from truecal.exceptions import InputError
from truecal.integrations.inspect_ai import calibration
from truecal.integrations.llm import read_eval_log
from truecal.integrations.llm._log_files import list_members, read_members

N_QUESTIONS, EPOCHS = 40, 3
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@scorer(metrics=[accuracy(), calibration()])
def graded():
    async def score(state, target):
        text = state.output.completion
        if "cannot" in text:
            return Score(value="N", reason="refusal", metadata={"confidence": None})
        return Score(value="C" if target.text in text else "I", metadata={"confidence": text})

    return score


@scorer(metrics=[accuracy(), calibration(cluster="topic")])
def by_topic():
    async def score(state, target):
        text = state.output.completion
        return Score(value="C" if target.text in text else "I", metadata={"confidence": text})

    return score


def texts():
    """Return what the mock model writes: mostly answers with a confidence, a refusal, and one without a number."""
    rng = np.random.default_rng(0)
    for k in range(N_QUESTIONS * EPOCHS):
        if k == 5:
            yield "I cannot answer that."
        elif k == 6:
            yield "Answer: A. I am quite sure."
        else:
            yield f"Answer: {'A' if rng.random() < 0.6 else 'B'}\nConfidence: {rng.choice([60, 80, 95])}%"


def outputs():
    for text in texts():
        output = ModelOutput.from_content("mockllm/model", text)
        # Without a usage Inspect counts tokens, for which it downloads a table.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        yield output


def evaluate(folder, grader):
    prepared = outputs()
    questions = [
        Sample(id=f"q{k}", input="?", target="Answer: A", metadata={"topic": f"t{k % 20}"})
        for k in range(N_QUESTIONS)
    ]
    task = Task(dataset=questions, solver=generate(), scorer=grader, epochs=Epochs(EPOCHS), name="quiz")
    model = get_model("mockllm/model", custom_outputs=lambda *_: next(prepared), memoize=False)
    (log,) = run_eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error
    return log


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return evaluate(tmp_path_factory.mktemp("logs"), graded())


def metrics(log):
    return {name: one.value for score in log.results.scores for name, one in score.metrics.items()}


def test_the_log_is_read_without_inspect(log):
    answers = read_eval_log(log.location.removeprefix("file://"))
    assert (answers.n, answers.n_refused, answers.n_unparsed) == (118, 1, 1)
    assert answers.n_questions == N_QUESTIONS
    assert sorted(set(answers.repeat.tolist())) == [1, 2, 3]
    assert (answers.model, answers.task) == ("mockllm/model", "quiz")
    by_key = {(str(one.id), one.epoch): one for one in log.samples}
    for question, epoch, correct, confidence in zip(
        answers.question, answers.repeat, answers.correct, answers.confidence, strict=True
    ):
        sample = by_key[(question, epoch)]
        assert correct == (sample.scores["graded"].value == "C")
        assert f"Confidence: {round(100 * confidence)}%" in sample.output.completion


def test_the_metric_has_the_interval_of_the_clustered_answers(log):
    answers = read_eval_log(log.location.removeprefix("file://"))
    expected = truecal.estimate(
        answers.correct, answers.confidence, confidence_level=0.95, clusters=answers.question
    )
    found = metrics(log)
    assert found["calibration_error"] == pytest.approx(expected.value)
    assert (found["low"], found["high"]) == pytest.approx((expected.interval.low, expected.interval.high))
    assert (found["answers"], found["unparsed"], found["refused"]) == (118, 1, 1)
    assert found["accuracy"] == pytest.approx(
        np.mean([s.scores["graded"].value == "C" for s in log.samples]), abs=0.02
    )


def test_json_logs_say_the_same(log, tmp_path):
    path = tmp_path / "log.json"
    write_eval_log(log, str(path), format="json")
    assert json.loads(path.read_text())["status"] == "success"
    one, other = read_eval_log(log.location.removeprefix("file://")), read_eval_log(path)
    assert sorted(zip(one.question, one.repeat, one.confidence, one.correct, strict=True)) == sorted(
        zip(other.question, other.repeat, other.confidence, other.correct, strict=True)
    )


def test_clusters_from_the_metadata(tmp_path):
    log = evaluate(tmp_path, by_topic())
    answers = read_eval_log(log.location.removeprefix("file://"), cluster="topic")
    assert len(set(answers.cluster.tolist())) == 20
    assert metrics(log)["high"] == pytest.approx(answers.estimate().interval.high)


def test_an_evaluation_that_stopped_is_not_reported_as_whole(tmp_path):
    def answer(messages, *_):
        if messages[-1].text == "q7":
            raise RuntimeError("model down")
        return next(prepared)

    prepared = (output for output in outputs() if "Confidence" in output.completion)
    task = Task(
        dataset=[Sample(id=f"q{k}", input=f"q{k}", target="Answer: A") for k in range(N_QUESTIONS)],
        solver=generate(),
        scorer=graded(),
    )
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = run_eval(task, model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    assert log.status == "error"
    with pytest.warns(truecal.exceptions.CalibrationWarning, match="did not finish"):
        answers = read_eval_log(log.location.removeprefix("file://"))
    assert answers.n < N_QUESTIONS
    assert f"status: error): {answers.n + answers.n_ungraded} of {N_QUESTIONS} answers" in answers.sentence()


def test_members_that_zstandard_cannot_unpack(log, tmp_path):
    """Inspect packs with Zstandard; what its directory says about a member is the limit for unpacking it."""
    path = Path(log.location.removeprefix("file://"))
    members = list_members(path)
    (name, member), *_ = ((name, one) for name, one in members.items() if name.startswith("samples/"))
    assert member.compress_type == 93
    member.file_size = 20
    with pytest.raises(InputError, match=f"{name} is damaged: Bad CRC-32"):
        list(read_members(path, [member]))
    content = bytearray(path.read_bytes())
    content[member.header_offset + 80] ^= 255
    damaged = tmp_path / "damaged.eval"
    damaged.write_bytes(content)
    with pytest.raises(InputError, match=f"{name} is damaged"):
        read_eval_log(damaged)


def test_a_wrong_option_is_not_an_unreadable_confidence():
    with pytest.raises(InputError, match="scale must be one of"):
        calibration(scale="percents")


def test_without_any_confidence_the_metric_is_nan():
    from inspect_ai.scorer import SampleScore

    scores = [SampleScore(score=Score(value="C"), sample_id="a")]
    found = calibration()(scores)
    assert math.isnan(found["calibration_error"])
    assert (found["answers"], found["unparsed"]) == (0, 1)


@pytest.mark.parametrize("metadata", [{}, {"passage": None}])
def test_answers_without_a_cluster_are_refused(metadata):
    score = Score(value="C", metadata={"confidence": "0.8"})
    with pytest.raises(InputError, match="has no 'passage' in its metadata"):
        calibration(cluster="passage")([SampleScore(score=score, sample_metadata=metadata)])


def test_the_mean_residual_has_the_standard_error_of_inspect():
    rng = np.random.default_rng(0)
    question = rng.integers(0, 30, 200)
    confidence = rng.beta(3, 2, 30)[question]
    correct = (rng.random(200) < confidence).astype(int)
    scores = [
        SampleScore(score=Score(value=value), sample_metadata={"question": name})
        for value, name in zip((confidence - correct).tolist(), question.tolist(), strict=True)
    ]
    found = truecal.describe_clusters(correct, confidence, clusters=question)
    assert found.standard_error == pytest.approx(stderr(cluster="question")(scores), rel=1e-12)
