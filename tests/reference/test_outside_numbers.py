"""Numbers that other people's published code gives on the same input.

Made data: the paper's authors' own estimators for bin, label and sweep, the estimators of
verified_calibration for debias, Mix-n-Match's KDE, each run on the input of `made` with 15 bins.

Real data: predictions gathered from public repositories, beside this project and not part of it (see the
`shared` fixture). Their numbers were printed by those who published the data, or are in the table of
``data/README.md`` there: 15 equal-width bins, closed on the right, float64.
"""

import numpy as np
import pytest

import truecal
from truecal.data import as_sample, as_samples

OUTSIDE = {
    (1500, "square", 1): {
        "ew_bin": 0.168158229088,
        "em_bin": 0.168158229088,
        "ew_sweep": 0.168158229088,
        "em_sweep": 0.168158229088,
        "ew_label": 0.168158229088,
        "em_label": 0.168158229088,
        "kde": 0.168179814260,
    },
    (1500, "square", 2): {
        "ew_bin": 0.185286271726,
        "em_bin": 0.185329891247,
        "ew_sweep": 0.182987151539,
        "em_sweep": 0.182663428057,
        "ew_label": 0.186283279707,
        "em_label": 0.186326862631,
        "ew_debias": 0.181568573417,
        "em_debias": 0.181612947957,
        "kde": 0.183792935207,
    },
    (1500, "identity", 1): {
        "ew_bin": 0.030103969328,
        "em_bin": 0.030903773825,
        "ew_sweep": 0.026730630642,
        "em_sweep": 0.026064150664,
        "ew_label": 0.033786488704,
        "em_label": 0.034519955806,
        "kde": 0.019340555472,
    },
    (1500, "identity", 2): {
        "ew_bin": 0.037307743027,
        "em_bin": 0.038486851728,
        "ew_sweep": 0.029669107768,
        "em_sweep": 0.029106915566,
        "ew_label": 0.041980060723,
        "em_label": 0.043032184519,
        "ew_debias": 0.0,
        "em_debias": 0.0,
        "kde": 0.022289636659,
    },
    (5000, "square", 2): {
        "ew_bin": 0.184851405492,
        "em_bin": 0.184872103763,
        "ew_sweep": 0.181425941985,
        "em_sweep": 0.181486511919,
        "ew_label": 0.185850538304,
        "em_label": 0.185871171800,
        "ew_debias": 0.183751391413,
        "em_debias": 0.183772879690,
        "kde": 0.183694376564,
    },
}
CASES = [(*key, name, value) for key, values in OUTSIDE.items() for name, value in values.items()]


def made(n, curve):
    """The input on which the other programs were run: multiples of irrational numbers, modulo 1."""
    i = np.arange(n, dtype=np.float64) + 0.5
    p = (i * 0.6180339887498949) % 1.0
    u = (i * 0.7548776662466927 + 0.31 * np.floor(i / 97.0)) % 1.0
    return (u < (p**2 if curve == "square" else p)).astype(np.int64), p


@pytest.mark.parametrize(("n", "curve", "norm", "name", "value"), CASES)
def test_the_programs_of_others(n, curve, norm, name, value):
    y, p = made(n, curve)
    tolerance = 1e-6 if name == "kde" else 1e-10
    assert truecal.calibration_error(y, p, estimator=name, norm=norm) == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize(("curve", "n_bins"), [("square", 9), ("identity", 10)])
def test_the_authors_number_of_bins(curve, n_bins):
    estimate = truecal.estimate(*made(1500, curve), estimator="em_sweep")
    assert estimate.n_bins == len(estimate.bins) == n_bins


# --- Real predictions -----------------------------------------------------------------------------

#: 15 equal-width bins, l1, as printed by hollance/reliability-diagrams for the data of markus93.
PRINTED = {
    "resnet110_c10": 0.047503519,
    "resnet110_c100": 0.184804544,
    "densenet40_c10": 0.055002704,
    "densenet40_c100": 0.211562853,
}

#: File, split, n, different scores (None where float64 here parts float32 ties), l1 and l2 of 15 bins.
TABLE = [
    ("aigen_cifar10_resnet110", "val", 5000, None, 0.024799, 0.058074),
    ("aigen_cifar10_resnet110", "test", 10000, None, 0.025642, 0.049564),
    ("aigen_cifar10_wide_resnet", "val", 5000, None, 0.013131, 0.027441),
    ("aigen_cifar10_wide_resnet", "test", 10000, None, 0.012515, 0.029450),
    ("aigen_cifar100_resnet50", "val", 5000, None, 0.066177, 0.089600),
    ("aigen_cifar100_resnet50", "test", 10000, None, 0.065239, 0.087735),
    ("netcal_wideresnet_16_4_cifar_10", "", 10000, 4539, 0.053716, 0.074901),
    ("plambda_cifar10_vgg16", "", 10000, 5648, 0.039780, 0.065280),
    ("cleanlab_imdb_test_set", "", 25000, 19447, 0.040395, 0.043283),
    ("hollance_markus93_densenet40_c10", "", 10000, 2751, 0.055003, 0.082266),
    ("hollance_markus93_densenet40_c100", "", 10000, 6763, 0.211563, 0.233356),
    ("hollance_markus93_resnet110_c10", "", 10000, 2890, 0.047504, 0.066510),
    ("hollance_markus93_resnet110_c100", "", 10000, 7322, 0.184805, 0.209117),
    ("cgn_pytorch_imagenet_resnet50", "", 50000, 45847, 0.039050, 0.043955),
    ("f538_mlb_playoffs", "", 274260, 44484, 0.009500, 0.014020),
    ("weather_niamey_EMOS", "", 92, 92, 0.084323, 0.130753),
    ("weather_niamey_ENS", "", 92, 33, 0.274247, 0.295413),
    ("adult_random_forest", "", 16281, 101, 0.046535, 0.053655),
    ("f538_nba_elo_1946on", "", 69377, None, 0.005329, 0.006521),
]
#: Scores lie on the edges k/15, so that bins closed on the right, as in the table, are other bins than ours.
ON_EDGES = ("adult_random_forest", "f538_mlb_playoffs")


def load(shared, name, split=""):
    """Read the one sample of a file: the top label, or the positive class of binary data."""
    with np.load(shared / "data" / f"{name}.npz", allow_pickle=False) as data:
        if split:
            sample = as_sample(data[f"{split}_labels"], data[f"{split}_logits"], logits=True)
        elif "probs" in data:
            # One of these files has probabilities of up to 1.0000012.
            sample = as_sample(data["labels"], np.clip(data["probs"], 0, 1), multiclass="top")
        elif "confidence" in data:
            sample = as_sample(data["pred"] == data["labels"], data["confidence"])
        elif "top5_probs" in data:
            sample = as_sample(data["top5_preds"][:, 0] == data["labels"], data["top5_probs"][:, 0])
        else:
            sample = as_sample(data["labels"], data["scores"])
    return sample


@pytest.mark.parametrize(("name", "value"), PRINTED.items())
def test_real_data_match_what_their_authors_printed(shared, name, value):
    sample = load(shared, f"hollance_markus93_{name}")
    assert truecal.calibration_error(sample, estimator="ew_bin", norm=1) == pytest.approx(value, abs=2e-6)


@pytest.mark.parametrize(("name", "split", "n", "distinct", "l1", "l2"), TABLE)
def test_real_data_match_their_table(shared, name, split, n, distinct, l1, l2):
    sample = load(shared, name, split)
    assert sample.n == n
    if distinct is not None:
        assert len(sample) == distinct
    if name in ON_EDGES:
        # Seen from 1 downwards, bins that are closed on the left are closed on the right.
        sample = as_sample(
            np.repeat([0, 1], len(sample)),
            np.tile(np.round(1 - sample.score, 12), 2),
            sample_weight=np.concatenate([sample.positives, sample.count - sample.positives]),
        )
    assert truecal.calibration_error(sample, estimator="ew_bin", norm=1) == pytest.approx(l1, abs=6e-7)
    assert truecal.calibration_error(sample, estimator="ew_bin", norm=2) == pytest.approx(l2, abs=6e-7)


@pytest.mark.parametrize("name", ["hollance_markus93_densenet40_c10", "adult_random_forest"])
def test_shuffling_heavily_tied_real_data_changes_nothing(shared, name):
    """Over half of the scores of this DenseNet are exactly 1; splitting ties gave 9.05% to 10.29%."""
    with np.load(shared / "data" / f"{name}.npz", allow_pickle=False) as data:
        y, p = (
            (data["pred"] == data["labels"], data["confidence"])
            if "pred" in data
            else (data["labels"], data["scores"])
        )
        y, p = np.asarray(y), np.asarray(p)
    rng = np.random.default_rng(0)
    for estimator in ("em_sweep", "em_bin", "em_debias", "kde"):
        value = truecal.calibration_error(y, p, estimator=estimator)
        for order in (rng.permutation(len(y)), np.lexsort((y, p)), np.lexsort((~y.astype(bool), p))):
            assert truecal.calibration_error(y[order], p[order], estimator=estimator) == value


def test_two_columns_of_real_data_are_their_second(shared):
    with np.load(shared / "data" / "cleanlab_imdb_test_set.npz", allow_pickle=False) as data:
        y, proba = data["labels"], np.clip(data["probs"], 0, 1)
    for estimator in ("em_sweep", "ew_bin", "em_debias"):
        both = truecal.calibration_error(y, proba, estimator=estimator)
        assert both == truecal.calibration_error(y, proba[:, 1], estimator=estimator)
        assert both != truecal.calibration_error(y, proba, estimator=estimator, multiclass="top")


def test_probabilities_beyond_one_in_real_data_are_refused_with_advice(shared):
    with np.load(shared / "data" / "cleanlab_imdb_test_set.npz", allow_pickle=False) as data:
        y, proba = data["labels"], data["probs"]
    with pytest.raises(
        ValueError, match=r"outside \[0, 1\] \(first at row 13: 1\.0000012\)\. If .* numpy\.clip"
    ):
        truecal.calibration_error(y, proba)


def test_classwise_on_a_hundred_real_classes(shared):
    with np.load(shared / "data" / "aigen_cifar100_resnet50.npz", allow_pickle=False) as data:
        y, logits = data["test_labels"], data["test_logits"]
    samples = as_samples(y, logits, multiclass="classwise", logits=True)
    assert len(samples) == 100
    assert {sample.n for sample in samples} == {10_000}
    assert sum(sample.positives.sum() for sample in samples) == 10_000
    assert sum(np.sum(sample.score * sample.count) for sample in samples) == pytest.approx(10_000, rel=1e-12)
