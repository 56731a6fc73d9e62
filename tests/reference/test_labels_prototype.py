"""The designs of labels_prototype.json are those that its script makes today."""

import json

import pytest

from reference import labels_prototype

RECORD = json.loads(labels_prototype.FILE.read_text(encoding="utf-8"))["designs"]


def test_all_designs_are_recorded():
    assert {name: json.loads(json.dumps(one)) for name, one in labels_prototype.DESIGNS.items()} == {
        name: one["settings"] for name, one in RECORD.items()
    }


@pytest.mark.parametrize("name", RECORD)
def test_inputs_are_those_of_the_record(name):
    inputs = labels_prototype.inputs(**labels_prototype.DESIGNS[name])
    assert labels_prototype.check(inputs) == pytest.approx(RECORD[name]["check"], rel=1e-9)
