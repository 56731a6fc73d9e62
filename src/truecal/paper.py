"""The ten populations of the paper, fitted to top-label scores of image classifiers.

Parameters from Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation,
Appendix A: the Beta distributions of Table 2 and, for each data set, the curve of Table 3 with the smallest AIC.
"""

from __future__ import annotations

from typing import Final

from truecal._lib.checks import check_choice
from truecal.simulation import BetaScores, GLMCurve, Population

# name: (a, b), (link, transform, b0, b1)
_FITS: Final[dict[str, tuple[tuple[float, float], tuple[str, str, float | None, float | None]]]] = {
    "resnet110_c10": ((2.7752, 0.0478), ("logflip", "logflip", -0.24, 0.30)),
    "resnet110_SD_c10": ((2.1714, 0.0394), ("logit", "logflip", -0.27, -0.35)),
    "resnet_wide32_c10": ((2.3806, 0.0379), ("logit", "logit", None, 0.26)),
    "densenet40_c10": ((1.9824, 0.0397), ("logit", "logflip", None, -0.26)),
    "resnet110_c100": ((1.1823, 0.1081), ("logflip", "logflip", -0.11, 0.28)),
    "resnet110_SD_c100": ((1.1233, 0.1147), ("logit", "logit", -0.88, 0.49)),
    "resnet_wide32_c100": ((1.0611, 0.0650), ("logflip", "logflip", -0.13, 0.21)),
    "densenet40_c100": ((1.0805, 0.0808), ("logit", "logit", -0.97, 0.34)),
    "resnet152_imgnet": ((1.1359, 0.2069), ("logflip", "logflip", -0.12, 0.58)),
    "densenet161_imgnet": ((1.1928, 0.2206), ("log", "log", -0.03, 1.27)),
}

NAMES: Final = tuple(_FITS)
"""The names of the ten, architecture and data set, in the order of the paper's tables."""


def population(name: str, calibrated: bool = False) -> Population:
    """Return one of the paper's ten populations.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    calibrated : bool
        Whether to replace the fitted calibration curve by the identity (the paper's Figure 6).

    Returns
    -------
    Population

    Examples
    --------
    >>> fitted = population("resnet110_c10")
    >>> fitted.scores
    BetaScores(a=2.7752, b=0.0478)
    >>> round(fitted.true_error(), 5)
    0.10709
    >>> population("resnet110_c10", calibrated=True).true_error()
    0.0
    """
    shape, glm = _FITS[check_choice("name", name, NAMES)]
    fitted = Population(BetaScores(*shape), GLMCurve(*glm))
    return fitted.calibrated() if calibrated else fitted
