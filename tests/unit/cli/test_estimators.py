import json

import truecal
from support.command_line import run


def test_estimators_are_listed():
    names = [row["name"] for row in json.loads(run("estimators", "--format", "json").stdout)["results"]]
    assert names == [spec.name for spec in truecal.list_estimators()]
    assert all(name in run("estimators").stdout for name in names)
