"""Predictions as the commands use them."""

from support.command_line import run


def test_the_target_of_a_predicted_class(tmp_path):
    (tmp_path / "a.csv").write_text("label,guess,score\na,a,.9\nb,a,.8\n")
    result = run("measure", tmp_path / "a.csv", "--predicted", "guess", "--estimator", "ew_bin")
    assert "confidence in the predicted class" in result.stdout
