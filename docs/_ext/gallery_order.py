"""The order of the gallery: from first steps to special cases."""

from __future__ import annotations

ORDER = (
    "first_measurement",
    "bias_of_ece",
    "intervals",
    "test",
    "reliability_diagram",
    "comparing_models",
    "groups",
    "recalibration",
    "venn_abers",
    "clinical_validation",
    "decision_curve",
    "multiclass",
    "whole_vector",
    "llm_confidence",
    "monitoring",
    "how_many_samples",
    "comparing_estimators",
    "bias_on_your_data",
    "resolution",
    "large_data",
    "own_estimator",
)


class Order:
    """Sort key of sphinx-gallery; examples that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the position of an example."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
