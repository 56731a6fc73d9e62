import pytest

import truecal
from truecal.cli.study import load_study

WHOLE = """
sizes = [200, 800]
estimators = ["em_sweep", { estimator = "em_bin", n_bins = 30 }]
repeats = 10
norm = 1
seed = 4
paper = ["resnet110_c10"]
paper_calibrated = "all"

[populations.plain]
scores = { kind = "beta", a = 2.8, b = 0.05 }
curve = { kind = "power", d = 2 }

[populations.nested]
curve = { kind = "glm", link = "log", transform = "log", b0 = -0.03, b1 = 1.27 }
[populations.nested.scores]
kind = "mixture"
weights = [0.9, 0.1]
components = [
  { kind = "rounded", base = { kind = "uniform" }, decimals = 2 },
  { kind = "atoms", values = [1.0] },
]
"""


def write(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_everything(tmp_path):
    arguments = load_study(write(tmp_path, WHOLE))
    populations = arguments.pop("populations")
    assert arguments == {
        "sizes": [200, 800],
        "estimators": ["em_sweep", {"estimator": "em_bin", "n_bins": 30}],
        "repeats": 10,
        "norm": 1,
        "rng": 4,
    }
    assert len(populations) == 1 + 10 + 2
    assert populations["resnet110_c10"] == truecal.paper.population("resnet110_c10")
    assert populations["resnet110_c10 calibrated"].true_error() == 0
    assert populations["plain"] == truecal.Population(
        truecal.simulation.BetaScores(2.8, 0.05), truecal.simulation.PowerCurve(2)
    )
    assert populations["nested"].true_error() > 0


START = "sizes = [3]\nestimators = ['ks']\n"
TABLE = START + "[populations.x]\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sizes = [", "study.toml"),
        ("size = [1]", "Did you mean 'sizes'"),
        ("sizes = 3\nestimators = []", "sizes must be a list"),
        ("sizes = [3]", r"estimators must be a list such as .*\]\.$"),
        (START, "populations are missing"),
        (START + "paper = ['resnet']", "paper must be one of"),
        (START + "paper = 3", "paper must be"),
        (START + "populations = 3", "populations must be tables"),
        (START + "populations.x = 3", "population 'x' must be a table"),
        ("sizes = [3]\nestimators = [3]", "estimators must be names"),
        ("sizes = " + "[" * 20_000, "study.toml"),
        (TABLE + "scores = { kind = 'uniform' }", "has no 'curve'"),
        (TABLE + "scores = 3\ncurve = { kind = 'identity' }", "scores must be"),
        (
            TABLE + "scores = { kind = 'beta', a = -1, b = 1 }\ncurve = { kind = 'identity' }",
            "population 'x'",
        ),
        (TABLE + "scores = { kind = 'uniform', mean = 1 }\ncurve = { kind = 'identity' }", "mean"),
        (TABLE + "scores = { kind = 'uniform' }\ncurve = { kind = 'powr' }", "Did you mean 'power'"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, text, says):
    with pytest.raises(ValueError, match=says):
        load_study(write(tmp_path, text))
