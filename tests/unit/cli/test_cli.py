import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import refuse, run
from truecal.cli import COMMANDS
from truecal.cli._options import EXAMPLES


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.stdout


def imported_by(*arguments):
    """Return what a command prints, and the modules that it has imported."""
    code = f"""
import sys
from truecal.__main__ import main
sys.argv = ["truecal", *{[str(argument) for argument in arguments]}]
try:
    main()
except SystemExit:
    pass
print(*sys.modules)
"""
    printed, _, modules = python(code).rstrip().rpartition("\n")
    return printed, set(modules.split())


def test_help_imports_nothing_heavy():
    printed, modules = imported_by("--help")
    assert "measure" in printed
    assert "Completion" in printed
    assert not modules & {"numpy", "scipy", "polars", "matplotlib", "rich", "jinja2"}


def test_measure_imports_only_what_it_needs(plain):
    printed, modules = imported_by("measure", plain)
    assert "multiscale" in printed
    slow = {f"scipy.{part}" for part in ("fft", "optimize", "sparse", "stats")}
    slow -= set(python("import sys, scipy.special; print(*sys.modules)").split())  # sparse, in SciPy 1.13
    assert not modules & {"narwhals", "matplotlib", "rich", "jinja2", *slow}


def test_a_report_does_not_wait_for_scipy_stats(plain, tmp_path):
    _, modules = imported_by("report", plain, "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").exists()
    assert not modules & {"scipy.stats", "matplotlib", "sklearn"}


@pytest.mark.parametrize("given", [None, "2"])
def test_linear_algebra_has_one_thread_unless_the_user_says_otherwise(given, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    code = """
import os, sys
from truecal.__main__ import main
sys.argv = ["truecal", "estimators"]
try:
    main()
except SystemExit:
    pass
print(os.environ["OPENBLAS_NUM_THREADS"])
"""
    printed = python(code, **({} if given is None else {"OPENBLAS_NUM_THREADS": given}))
    assert printed.split()[-1] == (given or "1")


def test_completion_knows_commands_and_options():
    code = "from truecal.__main__ import main; main()"
    asked = {"_TRUECAL_COMPLETE": "bash_complete", "COMP_WORDS": "truecal re", "COMP_CWORD": "1"}
    assert {"plain,report", "plain,recalibrate", "plain,reproduce"} == set(python(code, **asked).split())
    asked |= {"COMP_WORDS": "truecal measure --no", "COMP_CWORD": "2"}
    assert {"plain,--norm", "plain,--normalize"} <= set(python(code, **asked).split())


def test_completion_knows_estimators_and_columns_of_the_file(plain):
    code = "from truecal.__main__ import main; main()"
    asked = {"_TRUECAL_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    words = f"truecal measure {plain} --score s"
    assert python(code, **asked, COMP_WORDS=words).split() == ["plain,score"]
    assert (
        "plain,em_sweep"
        in python(code, **asked, COMP_WORDS=f"truecal measure {plain} --estimator em_s").split()
    )
    assert python(code, **asked, COMP_WORDS="truecal measure gone.csv --score s").split() == []


def test_every_command_has_help_in_80_columns():
    for name in COMMANDS:
        text = run(name, "--help").stdout
        assert "Usage:" in text
        assert max(map(len, text.splitlines())) <= 80
    assert all(name in run("--help").stdout for name in COMMANDS)


def test_a_mistyped_command_is_answered_with_the_nearest():
    assert "Did you mean 'measure'?" in run("mesure", code=2).stderr
    assert "Commands: measure, report" in run("xyzzy", code=2).stderr


@pytest.mark.parametrize(
    "function", ["inference.estimate.estimate", "cli._Commands.parse_args", "cli._limit_threads"]
)
def test_an_interrupt_ends_with_its_usual_code(function, plain, monkeypatch):
    """At any time: click itself would exit with 1, which means that the answer is no."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"truecal.{function}", interrupt)
    assert run("measure", plain, code=130).stderr.endswith("truecal: interrupted.\n")


@pytest.mark.parametrize("error", [TypeError, IndexError, RecursionError, RuntimeError, ValueError])
@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("measure", "inference.estimate.estimate"),
        ("test", "inference.calibration_test.calibration_test"),
        ("audit", "inference.audit.audit"),
        ("report", "assessment.assess"),
        ("recalibrate", "recalibration.selection.select_recalibrator"),
        ("monitor", "cli._input.windows.split_windows"),
    ],
)
def test_a_bug_exits_70_with_a_traceback_in_every_command(plain, monkeypatch, command, function, error):
    """1 would mean that the answer is no, and 2 that the input is bad."""

    def fail(*_, **__):
        raise error("a bug")

    monkeypatch.setattr(f"truecal.{function}", fail)
    result = run(command, plain, code=70)
    assert result.stdout == ""
    assert f"{error.__name__}: a bug" in result.stderr
    assert f"truecal: internal error ({error.__name__}). This is a bug in truecal" in result.stderr


def test_a_panic_of_polars_exits_70(plain, monkeypatch):
    import polars as pl

    def fail(*_, **__):
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr("truecal.inference.estimate.estimate", fail)
    assert "internal error (PanicException)" in run("measure", plain, code=70).stderr


def test_a_missing_package_exits_2(plain, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    for name in [name for name in sys.modules if name.startswith("truecal.cli._input")]:
        monkeypatch.delitem(sys.modules, name)  # as in a new process
    assert "pip install 'truecal[app]'" in refuse("measure", plain)


def test_file_errors_name_the_file(plain, tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("truecal.cli._output.write_text", full)
    message = run("measure", plain, "-o", tmp_path / "a.txt", code=2).stderr
    assert "a.txt: No space left on device." in message


def test_too_little_memory_is_one_line(plain, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("truecal.inference.estimate.estimate", fail)
    assert "not enough memory" in run("measure", plain, code=2).stderr


def test_a_killed_worker_is_one_line(plain, monkeypatch):
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def fail(*_, **__):
        raise TerminatedWorkerError

    monkeypatch.setattr("truecal.inference.estimate.estimate", fail)
    assert "worker process was killed" in run("measure", plain, code=2).stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full")
def test_a_full_disk_is_one_line_that_names_the_file(plain):
    assert (
        "/dev/full: No space left on device" in run("measure", plain, "-q", "-o", "/dev/full", code=2).stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in EXAMPLES.items() for line in lines]
)
def test_the_examples_in_the_help_run(name, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert line in run(name, "--help").stdout
    study = run("study", "--help").stdout.split("TOML file:")[1].partition("Options:")[0]
    (tmp_path / "study.toml").write_text(
        study.replace("1000", "5").replace("[200, 800]", "[50]").replace("[pop", "\n[pop")
    )
    program, *words = line.split()
    assert program == "truecal"
    run(*words, code=(0, 1))


def test_every_command_that_reads_predictions_has_an_example():
    assert {"measure", "report", "test", "compare", "audit", "recalibrate"} <= set(EXAMPLES) <= set(COMMANDS)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
def test_a_limit_on_memory_that_is_too_low_is_one_line(plain):
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (900_000_000, 900_000_000))
from truecal.__main__ import main
sys.argv = ["truecal", "measure", {str(plain)!r}]
sys.stderr = sys.stdout
main()
"""
    printed = python(code)
    assert printed.count("\n") == 1
    assert "limited to 0.9 GB (ulimit -v)" in printed
