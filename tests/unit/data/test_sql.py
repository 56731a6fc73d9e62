"""The query on SQLite, by the contract that all databases share, and the reader of its result."""

import numpy as np
import polars as pl
import pytest

import truecal
from support import sql_contract as contract
from truecal.data.cells import cell_of
from truecal.data.sql import DIALECTS, cells_query, read_cells
from truecal.exceptions import InputError

CELLS = pl.DataFrame(
    {
        "cell": cell_of(np.array([0.2, 0.9])),
        "rows": [2, 3],
        "count": [2, 3],
        "score_sum": [0.4, 2.7],
        "positives": [1, 3],
        "lower": [0.2, 0.9],
        "site": ["a", "b"],
    }
)


@pytest.fixture(scope="module")
def base():
    database = contract.SQLite()
    database.load("predictions", contract.TABLE)
    yield database
    database.connection.close()


@pytest.mark.parametrize("case", contract.CASES)
def test_the_same_cells_as_summarize(base, case):
    contract.check_case(base, case)


def test_bad_rows_are_counted_and_refused(base):
    contract.check_faults(base)


def test_names_are_quoted(base):
    contract.check_names(base)


def test_text_in_a_column_of_numbers_is_refused(base):
    base.connection.execute("CREATE TABLE loose (p, y)")  # SQLite reads 'abc' as 0 in a cast
    base.connection.executemany("INSERT INTO loose VALUES (?, ?)", [(0.2, 0), ("abc", 1), ("0.5", 1)])
    query = cells_query("loose", label="y", score="p", dialect="sqlite")
    with pytest.raises(InputError, match="score has 2 values outside"):
        read_cells(base.run(query))


@pytest.mark.parametrize(
    ("dialect", "table", "expected"),
    [
        ("postgres", "Sales.Predictions", '"sales"."predictions"'),
        ("postgres", '"Sales"."a.b"', '"Sales"."a.b"'),
        ("redshift", "T", '"t"'),
        ("snowflake", "db.public.t", '"DB"."PUBLIC"."T"'),
        ("snowflake", '"t"', '"t"'),
        ("bigquery", "my-project.data.T", "`my-project`.`data`.`T`"),
        ("spark", "`my table`", "`my table`"),
        ("duckdb", 'a"b', None),
        ("duckdb", "t; DROP TABLE t", '"t; DROP TABLE t"'),
        ("duckdb", "t.", None),
        ("duckdb", "", None),
        ("bigquery", 'a"`"', None),
        ("snowflake", "{{ ref('predictions') }}", "{{ ref('predictions') }}"),
        ("snowflake", '{{ source("raw", "predictions") }}', '{{ source("raw", "predictions") }}'),
        ("duckdb", "{{ ref('t') }}; SELECT {{ ref('t') }}", "\"{{ ref('t') }}; SELECT {{ ref('t') }}\""),
        ("postgres", "t\n", None),
    ],
)
def test_names_of_tables(dialect, table, expected):
    if expected is None:
        with pytest.raises(InputError, match="name"):
            cells_query(table, label="y", score="p", dialect=dialect)
    else:
        query = cells_query(table, label="y", score="p", dialect=dialect)
        assert query.split("FROM ")[1].split("\n")[0] == expected


@pytest.mark.parametrize("dialect", ["bigquery", "duckdb"])
def test_names_that_no_database_has(dialect):
    with pytest.raises(InputError, match="cannot be"):
        cells_query("t", label="y\x00", score="p", dialect=dialect)
    if dialect == "bigquery":
        with pytest.raises(InputError, match="cannot be a name in BigQuery"):
            cells_query("t", label="y\\", score="p", dialect=dialect)


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ({"pos_label": "yes"}, "neg_label must be given as well"),
        ({"neg_label": "no"}, "pos_label must be given as well"),
        ({"pos_label": 2}, "neg_label must be given as well"),
        ({"pos_label": "yes", "neg_label": "yes"}, "neg_label must differ"),
        ({"pos_label": "yes", "neg_label": 0}, "neg_label must differ"),
        ({"pos_label": "a\\", "neg_label": "b"}, "cannot be a label"),
        ({"pos_label": np.inf, "neg_label": 0.0}, "cannot be a label"),
    ],
)
def test_labels_that_cannot_be_told_apart(labels, complaint):
    with pytest.raises(InputError, match=complaint):
        cells_query("t", label="y", score="p", **labels)


@pytest.mark.parametrize(
    "names",
    [
        {"score": "{{ env_var('SECRET') }}"},
        {"label": "{% raw %}"},
        {"weight": "{# x #}"},
        {"by": '"{{ x }}"'},
        {"cluster": "{{x}}"},
        {"pos_label": "{{ x }}", "neg_label": "no"},
    ],
)
def test_names_that_dbt_would_run(names):
    given = {"label": "y", "score": "p", **names}
    with pytest.raises(InputError, match="dbt would run"):
        cells_query("{{ ref('predictions') }}", **given)
    assert "{" in cells_query("predictions", **given)


@pytest.mark.parametrize("label", [10**400, 2**63, float("inf"), "a\nb"])
def test_labels_that_no_database_has(label):
    with pytest.raises(InputError, match="cannot be a label"):
        cells_query("t", label="y", score="p", pos_label=label, neg_label=type(label)())


@pytest.mark.parametrize("by", ["count", "CELL", '"cell"', "cluster", ["site", "site"], ["site", '"site"']])
def test_groups_whose_names_are_taken(by):
    with pytest.raises(InputError, match="cannot name a group"):
        cells_query("t", label="y", score="p", by=by)


def test_an_unknown_dialect():
    with pytest.raises(InputError, match="postgres"):
        cells_query("t", label="y", score="p", dialect="oracle")
    assert len(DIALECTS) == 7


def test_the_result_of_any_tool_is_read():
    whole = read_cells(CELLS)
    assert (whole.n, whole.positives.tolist()) == (5, [1, 3])
    assert read_cells(CELLS.rename(str.upper).to_pandas()).n == 5
    assert read_cells(CELLS.to_arrow()).n == 5
    assert read_cells(pl.concat([CELLS, CELLS])).count.tolist() == [4, 6]
    assert list(read_cells(CELLS, by="site")) == ["a", "b"]
    assert truecal.estimate(whole).n == 5


def test_sums_that_a_text_file_rounded():
    rounded = CELLS.with_columns(lower=pl.Series([0.2000000001, 0.9]))
    np.testing.assert_allclose(read_cells(rounded).score, [0.2, 0.9], rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"cell": [10484, 20000]}, "contradict"),
        ({"positives": [1, 4]}, "contradict"),
        ({"lower": [0.2, 0.95]}, "contradict"),
        ({"score_sum": [0.4, 3.1]}, "contradict"),
        ({"count": [2.0, None]}, "contradict"),
        ({"rows": [2, None]}, "missing values"),
        ({"positives": ["one", "two"]}, "not numbers"),
        ({"cell": [-1000, -1000]}, "zero in every row"),
        ({"cell": [-7, 60000]}, "column 'cell' has 1 value that no query of truecal gives, such as -7"),
        ({"cell": [10484.5, 65536]}, "column 'cell' has 2 values"),
        ({"rows": [1, 3]}, "contradict"),
        ({"rows": [2.0, 2.5]}, "contradict"),
        ({"squares": [1.9, 3], "positive_squares": [1, 3]}, "contradict"),
        ({"squares": [2.0, 9.5], "positive_squares": [1, 3]}, "contradict"),
        ({"squares": [2, 3], "positive_squares": [2.5, 3]}, "contradict"),
        ({"squares": [2, 3], "positive_squares": [1, 3], "count": [2.0, 1e300]}, "contradict"),
    ],
)
def test_results_that_are_not_cells(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        read_cells(CELLS.with_columns(**{name: pl.Series(values) for name, values in changes.items()}))


def test_results_without_rows_columns_or_groups():
    with pytest.raises(InputError, match="empty"):
        read_cells(CELLS.head(0))
    with pytest.raises(InputError, match="no column 'lower'"):
        read_cells(CELLS.drop("lower"))
    with pytest.raises(InputError, match=r"no group 'cite'\. Its groups: 'site'"):
        read_cells(CELLS, by="cite")


def test_weights_may_be_counts(base):
    names = {"label": "label", "score": "score", "dialect": "sqlite"}
    query = cells_query("predictions", weight="times", **names)
    sampling, counts = read_cells(base.run(query)), read_cells(base.run(query), weighting="counts")
    assert counts.squares is None
    np.testing.assert_array_equal(sampling.count, counts.count)
    halves = base.run(cells_query("predictions", weight="weight", **names))
    with pytest.raises(InputError, match=r"column 'count' has .* a fractional part, which cannot count rows"):
        read_cells(halves, weighting="counts")
