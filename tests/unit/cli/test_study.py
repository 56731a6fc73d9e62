import json

import pytest
from click.testing import CliRunner

from truecal.cli import main

STUDY = """
sizes = [20]
estimators = ["em_bin", "ks"]
repeats = 3
seed = 1
[populations.square]
scores = { kind = "uniform" }
curve = { kind = "power", d = 2 }
"""


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_prints_a_table_and_writes_a_file_to_go_on_from(study_file, tmp_path):
    output = tmp_path / "rows.csv"
    done = run("study", study_file, "-o", output)
    assert done.exit_code == 0, done.output
    assert "square" in done.stdout
    assert output.read_text().count("\n") == 3
    assert run("study", study_file, "-o", output).stdout == done.stdout


def test_prints_json_and_takes_repeats_and_seed_from_the_command_line(study_file):
    done = run("study", study_file, "--format", "json", "--repeats", 2, "--seed", 9)
    content = json.loads(done.stdout)
    assert (content["schema_version"], content["command"]) == (1, "study")
    rows = content["rows"]
    assert [(row["estimator"], row["repeats"], row["seed"]) for row in rows] == [
        ("em_bin", 2, 9),
        ("ks", 2, 9),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [("sizes = [", "study.toml"), ("sizes = [3]\nestimators = ['em_sweeep']\npaper = 'all'", "em_sweep")],
)
def test_bad_files_exit_2_with_one_line(study_file, text, says):
    study_file.write_text(text)
    done = run("study", study_file)
    assert done.exit_code == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_missing_file_exits_2(tmp_path):
    done = run("study", tmp_path / "nothing.toml")
    assert done.exit_code == 2
    assert "nothing.toml" in done.stderr
