"""Scorers for scikit-learn: every estimator of calibration error in `cross_validate` and `GridSearchCV`.

scikit-learn ranks models by accuracy, log loss and the like, but has no calibration error. These scorers
have. As its own losses they are negated, so that greater is better: ``neg_em_sweep`` is minus ``em_sweep``.

>>> from sklearn.datasets import make_classification
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = make_classification(600, n_redundant=10, random_state=0)
>>> cross_val_score(GaussianNB(), X, y, cv=3, scoring=scorer("em_sweep")).round(3)
array([-0.033, -0.059, -0.025])

A dictionary of several, `SCORERS` itself or a part of it, gives several scores at once.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable
from typing import Any, Self

from numpy.typing import ArrayLike

from truecal.estimators._registry import get_estimator, list_estimators
from truecal.inference.estimate import calibration_error

#: What `calibration_error` itself takes, beside the options of its estimators.
_GENERAL_OPTIONS = ("norm", "n_bins", "multiclass", "pos_label")

#: What in scikit-learn checks the name of a scorer against a list that was made at import.
_CHECKING = (
    "metrics.check_scoring",
    "model_selection.cross_val_score",
    "model_selection.cross_validate",
    "model_selection.learning_curve",
    "model_selection.permutation_test_score",
    "model_selection.validation_curve",
    "model_selection.GridSearchCV",
    "model_selection.RandomizedSearchCV",
)


class CalibrationScorer:
    """Minus the calibration error of a classifier: ``scorer(classifier, X, y)``, greater is better.

    It calls `predict_proba` and reads its columns by the classifier's own ``classes_``, so that string
    labels, several classes and folds without some class are all right. For two classes the error is that
    of the second (or of `pos_label`); for more, of the top label, or what `multiclass` says.

    Make one with `make_scorer` or `scorer`. It can be pickled, copied and cloned, and it takes part in
    metadata routing: ``scorer.set_score_request(sample_weight=True)``.

    Parameters
    ----------
    estimator : str
        One of `truecal.list_estimators`.
    **options
        As of `truecal.calibration_error`: `norm`, `n_bins`, `multiclass`, `pos_label`, and the options of the
        estimator itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> score = CalibrationScorer("em_bin", n_bins=5, multiclass="classwise")
    >>> round(score(model, X, y), 3)
    -0.039
    """

    def __init__(self, estimator: str = "em_sweep", **options: Any) -> None:
        spec = get_estimator(estimator)
        spec.check_options(option for option in options if option not in _GENERAL_OPTIONS)
        self.estimator = spec.name
        self.options = options
        self._sample_weight_request: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the calibration error of `estimator`, a fitted classifier, on `X` and `y`."""
        if not hasattr(estimator, "predict_proba"):
            raise AttributeError(
                f"{type(estimator).__name__} has no predict_proba: calibration is a property of "
                f"probabilities. Wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        error = calibration_error(
            y,
            estimator.predict_proba(X),
            estimator=self.estimator,
            sample_weight=sample_weight,
            labels=list(estimator.classes_),
            **self.options,
        )
        return -error

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"make_scorer({self.estimator!r}{options})"

    # -- scikit-learn's conventions ------------------------------------------------------------------

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether weights are passed on to the scorer, or under what name; needs metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to use weights that are given, False to leave them, None to have it an error if they are
            given, a string for their name.
        """
        if not importlib.import_module("sklearn").get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "This method is only available when metadata routing is enabled: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        self._sample_weight_request = sample_weight
        return self

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn's routing asks of every scorer."""
        routing = importlib.import_module("sklearn.utils.metadata_routing")
        request = routing.MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self._sample_weight_request)
        return request

    def _accept_sample_weight(self) -> bool:
        # Without routing scikit-learn asks each of several scorers by this name.
        return True

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)


def make_scorer(estimator: str = "em_sweep", **options: Any) -> CalibrationScorer:
    """Return a scorer for `cross_validate`, `GridSearchCV` and the like; greater is better.

    Parameters
    ----------
    estimator : str
        One of `truecal.list_estimators`.
    **options
        See `CalibrationScorer`.

    Examples
    --------
    >>> make_scorer("em_bin", norm=1, n_bins=10)
    make_scorer('em_bin', norm=1, n_bins=10)
    """
    return CalibrationScorer(estimator, **options)


def scorer(name: str) -> CalibrationScorer:
    """Return a new scorer by the name of its estimator, with ``neg_`` before it or without.

    Examples
    --------
    >>> scorer("neg_em_sweep")
    make_scorer('em_sweep')
    """
    return CalibrationScorer(name.removeprefix("neg_"))


#: A scorer for every registered estimator, by its name after ``neg_``.
SCORERS: dict[str, CalibrationScorer] = {
    f"neg_{spec.name}": CalibrationScorer(spec.name) for spec in list_estimators()
}


def register_scorers(names: Iterable[str] | None = None) -> None:
    """Make scikit-learn know the scorers by name, so that ``scoring="neg_em_sweep"`` works.

    scikit-learn has no public place to add a scorer. This writes into its private table, for the running
    process, and only when it is called; `scorer` needs nothing of the kind.

    Parameters
    ----------
    names : iterable of str, optional
        Keys of `SCORERS`; all of them by default.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> register_scorers()
    >>> search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [5, 25]}, scoring="neg_em_sweep")
    """
    chosen = {name: SCORERS[name] for name in (SCORERS if names is None else names)}
    table = getattr(importlib.import_module("sklearn.metrics._scorer"), "_SCORERS", None)
    if not isinstance(table, dict):
        raise RuntimeError(
            "This version of scikit-learn keeps its scorers elsewhere. Pass scoring=scorer(name) instead."
        )
    table.update(chosen)
    for path in _CHECKING:
        module, _, name = path.partition(".")
        owner = getattr(importlib.import_module(f"sklearn.{module}"), name)
        rules = getattr(owner, "_skl_parameter_constraints", None) or owner._parameter_constraints
        for rule in rules.get("scoring", ()):
            options = getattr(rule, "options", None)
            if isinstance(options, set):
                options.update(chosen)
