"""The registry of estimators: a decorated function becomes known to the whole package by name."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from truecal._lib.checks import check_choice, check_norm, read_norm, unknown_option
from truecal._lib.types import NormLike
from truecal.exceptions import InputError, Remedy, warn_user
from truecal.results import Estimates

if TYPE_CHECKING:
    from truecal.data.sample import Sample, ScoreGroups
    from truecal.results import Estimate

#: A function of a census and the estimator's arguments; or the estimator itself.
Truth = Callable[..., float] | Literal["plug-in"] | None
EstimatorFunction = TypeVar("EstimatorFunction", bound=Callable[..., "Estimate | Estimates"])

#: Default of every parameter `estimator`: the one that has a confidence interval.
DEFAULT_ESTIMATOR: Final = "multiscale"

#: The omnibus test, the default of every parameter `method`; other tests are named after their statistic.
MULTISCALE: Final = "multiscale"

#: Default of every parameter `norm`.
DEFAULT_NORM: Final = 2.0

#: Estimand of most estimators: the l_p distance between the score and the conditional probability of the event.
TRUE_ERROR: Final = "true calibration error"

#: Other packages add estimators by naming a module under this entry point.
ENTRY_POINT_GROUP: Final = "truecal.estimators"

_SPECS: dict[str, EstimatorSpec] = {}


@dataclass(frozen=True)
class EstimatorSpec:
    """Description of an estimator. Call it with a `Sample` to apply the estimator.

    Attributes
    ----------
    name : str
        Name of the estimator.
    function : callable
        The registered function, ``(sample, *, norm, ...) -> Estimate``. It does not check its arguments;
        calling the specification does.
    summary : str
        One line on what it does.
    estimand : str
        The quantity that it estimates: ``"true calibration error"``, or another one in words.
    reference : str
        Publication that proposed it.
    norms : {"any", "none"}
        ``"any"`` for every p >= 1, ``"none"`` where l_p norms do not apply.
    weights : bool
        Whether it accepts fractional weights.
    random : bool
        Whether it draws random numbers; then it has the option `rng`.
    range : tuple of float
        Smallest and largest possible value.
    aliases : tuple of str
        Other names of the estimator.
    options : dict
        Its keyword parameters other than `norm`, with their defaults.
    counting : bool
        Whether the estimator depends on the rows only through their sums over `n_bins` equal-width bins, so that they
        can be counted and need not be sorted.
    takes_blocks : bool
        Whether the function takes a `Sample` or a `Block` of many, and returns `Estimates`.
    truth : callable, "plug-in" or None
        How to compute the estimand of a population, if it is not the true calibration error; see `true_value`.
    limit : callable or None
        For large n and a calibrated model, the probability that the value divided by
        sigma = sqrt(sum of f (1 - f)) / n exceeds its argument.
    largest : str or None
        Name of the estimator that gives the largest gap of the same bins, which is ``norm="max"``.
    fixed_norm : float or None
        Order of the norm that an alias implies, as 1 for ``"ece"``; None elsewhere.
    """

    name: str
    function: Callable[..., Any]
    summary: str
    estimand: str
    reference: str
    norms: str
    weights: bool
    random: bool
    range: tuple[float, float]
    aliases: tuple[str, ...]
    options: dict[str, Any]
    counting: bool = False
    takes_blocks: bool = False
    truth: Truth = None
    limit: Callable[[float], float] | None = None
    largest: str | None = None
    fixed_norm: float | None = None

    def __repr__(self) -> str:
        return f"<EstimatorSpec {self.name}: {self.summary}>"

    def check_options(self, options: Iterable[str]) -> None:
        """Raise InputError for options that the estimator does not have.

        Parameters
        ----------
        options : iterable of str
            Names of options.
        """
        for option in options:
            if option not in self.options:
                raise unknown_option(option, self.name, self.options or ("none",))

    def with_norm(self, norm: NormLike) -> EstimatorSpec:
        """Return the estimator of the largest gap if `norm` asks for it and there is one, and itself otherwise."""
        if self.largest and self.fixed_norm is None and read_norm(norm) == math.inf:
            return get_estimator(self.largest)
        return self

    def resolve_norm(self, norm: NormLike) -> float | None:
        """Return the order of the norm that the estimator uses when `norm` is passed.

        Parameters
        ----------
        norm : float
            Order of the norm.

        Returns
        -------
        float or None
            None where l_p norms do not apply. An alias with a norm of its own keeps it; any other order than
            that and the default is then an InputError.
        """
        if self.norms == "none":
            return None
        norm = check_norm(norm)
        if self.fixed_norm is None:
            return norm
        if norm not in (self.fixed_norm, DEFAULT_NORM):
            raise InputError(
                f"cannot be {norm:g}: this alias of {self.name} implies norm={self.fixed_norm:g}",
                argument="norm",
                remedy=f"Pass estimator={self.name!r}.",
            )
        return self.fixed_norm

    def true_value(self, census: Sample, *, norm: NormLike = DEFAULT_NORM, **options: Any) -> float | None:
        """Return the estimand of a population, or None if it is not known.

        Parameters
        ----------
        census : Sample
            The whole population: scores, their probabilities as counts, and expected labels.
        norm : float
            Order of the norm.
        **options
            Options of the estimator.
        """
        spec = self.with_norm(norm)
        if spec.truth is None:
            return None
        order = spec.resolve_norm(norm)
        arguments = {**spec.options, **options, **({} if order is None else {"norm": order})}
        if spec.truth == "plug-in":
            return spec._apply(census, arguments).value
        return spec.truth(census, **arguments)

    def __call__(self, sample: Sample, *, norm: NormLike = DEFAULT_NORM, **options: Any) -> Estimate:
        """Apply the estimator to a sample; the result names the estimator, the norm, the target and the rows."""
        spec = self.with_norm(norm)
        arguments = spec._arguments(sample, norm, options)
        if sample.pseudo is not None and spec.name != MULTISCALE:
            raise InputError(
                f"{spec.name!r} would take the noise of {sample.label_kind} for miscalibration",
                argument="estimator",
                value=spec.name,
                remedy=f"Use {MULTISCALE!r}, the default, which allows for it.",
            )
        return spec._apply(
            sample,
            arguments,
            estimator=spec.name,
            norm=arguments.get("norm"),
            target=sample.target,
            **sample.size_fields,
            weighting="clusters" if sample.dependence.equal else "rows",
        )

    def many(self, groups: ScoreGroups, *, norm: NormLike = DEFAULT_NORM, **options: Any) -> Estimates:
        """Apply the estimator to every sample of a block; the values are those of single calls.

        Parameters
        ----------
        groups : Block or Sample
            Samples of the same number of rows, or one sample.
        norm : float
            Order of the norm.
        **options
            Options of the estimator.
        """
        spec = self.with_norm(norm)
        arguments = spec._arguments(groups, norm, options)
        if spec.takes_blocks:
            estimates: Estimates = spec.function(groups, **arguments)
            return estimates
        return Estimates.gather([spec._apply(sample, arguments) for sample in groups.samples])

    def _arguments(self, groups: ScoreGroups, norm: NormLike, options: dict[str, Any]) -> dict[str, Any]:
        """Return the checked arguments of the function."""
        order = self.resolve_norm(norm)
        self.check_options(options)
        if not self.weights and not groups.whole:
            raise InputError(
                f"must be whole numbers for {self.name}, which counts rows",
                argument="sample_weight",
                remedy=Remedy.COUNTS,
            )
        return options if order is None else {"norm": order, **options}

    def _apply(self, sample: ScoreGroups, arguments: dict[str, Any], **description: Any) -> Estimate:
        outcome: Estimate | Estimates = self.function(sample, **arguments)
        if isinstance(outcome, Estimates):
            return outcome.item(0, **description)
        return replace(outcome, **description) if description else outcome


@dataclass(frozen=True)
class Choice:
    """An estimator with its options, under the label that appears in results."""

    label: str
    spec: EstimatorSpec
    options: dict[str, Any] = field(default_factory=dict)

    def many(self, groups: ScoreGroups, *, norm: NormLike = DEFAULT_NORM) -> Estimates:
        """Apply the estimator with its options to every sample of a block."""
        return self.spec.many(groups, norm=norm, **self.options)


def choose_estimators(estimators: Iterable[str | Mapping[str, Any]]) -> list[Choice]:
    """Return the estimators of a list of names, or of mappings with a name and options.

    Examples
    --------
    >>> [choice.label for choice in choose_estimators(["ks", {"estimator": "em_bin", "n_bins": 4}])]
    ['ks', 'em_bin(n_bins=4)']
    """
    if isinstance(estimators, str | Mapping):
        raise InputError(
            f"must be a list of names or mappings. Got {estimators!r} instead", argument="estimators"
        )
    choices: dict[str, Choice] = {}
    for item in estimators:
        options = {} if isinstance(item, str) else dict(item)
        spec = get_estimator(item if isinstance(item, str) else options.pop("estimator", None))
        spec.check_options(options)
        suffix = ", ".join(f"{key}={value!r}" for key, value in options.items())
        label = f"{spec.name}({suffix})" if suffix else spec.name
        choices[label] = Choice(label, spec, options)
    return list(choices.values())


def register_estimator(
    name: str,
    *,
    summary: str,
    reference: str,
    estimand: str = TRUE_ERROR,
    norms: str = "any",
    weights: bool = True,
    random: bool = False,
    range: tuple[float, float] = (0.0, 1.0),
    aliases: tuple[str, ...] = (),
    alias_norms: Mapping[str, float] = MappingProxyType({}),
    counting: bool = False,
    takes_blocks: bool = False,
    truth: Truth = None,
    limit: Callable[[float], float] | None = None,
    largest: str | None = None,
) -> Callable[[EstimatorFunction], EstimatorFunction]:
    """Register a function ``(sample, *, norm, ...) -> Estimate`` under `name`.

    Further keyword parameters of the function become its options.

    Parameters
    ----------
    name : str
        Name of the estimator.
    summary, reference : str
        One line on what it does; the publication that proposed it.
    estimand : str
        The quantity that it estimates, if not the true calibration error.
    norms : {"any", "none"}
        ``"none"`` where l_p norms do not apply; the function then has no parameter `norm`.
    weights : bool
        Whether it accepts fractional weights.
    random : bool
        Whether it draws random numbers; the function then has a parameter `rng`.
    range : tuple of float
        Smallest and largest possible value.
    aliases : tuple of str
        Other names of the estimator.
    alias_norms : mapping of str to float
        Order of the norm of those aliases that imply one.
    counting : bool
        Whether sums over `n_bins` equal-width bins are all that it needs.
    takes_blocks : bool
        Whether the function is written for `ScoreGroups` of one sample or many, and returns `Estimates`. Others are
        applied to the samples of a block one by one.
    truth : callable or "plug-in", optional
        How to compute the estimand of a population, where it is not the true calibration error: a function of a
        sample whose counts are probabilities and whose labels are expected ones, and of the arguments of the
        estimator; or ``"plug-in"`` if that is the estimator itself.
    limit : callable, optional
        For large n and a calibrated model, the probability that the value divided by
        sigma = sqrt(sum of f (1 - f)) / n exceeds its argument.
    largest : str, optional
        Name of the estimator that gives the largest gap of the same bins, which is ``norm="max"``.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    ValueError
        If another module has registered the name or an alias.
    """
    description = {key: value for key, value in locals().items() if key != "alias_norms"}

    def register(function: EstimatorFunction) -> EstimatorFunction:
        options = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and key != "norm"
        }
        spec = EstimatorSpec(function=function, options=options, **description)
        for key in (name, *aliases):
            if key in _SPECS and _SPECS[key].function.__module__ != function.__module__:
                owner = _SPECS[key].function.__module__
                raise InputError(f"estimator {key!r} is already registered by {owner}.")
            _SPECS[key] = replace(spec, fixed_norm=alias_norms[key]) if key in alias_norms else spec
        return function

    return register


def _import_own() -> None:
    """Import every module of `truecal.estimators`."""
    package = importlib.import_module("truecal.estimators")
    for module in pkgutil.iter_modules(package.__path__, prefix="truecal.estimators."):
        importlib.import_module(module.name)


@cache
def _discover() -> None:
    """Import every module of `truecal.estimators`, and the modules that other packages declare.

    A module of another package that fails to import is skipped with a warning that names it.
    """
    from importlib.metadata import entry_points  # slow to import

    _import_own()
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            entry.load()
        except Exception as error:
            package_name = entry.dist.name if entry.dist is not None else "an unknown package"
            warn_user(
                f"The estimators of {package_name} (entry point {entry.name!r}, {entry.value}) are skipped "
                f"because they cannot be loaded: {type(error).__name__}: {error}"
            )


def list_estimators() -> list[EstimatorSpec]:
    """Return the descriptions of all estimators, sorted by name.

    Returns
    -------
    list of EstimatorSpec
        Each estimator once, under its own name.

    Examples
    --------
    >>> import truecal
    >>> [spec.name for spec in truecal.list_estimators()][:4]
    ['atb', 'em_bin', 'em_debias', 'em_label']
    """
    _discover()
    return [_SPECS[name] for name in sorted({spec.name for spec in _SPECS.values()})]


def get_estimator(name: str) -> EstimatorSpec:
    """Return the estimator with this name or alias; an unknown name is an InputError that suggests one."""
    if name not in _SPECS:
        _import_own()
    if name not in _SPECS:
        _discover()
        check_choice("estimator", name, sorted(_SPECS))
    return _SPECS[name]
