"""A file of predictions, its frame and its error, which most tests of the command line read."""

import polars as pl
import pytest

from support.command_line import COLUMNS, recommended, write_csv


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def truth():
    return recommended(COLUMNS["label"], COLUMNS["score"])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("predictions") / "plain.csv")
