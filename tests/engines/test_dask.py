"""Dask as people use it: Parquet files, a worker that dies, and studies through joblib."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from dask import dataframe as dd
from distributed import Client, LocalCluster

import truecal
from support.engine_contract import assert_same
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.data.frames import summarize

N_PARTS, PART = 12, 5000


def make_part(k):
    y, p = truecal.paper.population("resnet110_c100").sample(PART, rng=k)
    return pd.DataFrame({"p": p, "y": y})


@pytest.fixture(scope="module")
def exact():
    whole = pd.concat([make_part(k) for k in range(N_PARTS)])
    return Cells.from_sample(as_sample(whole["y"], whole["p"]))


def test_parquet_files_on_a_cluster(client, tmp_path, exact):
    for k in range(N_PARTS):
        pl.from_pandas(make_part(k)).write_parquet(tmp_path / f"part-{k:02}.parquet")
    frame = dd.read_parquet(tmp_path, split_row_groups=True)
    assert frame.npartitions == N_PARTS
    assert_same(summarize(frame, score="p", label="y"), exact)


def test_a_worker_killed_half_way(tmp_path, exact):
    def slow_part(k):
        (tmp_path / f"{k}-{time.monotonic_ns()}").touch()
        time.sleep(0.5)
        return make_part(k)

    def kill_one(cluster):
        while len(list(tmp_path.iterdir())) < N_PARTS // 2:
            time.sleep(0.02)
        killed.append(cluster.workers[0].pid)
        os.kill(killed[0], signal.SIGKILL)

    killed = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
        ) as cluster,
        Client(cluster),
    ):
        frame = dd.from_map(slow_part, range(N_PARTS), meta=make_part(0).iloc[:0])
        thread = threading.Thread(target=kill_one, args=(cluster,))
        thread.start()
        cells = summarize(frame, score="p", label="y")
        thread.join()
        restarted = cluster.workers[0].pid
    assert killed
    assert restarted != killed[0]
    assert_same(cells, exact)
    # What the dead worker had held, or was at work on, was done again.
    assert len(list(tmp_path.iterdir())) > N_PARTS


def test_one_bad_row_on_a_cluster(client):
    def part(k):
        frame = make_part(k)
        if k == N_PARTS // 2:
            frame.loc[PART // 2, "p"] = np.nan
        return frame

    frame = dd.from_map(part, range(N_PARTS), meta=make_part(0).iloc[:0])
    with pytest.raises(ValueError, match=r"column 'p' has 1 missing \(NaN\) value"):
        summarize(frame, score="p", label="y")


def test_a_study_on_the_cluster_has_the_same_rows(client):
    populations = {name: truecal.paper.population(name) for name in truecal.paper.NAMES[:2]}
    options = {"estimators": ["ew_bin", "em_sweep"], "sizes": [200, 800], "repeats": 50, "rng": 0}
    alone = truecal.bias_study(populations, **options)
    with joblib.parallel_config("dask"):
        spread = truecal.bias_study(populations, **options, n_jobs=-1)
    assert spread.rows == alone.rows
