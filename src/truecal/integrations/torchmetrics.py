"""A torchmetrics metric whose state is cells: of fixed size, in float64, and the same on one process or many.

torchmetrics' own calibration error keeps every score until it computes, adds up in float32, and silently takes scores
outside [0, 1] for logits. This one keeps 2^16 cells (2.1 MB), which processes add up. Where rows depend on each other,
as the pixels of an image do, it keeps the cells of a fixed number of blocks of whole clusters.

>>> import torch
>>> metric = CalibrationMetric("em_debias", n_bins=10)
>>> scores = torch.linspace(0.005, 0.995, 100, dtype=torch.float64).repeat(50)
>>> labels = (7 * torch.arange(5000)) % 5000 < 5000 * scores**2
>>> for batch in range(10):
...     metric.update(scores[batch::10], labels[batch::10])
>>> round(metric.compute().item(), 2)
0.18
>>> metric.estimate().n_bins
10
"""

# Where torch is not installed, its classes are unknown to mypy.
# mypy: disable-error-code="import-not-found,misc"

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from truecal._lib.checks import check_count, require
from truecal.data import cells as grid
from truecal.data import faults
from truecal.data.arrays import top_target
from truecal.data.cells import Cells, with_clusters
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.exceptions import InputError, Remedy
from truecal.inference.estimate import calibration_error, estimate
from truecal.results import Estimate

# Before they are imported, so that the error says what to install.
for _package in ("torch", "torchmetrics"):
    require(_package, extra="torch", purpose="The metric for torchmetrics")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torchmetrics import Metric  # noqa: E402

#: Stands for minus the number of classes where there is no data.
_NO_DATA = -(2**31)


class CalibrationMetric(Metric):
    """Calibration error of a model's probabilities, by any estimator of truecal.

    ``update(preds, target)`` takes scores of any shape with targets 0 and 1 of the same shape, or scores of shape
    (N, K, ...) with targets 0 to K - 1 of shape (N, ...). Two classes are measured on the second, more on their
    top label. `compute` returns the error, `estimate` returns the whole result of `truecal.estimate`.

    With `n_blocks`, ``update(preds, target, clusters)`` also takes whole numbers that name rows which depend on each
    other: one for each target, or one for each element of the first dimension, such as an image with all its pixels. A
    state of fixed size cannot tell any number of clusters apart, so cluster i goes to block i modulo `n_blocks`.
    Clusters are independent of each other, and so are blocks of whole clusters: intervals and tests from `cells` are
    valid, and count blocks as clusters. An interval needs at least 15 blocks; with 64 the variance is known to within
    18%. They take 1.6 MB each.

    The state is in float64, which Apple's MPS devices do not have.

    Parameters
    ----------
    estimator : str
        One of `truecal.list_estimators`.
    logits : bool
        Whether `update` is given logits, which the sigmoid or the softmax turns into probabilities.
    ignore_index : int, optional
        A target that marks rows to leave out, such as the padding of sequences.
    n_blocks : int, optional
        Number of blocks of clusters, such as 64, if rows depend on each other.
    validate_args : bool
        Whether to check each batch. On an accelerator a check waits until the batch has been computed.
    **kwargs
        Options of the estimator, `norm` and `n_bins` among them, and those of `torchmetrics.Metric`.

    Examples
    --------
    >>> metric = CalibrationMetric("ew_bin", norm=1)
    >>> metric(torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), torch.tensor([0, 1]))
    tensor(0.3500, dtype=torch.float64)

    Forty images of 100 pixels each; all pixels of an image are right or wrong together, which `cells` allow for.

    >>> import truecal
    >>> metric = CalibrationMetric(n_blocks=64)
    >>> right = torch.rand(40, generator=torch.Generator().manual_seed(0)) < 0.5
    >>> metric.update(torch.full((40, 10, 10), 0.5), right[:, None, None].expand(40, 10, 10), torch.arange(40))
    >>> 0 in truecal.confidence_interval(metric.cells())
    True
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    sums: Tensor
    lower: Tensor
    kind: Tensor

    def __init__(
        self,
        estimator: str = DEFAULT_ESTIMATOR,
        *,
        logits: bool = False,
        ignore_index: int | None = None,
        n_blocks: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        spec = get_estimator(estimator)
        options = {name: kwargs.pop(name) for name in [*spec.options, "norm"] if name in kwargs}
        super().__init__(**kwargs)
        self.estimator, self.options = spec.name, options
        self.logits, self.ignore_index, self.validate_args = logits, ignore_index, validate_args
        self.n_blocks = None if n_blocks is None else check_count("n_blocks", n_blocks)
        # Counts, sums of scores and sums of labels, by block; then the smallest score of each cell.
        shape = (3, self.n_blocks or 1, grid.N_CELLS)
        self.add_state("sums", torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("lower", torch.full((grid.N_CELLS,), 2.0, dtype=torch.float64), dist_reduce_fx="min")
        # The number of classes, the bytes of a score, and minus the number of classes: what a process without data
        # learns from the others. The largest of the last is minus the smallest number, so differing ones are seen.
        self.add_state("kind", torch.tensor([0, 0, _NO_DATA]), dist_reduce_fx="max")

    def set_dtype(self, dst_type: Any) -> Any:
        """Refuse another type: sums in less than float64 would be wrong."""
        raise InputError("The sums of CalibrationMetric are float64 and stay so", argument="dst_type")

    def update(self, preds: Tensor, target: Tensor, clusters: Tensor | None = None) -> None:
        """Add a batch of scores and true classes; with `n_blocks`, also integers that name clusters."""
        for name, tensor in (("preds", preds), ("target", target), ("clusters", clusters)):
            if name != "clusters" or tensor is not None:
                _check_tensor(name, tensor, self.sums.device)
        block = self._blocks(target, clusters)
        proba, truth = self._rows(preds, target)
        if self.ignore_index is not None:
            used = truth != self.ignore_index
            proba, truth, block = proba[used], truth[used], block if block is None else block[used]
        if not len(truth):
            return
        proba = self._probabilities(proba, truth)
        n_classes = proba.shape[1] if proba.ndim == 2 else 1
        known, known_size, smallest = self.kind.tolist()
        if known not in (0, n_classes):
            raise InputError(f"has {n_classes} classes, and had {known} before", argument="preds")
        # Checked labels of two classes are 0 and 1 already.
        score, hit = proba, truth if self.validate_args else truth == 1
        if n_classes > 2:
            score = proba.amax(dim=1)
            # Of equal scores the first counts, where argmax of the scores could choose any.
            hit = (proba == score[:, None]).to(torch.uint8).argmax(dim=1) == truth
        elif n_classes == 2:
            score = proba[:, 1]
        size = 4 if proba.dtype == torch.float32 else 8
        rows = torch.ones((3, len(score)), dtype=torch.float64, device=score.device)
        rows[1], rows[2] = score, hit
        cell = _cell_of(rows[1])
        place = cell if block is None else block * grid.N_CELLS + cell
        # In place: a copy of the state would take longer than all the rest.
        self._make_writable()
        self.sums.view(3, -1).index_add_(1, place, rows)
        self.lower.scatter_reduce_(0, cell, rows[1], "amin")
        kind = [n_classes, max(size, known_size), max(-n_classes, smallest)]
        if kind != [known, known_size, smallest]:
            self.kind = torch.tensor(kind, device=self.kind.device)

    def _make_writable(self) -> None:
        """Copy a state that was reset in inference mode, which may not be written to outside of it."""
        if self.sums.is_inference() and not torch.is_inference_mode_enabled():
            self.sums, self.lower = self.sums.clone(), self.lower.clone()

    def compute(self) -> Tensor:
        """Return the calibration error so far, NaN before the first row."""
        if not self.kind[0]:
            return torch.tensor(torch.nan, dtype=torch.float64, device=self.sums.device)
        value = calibration_error(self._cells(), estimator=self.estimator, **self.options)
        return torch.tensor(value, dtype=torch.float64, device=self.sums.device)

    def cells(self) -> Cells:
        """Return the cells of all processes: a `Sample` for `truecal.estimate`, tests, pictures and reports."""
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            if not self.kind[0]:
                raise InputError("No data yet; call update() first")
            return self._cells()

    def estimate(self) -> Estimate:
        """Return the calibration error with its bins and everything else that `truecal.estimate` returns."""
        return estimate(self.cells(), estimator=self.estimator, **self.options)

    def __prepare_scriptable__(self) -> None:
        # torch.jit.script calls this, for the metric and for a module that contains it.
        raise TypeError(
            "CalibrationMetric cannot be compiled by torch.jit.script: it computes with NumPy. Script the model "
            "without the metric, and call the metric on its outputs."
        )

    def _cells(self) -> Cells:
        by_block = self.sums.cpu().numpy()
        count, score_sum, positives = by_block.sum(axis=1)
        n_classes, size, smallest = self.kind.tolist()
        if -smallest != n_classes:
            raise InputError(
                f"has {-smallest} classes on one process and {n_classes} on another", argument="preds"
            )
        cells = Cells.from_sums(
            np.arange(grid.N_CELLS),
            count=count,
            score_sum=score_sum,
            positives=positives,
            lower=self.lower.cpu().numpy(),
            dtype=np.dtype(f"f{size}"),
            target="P(y = 1)" if n_classes <= 2 else top_target(n_classes),
        )
        if self.n_blocks is None:
            return cells
        block, cell = np.nonzero(by_block[0])
        weight, scores, hits = by_block[:, block, cell]
        return with_clusters(
            cells,
            np.arange(self.n_blocks, dtype=np.uint64),
            block,
            cell,
            weight=weight,
            scores=scores,
            positives=hits,
            keys=None,  # other parts number their blocks differently
        )

    def _blocks(self, target: Tensor, clusters: Tensor | None) -> Tensor | None:
        """Return the block of each row; None if there are no clusters."""
        if clusters is None:
            if self.n_blocks is not None:
                raise InputError("is missing", argument="clusters")
            return None
        if self.n_blocks is None:
            raise InputError("needs n_blocks, in the constructor", argument="clusters")
        if clusters.is_floating_point() or clusters.is_complex():
            raise InputError(f"must be whole numbers. Got {clusters.dtype} instead", argument="clusters")
        if clusters.shape == target.shape[:1]:
            clusters = clusters.reshape(-1, *[1] * (target.ndim - 1)).expand_as(target)
        if clusters.shape != target.shape:
            raise InputError(
                f"must have the shape of target, or its first dimension only. Got {tuple(clusters.shape)} and "
                f"{tuple(target.shape)}",
                argument="clusters",
            )
        return clusters.detach().reshape(-1).long() % self.n_blocks

    def _rows(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores as shape (rows,) or (rows, classes), and the true class of each row."""
        several = preds.ndim > 1 and preds.shape[1] > 0 and preds.shape[:1] + preds.shape[2:] == target.shape
        if not several and preds.shape != target.shape:
            raise InputError(
                f"must have the shape of target, or classes as its second dimension. Got "
                f"{tuple(preds.shape)} and {tuple(target.shape)}",
                argument="preds",
            )
        if not preds.is_floating_point():
            raise InputError(f"must be probabilities. Got {preds.dtype} instead", argument="preds")
        if several and preds.shape[1] != 1:
            proba = preds.detach().movedim(1, -1).reshape(-1, preds.shape[1])
        else:  # one column is the probability of class 1
            proba = preds.detach().reshape(-1)
        return proba, target.detach().reshape(-1)

    def _probabilities(self, proba: Tensor, truth: Tensor) -> Tensor:
        """Return checked probabilities."""
        tolerance = max(faults.SUM_TOLERANCE, 4 * torch.finfo(proba.dtype).eps)
        if self.logits:
            proba = proba.to(torch.float64)
            if self.validate_args and not _within(proba, -sys.float_info.max, sys.float_info.max):
                _refuse(faults.NOT_FINITE, proba, "Fix the model's outputs.")
            proba = proba.softmax(dim=1) if proba.ndim == 2 else proba.sigmoid()
        elif proba.element_size() < 4:
            proba = proba.to(torch.float32)
        if self.validate_args:
            _check(proba, truth, tolerance)
        return proba


def _check_tensor(name: str, value: object, device: torch.device) -> None:
    """Refuse what is not a dense tensor with values, on the device of the metric."""
    if not isinstance(value, Tensor):
        raise InputError(f"must be a tensor. Got {type(value).__name__} instead", argument=name)
    if value.layout != torch.strided:
        raise InputError(
            f"must be dense. Got {value.layout} instead", argument=name, remedy="Pass to_dense()."
        )
    if value.is_complex():
        raise InputError(f"must hold real numbers. Got {value.dtype} instead", argument=name)
    if value.device != device:
        remedy = "It has no values." if value.is_meta else "Move one of them with to(device)."
        raise InputError(f"is on {value.device}, and the metric on {device}", argument=name, remedy=remedy)


def _cell_of(score: Tensor) -> Tensor:
    """Return the number of the cell of each score, as `truecal.data.cells.cell_of` does."""
    inside = score.clamp(grid.LEAST_INSIDE, grid.GREATEST_INSIDE)
    step = inside.logit().mul_(grid.LOGIT_SCALE).add_(grid.LOGIT_SHIFT).floor_()
    step.add_(inside.mul_(grid.SCORE_SCALE).floor_()).add_(1)
    if not _within(score, sys.float_info.min, grid.GREATEST_INSIDE):  # few batches have an exact 0 or 1
        step.masked_fill_(score <= 0, 0).masked_fill_((score < 1).logical_not_(), grid.N_CELLS - 1)
    return step.long()


def _within(values: Tensor, low: float, high: float) -> bool:
    """Return whether all values lie within the limits; NaN does not."""
    smallest, largest = values.aminmax()
    return bool(low <= smallest.item() and largest.item() <= high)


def _check(proba: Tensor, truth: Tensor, tolerance: float) -> None:
    if not _within(proba, 0, 1):
        _refuse(faults.MISSING, proba, "Fix the model's outputs.")
        _refuse(faults.OUTSIDE, proba, Remedy.LOGITS_FLAG)
    n_classes = proba.shape[1] if proba.ndim == 2 else 2
    if proba.ndim == 2:
        uneven = replace(faults.UNEVEN, broken=lambda total, _: (total - 1).abs() > tolerance)
        _refuse(uneven, proba.sum(dim=1, dtype=torch.float64), Remedy.LOGITS_FLAG)
    if truth.dtype == torch.bool:
        return
    if truth.is_floating_point() or not _within(truth, 0, n_classes - 1):
        words = f"{{noun}} other than 0 to {n_classes - 1}"
        known = faults.Rule(words, "", lambda y, _: (y < 0) | (y >= n_classes) | (y != y.long()), "label")
        _refuse(known, truth, name="target")


def _refuse(rule: faults.Rule, values: Tensor, remedy: Remedy | str = "", *, name: str = "preds") -> None:
    wrong = rule.broken(values, torch.isnan)
    if wrong.any():
        if values.is_floating_point() and values.element_size() < 4:
            values = values.to(torch.float32)  # NumPy has no bfloat16
        raise rule.error(wrong.cpu().numpy(), values.cpu().numpy(), name, remedy)
