"""Rows as functions of a few linear predictors."""

from pymc_austerity.model.predictors.derivatives import (
    PredictorDerivatives,
    predictor_derivatives,
    predictor_function,
)
from pymc_austerity.model.predictors.design import (
    DenseRows,
    Design,
    DesignFunction,
    GatheredRows,
    data_reader,
    design_function,
)
from pymc_austerity.model.predictors.find import find_predictors
from pymc_austerity.model.predictors.structure import (
    Dense,
    Gathered,
    Predictor,
    RowStructure,
    Single,
)
from pymc_austerity.model.predictors.third_order import ThirdDerivatives, third_derivatives

__all__ = [
    "Dense",
    "DenseRows",
    "Design",
    "DesignFunction",
    "Gathered",
    "GatheredRows",
    "Predictor",
    "PredictorDerivatives",
    "RowStructure",
    "Single",
    "ThirdDerivatives",
    "data_reader",
    "design_function",
    "find_predictors",
    "predictor_derivatives",
    "predictor_function",
    "third_derivatives",
]
