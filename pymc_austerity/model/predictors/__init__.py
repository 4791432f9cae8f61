"""Rows as functions of a few linear predictors."""

from pymc_austerity.model.predictors.derivatives import (
    PredictorDerivatives,
    predictor_derivatives,
)
from pymc_austerity.model.predictors.find import find_predictors
from pymc_austerity.model.predictors.structure import (
    Dense,
    Gathered,
    Predictor,
    RowStructure,
    Single,
)

__all__ = [
    "Dense",
    "Gathered",
    "Predictor",
    "PredictorDerivatives",
    "RowStructure",
    "Single",
    "find_predictors",
    "predictor_derivatives",
]
