"""Which modules and cases pytest leaves out."""

from importlib.util import find_spec

import pytest

# What cannot be imported without a package.
NEEDS = {
    "src/truecal/integrations/torchmetrics.py": "torchmetrics",
    "tests/contract/test_odd_files.py": "click",
    "tests/contract/test_prediction_files.py": "click",
}
collect_ignore = [path for path, package in NEEDS.items() if not find_spec(package)]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--cases``, for runs that look for incompatible versions."""
    parser.addoption("--cases", type=int, help="run so many cases of each parametrized test, evenly spread")


@pytest.hookimpl(trylast=True)  # after `-m` and `-k`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is beyond ``--cases``."""
    limit = config.getoption("cases")
    if not limit:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for same in cases.values() for item in same[:: max(1, -(-len(same) // limit))]}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
