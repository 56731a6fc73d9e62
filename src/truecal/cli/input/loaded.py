"""The predictions of a file, as the commands use them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from truecal.cli._errors import naming
from truecal.cli.input.columns import Columns
from truecal.cli.input.plan import CLUSTER, WEIGHT
from truecal.cli.input.table import Table
from truecal.cli.input.values import called
from truecal.data.faults import CLASSES, are_classes
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

    from truecal.data.sample import Sample
    from truecal.inference._test_result import TestResult
    from truecal.results import Estimate


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a file, read as the options say.

    Attributes
    ----------
    table : Table
        The file.
    columns : Columns
        The columns used.
    notes : tuple of str
        What was detected or left out.
    y_true : ndarray or labels that are not the truth, or None
        Labels; None if the table is too large for memory.
    models : dict of str to ndarray
        Probabilities, or logits, by column or group of columns; one entry unless several models were asked for.
    options : dict
        Arguments of the library: pos_label, labels, multiclass, and sample_weight and clusters where given.
    group : dict of str to polars.Series
        Columns of groups.
    features : dict of str to ndarray
        Columns of features.
    kept : ndarray, or None
        Numbers of the rows that were kept, if rows were dropped.
    cells : dict of tuple to Cells
        For a large table: the summary of each group, with the key () for all rows.
    whole : Cells, or None
        The summary of all rows, where it cannot be merged from those of groups.
    n_rows : int, or None
        Number of rows, where it is known and is not the sum of the weights.
    """

    table: Table
    columns: Columns
    notes: tuple[str, ...]
    y_true: Any = None
    models: dict[str, NDArray[Any]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    group: dict[str, pl.Series] = field(default_factory=dict)
    features: dict[str, NDArray[Any]] = field(default_factory=dict)
    kept: NDArray[Any] | None = None
    cells: dict[tuple[Any, ...], Sample] = field(default_factory=dict)
    whole: Sample | None = None
    n_rows: int | None = None
    target: str = ""

    def __post_init__(self) -> None:
        """Note scores that look like predicted classes, wherever they come from."""
        scores: dict[Any, NDArray[Any]] = dict(self.models) or {
            key: cells.score for key, cells in self.cells.items()
        }
        hard = [name for name, one in scores.items() if are_classes(one)]
        if hard and (self.models or len(hard) == len(scores)):
            which = f"{called(hard)}: " if len(self.models) > 1 else ""
            note = f"{which}{CLASSES[0].lower() if which else CLASSES[0]}{CLASSES[1:]}"
            object.__setattr__(self, "notes", (*self.notes, note))

    @property
    def source(self) -> str:
        """The file, as messages name it."""
        return self.table.source

    @property
    def y_proba(self) -> NDArray[Any]:
        """Probabilities, or logits, of the first model."""
        return next(iter(self.models.values()))

    def require_rows(self, purpose: str) -> None:
        """Refuse a table that is too large for memory."""
        if self.y_true is None:
            raise InputError(f"{self.source} has too many rows for {purpose}, which needs them in memory")

    def check_labels(self) -> None:
        """Refuse labels whose classes are not known, which a recalibrator would take in their sorted order."""
        from truecal.data.labels import Labels

        with self.naming():
            labels, pos_label = Labels(self.y_true, len(self.y_proba)), self.options.get("pos_label")
            if self.y_proba.ndim == 1:
                labels.binary(pos_label)
            else:
                n_classes, classes = self.y_proba.shape[1], self.options.get("labels")
                labels.columns(n_classes, pos_label=pos_label, classes=classes)

    def naming(self) -> Any:
        """Return a context in which errors of the library name the file and its columns."""
        return naming(self.source, names_of(self.columns), self.kept)

    def reversals(self) -> list[str]:
        """Return sentences that name models whose higher scores go with fewer events."""
        from truecal.inference.c_statistic import reversed_scores

        if self.y_true is None:
            found = {"": reversed_scores(self.sample)}
        else:
            from truecal.data import as_samples

            with self.naming():
                each = {
                    name: as_samples(self.y_true, one, **self.options) for name, one in self.models.items()
                }
            found = {name: reversed_scores(*samples) for name, samples in each.items() if len(samples) == 1}
        sentences = [(name, sentence) for name, sentence in found.items() if sentence is not None]
        return [f"{name}: {sentence}" if len(self.models) > 1 else sentence for name, sentence in sentences]

    @property
    def rows(self) -> dict[str, Any]:
        """Labels, probabilities and options as the library takes them; empty if the table is too large."""
        return {} if self.y_true is None else {"y_true": self.y_true, "y_proba": self.y_proba, **self.options}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for `truecal.estimate` and its like: one sample, or arrays where all classes count."""
        classwise = self.options["multiclass"] == "classwise" and self.options.get("pos_label") is None
        vectors = classwise or self.options["multiclass"] in ("canonical", "top_by_class")
        return self.rows if vectors and self.rows else {"y_true": self.sample}

    @cached_property
    def _rows(self) -> Any:
        from truecal.data import read_rows

        with self.naming():
            (rows,) = read_rows(self.y_true, self.y_proba, **self.options)
        return replace(rows, target=self.target) if self.target else rows

    @cached_property
    def sample(self) -> Sample:
        """All rows."""
        if self.y_true is None:
            from truecal.data.cells import merge_all

            sample: Sample = self.whole or merge_all(self.cells.values())  # type: ignore[arg-type]
        else:
            sample = self._rows.group()
        return replace(sample, target=self.target) if self.target else sample

    @cached_property
    def groups(self) -> dict[str, Sample]:
        """The sample of each group, by its name."""
        from truecal.data.groups import split_rows, split_sample

        if not self.columns.group:
            return {}
        if self.y_true is not None:
            split = split_rows(self.group, len(self.y_true))
            return {split.names[k]: sample for k, sample in split_sample(self._rows, split).items()}
        keys = list(zip(*self.cells, strict=True))
        split = split_rows(dict(zip(self.columns.group, keys, strict=True)), len(self.cells))
        samples = dict(zip(split.group.tolist(), self.cells.values(), strict=True))
        return {name: samples[k] for k, name in enumerate(split.names)}

    @property
    def has_sampling_weights(self) -> bool:
        """Whether rows have weights that are not counts, so that their sum is not the number of rows."""
        if self.y_true is None:
            # Cells of a query have no column of weights, and clusters that count the same have squares without weights.
            return any(
                not sample.counted and (self.columns.weight is not None or not sample.dependence.equal)
                for sample in self.cells.values()
            )
        return self.columns.weight is not None and self.options.get("weighting") != "counts"

    def size(self, result: Estimate | TestResult) -> str:
        """Return the number of rows behind a result; with sampling weights the effective number of rows."""
        if self.has_sampling_weights and result.effective_size is not None:
            return f"{result.effective_size:,.1f}"
        return f"{result.n:,.10g}"

    @property
    def by(self) -> dict[str, Any] | None:
        """The groups as `truecal.assess` takes them."""
        if not self.columns.group:
            return None
        return dict(self.group) if self.rows else {", ".join(self.columns.group): self.groups}


def names_of(columns: Columns) -> dict[str, str]:
    """Return what messages call the arguments of the library."""
    label, score = called(columns.label or columns.label_columns), called(columns.score)
    weight = called([columns.weight or "weight"])
    names = {"y_true": label, "y": label, "sample_weight": weight, called([WEIGHT]): weight}
    names |= dict.fromkeys(("y_proba", "logits", "scores", "X"), score)
    cluster = called([columns.cluster or "cluster"])
    return names | ({"clusters": cluster, called([CLUSTER]): cluster} if columns.cluster else {})
