"""The files of the hosted project parse, and agree with one another and with the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import truecal
from support.snippets import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CLASSIFIERS = PYPROJECT["project"]["classifiers"]
PYTHONS = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(CLASSIFIERS), re.MULTILINE)
GITHUB = ROOT / ".github"


def load(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture
def matrix() -> dict[str, list[str]]:
    return load(GITHUB / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]


def test_every_supported_python_is_tested(matrix: dict[str, list[str]]) -> None:
    assert matrix["python"] == PYTHONS
    assert PYPROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_every_supported_system_is_tested(matrix: dict[str, list[str]]) -> None:
    systems = {
        "ubuntu-latest": "POSIX :: Linux",
        "macos-latest": "MacOS",
        "windows-latest": "Microsoft :: Windows",
    }
    supported = {name.partition(" :: ")[2] for name in CLASSIFIERS if name.startswith("Operating System")}
    assert {systems[name] for name in matrix["os"]} == supported


@pytest.mark.parametrize("name", ["ci", "docs", "release"])
def test_workflows_have_jobs_with_few_permissions(name: str) -> None:
    workflow = load(GITHUB / "workflows" / f"{name}.yml")
    assert workflow[True]  # YAML 1.1 reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_only_publishing_may_ask_for_an_identity() -> None:
    jobs = load(GITHUB / "workflows" / "release.yml")["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items() if "permissions" in job} == {
        "publish": {"id-token": "write"}
    }
    assert jobs["publish"]["environment"]["name"] == "pypi"


def test_commands_that_are_named_exist() -> None:
    files = [ROOT / ".ci" / "run", ROOT / "CONTRIBUTING.md", ROOT / ".readthedocs.yaml", *GITHUB.rglob("*.*")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    made = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:^|run: |`)make ([a-z-]+)", text, re.MULTILINE)) <= set(made)

    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    sessions = set(re.findall(r"^def (\w+)\(session: nox.Session\) -> None", noxfile, re.MULTILINE))
    packaging = load(GITHUB / "workflows" / "ci.yml")["jobs"]["packaging"]
    called = {*packaging["strategy"]["matrix"]["session"], *re.findall(r"nox -s ([a-z]+)", text)}
    assert {"sdist", "minimal", "oldest", "tests"} <= called <= sessions
    assert set(re.findall(r"--group (\w+)", text)) <= set(PYPROJECT["dependency-groups"])


@pytest.mark.parametrize(
    "path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_are_complete(path: Path) -> None:
    form = load(path)
    assert {"name", "description", "labels", "body"} == set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in asked}) == len(asked)
    assert all(field["attributes"]["label"] for field in asked)


@pytest.mark.parametrize("name", [".pre-commit-config.yaml", ".github/dependabot.yml", "CITATION.cff"])
def test_other_files_parse(name: str) -> None:
    assert load(ROOT / name)


def test_the_version_has_one_home() -> None:
    assert "version" in PYPROJECT["project"]["dynamic"]
    home = (ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'\n__version__ = "{truecal.__version__}"\n' in home


def test_the_citation_and_the_changelog_have_the_version() -> None:
    assert str(load(ROOT / "CITATION.cff")["version"]) == truecal.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == truecal.__version__


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", page)


def test_links_of_the_readme_lead_to_files_of_the_project() -> None:
    relative = [target for target in links(README) if not target.startswith(("https://", "#"))]
    assert len(relative) >= 8
    for target in relative:
        assert (ROOT / target).exists(), target
    assert "truecal.readthedocs.io" not in README
    assert "github.com/truecal" not in README


def test_links_of_the_readme_are_addresses_on_pypi() -> None:
    page = README
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for substitution in hook["substitutions"]:
        page = re.sub(substitution["pattern"], substitution["replacement"], page)
    targets = links(page)
    assert len(targets) == len(links(README))
    assert all(target.startswith(("https://", "#")) for target in targets)
    for target in (
        "https://raw.githubusercontent.com/truecal/truecal/main/docs/_static/report.png",
        "https://truecal.readthedocs.io/en/latest/guide/index.html",
        "https://github.com/truecal/truecal/blob/main/CHANGELOG.md",
    ):
        assert target in targets


def test_the_readme_begins_with_commands_that_work_in_a_clone() -> None:
    """Until the first release nothing is on PyPI, so the first screen shows no other command."""
    first_screen = "\n".join(README.splitlines()[:30])
    (fence,) = re.findall(r"```sh\n(.*?)```", first_screen, re.DOTALL)
    commands = [line.partition("  #")[0].strip() for line in fence.splitlines()]
    assert commands == ["make demo", "make test", "pip install '.[app]'"]
    assert set(re.findall(r"^pip install (\S+)", README, re.MULTILINE)) == {"'.[app]'"}
    assert "](docs/_static/overview.png)" in first_screen
    assert "import truecal" in first_screen
