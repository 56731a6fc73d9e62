import pytest

from support.command_line import run


@pytest.mark.parametrize(
    "options",
    [("--weight", "weight", "--weight", "score"), ("--norm", "1", "--norm=2"), ("--seed=1", "--seed", "2")],
)
def test_an_option_given_twice_is_refused(options, plain):
    name = options[0].partition("=")[0]
    assert f"{name} is given more than once" in run("measure", plain, *options, code=2).stderr


def test_repeatable_options_are_used_every_time(plain):
    text = run("measure", plain, "--group", "region", "--group", "weight").stdout
    assert "north, 1" in text
    assert "region, weight" in text


def test_several_files_are_refused_with_what_to_do(plain):
    said = run("measure", plain, plain, code=2).stderr
    assert "One FILE is read: quote a pattern" in " ".join(said.split())
