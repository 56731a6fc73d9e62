import numpy as np
import pytest
from scipy.special import stdtrit

import truecal
from truecal.exceptions import InputError
from truecal.integrations.llm import Answers, compare_answers
from truecal.integrations.llm.answers import Answer, paths_of


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


def test_folders_stand_for_their_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.jsonl").touch()
    assert paths_of(tmp_path, ["*.jsonl"]) == [tmp_path / "sub" / "a.jsonl"]
    assert paths_of([str(tmp_path / "sub" / "a.jsonl")], ["*.eval"]) == [tmp_path / "sub" / "a.jsonl"]
    with pytest.raises(InputError, match=r"has no files \*\.eval"):
        paths_of(tmp_path, ["*.eval"])
