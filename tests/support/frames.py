"""A frame with columns of every kind."""

import polars as pl

from support import engine_contract as contract

FRAME = pl.from_arrow(contract.make_table())
