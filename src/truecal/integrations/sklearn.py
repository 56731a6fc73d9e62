"""For scikit-learn: a classifier that is recalibrated where it is fitted, and scorers of calibration error.

`CalibratedModel` is a classifier and its recalibrator as one estimator, which holds out the rows that the recalibrator
is fitted to.

>>> from sklearn.datasets import make_classification
>>> from sklearn.naive_bayes import GaussianNB
>>> X, y = make_classification(2000, n_redundant=10, random_state=0)
>>> model = CalibratedModel(GaussianNB(), "platt").fit(X, y)
>>> print(*(one.predict_proba(X[5:6]).round(2) for one in (model.estimator_, model)))
[[1. 0.]] [[0.97 0.03]]

`CalibrationScorer` is for `cross_validate`, `GridSearchCV` and the like. scikit-learn ranks models by accuracy, log
loss and others, but has no calibration error. Like scikit-learn's own losses the score is negated, so that larger is
better.

>>> from sklearn.model_selection import cross_val_score
>>> X, y = make_classification(600, n_redundant=10, random_state=0)
>>> cross_val_score(GaussianNB(), X, y, cv=3, scoring=CalibrationScorer("em_sweep")).round(3)
array([-0.033, -0.059, -0.025])

A dictionary of several scorers gives several scores at once.
"""

# scikit-learn has no type hints.
# mypy: disable-error-code="import-untyped,misc"

from __future__ import annotations

import copy
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice, check_flag, require
from truecal._lib.types import FloatArray
from truecal.data.faults import bad_values
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.exceptions import InputError, warn_user
from truecal.inference.estimate import calibration_error
from truecal.recalibration import IdentityCalibration
from truecal.recalibration.selection import BY_NAME, select_recalibrator

# Before scikit-learn is imported, so that the error says what to install.
require("sklearn", extra="sklearn", purpose="The integration with scikit-learn")

from sklearn import get_config  # noqa: E402
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.model_selection import StratifiedGroupKFold, StratifiedShuffleSplit, check_cv  # noqa: E402
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable  # noqa: E402
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping, process_routing  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.parallel import Parallel, delayed  # noqa: E402
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter  # noqa: E402

__all__ = ["CalibratedModel", "CalibrationScorer"]

#: Recalibrators by name, for `CalibratedModel`.
_RECALIBRATORS = {"identity": IdentityCalibration, **BY_NAME}

#: Folds in which a recalibrator is chosen.
_SELECTION_FOLDS = 5


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are recalibrated, fitted in one call.

    The recalibrator is fitted to predictions of rows that the classifier was not trained on. There are three ways to
    get them:

    * Cross-fitting (`cv` is a number of folds or a splitter). Each fold is predicted by a clone that was fitted to the
      others. The recalibrator is fitted to these predictions, and the classifier to all rows.
    * A held-out part (`cv` is a fraction such as 0.25). The classifier is fitted to the rest only, which is faster.
    * A fitted classifier, wrapped in `sklearn.frozen.FrozenEstimator`. The recalibrator is fitted to all rows that are
      passed to `fit`, which must be new to the classifier.

    Scores are what `predict_proba` of the classifier returns; a classifier without it is used through its
    `decision_function`, whose values are read as logits. The parameter `input` of the recalibrator is set accordingly.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba` or `decision_function`.
    recalibrator : str, recalibrator, or several of them
        ``"auto"`` lets `truecal.select_recalibrator` choose, which leaves a calibrated model unchanged. A list (or a
        mapping of names) makes it choose from that. ``"temperature"``, ``"platt"``, ``"beta"``, ``"isotonic"``,
        ``"histogram"``, ``"vector"``, ``"dirichlet"``, ``"spline"``, ``"venn_abers"``, ``"identity"``, or an object
        with `fit` and `transform` is used without a choice.
    cv : int, float, splitter or iterable
        Number of folds, fraction of the rows to hold out, or what scikit-learn takes as `cv`. With `groups` in `fit`,
        a number or a fraction keeps groups together.
    ensemble : bool
        With cross-fitting: keep the classifiers of the folds and return the mean of their recalibrated probabilities,
        as scikit-learn's `CalibratedClassifierCV` does by default, instead of fitting one classifier to all rows. It is
        usually more accurate, and takes as many times as long to predict as there are folds.
    n_jobs : int, optional
        Number of folds to fit at the same time.
    random_state : int, RandomState or None
        Seed of the rows to hold out, and of the choice of a recalibrator.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier; with `ensemble`, that of the first fold.
    estimators_ : list of classifiers
        All classifiers whose recalibrated probabilities are averaged: one, or one for each fold.
    recalibrator_ : recalibrator
        The fitted recalibrator.
    selection_ : Selection
        How the recalibrator was chosen; only if it was.
    classes_ : ndarray of shape (K,)
        The class of each column of `predict_proba`.

    Examples
    --------
    The recalibrator is a parameter like any other:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(600, n_redundant=10, random_state=0)
    >>> search = GridSearchCV(
    ...     CalibratedModel(GaussianNB()),
    ...     {"recalibrator": ["identity", "platt", "histogram"]},
    ...     scoring="neg_log_loss",
    ... )
    >>> search.fit(X, y).best_params_
    {'recalibrator': 'platt'}
    """

    estimator_: Any
    estimators_: list[Any]
    recalibrator_: Any
    selection_: Any
    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        recalibrator: Any = "auto",
        *,
        cv: Any = 5,
        ensemble: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier and the recalibrator.

        Parameters
        ----------
        X : array-like
            Features.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Weights, for the recalibrator and for the classifier if it takes them (with metadata routing, if it
            requests them).
        groups : array-like of shape (n,), optional
            Rows of one group are never split: all of them are held out, or none.
        **fit_params
            Passed to the classifier.

        Returns
        -------
        Self
        """
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: classes are needed"
            )
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        X, labels, sample_weight, groups = indexable(X, labels, sample_weight, groups)
        fit_params = self._params_of_estimator(sample_weight, groups, fit_params)
        random_state = check_random_state(self.random_state)
        if isinstance(self.estimator, FrozenEstimator):
            self.estimators_, held_out = [self.estimator], np.arange(len(labels))
            self.classes_ = np.asarray(self.estimator.classes_)
            scores, given = _scores(self.estimator, X, self.classes_)
        else:
            self.classes_ = np.unique(labels)
            if len(self.classes_) < 2:
                raise InputError(
                    f"has {len(labels)} rows of {len(self.classes_)} class; two classes are needed",
                    argument="y",
                )
            held_out, scores, given = self._hold_out(X, labels, groups, fit_params, random_state)
        self.estimator_ = self.estimators_[0]
        weight = None if sample_weight is None else np.asarray(sample_weight)[held_out]
        group = None if groups is None else np.asarray(groups)[held_out]
        truth = self._codes(labels[held_out])
        self._fit_recalibrator(scores, truth, weight, group, given, random_state)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the recalibrated probabilities, one column for each of `classes_`.

        Parameters
        ----------
        X : array-like
            Features.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        scores = (_scores(model, X, self.classes_)[0] for model in self.estimators_)
        proba: FloatArray = np.mean(
            np.stack([self.recalibrator_.transform(part) for part in scores]), axis=0, dtype=np.float64
        )
        return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row of `X`, an array of shape (n,)."""
        proba = self.predict_proba(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    # -- The classifier ------------------------------------------------------------------------------

    def _hold_out(
        self, X: Any, labels: NDArray[Any], groups: Any, fit_params: dict[str, Any], random_state: Any
    ) -> tuple[NDArray[np.intp], FloatArray, str]:
        """Fit the classifier; return the rows that were held out, their scores and what these are."""
        splits = self._splits(X, labels, groups, random_state)
        done = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_score)(clone(self.estimator), X, labels, train, test, fit_params, self.classes_)
            for train, test in splits
        )
        models, parts, given = zip(*done, strict=True)
        held_out = np.concatenate([np.arange(len(labels))[test] for _, test in splits])
        if len(np.unique(held_out)) < len(held_out):
            raise InputError("must hold out each row at most once", argument="cv", value=self.cv)
        keep = _is_fraction(self.cv) or check_flag("ensemble", self.ensemble)
        self.estimators_ = list(models) if keep else [clone(self.estimator).fit(X, labels, **fit_params)]
        return held_out, np.concatenate(parts), given[0]

    def _splits(
        self, X: Any, labels: NDArray[Any], groups: Any, random_state: Any
    ) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        fraction = _is_fraction(self.cv)
        if fraction:
            if groups is None:
                splitter = StratifiedShuffleSplit(1, test_size=float(self.cv), random_state=random_state)
            else:
                parts = max(2, round(1 / self.cv))
                splitter = StratifiedGroupKFold(parts, shuffle=True, random_state=random_state)
        elif isinstance(self.cv, Integral) and groups is not None:
            splitter = StratifiedGroupKFold(int(self.cv))
        else:
            splitter = check_cv(self.cv, labels, classifier=True)
        splits = list(splitter.split(X, labels, groups))
        return splits[:1] if fraction else splits

    def _params_of_estimator(
        self, sample_weight: Any, groups: Any, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what to pass to `fit` of the classifier."""
        if get_config()["enable_metadata_routing"]:
            given = {"sample_weight": sample_weight, "groups": groups}
            given = {name: value for name, value in given.items() if value is not None}
            return dict(process_routing(self, "fit", **given, **fit_params).estimator.fit)
        if sample_weight is None or isinstance(self.estimator, FrozenEstimator):
            return fit_params
        if not has_fit_parameter(self.estimator, "sample_weight"):
            name = type(self.estimator).__name__
            warn_user(f"{name}.fit takes no sample_weight: the weights are used for the recalibrator only.")
            return fit_params
        return {"sample_weight": sample_weight, **fit_params}

    # -- The recalibrator ----------------------------------------------------------------------------

    def _codes(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the number of each row's class."""
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            rule = "outside classes_ of the fitted classifier"
            raise bad_values(unknown, labels, "y", "label", rule)
        order = np.argsort(self.classes_)
        return np.asarray(order[np.searchsorted(self.classes_, labels, sorter=order)])

    def _fit_recalibrator(
        self,
        scores: FloatArray,
        truth: NDArray[np.intp],
        weight: FloatArray | None,
        group: NDArray[Any] | None,
        given: str,
        random_state: Any,
    ) -> None:
        candidates = self.recalibrator
        if isinstance(candidates, str) and candidates != "auto":
            check_choice("recalibrator", candidates, ["auto", *_RECALIBRATORS])
            self.recalibrator_ = _RECALIBRATORS[candidates](input=given)
        elif isinstance(candidates, str | Mapping | list | tuple):
            rng = np.random.default_rng(random_state.randint(2**31 - 1))
            self.selection_ = select_recalibrator(
                truth,
                scores,
                candidates=None if isinstance(candidates, str) else candidates,
                input=given,
                sample_weight=weight,
                clusters=group,
                cv=min(_SELECTION_FOLDS, len(truth) if group is None else len(np.unique(group))),
                rng=rng,
            )
            self.recalibrator_ = self.selection_.recalibrator
            return
        else:
            self.recalibrator_ = _copy(candidates, given)
        weights = {} if weight is None else {"sample_weight": weight}
        self.recalibrator_.fit(scores, truth, **weights)

    # -- scikit-learn's conventions ------------------------------------------------------------------

    def get_metadata_routing(self) -> Any:
        """Return which metadata goes where: to the classifier, to the splitter, and to the recalibrator."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=to_fit)
        if hasattr(self.cv, "get_metadata_routing"):
            to_split = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=to_split)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _is_fraction(cv: Any) -> bool:
    if not isinstance(cv, float | np.floating):
        return False
    if not 0 < cv < 1:
        raise InputError(
            f"must be a number of folds or a fraction between 0 and 1. Got {cv} instead", argument="cv"
        )
    return True


def _fit_and_score(
    model: Any,
    X: Any,
    labels: NDArray[Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    params: dict[str, Any],
    classes: NDArray[Any],
) -> tuple[Any, FloatArray, str]:
    """Fit to some rows; return the model, the scores of the other rows, and their kind."""
    ours = {name: _part(value, train, len(labels)) for name, value in params.items()}
    model.fit(_safe_indexing(X, train), labels[train], **ours)
    return model, *_scores(model, _safe_indexing(X, test), classes)


def _part(value: Any, rows: NDArray[np.intp], n: int) -> Any:
    """Return the rows of a parameter that has one value for each; others are left as they are."""
    has_rows = hasattr(value, "__len__") and not isinstance(value, str | Mapping) and len(value) == n
    return _safe_indexing(value, rows) if has_rows else value


def _scores(model: Any, X: Any, classes: NDArray[Any]) -> tuple[FloatArray, str]:
    """Return the model's probabilities or logits, and which of the two they are."""
    if not np.array_equal(model.classes_, classes):
        missing = sorted(set(classes.tolist()) - set(np.asarray(model.classes_).tolist()))
        raise InputError(
            f"leaves no rows of class {missing[0]!r} to fit the classifier to",
            argument="cv",
            remedy="Use stratified folds, or fewer.",
        )
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)), "probabilities"
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)), "logits"
    raise InputError(
        f"must have predict_proba or decision_function. {type(model).__name__} has neither",
        argument="estimator",
    )


def _copy(recalibrator: Any, given: str) -> Any:
    """Return a copy that can be fitted to scores of this kind."""
    if not (hasattr(recalibrator, "fit") and hasattr(recalibrator, "transform")):
        raise InputError(
            f"must be a name or have fit and transform. Got {recalibrator!r} instead", argument="recalibrator"
        )
    fresh = clone(recalibrator) if hasattr(recalibrator, "get_params") else copy.deepcopy(recalibrator)
    if "input" in getattr(fresh, "get_params", dict)():
        fresh.set_params(input=given)
    return fresh


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
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "This method is only available when metadata routing is enabled: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        asked = {"sample_weight": sample_weight, "clusters": clusters}
        self._requests |= {name: value for name, value in asked.items() if value != _UNCHANGED}
        return self

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn's routing asks of every scorer."""
        request = MetadataRequest(owner=repr(self))
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def _accept_sample_weight(self) -> bool:
        # Without routing scikit-learn asks each of several scorers by this name.
        return True

    def __sklearn_clone__(self) -> Self:
        return copy.deepcopy(self)
