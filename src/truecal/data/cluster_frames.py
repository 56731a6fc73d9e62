"""Sums by cluster and cell from data frames of any size, computed where the data is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truecal.data._expressions import Frame, collect
from truecal.data.cells import Cells
from truecal.data.cluster_sums import MOST_PAIRS, N_BLOCKS, cluster_keys, make_clusters, number_clusters
from truecal.data.groups import rows_by_key
from truecal.data.question import EQUAL_CLUSTERS
from truecal.exceptions import InputError

_BLOCK = "_block"
_SUMS = ("weight", "scores", "positives", "rows", "squares", "positive_squares")


def add_clusters(
    parts: dict[tuple[Any, ...], Cells],
    rows: Frame,
    groups: list[str],
    units: list[str],
    *,
    weighted: bool,
    sampling: bool,
    equal: bool,
) -> dict[tuple[Any, ...], Cells]:
    """Return the cells of each group with the sums of their clusters."""
    # Not by cell: Spark would work it out for the filter once more, in a method too long to be compiled.
    if weighted:
        rows = rows.filter(nw.col("_w") > 0)
    sizes = _sizes_if_many(parts, rows, groups, units, weighted=weighted)
    if sizes is not None:
        if equal:
            number = sum(map(len, sizes.values()))
            raise InputError(
                f"'clusters' needs sums of every cluster, and {number:,} are too many for memory",
                argument="weighting",
                value="clusters",
                remedy="Count every row the same, or summarise fewer rows.",
            )
        rows, units = _add_block(rows, units), [_BLOCK]
    entries = collect(
        _entries(
            rows, groups, units, weighted=weighted, count=sampling or equal, squares=equal, few=sizes is None
        )
    )
    if sizes is None:
        keys, cluster = number_clusters(entries.select(units).to_native(), len(entries))
    else:
        keys, cluster = np.arange(N_BLOCKS, dtype=np.uint64), entries[_BLOCK].to_numpy().astype(np.intp)
    cell = entries["_cell"].to_numpy()
    columns = {
        name: entries[name].to_numpy().astype(np.float64, copy=False)
        for name in _SUMS
        if name in entries.columns
    }
    if equal:
        columns = _count_equally(columns, cluster)
    found = {}
    by_group = rows_by_key(entries, groups, np.arange(len(cell))) if groups else {(): slice(None)}
    for key_of_group, where in by_group.items():
        part = parts[key_of_group]
        mine = {name: column[where] for name, column in columns.items()}
        if equal:
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
        table = make_clusters(
            keys, cluster[where], part.groups_of(cell[where]), **mine, equal=equal, **others
        )
        found[key_of_group] = replace(part, clusters=table)
    return found


def _sizes_if_many(
    parts: dict[tuple[Any, ...], Cells], rows: Frame, groups: list[str], units: list[str], *, weighted: bool
) -> dict[tuple[Any, ...], NDArray[np.float64]] | None:
    """Return the number of rows of each cluster of each group, if there may be too many pairs of cluster and cell."""
    n = collect(rows.select(n=nw.len()))["n"].item() if weighted else sum(part.n for part in parts.values())
    if n <= MOST_PAIRS:
        return None
    sizes = rows.with_columns(_one=nw.lit(1.0)).group_by(*groups, *units).agg(size=nw.col("_one").sum())
    counted = sizes.with_columns(_one=nw.lit(1)).group_by(*groups, "size").agg(times=nw.col("_one").sum())
    found = collect(counted).sort("size")
    size, times = found["size"].to_numpy().astype(np.float64), found["times"].to_numpy().astype(np.int64)
    by_group = rows_by_key(found, groups, np.arange(len(found)))
    if sum(int(times[where].sum()) * len(parts[key]) for key, where in by_group.items()) <= MOST_PAIRS:
        return None
    return {key: np.repeat(size[where], times[where]) for key, where in by_group.items()}


def _entries(
    rows: Frame, groups: list[str], units: list[str], *, weighted: bool, count: bool, squares: bool, few: bool
) -> Frame:
    """Return sums by group, cluster and cell; or the rows, if they can be had and added up here in less time.

    That is so for engines in this process: many clusters have hardly two rows in a cell.
    """
    weight, engine, schema = nw.col("_w"), rows.implementation, rows.collect_schema()
    here = not (engine.is_dask() or engine.is_spark_like())
    as_rows = few and here and not groups and all(schema[name].is_integer() for name in units)
    columns = {"scores": nw.col("_scores"), "positives": nw.col("_hits")}
    if weighted or squares or not as_rows:
        columns["weight"] = weight
    if count:
        columns["rows"] = nw.lit(1.0)
    if squares:
        columns |= {"squares": weight * weight, "positive_squares": nw.col("_hits") * weight}
    by = [*groups, *units, "_cell"]
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
