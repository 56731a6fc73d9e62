"""Results: frozen, printable, and convertible to plain dictionaries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import NoneType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truecal._lib.numeric import lp_norm
from truecal._lib.text import as_html, counted, level, sample_size
from truecal._lib.types import FloatArray

#: Version of the layout that `to_dict` gives; it grows when a key changes its meaning or goes away.
SCHEMA_VERSION = 1


def jsonable(value: Any) -> Any:
    """Return nested objects as JSON-compatible ones: no NumPy types, and None for NaN and infinities.

    Examples
    --------
    >>> jsonable({"loss": float("inf"), "bins": (1, 2.5)})
    {'loss': None, 'bins': [1, 2.5]}
    """
    if isinstance(value, Result):
        return value._fields()
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: Most characters of the fields of a result in its repr.
_LONGEST_REPR = 1200


class Result:
    """Base of results: a frozen dataclass that converts itself to plain Python objects.

    A subclass may name properties in `_derived`, which are written with the fields, and fields in
    `_omitted`, which are not.
    """

    _derived: ClassVar[tuple[str, ...]] = ()
    _omitted: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        # `dataclass` would write one that prints whole arrays; it keeps what the class has.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the fields as a dataclass shows them, with long values replaced by what they are."""
        assert is_dataclass(self)
        values = [(part.name, getattr(self, part.name)) for part in fields(self) if part.repr]
        for longest in (400, 100, 30, 0):
            shown = ", ".join(f"{name}={_brief(value, longest)}" for name, value in values)
            if len(shown) <= _LONGEST_REPR:
                break
        return f"{type(self).__qualname__}({shown})"

    def __format__(self, spec: str) -> str:
        """Return the text; with a format such as ``.3f``, the value of a result that has one."""
        return format(float(self) if spec and hasattr(self, "__float__") else str(self), spec)

    def _repr_html_(self) -> str | None:
        return as_html(*self._notebook())

    @staticmethod
    def _rows_of(columns: Mapping[str, Any]) -> list[dict[str, float]]:
        """Return one plain dictionary for each element of the arrays among columns of equal length."""
        arrays = {name: column.tolist() for name, column in columns.items() if isinstance(column, np.ndarray)}
        return [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]

    def _notebook(self) -> tuple[str, list[list[str]]]:
        """Return what notebooks show: text, whose columns become tables, and one more table, or no rows."""
        text = str(self)
        return f"{type(self).__name__}\n{_facts(self)}" if text == repr(self) else text, []

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects, ready for JSON."""
        return {"schema_version": SCHEMA_VERSION, **self._fields()}

    def _fields(self) -> dict[str, Any]:
        assert is_dataclass(self)
        names = [part.name for part in fields(self) if part.name not in self._omitted]
        return {name: jsonable(getattr(self, name)) for name in (*names, *self._derived)}


def _facts(result: Any) -> str:
    """Return the numbers and words of a result that has no text of its own, one per line."""
    shown = ((part.name, getattr(result, part.name)) for part in fields(result))
    lines = [
        f"{name.replace('_', ' ')}: {value:.4g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')}: {value}"
        for name, value in shown
        if isinstance(value, bool | int | float | str) and value != ""
    ]
    return "\n".join(lines)


def _brief(value: Any, longest: int) -> str:
    """Return the repr of a value, or its type and size if that is longer than `longest`."""
    if isinstance(value, bool | int | float | NoneType):
        return repr(value)
    if isinstance(value, np.ndarray) and value.size > 20:
        return f"<array of shape {value.shape}>"
    text = repr(value)
    if len(text) <= longest:
        return text
    if isinstance(value, str):
        return f"{text[: max(longest - 4, 8)]}...{text[-1]}"
    size = f" of {len(value)}" if hasattr(value, "__len__") else ""
    return f"<{type(value).__name__}{size}>"


@dataclass(frozen=True, eq=False)
class BinTable(Result):
    """Bins of a sample, lowest scores first; empty bins are left out.

    Attributes
    ----------
    lower, upper : ndarray of shape (n,)
        Edges k/b of equal-width bins; smallest and largest score of equal-mass bins.
    count : ndarray of shape (n,)
        Rows, or total weight, in each bin.
    mean_score, mean_label : ndarray of shape (n,)
        Mean prediction and observed frequency.
    """

    _derived: ClassVar[tuple[str, ...]] = ("gap",)

    lower: FloatArray
    upper: FloatArray
    count: FloatArray
    mean_score: FloatArray
    mean_label: FloatArray

    @property
    def gap(self) -> FloatArray:
        """Mean score less mean label: positive where the model is over-confident."""
        return self.mean_score - self.mean_label

    def __len__(self) -> int:
        return len(self.count)

    def to_rows(self) -> list[dict[str, float]]:
        """Return one plain dictionary for each bin."""
        return self._rows_of({**vars(self), "gap": self.gap})

    def __str__(self) -> str:
        lines = ["   lower    upper     count  score  label     gap"]
        lines += [
            f"{row['lower']:8.4f} {row['upper']:8.4f} {row['count']:9.8g} "
            f"{row['mean_score']:6.3f} {row['mean_label']:6.3f} {row['gap']:+7.3f}"
            for row in self.to_rows()
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Interval(Result):
    """A confidence interval for the true calibration error.

    Attributes
    ----------
    low, high : float
        Its ends, fractions.
    level : float
        Probability that such an interval contains the true error.
    assumption : str
        What is assumed about the calibration curve, in words.
    resolution : int or None
        Number of intervals of scores in each of which the upper end allows any error, or of distinct scores; None for
        another assumption, and if there is no interval.
    reliable : bool
        False if rows or clusters are too few for an interval; it then holds all errors that are possible, and
        `assumption` says why.
    """

    low: float
    high: float
    level: float
    assumption: str = ""
    resolution: int | None = None
    reliable: bool = True

    @property
    def confidence_level(self) -> float:
        """Another name for `level`."""
        return self.level

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low:.4f} to {self.high:.4f} ({level(self.level)})"

    def _notebook(self) -> tuple[str, list[list[str]]]:
        return f"{self}\nNote: {self.assumption}." if self.assumption else str(self), []


@dataclass(frozen=True, eq=False)
class Estimate(Result):
    """An estimated calibration error, with what it is an estimate of.

    An estimator fills in the first block; the registry, which calls it, fills in the second.

    Attributes
    ----------
    value : float
        The estimate, a fraction and not percent.
    bins : BinTable or None
        The bins, where the estimator has them.
    n_bins : int or None
        The number of bins asked for or chosen; `bins` holds those that are not empty.
    signed_square : float or None
        For the debiased estimators with norm 2: the square before it is clipped at zero and rooted.
    notes : tuple of str
        What a reader of the number must know.
    estimator : str
        Name of the estimator.
    norm : float or None
        Order of the norm; None where the estimator has none.
    n : int or float
        Number of rows, an int; or the total weight.
    target : str
        What the scores are probabilities of.
    classes : tuple of Estimate
        For a classwise estimate, that of each class; `value` is their l_p mean.
    interval : Interval or None
        A confidence interval for the estimand, if one was asked for.
    effective_size : float or None
        With sampling weights, Kish's effective number of rows.
    cell_error : float or None
        How far the value may be from that of the single rows, where it comes from `truecal.Cells`: twice the
        largest change over several ways in which rows may lie in their cells.
    n_clusters : int or None
        Number of clusters, if rows depend on each other.
    weighting : {"rows", "clusters"}
        What counts the same in the estimand: every row, or every cluster.
    label_kind : str or None
        The kind of labels, if they are not the truth; see `truecal.labels`.

    Examples
    --------
    >>> import truecal
    >>> estimate = truecal.estimate([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="em_bin", n_bins=2)
    >>> print(estimate)
    em_bin (l2) of P(y = 1): 0.2062, n = 4, 2 bins
    >>> float(estimate) == estimate.value, f"{estimate:.1%}"
    (True, '20.6%')
    >>> print(estimate.bins)
       lower    upper     count  score  label     gap
      0.1000   0.4000         2  0.250  0.500  -0.250
      0.8000   0.9000         2  0.850  1.000  -0.150
    """

    value: float
    bins: BinTable | None = None
    n_bins: int | None = None
    signed_square: float | None = None
    notes: tuple[str, ...] = ()

    estimator: str = ""
    norm: float | None = None
    n: float = math.nan
    target: str = ""
    classes: tuple[Estimate, ...] = ()
    interval: Interval | None = None
    cell_error: float | None = None
    effective_size: float | None = None
    n_clusters: int | None = None
    weighting: str = "rows"
    label_kind: str | None = None

    def __post_init__(self) -> None:
        # Estimators may compute NumPy scalars, which JSON does not know.
        vars(self)["value"] = float(self.value)
        if self.n_bins is not None:
            vars(self)["n_bins"] = int(self.n_bins)

    def __float__(self) -> float:
        return self.value

    @property
    def shown(self) -> str:
        """The value as text: four decimals, or two digits if it is a small square, such as that of `skce`."""
        small = self.norm is None and 0 < abs(self.value) < 0.01
        return f"{self.value:.2e}" if small else f"{self.value:.4f}"

    @property
    def rank_value(self) -> float:
        """The number by which tests compare estimates: the value, or its square before it was clipped at 0."""
        return self.value if self.signed_square is None else self.signed_square

    def __str__(self) -> str:
        norm = "" if self.norm is None else f" (l{self.norm:g})"
        bins = "" if self.n_bins is None else f", {counted(self.n_bins, 'bin')}"
        value = self.shown if self.interval is None else f"{self.shown}, {self.interval}"
        cells = f", cells ± {self.cell_error:.0e}" if self.cell_error else ""
        size = sample_size(self.n, self.effective_size, self.n_clusters, self.label_kind, comma="")
        line = f"{self.estimator}{norm} of {self.target}: {value}, {size}{bins}{cells}"
        if self.label_kind is None:
            return line
        return "\n".join([f"{line}; {self.label_kind}", *self.notes])

    def __repr__(self) -> str:
        return f"<Estimate {self}>"

    def _notebook(self) -> tuple[str, list[list[str]]]:
        rows = [[one.target, one.shown, str(one.interval or "")] for one in self.classes]
        return str(self), [["class", "error", "interval"], *rows] if rows else []


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates by one estimator on many samples, in arrays; item k is the `Estimate` of sample k.

    Attributes
    ----------
    value : ndarray of shape (n_samples,)
        The estimates.
    bins : BinTable or None
        The bins of all samples, one sample after another.
    bin_bounds : ndarray of shape (n_samples + 1,), or None
        Number of the first bin of each sample, and at the end the number of bins.
    n_bins : int, ndarray of shape (n_samples,), or None
        The number of bins asked for, or chosen for each sample.
    signed_square : ndarray of shape (n_samples,), or None
        The square before it is clipped at zero and rooted.
    notes : mapping of str to ndarray of bool
        What a reader of the number must know, and to which samples it applies.

    Examples
    --------
    >>> import numpy as np
    >>> estimates = Estimates(np.array([0.1, 0.3]), notes={"few rows": np.array([False, True])})
    >>> [(one.value, one.notes) for one in estimates]
    [(0.1, ()), (0.3, ('few rows',))]
    """

    value: FloatArray
    bins: BinTable | None = None
    bin_bounds: NDArray[np.intp] | None = None
    n_bins: int | NDArray[np.intp] | None = None
    signed_square: FloatArray | None = None
    notes: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def gather(cls, estimates: Sequence[Estimate]) -> Estimates:
        """Return single estimates by one estimator as arrays, without their bins.

        Parameters
        ----------
        estimates : sequence of Estimate
            At least one.
        """

        def column(name: str) -> Any:
            values = [getattr(one, name) for one in estimates]
            return None if values[0] is None else np.array(values)

        texts = dict.fromkeys(note for one in estimates for note in one.notes)
        notes = {text: np.array([text in one.notes for one in estimates]) for text in texts}
        return cls(column("value"), None, None, column("n_bins"), column("signed_square"), notes)

    @property
    def rank_value(self) -> FloatArray:
        """The numbers by which tests compare estimates; see `Estimate.rank_value`."""
        return self.value if self.signed_square is None else self.signed_square

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, k: int) -> Estimate:
        return self.item(k)

    def item(self, k: int, **description: Any) -> Estimate:
        """Return the estimate of sample `k`.

        Parameters
        ----------
        k : int
            Number of the sample.
        **description
            The fields of `Estimate` that say what it is an estimate of.
        """
        return Estimate(
            self.value[k],
            self._bins_of(k),
            self.n_bins[k] if isinstance(self.n_bins, np.ndarray) else self.n_bins,
            None if self.signed_square is None else float(self.signed_square[k]),
            tuple([text for text, holds in self.notes.items() if holds[k]]),
            **description,
        )

    def _bins_of(self, k: int) -> BinTable | None:
        if self.bins is None or self.bin_bounds is None or len(self.value) == 1:
            return self.bins
        own = slice(self.bin_bounds[k], self.bin_bounds[k + 1])
        columns = (getattr(self.bins, column.name) for column in fields(self.bins))
        return BinTable(*(column[own] for column in columns))


def classes_target(n_classes: int) -> str:
    """Return what a mean over classes is about, in words."""
    return f"mean over {n_classes} classes, each against the rest"


def mean_over_classes(outcomes: Sequence[Estimate], share: Sequence[float] | None = None) -> Estimate:
    r"""Return the classwise estimate :math:`\big(\frac1K \sum_k e_k^p\big)^{1/p}` of the errors of K classes.

    With `share`, classes count by their shares instead of 1/K. Estimates without a norm are averaged. An interval for
    it needs the joint distribution of the classes, and is not made here.

    Examples
    --------
    >>> mean_over_classes([Estimate(0.1, norm=2.0), Estimate(0.7, norm=2.0)]).value
    0.5
    """
    values, norm = np.array([outcome.value for outcome in outcomes]), outcomes[0].norm
    weight = None if share is None else np.array(share)
    if norm is None:
        value = float(np.average(values, weights=weight))
    else:
        value = float(lp_norm(values, weight, norm, np.array([0, len(values)]))[0])
    notes = Counter(note for outcome in outcomes for note in outcome.notes)
    return Estimate(
        value,
        notes=tuple(f"in {times} of {len(outcomes)} classes {note}" for note, times in notes.items()),
        estimator=outcomes[0].estimator,
        norm=norm,
        n=outcomes[0].n,
        target=classes_target(len(outcomes)),
        classes=tuple(outcomes),
        effective_size=outcomes[0].effective_size,
        n_clusters=outcomes[0].n_clusters,
        weighting=outcomes[0].weighting,
        label_kind=outcomes[0].label_kind,
    )
