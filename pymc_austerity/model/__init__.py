"""The log-density of a model as a row-free part and a sum over rows, evaluated at any rows."""

from pymc_austerity.model.compiled_functions import (
    DensityGradient,
    DensityKernel,
    Derivatives,
    RowFreeGradient,
    compile_gradient,
    compile_residuals,
    compile_row_derivatives,
    compile_row_differences,
    compile_row_free_derivatives,
    compile_row_free_difference,
    compile_row_free_gradient,
)
from pymc_austerity.model.compiling import AnyThread, OneAtATime
from pymc_austerity.model.cut import Examples
from pymc_austerity.model.kernel.kernel import CommonFunctions, Kernel, kernel_of
from pymc_austerity.model.kernel.row_loops import (
    RowSlopes,
    RowTotals,
    row_loops_of,
    row_slopes_of,
    row_totals,
)
from pymc_austerity.model.levels.blocks import Blocks, Factor, find_blocks
from pymc_austerity.model.levels.prior_terms import (
    LevelTerms,
    NotByLevelError,
    PartialDerivatives,
    level_terms,
    partial_row_free,
)
from pymc_austerity.model.levels.products import centered
from pymc_austerity.model.levels.zero_sum import free_levels
from pymc_austerity.model.predictors.derivatives import PredictorDerivatives, predictor_derivatives
from pymc_austerity.model.predictors.find import find_predictors
from pymc_austerity.model.predictors.structure import (
    DenseRows,
    Design,
    DesignFunction,
    RowStructure,
    data_reader,
    design_function,
)
from pymc_austerity.model.row_likelihood import (
    LeafRecipes,
    ModelAt,
    RowLikelihood,
    random_variable_of,
    variables_that_move_the_support,
)
from pymc_austerity.model.split import split_log_density
from pymc_austerity.model.terms import (
    refuse_not_finite,
    refuse_simulators,
    rows_observed,
    rows_of_terms,
)
from pymc_austerity.model.verify import (
    Verified,
    differences_agree,
    faults_named,
    refuse_faulty,
    row_free_difference_agrees,
    verify,
    verify_centered,
    verify_examples,
)
