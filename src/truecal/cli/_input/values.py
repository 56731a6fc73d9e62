"""Columns of a table as numbers, labels and groups.

A table that fits in memory is loaded, a larger one stays where it is. Both are one lazy frame, and every question
about its values is a query on that frame, so both are read by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from truecal._lib.text import counted, listing
from truecal.cli._input.columns import Reading
from truecal.cli._input.table import Table
from truecal.exceptions import InputError, Remedy

#: More groups than this are a mistake, such as a column of identifiers.
_MOST_USER_GROUPS = 1000
#: More labels than this are not listed.
_MOST_LABELS = 1000
#: Text that stands for a missing value, in a column of numbers.
MARKS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "missing")
#: Numbers in brackets, as a list, a tuple or an array of NumPy is written.
_LIST = r"^[\[(]\s*[-+.\d][-+.\deE,;%\s]*[\])]$"
#: Words that begin a row below the data.
_FOOTERS = ("total", "totals", "sum", "mean", "average", "all", "grand total")
#: The character that replaces undecodable bytes.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


def called(names: Sequence[str]) -> str:
    """Return what messages call columns."""
    return f"column {names[0]!r}" if len(names) == 1 else f"the set of columns {listing(names)}"


class Field(NamedTuple):
    """A column, or a part of one.

    Attributes
    ----------
    name : str
        The name of the column, and the part: ``probs[0]``, ``probs.cat``.
    values : polars.Expr
        Its values.
    dtype : polars.DataType
        Their type.
    """

    name: str
    values: pl.Expr
    dtype: pl.DataType

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return self.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary)

    @property
    def text(self) -> pl.Expr:
        """The values as text without blanks around them, null where nothing is left."""
        text = self.values.cast(pl.String, strict=False).str.strip_chars()
        return pl.when(text != "").then(text)

    def error(self, problem: str, **fields: Any) -> InputError:
        """Return an error about this column."""
        return InputError(problem, argument=called([self.name]), **fields)


class Labels(NamedTuple):
    """A column of labels.

    Attributes
    ----------
    values : polars.Expr
        The labels.
    kind : {"number", "boolean", "text"}
        What they are.
    seen : list
        The distinct labels in order; of very many, the first.
    """

    values: pl.Expr
    kind: str
    seen: list[Any]

    @property
    def without_marks(self) -> Labels:
        """The labels without words that stand for missing values, which are classes of some tables."""
        if self.kind != "text":
            return self
        values = pl.when(~_is_mark(self.values)).then(self.values)
        return Labels(values, self.kind, [word for word in self.seen if word.lower() not in MARKS])


class Frame:
    """The columns of a table that are used.

    Parameters
    ----------
    table : Table
        The table.
    names : sequence of str
        Names of the columns.
    reading : Reading
        How values are read.
    """

    def __init__(self, table: Table, names: Sequence[str], reading: Reading | None = None) -> None:
        self.table, self.names, self.reading = table, list(dict.fromkeys(names)), reading or Reading()
        self.is_large = table.is_large
        self.lazy = table.scan(self.names)
        if not self.is_large:
            rows = table.collect(self.lazy)
            if rows.height == 0:
                raise InputError("has columns and no rows")
            self.lazy = rows.lazy()
        self._schema = self.lazy.collect_schema()

    def ask(self, **questions: pl.Expr) -> dict[str, Any]:
        """Return aggregates over all rows, which are read in batches."""
        return self.table.collect(self.lazy.select(**questions)).row(0, named=True)

    def distinct(self, values: pl.Expr) -> pl.Series:
        """Return the distinct values, without missing ones."""
        return self._ask_distinct_rows(value=values)["value"].unique().drop_nulls()

    def _ask_distinct_rows(self, **values: pl.Expr) -> pl.DataFrame:
        """Return aggregates over distinct rows of the columns used, which are few."""
        columns = dict.fromkeys(name for value in values.values() for name in value.meta.root_names())
        return self.table.collect(self.lazy.select(list(columns)).unique().select(**values))

    def first(self, where: pl.Expr, value: pl.Expr | None = None) -> tuple[int, Any]:
        """Return the number of the first row that meets a condition, and a value in it."""
        rows = self.lazy.select(where=where, value=pl.lit(None) if value is None else value).with_row_index(
            "row"
        )
        row, _, found = self.table.collect(rows.filter("where").head(1)).row(0)
        return int(row), found

    def refuse(
        self, where: pl.Expr, names: Sequence[str], noun: str, rule: str = "", remedy: Remedy | None = None
    ) -> None:
        """Refuse rows that meet a condition: how many there are, and which is the first."""
        n = self.ask(n=where.sum())["n"]
        if n:
            problem = f"has {counted(n, noun)}{rule}"
            row, _ = self.first(where)
            raise InputError(problem, argument=called(names), first_row=row, remedy=remedy)

    def field(self, name: str) -> Field:
        """Return a column."""
        column = f"c{self.names.index(name)}"
        return Field(name, pl.col(column), self._schema[column])

    def expand(self, *names: str) -> list[Field]:
        """Return the parts of columns: itself, or one for each number in its lists, or for each of its fields.

        Codes for missing values are null in them.
        """
        return [self._without_codes(part) for name in names for part in self._parts(name)]

    def refuse_unused_codes(self, names: Sequence[str]) -> None:
        """Refuse codes for missing values that do not occur in any of these columns."""
        parts = [part for name in names for part in self._parts(name)]
        found = self.ask(
            **{
                f"code{k}": pl.sum_horizontal(*(_is_code(part, code).sum() for part in parts))
                for k, code in enumerate(self.reading.missing)
            }
        )
        for k, code in enumerate(self.reading.missing):
            if not found[f"code{k}"]:
                raise InputError(f"{code!r} does not occur in {called(names)}", argument="--missing")

    def _without_codes(self, part: Field) -> Field:
        if not self.reading.missing:
            return part
        code = pl.any_horizontal(*(_is_code(part, code) for code in self.reading.missing))
        return part._replace(values=pl.when(~code.fill_null(False)).then(part.values))

    def _parts(self, name: str) -> list[Field]:
        whole = self.field(name)
        values, dtype = whole.values, whole.dtype
        if whole.is_text and (self.ask(first=whole.text.drop_nulls().str.contains(_LIST).first())["first"]):
            dtype = pl.List(pl.String)
            values = whole.text.str.strip_chars("[]() ").str.replace_all(r"[,;\s]+", ",").str.split(",")
        if isinstance(dtype, pl.Struct):
            return [
                Field(f"{name}.{part}", values.struct.field(part), _instance(kind))
                for part, kind in dtype.to_schema().items()
            ]
        if isinstance(dtype, pl.Array):
            if len(dtype.shape) > 1:
                raise whole.error(
                    f"has arrays of shape {dtype.shape} in each row; one number or K are needed"
                )
            inner = _instance(dtype.inner)
            return [Field(f"{name}[{k}]", values.arr.get(k), inner) for k in range(dtype.size)]
        if isinstance(dtype, pl.List):
            size = values.list.len()
            found = self.ask(low=size.min(), high=size.max(), first=size.drop_nulls().first())
            if found["low"] != found["high"]:
                row, _ = self.first(size != found["first"])
                raise whole.error("has lists of different lengths", first_row=row)
            if not found["high"]:
                raise whole.error("has lists without numbers")
            inner = _instance(dtype.inner)
            return [Field(f"{name}[{k}]", values.list.get(k), inner) for k in range(found["high"])]
        return [whole]

    def numbers(
        self, fields: Sequence[Field], *, percent: bool = False, decimal_comma: bool = True
    ) -> list[pl.Expr]:
        """Return columns as numbers, null where a value is missing; refuse text that is not a number.

        Parameters
        ----------
        fields : sequence of Field
            The columns.
        percent : bool
            Whether a percent sign is allowed; in each column all values have it, or none has.
        decimal_comma : bool
            Whether ``0,5`` may be one half.
        """
        numbers: list[pl.Expr] = []
        questions: dict[str, pl.Expr] = {}
        for k, part in enumerate(fields):
            if part.is_text:
                if percent:
                    self._refuse_some_signs(part)
                value = _parse(part.text, percent=percent)
                questions[f"unread{k}"] = (value.is_null() & part.values.is_not_null()).sum()
            elif part.dtype.is_numeric() or part.dtype == pl.Boolean:
                value = part.values if part.dtype.is_float() and not percent else part.values.cast(pl.Float64)
            else:
                raise part.error(f"contains {part.dtype} values, not numbers")
            numbers.append(value)
        found = self.ask(**questions) if questions else {}
        for k, part in enumerate(fields):
            if found.get(f"unread{k}"):  # checking every value is slow, so it comes second
                numbers[k] = self._numbers_of_text(part, numbers[k], percent, decimal_comma)
        return numbers

    def _numbers_of_text(self, part: Field, number: pl.Expr, percent: bool, decimal_comma: bool) -> pl.Expr:
        """Return numbers with a decimal comma or marks of missing values among them; refuse anything else."""
        comma = _parse(part.text, percent=percent, comma=True)
        bad = _is_bad(part.text, number)
        found = self.ask(
            n=bad.sum(),
            other=_is_bad(part.text, comma).sum(),
            signs=(
                bad & part.text.str.ends_with("%") & _parse(part.text, percent=True, comma=True).is_not_null()
            ).sum(),
            kinds=part.text.filter(bad).n_unique(),
            rows=part.text.count(),
        )
        if not found["n"] or (decimal_comma and not found["other"]):
            return comma if found["n"] else number
        if found["signs"]:
            self._refuse_some_signs(part)
        row, value = self.first(bad, part.text)
        signs = found["signs"] == found["n"]
        remedy: Remedy | str = "Add --percent." if signs else "Remove or fix these rows."
        if not signs and found["kinds"] == 1 and 2 * found["n"] <= found["rows"]:
            remedy = remedy_of_stray(value)
        elif not signs and 2 * found["n"] > found["rows"]:
            remedy = (
                "Write numbers alone. In Python, truecal.integrations.llm.parse_confidence reads sentences."
            )
        noun = "value" if signs else "non-numeric value"
        raise part.error(
            f"has {counted(found['n'], noun)}{' with a percent sign' if signs else ''}",
            first_row=row,
            value=value,
            remedy=remedy,
        )

    def _refuse_some_signs(self, part: Field) -> None:
        """Refuse numbers of which only some have a percent sign: 0.7 beside 66% may be a fraction, or a percentage."""
        signed = part.text.str.ends_with("%")
        other = ~signed & ~_is_mark(part.text) & _parse(part.text, percent=True, comma=True).is_not_null()
        found = self.ask(signed=signed.sum(), other=other.sum())
        if found["signed"] and found["other"]:
            (row, value), (first, shown) = self.first(other, part.text), self.first(signed, part.text)
            raise part.error(
                f"has {counted(found['signed'], 'value')} with a percent sign (first at row {first + 1}: {shown!r}) "
                f"and {found['other']:,} without",
                first_row=row,
                value=value,
                remedy="Write all of them in the same way.",
            )

    def labels(self, label: Field) -> Labels:
        """Return a column as labels: text, and numbers of other types, as numbers or booleans where all of it is."""
        values, dtype = label.values, label.dtype
        if dtype == pl.Boolean:
            return Labels(values, "boolean", _listed(self.distinct(values)))
        if dtype.is_float() or (dtype.is_integer() and dtype not in (pl.UInt64, pl.Int128)):
            return Labels(values, "number", _listed(self.distinct(values)))
        if not (label.is_text or dtype.is_temporal() or dtype.is_numeric()):
            raise label.error(f"contains {dtype} values, which cannot be labels")
        text, everything = label.text, self.distinct(label.text)
        seen = everything.filter(~everything.str.to_lowercase().is_in(MARKS))
        _refuse_replaced(label, seen)
        whole = seen.cast(pl.Int64, strict=False)
        number = seen.cast(pl.Float64, strict=False)
        long = (whole.is_null() & seen.str.contains(r"^[+-]?\d+$")).any()  # identifiers beyond 64 bits
        if len(seen) and not whole.has_nulls():
            return Labels(text.cast(pl.Int64, strict=False), "number", _listed(whole))
        if len(seen) and not number.has_nulls() and not long:
            return Labels(text.cast(pl.Float64, strict=False), "number", _listed(number))
        lower = text.str.to_lowercase()
        if len(seen) and seen.str.to_lowercase().is_in(["true", "false"]).all():
            values = pl.when(lower.is_in(["true", "false"])).then(lower == "true")
            return Labels(values, "boolean", _listed(seen.str.to_lowercase() == "true"))
        return Labels(text, "text", _listed(everything))

    def names_of_rows(self, part: Field) -> pl.Expr:
        """Return a column as text, or as whole numbers where all of it is: groups, or clusters."""
        if part.dtype.is_nested():
            raise part.error(f"contains {part.dtype} values, which cannot name groups of rows")
        rows = self._ask_distinct_rows(value=part.values, text=part.text)
        seen = rows["text"].drop_nulls()
        _refuse_replaced(part, seen)
        if len(seen) > 0 and seen.str.contains(r"^(0|-?[1-9]\d{0,17})$").all():
            return part.text.cast(pl.Int64)
        return part.values if rows["value"].equals(rows["text"], check_dtypes=True) else part.text

    def groups(self, names: Sequence[str]) -> list[pl.Expr]:
        """Return columns of groups as text, or as integers where all are."""
        groups = [self.names_of_rows(part) for part in map(self.field, names)]
        if groups:
            n = self._ask_distinct_rows(**{f"g{k}": part for k, part in enumerate(groups)}).n_unique()
            if n > _MOST_USER_GROUPS:
                raise InputError(
                    f"has {n:,} different values, and at most {_MOST_USER_GROUPS:,} groups are allowed",
                    argument=called(names),
                    remedy="Is this an identifier column?",
                )
        return groups


def _parse(text: pl.Expr, *, percent: bool, comma: bool = False) -> pl.Expr:
    """Return text as numbers, null where it is not a number."""
    if percent:
        text = text.str.strip_suffix("%").str.strip_chars_end()
    if comma:
        point = text.str.replace(",", ".", literal=True)
        text = pl.when(text.str.contains(r"^[+-]?\d*,\d+$")).then(point).otherwise(text)
    return text.cast(pl.Float64, strict=False)


def _is_code(part: Field, code: str) -> pl.Expr:
    """Return where a column holds a code for missing values: the same text, or the same number."""
    try:
        number = float(code)
    except ValueError:
        number = None
    if part.is_text:
        text = part.text
        same = text == code.strip()
        return same if number is None else same | (_parse(text, percent=False, comma=True) == number)
    return part.values == number if number is not None and part.dtype.is_numeric() else pl.lit(False)


def remedy_of_stray(value: Any) -> Remedy | str:
    """Return what to do about a value that is not like the others."""
    if str(value).strip().lower().rstrip(":") not in _FOOTERS:
        return Remedy.MISSING_CODE
    return f"If this row is a footer, remove it, or leave it out with --missing {value!r} --drop-missing."


def _is_mark(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().is_in(MARKS)


def _is_bad(text: pl.Expr, number: pl.Expr) -> pl.Expr:
    return number.is_null() & text.is_not_null() & ~_is_mark(text)


def _listed(values: pl.Series) -> list[Any]:
    """Return distinct labels in order; whole floats as integers, so that 1.0 is shown as 1."""
    seen = values.unique().sort().head(_MOST_LABELS).to_list()
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in seen]


def _refuse_replaced(part: Field, seen: pl.Series) -> None:
    if seen.str.contains(_REPLACED, literal=True).any():
        remedy = "Pass the encoding of the file, such as --encoding latin-1."
        raise part.error("has values that are not UTF-8", remedy=remedy)


def _instance(dtype: Any) -> pl.DataType:
    instance: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return instance
