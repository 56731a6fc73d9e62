import numpy as np
import pytest
from scipy.special import stdtrit

import truecal
from truecal.exceptions import InputError
from truecal.integrations.llm import Answers, compare_answers
from truecal.integrations.llm._answers import Answer, right_or_wrong


def answers(n_questions=60, repeats=4, seed=0, gap=0.2, model="m", first=0):
    """Return answers whose confidence is `gap` above the accuracy, and alike within a question."""
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(first, first + n_questions):
        stated = rng.choice([0.6, 0.8, 0.95])
        right = rng.random() < stated - gap
        for r in range(repeats):
            correct = bool(right if rng.random() < 0.7 else rng.random() < stated - gap)
            rows.append(Answer(f"q{q}", r, correct, f"{100 * stated:.0f}%"))
    return Answers.from_rows(rows, model=model, task="quiz")


def test_questions_are_clusters_by_default():
    found = answers()
    value = truecal.estimate(found.correct, found.confidence, confidence_level=0.95, clusters=found.question)
    assert found.estimate().value == value.value
    assert found.estimate().interval == value.interval
    plain = truecal.estimate(found.correct, found.confidence, confidence_level=0.95).interval
    assert value.interval.high - value.interval.low > 1.2 * (plain.high - plain.low)
    assert found.risk_coverage().coverage[-1] == 1


def test_single_answers_need_no_clusters():
    found = answers(repeats=1)
    assert found.clusters is None
    assert "one answer per question" in found.sentence()


@pytest.mark.parametrize(
    ("repeats", "by", "name", "says"),
    [
        (2, None, None, "clustered by question."),
        (2, "passage", "passage", "clustered by passage."),
        (2, "passage", None, "clustered by given cluster."),
        (1, "passage", "passage", "clustered by passage."),
        (1, None, None, "one answer per question."),
        (1, "question", "passage", "one answer per passage."),
    ],
)
def test_the_sentence_names_what_the_interval_allows_for(repeats, by, name, says):
    group = {None: lambda q: None, "passage": lambda q: f"p{q // 2}", "question": lambda q: f"p{q}"}[by]
    rows = [
        Answer(f"q{q}", r, q % 3 > 0, 0.7, cluster=group(q)) for q in range(40) for r in range(1, repeats + 1)
    ]
    found = Answers.from_rows(rows, clustered_by=name)
    assert says in found.sentence()


def test_what_cannot_be_used_is_counted_and_reported():
    rows = [
        *(Answer(f"q{i}", 1, i % 3 > 0, "80%") for i in range(60)),
        Answer("a", 1, True, "quite sure"),
        Answer("b", 1, True, None),
        Answer("c", 1, None, "90%"),
        Answer("d", 1, False, "90%", refused=True),
    ]
    found = Answers.from_rows(rows, model="gpt", task="trivia")
    assert (found.n, found.n_unparsed, found.n_ungraded, found.n_refused) == (60, 2, 1, 1)
    sentence = found.sentence()
    assert sentence.startswith(
        "gpt on trivia gave 60 answers to 60 questions with an accuracy of 66.7% and a mean"
    )
    assert "Left out: 1 refusal, 2 answers without a readable confidence, 1 answer not graded" in sentence
    assert "95% CI" in sentence
    kept = found.to_dict()
    assert kept["n_unparsed"] == 2
    assert "question" not in kept


def test_nothing_to_use_is_an_error():
    with pytest.raises(InputError, match="No answer has both a grade and a confidence: 1 refused, 1 without"):
        Answers.from_rows([Answer("a", 1, True, "sure"), Answer("b", 1, True, "9%", refused=True)])


def test_an_incomplete_log_is_named_in_the_sentence():
    rows = [Answer(f"q{i}", 1, i % 3 > 0, "80%") for i in range(30)]
    found = Answers.from_rows(rows, incomplete="The evaluation did not finish (status: error).")
    assert found.sentence().endswith(
        "one answer per question. The evaluation did not finish (status: error)."
    )
    assert found.take(np.arange(10)).incomplete == found.incomplete


def test_long_names_take_no_more_than_their_length():
    rows = [
        Answer(f"q{i}", 1, i % 3 > 0, 0.8, cluster="x" * 10**6 if i == 0 else f"p{i}") for i in range(2000)
    ]
    assert Answers.from_rows(rows).cluster.nbytes < 10**5  # 8 GB as fixed-width text


@pytest.mark.parametrize(
    ("value", "grade"), [(np.True_, True), (np.float32(0), False), (float("nan"), None), ([1], None)]
)
def test_grades_of_every_type(value, grade):
    assert right_or_wrong(value) is grade


def test_a_comparison_is_paired_by_question():
    first, second = answers(seed=1, gap=0.3, model="bold"), answers(seed=1, gap=0.0, model="fair")
    result = compare_answers(first, second)
    assert result.calibration_error_difference.low > 0
    assert result.calibration_error[0] == truecal.calibration_error(
        first.correct, first.confidence, clusters=first.question
    )
    assert result.accuracy == (first.accuracy, second.accuracy)
    assert result.mean_confidence_difference.low == result.mean_confidence_difference.high == 0
    assert "bold minus fair, 60 questions of both" in str(result)
    # Questions of one model only are left out.
    other = compare_answers(first, answers(seed=2, first=30))
    assert (other.n_questions, other.n_unmatched) == (30, 60)
    with pytest.raises(InputError, match="share 0 questions"):
        compare_answers(first, answers(first=500))


def test_the_jackknife_of_a_mean_is_the_clustered_standard_error():
    first, second = answers(50, 3, seed=3), answers(50, 3, seed=4)
    result = compare_answers(first, second)
    difference = (first.correct.astype(float) - second.correct).reshape(50, 3).mean(axis=1)
    half = stdtrit(49, 0.975) * difference.std(ddof=1) / np.sqrt(50)
    interval = result.accuracy_difference
    assert (interval.high - interval.low) / 2 == pytest.approx(half)
