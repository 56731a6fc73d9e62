"""Examples that the help of each command shows; the tests run all of them."""

from __future__ import annotations

#: Command lines by the name of the command. Bundled data makes them run anywhere.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "measure": (
        "truecal measure flights",
        "truecal measure flights --score naive_bayes --group origin",
        "truecal measure digits --multiclass classwise --format json --no-bins",
    ),
    "report": ("truecal report flights --group origin -o flights.html",),
    "test": (
        "truecal test flights --score balanced",
        "truecal test flights --at-most 0.05",
    ),
    "compare": ("truecal compare flights --score boosting --score balanced",),
    "audit": ("truecal audit flights --feature origin --feature carrier",),
    "monitor": (
        "truecal monitor flights --every 500 --once",
        "truecal monitor flights --every 500 --at-most 0.1 --group origin",
    ),
    "recalibrate": ("truecal recalibrate flights --score balanced --write better.csv",),
    "plan": ("truecal plan --error 0.1", "truecal plan --rows 1000"),
    "sql": ("truecal sql --dialect postgres --table predictions --label y --score p",),
    "study": ("truecal study study.toml -o results.csv",),
    "reproduce": ("truecal reproduce --list",),
    "estimators": ("truecal estimators",),
}
