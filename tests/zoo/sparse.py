"""Designs that are sparse matrices."""

import pymc as pm
import pytensor
import pytensor.sparse as ps
import pytensor.tensor as pt
from scipy import sparse

from tests.zoo.registry import N_CATEGORIES, N_COLUMNS, N_GROUPS, Data, refused, works


def indicators(d: Data) -> sparse.csr_matrix:
    """One of the levels, and values of the positive covariates: rows of unequal length."""
    levels = sparse.csr_matrix((d.X[:, 0], (range(d.n), d.group)), (d.n, N_GROUPS))
    return sparse.hstack([levels, sparse.csr_matrix(d.X.clip(min=0.0))], format="csr")


N_STORED = N_GROUPS + N_COLUMNS


@works(predictors=1)
def sparse_column(d: Data) -> None:
    """The product that is only defined for a column of coefficients."""
    b = pm.Normal("b", shape=N_STORED)
    eta = ps.structured_dot(ps.as_sparse_variable(indicators(d)), b[:, None])
    pm.Bernoulli("y", logit_p=eta.ravel(), observed=d.binary())


@works(predictors=1)
def sparse_beside_groups(d: Data) -> None:
    """A shared matrix, by columns, beside an offset and effects of groups."""
    b, a = pm.Normal("b", shape=N_STORED), pm.Normal("a", shape=N_GROUPS)
    eta = ps.dot(pytensor.shared(indicators(d).tocsc(), name="X"), b[:, None])[:, 0]
    pm.Poisson("y", pm.math.exp(d.eta + a[d.group] - 0.5 * eta), observed=d.counts())


@works(predictors=2)
def sparse_row(d: Data) -> None:
    """A row of coefficients times the transposed matrix."""
    b = pm.Normal("b", shape=(1, N_STORED))
    eta = ps.dot(b, ps.as_sparse_variable(indicators(d).T.tocsr()))
    pm.Normal("y", eta.ravel(), pm.HalfNormal("s"), observed=d.eta)


@works(predictors=N_CATEGORIES)
def sparse_classes(d: Data) -> None:
    """Several columns of coefficients."""
    b = pm.Normal("b", shape=(N_STORED, N_CATEGORIES))
    eta = ps.dot(ps.as_sparse_variable(indicators(d)), b)
    pm.Categorical("y", logit_p=eta, observed=d.categories())


@works(predictors=1)
def embedding_bag(d: Data) -> None:
    """Numbers of columns and their weights as arrays."""
    b = pm.Normal("b", shape=N_GROUPS)
    columns, weights = d.rng.integers(0, N_GROUPS, (d.n, 4)), d.normal(d.n, 4)
    pm.Normal("y", (b[columns] * weights).sum(axis=1), 1.0, observed=d.eta)


@refused("a sparse matrix depends on parameters")
def sparse_of_parameters(d: Data) -> None:
    """Values of the matrix are multiples of a parameter."""
    a, b = pm.Normal("a", initval=1.0), pm.Normal("b", shape=N_STORED)
    X = indicators(d)
    matrix = ps.CSR(a * X.data, X.indices, X.indptr, X.shape)
    pm.Normal("y", ps.dot(matrix, b[:, None]).ravel(), 1.0, observed=d.eta)


@refused("combines parameters with all")
def sparse_smoother(d: Data) -> None:
    """Predictors of neighbors, as in spatial models."""
    b = pm.Normal("b", shape=N_COLUMNS)
    band = sparse.diags([0.5, 1.0, 0.5], [-1, 0, 1], shape=(d.n, d.n), format="csr")
    smooth = ps.dot(ps.as_sparse_variable(band.astype(d.X.dtype)), pt.dot(d.X, b)[:, None])
    pm.Normal("y", smooth.ravel(), 1.0, observed=d.eta)
