"""The registry: an estimator is a function under a decorator, and everything else finds it there."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from truecal._lib.checks import check_choice, check_norm

if TYPE_CHECKING:
    from truecal.data.sample import Sample
    from truecal.results import Estimate

EstimatorFunction = TypeVar("EstimatorFunction", bound=Callable[..., "Estimate"])

#: Outside packages add estimators by naming a module under this entry point.
ENTRY_POINT_GROUP = "truecal.estimators"

#: What most estimators estimate: the lp distance between the score and the chance that it comes true.
TRUE_ERROR = "true calibration error"

_SPECS: dict[str, EstimatorSpec] = {}


@dataclass(frozen=True)
class EstimatorSpec:
    """What the library knows of an estimator.

    Attributes
    ----------
    name : str
        The name to call it by.
    function : callable
        What was registered, ``(sample, *, norm, ...) -> Estimate``. Call the specification itself, which
        checks first.
    summary : str
        One line on what it does.
    estimand : str
        What it estimates: ``"true calibration error"``, or another quantity in words.
    reference : str
        Who proposed it, where.
    norms : str
        ``"any"`` for every p >= 1, ``"none"`` where lp norms do not apply.
    weights : bool
        Whether it takes weights that are not whole numbers.
    random : bool
        Whether it draws random numbers; then it takes `rng`.
    range : tuple of float
        Least and greatest value that it can return.
    aliases : tuple of str
        Other names for it.
    options : dict
        Its own keyword parameters with their defaults.
    """

    name: str
    function: Callable[..., Estimate]
    summary: str
    estimand: str
    reference: str
    norms: str
    weights: bool
    random: bool
    range: tuple[float, float]
    aliases: tuple[str, ...]
    options: dict[str, Any]

    def check_options(self, options: Iterable[str]) -> None:
        """Refuse options that the estimator does not have.

        Parameters
        ----------
        options : iterable of str
            Names of options.
        """
        for option in options:
            if option not in self.options:
                known = ", ".join(self.options) or "none"
                raise ValueError(f"{self.name} has no option {option!r}. Its options: {known}.")

    def __call__(self, sample: Sample, *, norm: float = 2, **options: Any) -> Estimate:
        """Apply the estimator to a sample, and write on the result what was done."""
        used = check_norm(norm) if self.norms == "any" else None
        self.check_options(options)
        if not self.weights and not sample.whole:
            raise ValueError(f"{self.name} counts rows and takes whole-number weights only.")
        given = options if used is None else {"norm": used, **options}
        outcome = self.function(sample, **given)
        return replace(outcome, estimator=self.name, norm=used, n=sample.n, target=sample.target)


def estimator(
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
) -> Callable[[EstimatorFunction], EstimatorFunction]:
    """Register a function ``(sample, *, norm, ...) -> Estimate`` under `name`.

    Further keyword parameters of the function become its options.

    Parameters
    ----------
    name : str
        The name to call it by.
    summary, reference : str
        One line on what it does; who proposed it, where.
    estimand : str
        What it estimates, if not the true calibration error.
    norms : {"any", "none"}
        ``"none"`` where lp norms do not apply; the function then has no parameter `norm`.
    weights : bool
        Whether it takes weights that are not whole numbers.
    random : bool
        Whether it draws random numbers; the function then has a parameter `rng`.
    range : tuple of float
        Least and greatest value that it can return.
    aliases : tuple of str
        Other names for it.

    Returns
    -------
    callable
        A decorator, which returns the function as it is.

    Raises
    ------
    ValueError
        If another module has registered the name or an alias.
    """

    def register(function: EstimatorFunction) -> EstimatorFunction:
        options = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and key != "norm"
        }
        spec = EstimatorSpec(
            name, function, summary, estimand, reference, norms, weights, random, range, aliases, options
        )
        for key in (name, *aliases):
            if key in _SPECS and _SPECS[key].function.__module__ != function.__module__:
                raise ValueError(
                    f"estimator {key!r} is registered already, by {_SPECS[key].function.__module__}."
                )
            _SPECS[key] = spec
        return function

    return register


@cache
def _discover() -> None:
    """Import every module of `truecal.estimators`, and those that other packages announce."""
    package = importlib.import_module("truecal.estimators")
    for module in pkgutil.iter_modules(package.__path__, prefix="truecal.estimators."):
        importlib.import_module(module.name)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        entry.load()


def list_estimators() -> list[EstimatorSpec]:
    """Return what is known of every estimator, in order of their names.

    Returns
    -------
    list of EstimatorSpec
        Each estimator once, whatever its aliases.

    Examples
    --------
    >>> import truecal
    >>> [spec.name for spec in truecal.list_estimators()][:4]
    ['averaged', 'em_bin', 'em_debias', 'em_label']
    """
    _discover()
    return sorted({spec.name: spec for spec in _SPECS.values()}.values(), key=lambda spec: spec.name)


def get_estimator(name: str) -> EstimatorSpec:
    """Return the estimator of that name or alias, or name the nearest one."""
    if name not in _SPECS:
        _discover()
        check_choice("estimator", name, sorted(_SPECS))
    return _SPECS[name]
