"""The torchmetrics metric, on one process and on two."""

import doctest
import pickle
import re
import time

import numpy as np
import pytest
import torch
import torch.distributed
import torch.multiprocessing
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryCalibrationError

import truecal
from support.engine_contract import assert_same
from truecal.data import as_sample
from truecal.data.cells import Cells, cell_of
from truecal.integrations import torchmetrics
from truecal.integrations.torchmetrics import CalibrationMetric

N = 6000


def binary():
    y, p = truecal.paper.population("resnet110_c100").sample(N, rng=0)
    return torch.from_numpy(y.astype(np.int64)), torch.from_numpy(p)


def several():
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(0, 2, (N, 5)))
    label = torch.from_numpy((logits.numpy() + rng.gumbel(size=(N, 5))).argmax(axis=1))
    return label, logits


def test_the_examples_run():
    failed, run = doctest.testmod(torchmetrics, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert run >= 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batches_give_the_cells_of_the_whole(dtype):
    y, p = binary()
    p = p.to(dtype)
    metric = CalibrationMetric()
    for first in range(0, N, 500):
        metric.update(p[first : first + 500], y[first : first + 500])
    assert_same(metric.cells(), Cells.from_sample(as_sample(y.numpy(), p.numpy())))
    assert metric.compute().dtype == torch.float64
    assert metric.compute().item() == metric.estimate().value


def test_top_label_of_several_classes():
    y, logits = several()
    proba = logits.softmax(dim=1)
    metric = CalibrationMetric("em_bin")
    metric.update(proba, y)
    assert_same(metric.cells(), Cells.from_sample(as_sample(y.numpy(), proba.numpy())))
    with pytest.raises(ValueError, match="preds has 1 classes, and had 5 before"):
        metric.update(proba[:, 0], y > 0)


def test_of_equal_scores_the_first_counts():
    metric = CalibrationMetric("ew_bin")
    metric.update(torch.tensor([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]), torch.tensor([1, 1]))
    assert metric.cells().positives.tolist() == [1]


def test_two_columns_are_the_second():
    y, p = binary()
    one, two = CalibrationMetric(), CalibrationMetric()
    one.update(p, y)
    two.update(torch.stack([1 - p, p], dim=1), y)
    assert_same(two.cells(), one.cells())


def test_logits():
    y, logits = several()
    metric = CalibrationMetric("ew_bin", logits=True)
    metric.update(logits.float(), y)
    exact = as_sample(y.numpy(), logits.float().numpy(), logits=True)
    assert metric.cells().positives.sum() == exact.positives.sum()
    expected = truecal.calibration_error(exact, estimator="ew_bin")
    assert metric.compute().item() == pytest.approx(expected, abs=1e-9)
    metric = CalibrationMetric("ew_bin", logits=True)
    metric.update(torch.tensor([40.0, -1000.0, 0.0]), torch.tensor([1, 0, 1]))
    assert metric.cells().score.tolist() == [0, 0.5, 1]


def test_images_and_padding():
    y, logits = several()
    pixels = logits.softmax(dim=1).reshape(60, 10, 10, 5).movedim(-1, 1)  # (N, K, height, width)
    labels = y.reshape(60, 10, 10).clone()
    labels[:, 0] = -100
    metric = CalibrationMetric(ignore_index=-100)
    metric.update(pixels, labels)
    kept = labels.reshape(-1) != -100
    assert_same(
        metric.cells(), Cells.from_sample(as_sample(y[kept].numpy(), logits[kept].softmax(dim=1).numpy()))
    )
    metric.update(pixels[:, :, :1], labels[:, :1])  # nothing but padding
    assert metric.cells().n == kept.sum()


def test_clusters_that_fit_into_the_blocks_give_the_answers_of_rows():
    y, p = binary()
    p, patient = (p * 1000).round() / 1000, torch.arange(N) // 100
    metric = CalibrationMetric(n_blocks=64)
    for first in range(0, N, 500):
        part = slice(first, first + 500)
        metric.update(p[part], y[part], patient[part] - 64)  # any whole numbers will do
    exact = as_sample(y.numpy(), p.numpy(), clusters=patient.numpy())
    cells = metric.cells()
    assert cells.clusters.n_clusters == 60
    assert metric.compute().item() == pytest.approx(truecal.calibration_error(exact), abs=1e-9)
    found, wanted = truecal.confidence_interval(cells), truecal.confidence_interval(exact)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert metric.sums.numel() == 64 * 3 * 2**16
    with pytest.raises(ValueError, match="cannot be merged"):
        cells.merge(cells)


def test_clusters_beyond_the_blocks_stay_whole():
    y, p = binary()
    metric = CalibrationMetric(n_blocks=20)
    metric.update(p, y, torch.arange(N) // 10)
    blocks = as_sample(y.numpy(), p.numpy(), clusters=np.arange(N) // 10 % 20)
    assert metric.cells().clusters.sizes == pytest.approx(blocks.clusters.sizes)
    assert metric.estimate().n_clusters == 20


def test_an_image_is_a_cluster_of_pixels():
    rng = torch.Generator().manual_seed(1)
    proba = torch.rand(30, 3, 8, 8, generator=rng, dtype=torch.float64).softmax(dim=1)
    label = torch.randint(3, (30, 8, 8), generator=rng)
    label[:, 0] = -100
    metric, pixels = (CalibrationMetric(n_blocks=32, ignore_index=-100) for _ in range(2))
    metric.update(proba, label, torch.arange(30))
    pixels.update(proba, label, torch.arange(30)[:, None, None].expand(30, 8, 8))
    assert metric.cells().clusters.sizes.tolist() == [56.0] * 30
    assert torch.equal(metric.sums, pixels.sums)
    assert_same(metric.cells(), pixels.cells())


@pytest.mark.parametrize(
    ("n_blocks", "clusters", "says"),
    [
        (None, torch.tensor([1, 2]), "clusters needs n_blocks, in the constructor"),
        (20, None, "clusters is missing"),
        (20, torch.tensor([1.0, 2.0]), "clusters must be whole numbers. Got torch.float32 instead"),
        (20, torch.tensor([1, 2, 3]), r"clusters must have the shape of target.* Got \(3,\) and \(2,\)"),
    ],
)
def test_bad_clusters(n_blocks, clusters, says):
    metric = CalibrationMetric(n_blocks=n_blocks)
    with pytest.raises(ValueError, match=says):
        metric.update(torch.tensor([0.2, 0.7]), torch.tensor([0, 1]), clusters)


def test_half_precision():
    y, logits = several()
    for dtype in (torch.float16, torch.bfloat16):
        metric = CalibrationMetric("ew_bin")
        metric.update(logits.softmax(dim=1).to(dtype), y)
        assert metric.cells().dtype == np.float32
        assert 0 < metric.compute().item() < 1


def test_forward_merge_and_reset():
    y, p = binary()
    metric = CalibrationMetric("em_bin", n_bins=10, norm=1)
    for first in range(0, N, 1000):
        rows = slice(first, first + 1000)
        batch = metric(p[rows], y[rows])
        exact = truecal.calibration_error(
            Cells.from_sample(as_sample(y[rows].numpy(), p[rows].numpy())),
            estimator="em_bin",
            n_bins=10,
            norm=1,
        )
        assert batch.item() == pytest.approx(exact, abs=1e-12)
    assert_same(metric.cells(), Cells.from_sample(as_sample(y.numpy(), p.numpy())))

    one, two = CalibrationMetric("em_bin"), CalibrationMetric("em_bin")
    one.update(p[:100], y[:100])
    two.update(p[100:], y[100:])
    one.merge_state(two)
    assert_same(one.cells(), metric.cells())

    one.reset()
    with pytest.raises(ValueError, match="No data yet"):
        one.cells()
    with pytest.warns(UserWarning, match="before"):
        assert np.isnan(one.compute().item())


def test_it_is_copied_saved_and_collected():
    y, p = binary()
    metric = CalibrationMetric("ew_debias")
    metric.update(p, y)
    assert pickle.loads(pickle.dumps(metric)).compute() == metric.compute()

    metric.persistent(True)
    other = CalibrationMetric("ew_debias")
    other.load_state_dict(metric.state_dict())
    assert_same(other.cells(), metric.cells())

    collection = MetricCollection({"sweep": CalibrationMetric(), "theirs": BinaryCalibrationError()})
    collection.update(p, y)
    assert set(collection.compute()) == {"sweep", "theirs"}


def test_it_keeps_float64_when_the_model_is_made_smaller():
    y, p = binary()
    model = torch.nn.Module()
    model.metric = CalibrationMetric()
    model.half()
    model.metric.update(p, y)
    assert model.metric.sums.dtype == torch.float64


def test_memory_does_not_grow_with_the_data():
    ours, theirs = CalibrationMetric(), BinaryCalibrationError()
    y, p = binary()

    def size(metric):
        states = [getattr(metric, name) for name in metric._defaults]
        tensors = [part for state in states for part in (state if isinstance(state, list) else [state])]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    sizes = []
    for _ in range(3):
        ours.update(p, y)
        theirs.update(p, y)
        sizes.append((size(ours), size(theirs)))
    assert len({ours for ours, _ in sizes}) == 1
    assert sizes[0][0] == 4 * 8 * 65536 + 24
    assert sizes[2][1] == 3 * sizes[0][1]


@pytest.mark.parametrize(
    ("preds", "target", "says"),
    [
        ([0.1, float("nan")], [0, 1], r"preds has 1 missing \(NaN\) value \(first at row 1"),
        (
            [0.1, 1.5],
            [0, 1],
            r"outside \[0, 1\] \(first at row 1: 1\.5\)\. Pass probabilities, or logits with logits=True",
        ),
        ([-3.0, 1.5], [0, 1], r"preds has 2 values outside"),
        ([0.1, 0.5], [0, 2], "target has 1 label other than 0 to 1"),
        ([0.1, 0.5], [0.0, 0.5], "target has 1 label other than 0 to 1"),
        ([[0.2, 0.2, 0.2], [0.5, 0.3, 0.2]], [0, 1], "preds has 1 row whose sum is not 1"),
        ([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]], [0, 3], "target has 1 label other than 0 to 2"),
        ([0.1, 0.5], [[0], [1]], "preds must have the shape of target"),
        ([1, 0], [0, 1], "preds must be probabilities"),
    ],
)
def test_bad_batches(preds, target, says):
    metric = CalibrationMetric()
    with pytest.raises(ValueError, match=says):
        metric.update(torch.tensor(preds), torch.tensor(target))
    assert not metric.kind[0]


@pytest.mark.parametrize(
    ("preds", "target", "clusters", "says"),
    [
        ([0.2, 0.7], torch.tensor([0, 1]), None, "preds must be a tensor. Got list instead"),
        (torch.tensor([0.2, 0.7]), [0, 1], None, "target must be a tensor. Got list instead"),
        (np.array([0.2, 0.7]), torch.tensor([0, 1]), None, "preds must be a tensor. Got ndarray instead"),
        (
            torch.tensor([0.2, 0.7]),
            torch.tensor([0, 1]),
            [1, 2],
            "clusters must be a tensor. Got list instead",
        ),
        (torch.tensor([0.2, 0.7]), None, None, "target must be a tensor. Got NoneType instead"),
        (
            torch.tensor([0.2, 0.7]).to_sparse(),
            torch.tensor([0, 1]),
            None,
            "preds must be dense. Got torch.sparse_coo instead. Pass to_dense()",
        ),
        (torch.tensor([0.2, 0.7]), torch.tensor([0, 1]).to_sparse(), None, "target must be dense"),
        (
            torch.empty(2, device="meta"),
            torch.tensor([0, 1]),
            None,
            "preds is on meta, and the metric on cpu",
        ),
        (torch.tensor([0.2, 0.7]), torch.empty(2, device="meta"), None, "target is on meta"),
        (torch.tensor([0.2, 0.7j]), torch.tensor([0, 1]), None, "preds must hold real numbers"),
        (torch.tensor([0.2, 0.7]), torch.tensor([0, 1j]), None, "target must hold real numbers"),
        (
            torch.tensor([0.2, 0.7]),
            torch.tensor([0, 2.0]).bfloat16(),
            None,
            "target has 1 label other than 0 to 1",
        ),
        (torch.empty(2, 0), torch.tensor([0, 1]), None, "preds must have the shape of target"),
        (torch.full((3, 4), 0.25), torch.tensor([0, 1]), None, "preds must have the shape of target"),
        (torch.tensor([0.2, 0.8]), torch.tensor(1), None, "preds must have the shape of target"),
    ],
)
def test_what_is_not_a_batch_of_dense_tensors(preds, target, clusters, says):
    metric = CalibrationMetric(n_blocks=None if clusters is None else 20)
    with pytest.raises(truecal.InputError, match=re.escape(says)):
        metric.update(preds, target, clusters)
    assert not metric.kind[0]


@pytest.mark.parametrize("shape", [(), (3,), (0,), (0, 4), (2, 3, 4)])
def test_scores_of_any_shape(shape):
    metric = CalibrationMetric("ew_bin")
    metric.update(torch.full(shape, 0.5), torch.ones(shape, dtype=torch.bool))
    assert metric.sums[0].sum() == np.prod(shape)


def test_one_column_is_the_probability_of_class_one():
    y, p = binary()
    one, two = CalibrationMetric(), CalibrationMetric()
    one.update(p, y)
    two.update(p[:, None], y)
    assert_same(two.cells(), one.cells())


def test_cells_are_those_of_numpy():
    rng = np.random.default_rng(0)
    ends = np.array([0, 5e-324, 1e-300, 1e-17, 1 - 2**-53, 1])
    for score in (rng.random(50_000), 10 ** rng.uniform(-20, 0, 50_000), ends, ends[1:-1]):
        assert (torchmetrics._cell_of(torch.from_numpy(score)).numpy() == cell_of(score)).all()


def test_the_state_is_written_in_place_and_nothing_else_is():
    y, p = binary()
    metric = CalibrationMetric()
    kept = {name: value.clone() for name, value in metric._defaults.items()}
    metric.update(p, y)
    whole, copy = metric.cells(), metric.clone()
    snapshot = {name: value.clone() for name, value in metric.metric_state.items()}
    cache = metric._copy_state_dict()
    metric.update(p, y)
    assert all((cache[name] == value).all() for name, value in snapshot.items())
    assert_same(copy.cells(), whole)
    metric.reset()
    assert all((metric._defaults[name] == value).all() for name, value in kept.items())
    metric.update(p, y)
    assert_same(metric.cells(), whole)


def test_inference_mode():
    """A state that was reset in inference mode may not be written to outside of it."""
    y, p = binary()
    metric, plain = CalibrationMetric(), CalibrationMetric()
    with torch.inference_mode():
        metric.reset()
        metric.update(p[:1000], y[:1000])
    metric.update(p[1000:], y[1000:])
    with torch.inference_mode():
        metric.update(p[:1000], y[:1000])
    for rows in (slice(1000), slice(1000, N), slice(1000)):
        plain.update(p[rows], y[rows])
    assert_same(metric.cells(), plain.cells())


def test_without_checks_nan_is_not_a_crash():
    metric = CalibrationMetric("ew_bin", validate_args=False)
    metric.update(torch.tensor([0.2, float("nan"), 0.7]), torch.tensor([0, 1, 1]))
    assert metric.sums[0].sum() == 3
    assert metric.sums[1].isnan().any()


def test_updates_take_little_longer_than_those_of_torchmetrics():
    """About 1.2 times as long on an idle machine, and 3 to 5 times if an update copies the state."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    p = torch.rand(40, 5000, generator=rng)
    y = (torch.rand(40, 5000, generator=rng) < p).int()

    def seconds(metric):
        start = time.process_time()
        for one, label in zip(p, y, strict=True):
            metric.update(one, label)
        return time.process_time() - start

    try:
        times = [(seconds(CalibrationMetric()), seconds(BinaryCalibrationError())) for _ in range(10)]
    finally:
        torch.set_num_threads(threads)
    ours, theirs = (min(column) for column in zip(*times, strict=True))
    assert ours < 2 * theirs


def test_merged_metrics_of_other_numbers_of_classes_are_refused():
    one, two = CalibrationMetric("em_bin"), CalibrationMetric("em_bin")
    one.update(torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([1]))
    two.update(torch.tensor([0.4]), torch.tensor([1]))
    one.merge_state(two)
    with pytest.raises(ValueError, match="preds has 1 classes on one process and 3 on another"):
        one.compute()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_scripting_says_that_it_cannot_be():
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), CalibrationMetric())
    for module in (CalibrationMetric(), model):
        with pytest.raises(
            TypeError, match=r"cannot be compiled by torch\.jit\.script: .* Script the model without"
        ):
            torch.jit.script(module)


def test_bad_options():
    with pytest.raises(ValueError, match="Did you mean 'em_sweep'"):
        CalibrationMetric("em_swep")
    with pytest.raises(ValueError, match="Unexpected keyword arguments: `n_bin`"):
        CalibrationMetric("em_bin", n_bin=3)
    with pytest.raises(ValueError, match="1 infinite or NaN value"):
        CalibrationMetric(logits=True).update(torch.tensor([float("inf")]), torch.tensor([1]))


def run_process(rank, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
    )
    y, p = binary()
    label, logits = several()
    metric, top, lonely = CalibrationMetric(), CalibrationMetric("em_bin"), CalibrationMetric("ew_bin")
    # Parts of different sizes; and one metric that only the second process has data for.
    mine = slice(0, N // 3) if rank == 0 else slice(N // 3, N)
    for first in range(mine.start, mine.stop, 500):
        metric.update(p[first : first + 500], y[first : first + 500])
    top.update(logits[mine].softmax(dim=1), label[mine])
    if rank == 1:
        lonely.update(p[:100], y[:100])
        lonely.update(p[:100], y[:100])
    else:
        lonely.update(p[:0], y[:0])
    differing = CalibrationMetric("em_bin")
    differing.update(logits[:5, : 3 + rank].softmax(dim=1), label[:5] % 3)
    try:
        differing.compute()
        refusal = "none"
    except ValueError as error:
        refusal = str(error)
    result = {
        "refusal": refusal,
        "value": metric.compute().item(),
        "cells": metric.cells(),
        "top": top.cells(),
        "lonely": lonely.compute().item(),
        "alone": metric.sums[0].sum().item(),  # after the sync each process has its own part again
    }
    with open(f"{folder}/{rank}.pickle", "wb") as file:  # noqa: PTH123
        pickle.dump(result, file)
    torch.distributed.destroy_process_group()


def test_two_processes_have_the_answer_of_one(tmp_path):
    torch.multiprocessing.spawn(run_process, args=(str(tmp_path),), nprocs=2)
    y, p = binary()
    label, logits = several()
    whole, doubled = CalibrationMetric(), CalibrationMetric("ew_bin")
    whole.update(p, y)
    doubled.update(p[:100].repeat(2), y[:100].repeat(2))
    for rank, rows in ((0, N // 3), (1, N - N // 3)):
        result = pickle.loads((tmp_path / f"{rank}.pickle").read_bytes())
        assert result["refusal"] == "preds has 3 classes on one process and 4 on another."
        assert_same(result["cells"], Cells.from_sample(as_sample(y.numpy(), p.numpy())))
        assert_same(result["top"], Cells.from_sample(as_sample(label.numpy(), logits.softmax(dim=1).numpy())))
        assert result["value"] == pytest.approx(whole.compute().item(), abs=1e-12)
        assert result["lonely"] == pytest.approx(doubled.compute().item(), abs=1e-12)
        assert result["alone"] == rows


@pytest.mark.parametrize("make", ["sparse", "float8", "gradients"])
def test_tensors_that_numpy_does_not_have(make):
    score = torch.tensor([0.25, 0.75, 0.5, 1.0])
    label = [0, 1, 1, 1]
    if make == "float8":  # these scores are exact in it
        small = score.to(torch.float8_e4m3fn)
        assert truecal.calibration_error(label, small) == truecal.calibration_error(label, score)
        return
    odd = score.to_sparse() if make == "sparse" else [part.requires_grad_() for part in score.unbind()]
    with pytest.raises(truecal.InputError, match="array"):
        truecal.calibration_error(label, odd)


def test_the_type_of_the_sums_cannot_be_changed():
    with pytest.raises(truecal.InputError, match="float64"):
        CalibrationMetric().set_dtype(torch.float16)
