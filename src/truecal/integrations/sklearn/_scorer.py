"""A scorer for scikit-learn: calibration error in `cross_validate`, `GridSearchCV` and the like.

scikit-learn ranks models by accuracy, log loss and others, but has no calibration error. Like scikit-learn's own losses
the score is negated, so that larger is better.

>>> from sklearn.datasets import make_classification
>>> from sklearn.model_selection import cross_val_score
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = make_classification(600, n_redundant=10, random_state=0)
>>> cross_val_score(GaussianNB(), X, y, cv=3, scoring=CalibrationScorer("em_sweep")).round(3)
array([-0.033, -0.059, -0.025])

A dictionary of several scorers gives several scores at once.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any, Self

from numpy.typing import ArrayLike

from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.inference.estimate import calibration_error

#: What `calibration_error` itself takes, beside the options of its estimators.
_GENERAL_OPTIONS = ("norm", "n_bins", "squared", "multiclass", "pos_label")
#: As scikit-learn marks a request that is left as it is.
_UNCHANGED = "$UNCHANGED$"


class CalibrationScorer:
    """Minus the calibration error of a classifier: ``scorer(classifier, X, y)``, greater is better.

    It calls `predict_proba` and names its columns by the classifier's own ``classes_``, so that string labels,
    several classes and folds in which a class is missing work. For two classes the error is that of the second
    (or of `pos_label`); for more, of the top label, or as `multiclass` says.

    It can be pickled, copied and cloned, and supports metadata routing:
    ``scorer.set_score_request(sample_weight=True)``, and ``clusters=True`` (or ``clusters="groups"``, to use the
    groups of the splitter) for rows that depend on each other, which the default estimator allows for.

    Parameters
    ----------
    estimator : str
        One of `truecal.list_estimators`.
    **options
        Options of `truecal.calibration_error`: `norm`, `n_bins`, `squared`, `multiclass`, `pos_label`, and the options
        of the estimator itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> score = CalibrationScorer("em_bin", n_bins=5, multiclass="classwise")
    >>> round(score(model, X, y), 3)
    -0.045
    """

    def __init__(self, estimator: str = DEFAULT_ESTIMATOR, **options: Any) -> None:
        spec = get_estimator(estimator)
        spec.check_options(option for option in options if option not in _GENERAL_OPTIONS)
        self.estimator = spec.name
        self.options = options
        self._requests: dict[str, bool | str | None] = {"sample_weight": None, "clusters": None}

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        clusters: Any = None,
    ) -> float:
        """Return minus the calibration error of `estimator`, a fitted classifier, on `X` and `y`."""
        if not hasattr(estimator, "predict_proba"):
            raise AttributeError(
                f"{type(estimator).__name__} has no predict_proba: calibration is a property of "
                f"probabilities. Wrap it in truecal.integrations.sklearn.CalibratedModel."
            )
        error = calibration_error(
            y,
            estimator.predict_proba(X),
            estimator=self.estimator,
            sample_weight=sample_weight,
            clusters=clusters,
            labels=list(estimator.classes_),
            **self.options,
        )
        return -error

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"CalibrationScorer({self.estimator!r}{options})"

    # -- scikit-learn's conventions ------------------------------------------------------------------

    def set_score_request(
        self, *, sample_weight: bool | str | None = _UNCHANGED, clusters: bool | str | None = _UNCHANGED
    ) -> Self:
        """Set whether weights and clusters are passed on to the scorer, or under what name; needs metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to use weights that are given, False to ignore them, None to make it an error if they are
            given, a string for their name.
        clusters : bool, str or None
            The same for the clusters of rows that depend on each other.
        """
        if not importlib.import_module("sklearn").get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "This method is only available when metadata routing is enabled: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        asked = {"sample_weight": sample_weight, "clusters": clusters}
        self._requests |= {name: value for name, value in asked.items() if value != _UNCHANGED}
        return self

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn's routing asks of every scorer."""
        routing = importlib.import_module("sklearn.utils.metadata_routing")
        request = routing.MetadataRequest(owner=repr(self))
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        # Without routing scikit-learn asks each of several scorers by this name.
        return True

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)
