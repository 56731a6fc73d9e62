"""Cells by a query: one SELECT that a database runs, and the reader of its result.

The query is written once. Databases differ in how they quote names and text, in the name of float64, and in how
they fold the case of names; `DIALECTS` holds that and nothing else. Rows at fault get cells with negative numbers, as
in `truecal.data.frames`, so that the reader counts and refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_choice, did_you_mean
from truecal._lib.text import counted, listing
from truecal._lib.types import FloatArray
from truecal.data import cells as grid
from truecal.data._expressions import as_lazy, collect
from truecal.data.arrays import to_python
from truecal.data.cells import SQUARES, Cells, cell_of, with_clusters
from truecal.data.clusters import number_clusters
from truecal.data.faults import FRACTION, MAX_WEIGHT, MIN_WEIGHT, MISSING, OUTSIDE, WEIGHT, Rule, no_weight
from truecal.data.groups import keyed, listed, rows_by_key
from truecal.exceptions import InputError, first_of, show_value


class Dialect(NamedTuple):
    """What differs between databases."""

    #: The type of float64.
    double: str = "DOUBLE"
    #: The mark around names; doubled within them.
    quote: str = '"'
    #: What unquoted names become.
    fold: Callable[[str], str] = str
    #: A quote within text.
    quote_in_text: str = "''"
    #: A column as float64, if a cast would read text such as 'abc' as 0.
    number: str = "CAST({0} AS {1})"


DIALECTS = {
    "postgres": Dialect("DOUBLE PRECISION", fold=str.lower),
    "duckdb": Dialect(),
    "sqlite": Dialect(
        "REAL",
        quote="`",  # a name between double quotes that no column has is text there, and not an error
        # Text in a column of numbers is an infinite number, which the checks refuse.
        number="CASE WHEN TYPEOF({0}) IN ('integer', 'real', 'null') THEN CAST({0} AS {1}) ELSE -9e999 END",
    ),
    "bigquery": Dialect("FLOAT64", quote="`", quote_in_text=r"\'"),
    "snowflake": Dialect(fold=str.upper),
    "redshift": Dialect("DOUBLE PRECISION", fold=str.lower),
    "spark": Dialect(quote="`", quote_in_text=r"\'"),
}

#: The cell of rows whose weight is zero.
LEFT_OUT = -1000
#: Sums of each cell, without weights and with them.
_SUMS = {
    "rows": "COUNT(*)",
    "count": "COUNT(*)",
    "score_sum": "SUM(p)",
    "positives": "SUM(y)",
    "lower": "MIN(p)",
}
_WEIGHTED = _SUMS | {
    "count": "SUM(w)",
    "score_sum": "SUM(p * w)",
    "positives": "SUM(y * w)",
    "squares": "SUM(w * w)",
    "positive_squares": "SUM(y * w * w)",
}
#: Columns of the result; the others only with weights, and with clusters.
COLUMNS = ("cell", *_SUMS)
CLUSTER = "cluster"

_IN_TABLE = "Remove or fix these rows in the table."
#: In a database NULL is missing, and NaN is a number outside [0, 1].
_NULL = replace(MISSING, words="missing {noun}", remedy=_IN_TABLE)
_OUTSIDE = replace(
    OUTSIDE,
    remedy="Probabilities are needed; divide percentages by 100, and apply the sigmoid to logits, in a view.",
)
_OTHER_LABEL = Rule(
    "other {noun}, neither the positive nor the negative one",
    "Remove or fix these rows, or name the labels in the query: --pos-label and --neg-label.",
    lambda code, _: code == -2,
    "label",
)
#: Cells of rows at fault: the argument, its column in the query, the condition in SQL and the rule. Labels are coded by
#: `_hit`.
_FAULTS: dict[int, tuple[str, str, str, Rule]] = {
    -1: ("score", "p", "p IS NULL", _NULL),
    -2: ("score", "p", "NOT (p >= 0 AND p <= 1)", _OUTSIDE),
    -3: ("label", "y", "y = -1", replace(_NULL, noun="label")),
    -4: ("label", "y", "y = -2", _OTHER_LABEL),
    -5: (
        "weight",
        "w",
        f"w IS NULL OR NOT (w = 0 OR (w >= {MIN_WEIGHT} AND w <= {MAX_WEIGHT}))",
        WEIGHT,
    ),
    -6: (CLUSTER, "truecal_cluster", "truecal_cluster IS NULL", _NULL),
}

_MADE_BY_TRUECAL = "Was it made with truecal sql?"

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_TABLE = re.compile(r'("(?:[^"]|"")+"|`[^`]+`|[^."`\s][^."`]*)(?:\.|$)')
#: A table of dbt: its name is filled in when dbt runs.
_DBT = re.compile(r"""\{\{ *(ref|source)\( *(['"])[\w.-]+\2( *, *(['"])[\w.-]+\4)? *\) *\}\}""")

_JINJA = re.compile(r"\{[{%#]")


def cells_query(
    table: str,
    *,
    label: str,
    score: str,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    cluster: str | None = None,
    pos_label: Any = None,
    neg_label: Any = None,
    dialect: str = "postgres",
) -> str:
    """Return a query that reduces a table in a database to cells, at most 65,536 rows for each group.

    Parameters
    ----------
    table : str
        Name of the table or view, with its schema if necessary: ``"schema.table"``. A reference of dbt, such as
        ``"{{ ref('predictions') }}"``, is kept as it is.
    label : str
        Column of the labels: 0 and 1 unless `pos_label` is given.
    score : str
        Column of the probability of the positive class.
    weight : str, optional
        Column of weights; weight 0 leaves a row out.
    by : str or sequence of str, optional
        Columns of groups.
    cluster : str, optional
        Column with cluster IDs; rows of a cluster may depend on each other. The result has a row for each cluster in
        each cell, so it can
        be as long as the table if clusters are small.
    pos_label, neg_label : number, bool or str, optional
        The two labels. ``pos_label=True`` is enough for a column of booleans; text needs both, and rows with
        any other label are counted and refused.
    dialect : {"postgres", "duckdb", "sqlite", "bigquery", "snowflake", "redshift", "spark"}
        The database.

    Returns
    -------
    str

    See Also
    --------
    read_cells : cells from the result of the query.

    Notes
    -----
    Names are read as the database reads them, so ``Score`` is ``score`` in PostgreSQL and ``SCORE`` in Snowflake;
    in double quotes they are exact. All names are quoted in the query, so reserved words, blanks and quotes in them
    do no harm.

    Examples
    --------
    >>> import sqlite3, polars as pl
    >>> base = sqlite3.connect(":memory:")
    >>> _ = base.execute("CREATE TABLE t (y INTEGER, p REAL)")
    >>> _ = base.executemany("INSERT INTO t VALUES (?, ?)", [(0, 0.2), (1, 0.7), (1, 0.9), (0, 0.9)])
    >>> query = cells_query("t", label="y", score="p", dialect="sqlite")
    >>> read_cells(pl.read_database(query, base))
    Cells(n=4, cells=3, target='P(y = 1)')
    >>> base.close()
    """
    form = DIALECTS[check_choice("dialect", dialect, tuple(DIALECTS))]
    groups = listed(by)
    keys = {name: f"truecal_{k}" for k, name in enumerate(_names_of(groups), start=1)}
    columns = dict(zip(keys.values(), (_column(name, form) for name in groups), strict=True))
    columns |= {"p": _number(score, form), "y": _hit(_column(label, form), pos_label, neg_label, form)}
    if weight is not None:
        columns["w"] = _number(weight, form)
    if cluster is not None:
        columns["truecal_cluster"], keys[CLUSTER] = _column(cluster, form), "truecal_cluster"
    given = [f"{value} AS {own}" for own, value in columns.items()]
    sums = {**keys, "cell": "cell", **(_SUMS if weight is None else _WEIGHTED)}
    result = [f"{value} AS {_quote(name, form)}" for name, value in sums.items()]
    steps = [_float(number, form) for number in (grid.SCORE_SCALE, grid.LOGIT_SCALE, grid.LOGIT_SHIFT)]
    newline, comma = "\n      ", ",\n    "
    source = _table(table, form)
    if _DBT.fullmatch(source) and any(_JINJA.search(text) for text in (*given, *result)):
        raise InputError("A name or a label has '{{', '{%' or '{#' in it, which dbt would run as a template")
    # A score of 0, 1 or outside is replaced by one half before the logarithm, so that no database works it out there.
    return f"""\
WITH truecal_given AS (
  SELECT
    {comma.join(given)}
  FROM {source}
),
truecal_inside AS (
  SELECT
    truecal_given.*,
    CASE WHEN p >= {grid.LEAST_INSIDE!r} AND p < 1 THEN p ELSE 0.5 END AS x
  FROM truecal_given
),
truecal_cells AS (
  SELECT
    truecal_inside.*,
    CASE
      {newline.join(_faults(columns))}
      WHEN p = 0 THEN 0
      WHEN p = 1 THEN {grid.N_CELLS - 1}
      WHEN p < {grid.LEAST_INSIDE!r} THEN 1
      ELSE CAST(1 + FLOOR(x * {steps[0]}) + FLOOR(LN(x / (1 - x)) * {steps[1]} + {steps[2]}) AS INTEGER)
    END AS cell
  FROM truecal_inside
)
SELECT
    {comma.join(result)}
FROM truecal_cells
GROUP BY {", ".join([*keys.values(), "cell"])}"""


def _names_of(groups: list[str]) -> list[str]:
    """Return what the columns of groups are called in the result."""
    names = [_unquoted(name) or name for name in groups]
    for name in names:
        if name.lower() in (*COLUMNS, *SQUARES, CLUSTER) or names.count(name) > 1:
            raise InputError(
                f"{name!r} cannot name a group, because the result has a column of that name",
                argument="by",
                remedy="Rename it in a view.",
            )
    return names


def _faults(columns: Container[str]) -> Iterator[str]:
    """Yield the branches of the query that put rows at fault, and those of weight 0, into their cells."""
    for number, (_, column, condition, _) in _FAULTS.items():
        if column in columns:
            yield f"WHEN {condition} THEN {number}"
            if column == "w":
                yield f"WHEN w = 0 THEN {LEFT_OUT}"


def _number(name: str, form: Dialect) -> str:
    """Return a column as float64."""
    return form.number.format(_column(name, form), form.double)


def _float(number: float, form: Dialect) -> str:
    """Return a literal that every database reads as float64, not as a decimal number, which rounds differently."""
    return f"CAST({number!r} AS {form.double})"


# --- Names and text --------------------------------------------------------------------------------


def _quote(name: str, form: Dialect) -> str:
    if not name or any(ord(mark) < 32 or ord(mark) == 127 for mark in name):
        raise InputError(f"{name!r} cannot be the name of a column or table", value=name)
    if form.double == "FLOAT64" and re.search(r"[`\\]", name):  # BigQuery has escapes within names
        raise InputError(f"{name!r} cannot be a name in BigQuery", value=name)
    return form.quote + name.replace(form.quote, 2 * form.quote) + form.quote


def _column(name: str, form: Dialect) -> str:
    """Return a name between quotes: exact if it was given in quotes or is not a word, else folded."""
    exact = _unquoted(name)
    if exact is not None:
        return _quote(exact, form)
    return _quote(form.fold(name) if _WORD.fullmatch(name) else name, form)


def _unquoted(name: str) -> str | None:
    """Return the name between quotes; None if it was given without."""
    for mark in ('"', "`"):
        if len(name) > 2 and name[0] == name[-1] == mark:
            return name[1:-1].replace(2 * mark, mark)
    return None


def _table(name: str, form: Dialect) -> str:
    if _DBT.fullmatch(name.strip()):
        return name.strip()
    parts = _TABLE.findall(name)
    if not parts or sum(map(len, parts)) + len(parts) - 1 != len(name):
        raise InputError(
            f"{name!r} is not the name of a table",
            argument="table",
            value=name,
            remedy='Write table, schema.table, or "exact name" in double quotes.',
        )
    return ".".join(_column(part, form) for part in parts)


def _hit(column: str, pos_label: Any, neg_label: Any, form: Dialect) -> str:
    """Return 1 for the positive label, 0 for the negative one, -1 if it is missing, and -2 if it is neither."""
    positive, negative = to_python(pos_label), to_python(neg_label)
    if positive is None and negative is None:
        positive, negative = 1, 0
    elif negative is None and positive in (0, 1):
        negative = not positive if isinstance(positive, bool) else 1 - positive
    if positive is None or negative is None:
        raise InputError(
            "must be given as well, because the query does not know the other label",
            argument="pos_label" if positive is None else "neg_label",
        )
    if positive == negative or type(positive) is not type(negative):
        problem = f"must differ from pos_label {show_value(positive)} and be of its type"
        raise InputError(problem, argument="neg_label")
    found = (
        f"WHEN {column} = {_literal(positive, form)} THEN 1 WHEN {column} = {_literal(negative, form)} THEN 0"
    )
    return f"CASE WHEN {column} IS NULL THEN -1 {found} ELSE -2 END"


def _literal(value: Any, form: Dialect) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if (isinstance(value, int) and abs(value) < 2**63) or (isinstance(value, float) and np.isfinite(value)):
        return repr(value)
    if not isinstance(value, str) or "\\" in value or any(ord(mark) < 32 for mark in value):
        raise InputError(
            f"{show_value(value)} cannot be a label in a query", argument="pos_label", value=value
        )
    return "'" + value.replace("'", form.quote_in_text) + "'"


# --- The result ------------------------------------------------------------------------------------


@overload
def read_cells(
    frame: Any, *, by: None = None, weighting: str = "sampling", target: str = "P(y = 1)"
) -> Cells: ...
@overload
def read_cells(
    frame: Any, *, by: str | Sequence[str], weighting: str = "sampling", target: str = "P(y = 1)"
) -> dict[Any, Cells]: ...
def read_cells(
    frame: Any,
    *,
    by: str | Sequence[str] | None = None,
    weighting: str = "sampling",
    target: str = "P(y = 1)",
) -> Cells | dict[Any, Cells]:
    """Return the cells that a query of `cells_query` found.

    Parameters
    ----------
    frame : data frame
        The result of the query: a frame of pandas, Polars or PyArrow, or a relation of DuckDB and the like. Results
        for parts of a table may be put one below the other.
    by : str or sequence of str, optional
        Columns of groups; without them all groups are merged.
    weighting : {"sampling", "counts"}
        What the weights mean, if the query had any: ``"counts"`` if weight 2 stands for two rows.
    target : str
        What the score is the probability of, in words.

    Returns
    -------
    Cells, or dict of group to Cells
        As `truecal.summarize` returns them.

    Raises
    ------
    InputError
        If columns are missing or contradict each other, or if the table has rows at fault: how many, and in what way.
    """
    check_choice("weighting", weighting, ("sampling", "counts"))
    data = collect(as_lazy(frame))
    found = find_columns(data.columns)
    groups = _find_groups(by, [column for column in data.columns if column not in found.values()])
    sums, good = _read_sums(data, found, weighting)
    data = data.filter(good.tolist())
    rows, lower = sums.pop("rows"), sums["lower"]
    dtype = np.dtype(np.float32 if (lower.astype(np.float32) == lower).all() else np.float64)
    cell = cell_of(lower)  # as logarithms may differ in the last bit, and text files round
    clusters = None if CLUSTER not in found else number_clusters(data[found[CLUSTER]].to_native(), len(data))

    def cells_at(where: NDArray[np.intp]) -> Cells:
        mine = {name: column[where] for name, column in sums.items()}
        part = Cells.from_sums(cell[where], **mine, dtype=dtype, target=target)
        if clusters is None:
            return part
        return with_clusters(
            part,
            clusters[0],
            clusters[1][where],
            cell[where],
            weight=mine["count"],
            scores=mine["score_sum"],
            positives=mine["positives"],
            rows=rows[where] if SQUARES[0] in mine else None,
        )

    parts = {key: cells_at(where) for key, where in rows_by_key(data, groups, np.arange(len(cell))).items()}
    cells: Cells | dict[Any, Cells] = keyed(parts, by)
    return cells


def _find_groups(by: str | Sequence[str] | None, columns: list[str]) -> list[str]:
    """Return the columns of groups by their names in the result, or refuse names that it does not have."""
    groups = [name if name in columns else _unquoted(name) or name for name in listed(by)]
    for name in groups:
        if name not in columns:
            raise InputError(
                f"The result has no group {name!r}. Its groups: {listing(columns) if columns else 'none'}",
                argument="by",
                value=name,
                remedy=did_you_mean(name, columns),
            )
    return groups


def _read_sums(
    data: nw.DataFrame[Any], found: dict[str, str], weighting: str
) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
    """Return the checked sums of the cells, and which rows of the result hold them."""
    weighted = SQUARES[0] in found
    keep = (*COLUMNS, *SQUARES) if weighted and weighting == "sampling" else COLUMNS
    sums: dict[str, NDArray[Any]] = {name: _numbers(data[found[name]], name) for name in keep}
    _refuse(sums)
    good = sums["cell"] >= 0
    sums = {name: column[good] for name, column in sums.items()}
    if not all(condition.all() for condition in _conditions(sums, weighted)):  # as in an edited file
        raise InputError("The columns of the result contradict each other", remedy=_MADE_BY_TRUECAL)
    count = sums["count"]
    n_odd = int((np.abs(count - np.rint(count)) > _ROUNDING * count).sum())
    if weighting == "counts" and n_odd:
        problem = FRACTION.problem(n_odd)
        raise InputError(problem, argument="column 'count'", count=n_odd, remedy=FRACTION.remedy)
    del sums["cell"]
    return sums, good


def find_columns(names: Sequence[str]) -> dict[str, str]:
    """Return what the columns of cells are called; Snowflake's tools may return upper case."""
    found = {name.lower(): name for name in names if name.lower() in (*COLUMNS, *SQUARES, CLUSTER)}
    for name in COLUMNS:
        if name not in found:
            raise InputError(
                f"The result of the query has no column {name!r}. It has: {listing(names, 20)}",
                remedy=_MADE_BY_TRUECAL,
            )
    return found


def _numbers(column: nw.Series[Any], name: str) -> FloatArray:
    try:
        return column.cast(nw.Float64).to_numpy().astype(np.float64)
    except Exception as error:  # of whichever library the frame belongs to
        raise InputError(
            f"holds values that are not numbers: {error}", argument=f"column {name!r}"
        ) from error


def _refuse(sums: dict[str, NDArray[Any]]) -> None:
    """Refuse the result of a table with rows at fault, and one without rows."""
    cell, rows = sums["cell"], sums["rows"]
    if not np.isfinite(cell).all() or not (rows > 0).all():
        raise InputError("The result of the query has missing values or counts that are not positive")
    unknown = ~np.isin(cell, (*_FAULTS, LEFT_OUT)) & ~((cell >= 0) & (cell < grid.N_CELLS) & (cell % 1 == 0))
    if unknown.any():
        raise InputError(
            f"has {counted(int(unknown.sum()), 'value')} that no query of truecal gives, such as "
            f"{cell[unknown][0]:g}",
            argument="column 'cell'",
            remedy=_MADE_BY_TRUECAL,
        )
    errors = []
    for number, (argument, _, _, rule) in _FAULTS.items():
        where = cell == number
        if where.any():
            n, least = int(rows[where].sum()), sums["lower"][where].min()
            shown = f" (smallest: {'NaN' if np.isnan(least) else f'{least:.9g}'})" if number == -2 else ""
            errors.append(InputError(rule.problem(n) + shown, argument=argument, count=n, remedy=rule.remedy))
    if errors:
        raise first_of(errors)
    if not len(cell):
        raise InputError("The table of the query is empty. At least one row is needed")
    if (cell == LEFT_OUT).all():
        raise no_weight("weight")


#: How far text files round, relative to the value.
_ROUNDING = 1e-9


def _conditions(sums: dict[str, NDArray[Any]], weighted: bool) -> Iterator[NDArray[np.bool_]]:
    """Yield what holds for the sums of cells; later conditions need the earlier ones."""
    yield from (np.isfinite(column) for column in sums.values())
    count, lower, cell, rows = sums["count"], sums["lower"], sums["cell"], sums["rows"]
    slack = 1 + _ROUNDING
    lightest, heaviest = (MIN_WEIGHT, MAX_WEIGHT) if weighted else (1.0, 1.0)
    yield rows % 1 == 0
    yield (count >= lightest * rows / slack) & (count <= heaviest * rows * slack)
    yield (sums["positives"] >= 0) & (sums["positives"] <= count * slack)
    yield (lower >= 0) & (lower <= 1)
    yield (sums["score_sum"] >= lower * count / slack) & (sums["score_sum"] <= count * slack)
    # Rounding, and another logarithm, may move a score to the cell beside.
    yield cell_of(lower / slack) - 1 <= cell
    yield cell <= cell_of(np.minimum(lower * slack, 1.0)) + 1
    if SQUARES[0] in sums:
        squares, hits = sums[SQUARES[0]], sums[SQUARES[1]]
        # By the inequality of Cauchy and Schwarz, and because weights are positive.
        yield (squares * slack >= count * (count / rows)) & (np.sqrt(squares) <= count * slack)
        yield (hits >= 0) & (hits <= squares * slack)
