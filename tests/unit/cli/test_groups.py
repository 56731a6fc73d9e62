from support.command_line import COLUMNS
from truecal.cli._groups import coarsened, test_groups
from truecal.data.cells import Cells
from truecal.data.sample import Sample


def test_p_values_hold_for_all_groups_and_large_samples_are_coarsened(monkeypatch):
    sample = Sample.from_rows(COLUMNS["label"], COLUMNS["score"])
    many = test_groups({str(k): sample for k in range(60)}, n_resamples=49, rng=0)
    assert max(test.adjusted_pvalue for test in many.values()) <= 0.05
    tests = test_groups({"a": sample, "b": sample}, n_resamples=49, rng=0)
    assert [test.adjusted_pvalue for test in tests.values()] == [1 / 50, 1 / 50]
    assert coarsened(sample) is sample
    monkeypatch.setattr("truecal.cli._groups._MANY_ROWS", 10)
    assert isinstance(coarsened(sample), Cells)
