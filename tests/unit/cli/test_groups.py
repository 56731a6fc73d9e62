from support.command_line import COLUMNS
from truecal.cli._groups import test_groups
from truecal.data.sample import Sample

SAMPLE = Sample.from_predictions(COLUMNS["label"], COLUMNS["score"])


def test_p_values_hold_for_all_groups_however_many():
    many = test_groups({str(k): SAMPLE for k in range(60)}, n_resamples=49, rng=0)
    assert max(test.adjusted_pvalue for test in many.values()) <= 0.05
    assert test_groups({}) == {}


def test_p_values_of_equivalence_are_not_adjusted():
    tests = test_groups({"a": SAMPLE, "b": SAMPLE}, at_most=0.5, rng=0)
    assert [test.adjusted_pvalue for test in tests.values()] == [None, None]
    assert max(test.pvalue for test in tests.values()) < 0.05
