"""Cells from data frames of any size, computed where the data is: Polars, DuckDB, Dask, Spark and others.

One query does everything, through narwhals, on whatever engine holds the frame: the checks, the score, whether
it is positive, the cell, and sums by cell. Rows at fault go to cells with negative numbers, so that the pass which
adds up also counts what is wrong; if there are any, a second one looks at their values. Only the sums come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_choice
from truecal.data import _expressions as expressions
from truecal.data import cells as grid
from truecal.data._expressions import Fault, Frame, collect
from truecal.data.arrays import WEIGHT_KINDS, check_multiclass, to_python
from truecal.data.cells import SQUARES, Cells, with_clusters
from truecal.data.clusters import MOST_PAIRS, N_BLOCKS, cluster_keys, number_clusters
from truecal.data.faults import no_weight, warn_of_classes
from truecal.data.groups import keyed, listed, rows_by_key
from truecal.data.labels import event_of
from truecal.data.question import EQUAL_CLUSTERS, refuse_counted_from_one
from truecal.exceptions import InputError, Remedy, first_of

#: The cell of rows whose weight is zero. Those of faults count down from -1.
_LEFT_OUT = -1000

#: Rows whose sums by group Polars forms at once.
_ROWS_AT_ONCE = 10**7

#: Rows that show whether labels are counted from 1.
_ENOUGH_ROWS = 10**4

_SUMS = ("count", "score_sum", "positives", "lower", *SQUARES)


class _Options(TypedDict, total=False):
    """Keywords of `summarize` that do not change the type of its result."""

    weight: str | None
    weighting: str
    cluster: str | Sequence[str] | None
    pos_label: Any
    labels: Sequence[Any] | None
    multiclass: str | None
    logits: bool


@overload
def summarize(
    frame: Any, *, label: str, score: str | Sequence[str], by: None = None, **options: Unpack[_Options]
) -> Cells: ...
@overload
def summarize(
    frame: Any,
    *,
    label: str,
    score: str | Sequence[str],
    by: str | Sequence[str],
    **options: Unpack[_Options],
) -> dict[Any, Cells]: ...
def summarize(
    frame: Any,
    *,
    label: str,
    score: str | Sequence[str],
    weight: str | None = None,
    weighting: str = "sampling",
    cluster: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    logits: bool = False,
) -> Cells | dict[Any, Cells]:
    """Reduce a data frame of any size to cells, in one pass, on the engine that holds it.

    Parameters
    ----------
    frame : data frame
        Of Polars (eager, or lazy and then streamed), pandas, PyArrow, DuckDB (a relation), Dask, PySpark, or
        anything else that narwhals knows.
    label : str
        Column of the true labels: 0 and 1, booleans, or any two values with `pos_label`. For several columns
        of scores: the number of the column from 0, or its name.
    score : str or sequence of str
        Column of the probability of the positive class; or one column for each class. Two columns give the
        same answer as the second, more are measured on their top label.
    weight : str, optional
        Column of weights: weight 2 counts as the row twice, weight 0 leaves it out.
    weighting : {"sampling", "counts", "clusters"}
        What the weights mean where uncertainty is reported: ``"sampling"``, the default, for survey,
        inverse-probability or normalised weights, whose squares are added up too; ``"counts"`` if weight 2 stands for
        two rows. ``"clusters"`` makes every cluster count the same, if no more than 2^24 sums are needed.
    cluster : str or sequence of str, optional
        Columns that name rows which depend on each other; several are crossed. A second pass adds up each cluster
        in each cell. If that could be more than 2^24 sums, whole clusters are merged at random into 256 blocks.
    by : str or sequence of str, optional
        Columns of groups. One summary for each group, all of them in the same pass.
    pos_label : label, optional
        The positive class. With several columns of scores: this class against the rest.
    labels : sequence, optional
        The class of each column of scores; by default their names, or 0 to K - 1 where labels are numbers and
        names are not.
    multiclass : {"top"}, optional
        Measure the top label, for two columns of scores too.
    logits : bool
        Whether the scores are logits, which the sigmoid or the softmax turns into probabilities first.

    Returns
    -------
    Cells, or dict of group to Cells
        A `Sample` for `truecal.estimate` and everything else. With `by`, a dictionary whose keys are the values
        of that column, or tuples of them if there are several.

    Raises
    ------
    ValueError
        If a column is missing or holds something else, or if rows are at fault: how many, and in what way.

    Examples
    --------
    >>> import polars as pl, truecal
    >>> frame = pl.LazyFrame({"p": [0.2, 0.7, 0.9, 0.9], "y": [0, 1, 1, 0], "site": ["a", "a", "a", "b"]})
    >>> cells = summarize(frame, label="y", score="p")
    >>> cells
    Cells(n=4, cells=3, target='P(y = 1)')
    >>> print(truecal.estimate(cells, estimator="ew_bin", n_bins=2))
    ew_bin (l2) of P(y = 1): 0.1756, n = 4, 2 bins
    >>> summarize(frame, label="y", score="p", by="site")
    {'a': Cells(n=3, cells=3, target='P(y = 1)'), 'b': Cells(n=1, cells=1, target='P(y = 1)')}
    """
    data = expressions.as_lazy(frame)
    schema = data.collect_schema()
    scores, groups, units = listed(score), listed(by), listed(cluster)
    _check_columns(schema, label, scores, weight, [*groups, *units])
    _check_options(scores, pos_label, multiclass)
    check_choice("weighting", weighting, WEIGHT_KINDS)
    if weighting == "clusters" and not units:
        raise InputError("'clusters' needs cluster", argument="weighting", value=weighting)
    expressions.refuse_large_labels(data, label, schema[label])

    data = _select(data, label, scores, weight, groups, units)
    data, faults = expressions.read_scores(data, scores, logits=logits)
    data, event, label_faults = _read_event(data, scores, label, schema[label], pos_label, labels, multiclass)
    faults += label_faults
    if weight is not None:
        faults += expressions.bad_weights(weight, counts=weighting == "counts")
    faults += [expressions.missing_cluster(k, name, schema[name]) for k, name in enumerate(units)]

    plan = _Plan(
        groups=[f"_g{k}" for k in range(len(groups))],
        units=[f"_c{k}" for k in range(len(units))],
        weighted=weight is not None,
        sampling=weight is not None and weighting != "counts",
        equal=weighting == "clusters",
    )
    checks = [(fault.where, fault.shown) for fault in faults]
    rows = _rows_in_cells(data, plan, event, checks)
    sums = _collect_sums(rows, plan)
    _refuse(sums, rows, faults, weight)
    if event.numbered > 2:
        _refuse_counted_from_one(data, label, event.numbered)
    parts = _split(sums, plan.groups, _type_of_scores(schema, scores), event.target)
    if not logits:
        warn_of_classes(np.concatenate([cells.score for cells in parts.values()]))
    if units:
        parts = _add_clusters(parts, rows, plan)
    cells: Cells | dict[Any, Cells] = keyed(parts, by)
    return cells


def _select(
    data: Frame, label: str, scores: list[str], weight: str | None, groups: list[str], units: list[str]
) -> Frame:
    """Return the columns that are needed, under names that cannot clash with others."""
    return data.select(
        **{f"_g{k}": nw.col(name) for k, name in enumerate(groups)},
        **{f"_c{k}": nw.col(name) for k, name in enumerate(units)},
        **{f"_p{k}": nw.col(name).cast(nw.Float64) for k, name in enumerate(scores)},
        _y=expressions.as_label(label, data.collect_schema()[label]),
        **({} if weight is None else {"_w": nw.col(weight).cast(nw.Float64)}),
    )


class _Plan(NamedTuple):
    """By which columns rows are summed, groups and clusters, and with which weights.

    `sampling` weights need their squares; with `equal` every cluster counts the same.
    """

    groups: list[str]
    units: list[str]
    weighted: bool
    sampling: bool
    equal: bool


class _Event(NamedTuple):
    """What is measured: 1 or 0 for whether the event occurred, its score, and the event in words.

    `numbered` is the number of columns of scores, if they are taken to be those of the labels from 0 on.
    """

    hit: nw.Expr
    score: nw.Expr
    target: str
    numbered: int = 0


def _read_event(
    data: Frame,
    scores: list[str],
    label: str,
    kind: nw.dtypes.DType,
    pos_label: Any,
    labels: Sequence[Any] | None,
    multiclass: str | None,
) -> tuple[Frame, _Event, list[Fault]]:
    """Return the rows with what the event needs, the event, and faults of labels."""
    faults, text = expressions.bad_labels(label, kind), expressions.is_text(kind)
    missing = faults[0].where
    if len(scores) == 1 and labels is None and multiclass is None:
        hit, fault = expressions.read_two_labels(data, label, pos_label, missing=missing, text=text)
        target = f"P(y = {1 if pos_label is None else to_python(pos_label)!r})"
        return data, _Event(hit, nw.col("_p0"), target), [*faults, fault]
    classes = expressions.name_classes(scores, label, labels, text=text)
    if len(scores) == 1:
        data = data.with_columns(_p0=1 - nw.col("_p0"), _p1=nw.col("_p0"))
        data = data.with_columns(_top=nw.max_horizontal("_p0", "_p1"))
    whole = expressions.is_whole(kind)
    data, fault = expressions.read_classes(data, label, classes, missing=missing, whole=whole)
    k, target = event_of(classes, multiclass, pos_label)
    numbered = len(classes) if labels is None and classes == list(range(len(classes))) else 0
    if k is None:
        event = _Event(expressions.is_top(len(classes)), nw.col("_top"), target, numbered)
    else:
        event = _Event((nw.col("_true") == k).cast(nw.Float64), nw.col(f"_p{k}"), target, numbered)
    return data, event, [*faults, fault]


def _type_of_scores(schema: nw.Schema, scores: list[str]) -> np.dtype[Any]:
    """Return the finest type among the columns, in which edges of bins are compared."""
    kinds = {"Float16": np.float16, "Float32": np.float32}  # older versions of narwhals have no Float16
    found = [np.dtype(kinds.get(str(schema[name]), np.float64)) for name in scores]
    return max(found, key=lambda dtype: dtype.itemsize)


def _check_options(scores: list[str], pos_label: Any, multiclass: str | None) -> None:
    if not scores:
        raise InputError("must name at least one column", argument="score")
    check_multiclass(multiclass, pos_label)
    if multiclass not in (None, "top"):
        raise InputError(
            f"{multiclass!r} is not supported by summarize, which takes the top label or one class",
            argument="multiclass",
            value=multiclass,
            remedy=Remedy.ONE_CLASS,
        )


def _check_columns(
    schema: nw.Schema, label: str, scores: list[str], weight: str | None, groups: list[str]
) -> None:
    numbers = scores if weight is None else [*scores, weight]
    expressions.require_columns(schema, [*numbers, label, *groups], numbers)
    for name in groups:
        if schema[name].is_nested():
            raise InputError(
                f"holds {schema[name]}, which cannot be a group", argument=expressions.name_column(name)
            )


def _rows_in_cells(
    data: Frame, plan: _Plan, event: _Event, checks: list[tuple[nw.Expr, nw.Expr | None]]
) -> Frame:
    """Return the cell of each row, and the columns to sum."""
    native: Any = data.to_native()
    if data.implementation.is_dask():  # which takes longer to plan these steps than to run them

        def run(part: Any) -> Any:
            rows = nw.from_native(part).lazy()
            return _rows_in_cells(rows, plan, event, checks).collect().to_native()

        whole: Frame = nw.from_native(native.map_partitions(run, meta=run(native._meta)))
        return whole
    value = event.score
    for where, shown in reversed(checks):
        if shown is not None:
            value = nw.when(where).then(shown).otherwise(value)
    # One step after the other: where an expression is used twice, most engines would work it out twice.
    data = data.with_columns(_s=value, _hit=event.hit)
    score, inside, weight = nw.col("_s"), nw.col("_inside"), nw.col("_w")
    data = data.with_columns(_inside=score.clip(grid.LEAST_INSIDE, grid.GREATEST_INSIDE))
    data = data.with_columns(_odds=inside / (1 - inside))
    data = data.with_columns(_logit=nw.col("_odds").log())
    step = (inside * grid.SCORE_SCALE).floor() + (
        nw.col("_logit") * grid.LOGIT_SCALE + grid.LOGIT_SHIFT
    ).floor()
    above = nw.when(score < 1).then(step + 1).otherwise(nw.lit(grid.N_CELLS - 1.0))
    cell = nw.when(score > 0).then(above).otherwise(nw.lit(0.0))
    if plan.weighted:
        cell = nw.when(weight == 0).then(nw.lit(float(_LEFT_OUT))).otherwise(cell)
    for k, (where, _) in reversed(list(enumerate(checks, start=1))):
        cell = nw.when(where).then(nw.lit(float(-k))).otherwise(cell)

    columns = {"_w": weight, "_hits": nw.col("_hit") * weight, "_scores": score * weight}
    if not plan.weighted:  # the literal not before: Dask would read it as a frame to align
        columns = {"_w": nw.lit(1.0), "_hits": nw.col("_hit"), "_scores": score}
    return data.select(*plan.groups, *plan.units, "_s", **columns, _cell=cell.cast(nw.Int32))


def _collect_sums(rows: Frame, plan: _Plan) -> nw.DataFrame[Any]:
    """Return the sums by group and cell; for Polars, whose memory for a million sums grows with the rows, in parts."""
    whole: nw.DataFrame[Any] | None = None
    native: Any = rows.to_native()
    in_parts = plan.groups and rows.implementation.is_polars()
    for batch in native.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=False) if in_parts else ():
        part: Frame = nw.from_native(batch).lazy()
        sums = expressions.collect(_sum_by_cell(part, plan))
        if whole is not None:
            again = nw.concat([whole, sums]).lazy().group_by(*plan.groups, "_cell")
            added = [name for name in sums.columns if name not in (*plan.groups, "_cell", "lower")]
            sums = expressions.collect(again.agg(nw.col(*added).sum(), nw.col("lower").min()))
        whole = sums
    if whole is None:  # also a table without rows
        return expressions.collect(_sum_by_cell(rows, plan))
    return whole


def _sum_by_cell(rows: Frame, plan: _Plan) -> Frame:
    weight = nw.col("_w")
    if plan.sampling:  # in steps, for some engines do not add up expressions
        rows = rows.with_columns(_w2=weight * weight, _hits2=nw.col("_hits") * weight)
    squares = {"squares": nw.col("_w2").sum(), "positive_squares": nw.col("_hits2").sum()}
    return rows.group_by(*plan.groups, "_cell").agg(
        **(squares if plan.sampling else {}),
        **({"rows": nw.len()} if plan.weighted else {}),
        count=weight.sum(),  # not nw.len(), which Polars counts in 32 bits
        score_sum=nw.col("_scores").sum(),
        positives=nw.col("_hits").sum(),
        # The largest score would be as useful, and costs a tenth of the whole query.
        lower=nw.col("_s").min(),
    )


def _refuse(sums: nw.DataFrame[Any], rows: Frame, faults: list[Fault], weight: str | None) -> None:
    """Refuse what is wrong, with counts."""
    cell = sums["_cell"].to_numpy()
    number = sums["rows" if weight else "count"].to_numpy()
    counts = {k: int(number[cell == -k].sum()) for k in range(1, len(faults) + 1)}
    errors = [
        fault.error(counts[k], _range_of_scores(rows, -k))
        for k, fault in enumerate(faults, start=1)
        if counts[k]
    ]
    if errors:
        raise first_of(errors)
    if not len(cell):
        raise InputError("is empty. At least one row is needed", argument="frame")
    if (cell == _LEFT_OUT).all():
        raise no_weight(expressions.name_column(weight or ""))


def _refuse_counted_from_one(data: Frame, label: str, n_classes: int) -> None:
    """Refuse labels without 0 if the first rows show that they are counted from 1."""
    true, names = nw.col("_true"), [f"_p{k}" for k in range(n_classes)]
    if expressions.collect(data.select(low=true.min()))["low"].item() >= 1:
        rows = expressions.collect(data.select("_true", *names).head(_ENOUGH_ROWS))
        proba = np.column_stack([rows[name].to_numpy() for name in names])
        refuse_counted_from_one(rows["_true"].to_numpy(), proba, expressions.name_column(label))


def _range_of_scores(rows: Frame, cell: int) -> str:
    """Return the smallest and the largest score of the rows in a cell, in words."""
    score = nw.col("_s")
    found = expressions.collect(
        rows.filter(nw.col("_cell") == cell).select(low=score.min(), high=score.max())
    )
    if found["low"].is_null().any():
        return "missing"
    low, high = float(found["low"].item()), float(found["high"].item())
    return _show(low) if low == high else f"from {_show(low)} to {_show(high)}"


def _show(value: float) -> str:
    """Return a value at fault; nine digits are enough, unless they hide the fault."""
    short = f"{value:.9g}"
    return repr(value) if short in ("0", "-0", "1") else short


def _split(
    sums: nw.DataFrame[Any], groups: list[str], dtype: np.dtype[Any], target: str
) -> dict[tuple[Any, ...], Cells]:
    """Return the cells of each group, in the order of their keys."""
    cell = sums["_cell"].to_numpy()
    columns = {name: sums[name].to_numpy() for name in _SUMS if name in sums.columns}
    return {
        key: Cells.from_sums(
            cell[rows], **{name: column[rows] for name, column in columns.items()}, dtype=dtype, target=target
        )
        for key, rows in rows_by_key(sums, groups, np.flatnonzero(cell >= 0)).items()
    }


# --- Clusters --------------------------------------------------------------------------------------------

_BLOCK = "_block"
_CLUSTER_SUMS = ("weight", "scores", "positives", "rows", *SQUARES)


def _add_clusters(
    parts: dict[tuple[Any, ...], Cells], rows: Frame, plan: _Plan
) -> dict[tuple[Any, ...], Cells]:
    """Return the cells of each group with the sums of their clusters."""
    # Not by cell: Spark would work it out for the filter once more, in a method too long to be compiled.
    if plan.weighted:
        rows = rows.filter(nw.col("_w") > 0)
    sizes = _sizes_if_many(parts, rows, plan)
    if sizes is not None:
        if plan.equal:
            number = sum(map(len, sizes.values()))
            raise InputError(
                f"'clusters' needs sums of every cluster, and {number:,} are too many for memory",
                argument="weighting",
                value="clusters",
                remedy="Count every row the same, or summarise fewer rows.",
            )
        rows, plan = _add_block(rows, plan.units), plan._replace(units=[_BLOCK])
    entries = collect(_entries(rows, plan))
    if sizes is None:
        keys, cluster = number_clusters(entries.select(plan.units).to_native(), len(entries))
    else:
        keys, cluster = np.arange(N_BLOCKS, dtype=np.uint64), entries[_BLOCK].to_numpy().astype(np.intp)
    cell = entries["_cell"].to_numpy()
    columns = {
        name: entries[name].to_numpy().astype(np.float64, copy=False)
        for name in _CLUSTER_SUMS
        if name in entries.columns
    }
    if plan.equal:
        columns = _count_equally(columns, cluster)
    found = {}
    by_group = rows_by_key(entries, plan.groups, np.arange(len(cell))) if plan.groups else {(): slice(None)}
    for key_of_group, where in by_group.items():
        part = parts[key_of_group]
        mine = {name: column[where] for name, column in columns.items()}
        if plan.equal:
            part = Cells.from_sums(
                cell[where],
                count=mine["weight"],
                score_sum=mine["scores"],
                positives=mine["positives"],
                lower=part.lower[part.groups_of(cell[where])],
                squares=mine.pop("squares"),
                positive_squares=mine.pop("positive_squares"),
                dtype=part.dtype,
                target=part.target + EQUAL_CLUSTERS,
            )
        others: dict[str, Any] = {} if sizes is None else {"keys": None, "merged": sizes[key_of_group]}
        found[key_of_group] = with_clusters(
            part, keys, cluster[where], cell[where], **mine, equal=plan.equal, **others
        )
    return found


def _sizes_if_many(
    parts: dict[tuple[Any, ...], Cells], rows: Frame, plan: _Plan
) -> dict[tuple[Any, ...], NDArray[np.float64]] | None:
    """Return the number of rows of each cluster of each group, if there may be too many pairs of cluster and cell."""
    n = (
        collect(rows.select(n=nw.len()))["n"].item()
        if plan.weighted
        else sum(part.n for part in parts.values())
    )
    if n <= MOST_PAIRS:
        return None
    sizes = (
        rows.with_columns(_one=nw.lit(1.0)).group_by(*plan.groups, *plan.units).agg(size=nw.col("_one").sum())
    )
    counted = (
        sizes.with_columns(_one=nw.lit(1)).group_by(*plan.groups, "size").agg(times=nw.col("_one").sum())
    )
    found = collect(counted).sort("size")
    size, times = found["size"].to_numpy().astype(np.float64), found["times"].to_numpy().astype(np.int64)
    by_group = rows_by_key(found, plan.groups, np.arange(len(found)))
    if sum(int(times[where].sum()) * len(parts[key]) for key, where in by_group.items()) <= MOST_PAIRS:
        return None
    return {key: np.repeat(size[where], times[where]) for key, where in by_group.items()}


def _entries(rows: Frame, plan: _Plan) -> Frame:
    """Return sums by group, cluster and cell; or the rows, if they can be had and added up here in less time.

    That is so for engines in this process: many clusters have hardly two rows in a cell.
    """
    weight, engine, schema = nw.col("_w"), rows.implementation, rows.collect_schema()
    here = not (engine.is_dask() or engine.is_spark_like() or plan.groups or plan.units == [_BLOCK])
    as_rows = here and all(schema[name].is_integer() for name in plan.units)
    columns = {"scores": nw.col("_scores"), "positives": nw.col("_hits")}
    if plan.weighted or plan.equal or not as_rows:
        columns["weight"] = weight
    if plan.sampling or plan.equal:
        columns["rows"] = nw.lit(1.0)
    if plan.equal:
        columns |= {"squares": weight * weight, "positive_squares": nw.col("_hits") * weight}
    by = [*plan.groups, *plan.units, "_cell"]
    rows = rows.select(*by, **columns)
    return rows if as_rows else rows.group_by(*by).agg(nw.col(*columns).sum())


def _count_equally(columns: dict[str, NDArray[Any]], cluster: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    """Return sums whose weights make every cluster count the same, and add up to the same total."""
    total = np.bincount(cluster, columns["weight"])
    factor = (total.mean() / total)[cluster]
    power = {"rows": 0, "squares": 2, "positive_squares": 2}
    return {name: column * factor ** power.get(name, 1) for name, column in columns.items()}


def _add_block(rows: Frame, units: list[str]) -> Frame:
    """Return the rows with the number of the block that their cluster is put into, from a hash of its name."""
    native: Any = rows.to_native()
    engine, names = rows.implementation, ", ".join(units)
    hashed: Any = None
    if engine.is_polars():
        polars: Any = nw.get_native_namespace(rows)
        hashed = native.with_columns((polars.struct(units).hash() % N_BLOCKS).alias(_BLOCK))
    elif engine.is_duckdb():
        hashed = native.project(f"*, hash({names}) % {N_BLOCKS} AS {_BLOCK}")
    elif engine.is_spark_like():
        hashed = native.selectExpr("*", f"pmod(xxhash64({names}), {N_BLOCKS}) AS {_BLOCK}")
    elif engine.is_dask():
        meta = native._meta.assign(**{_BLOCK: np.empty(0, dtype=np.int64)})
        hashed = native.map_partitions(_pandas_with_block, units, meta=meta)
    if hashed is not None:
        found: Frame = nw.from_native(hashed)
        return found
    if engine.is_pandas_like() or engine.is_pyarrow():
        frame = rows.collect()
        block = cluster_keys(frame.select(units).to_native(), len(frame)) % np.uint64(N_BLOCKS)
        column = nw.new_series(_BLOCK, block.astype(np.int64), backend=frame.implementation)
        return frame.with_columns(column).lazy()
    raise InputError(
        f"names too many clusters to be kept one by one, and {engine} has no hash that truecal knows",
        argument="cluster",
        remedy="Add a column of at most 256 blocks of whole clusters, and name that.",
    )


def _pandas_with_block(frame: Any, units: list[str]) -> Any:
    block = cluster_keys(frame[units], len(frame)) % np.uint64(N_BLOCKS)
    return frame.assign(**{_BLOCK: block.astype(np.int64)})
