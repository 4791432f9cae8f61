"""Logistic regression on the digits 7 and 9 of MNIST (section 6.1 of the paper).

Korattikara, Chen and Welling (2014) take 12,214 training images, 50 principal components, a normal
prior with precision 10 and a random walk with a standard deviation of 0.01. The scale of the
components and the intercept are our choice.
"""

from dataclasses import dataclass

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import expit

from examples.shared.datasets import Arrays
from pymc_austerity import AusterityMH
from pymc_austerity.proposals import RandomWalkProposal

N_COMPONENTS = 50
PRIOR_SD = 10**-0.5  # a precision of 10
PROPOSAL_SD = 0.01
BATCH_SIZE = 500

Floats = NDArray[np.float64]


def principal_components(pixels: NDArray, n_components: int) -> Floats:
    """Scores of the first principal components, shape (n_rows, n_components)."""
    return _scores(pixels, *_axes(pixels, n_components))


def _axes(pixels: NDArray, n_components: int) -> tuple[Floats, Floats]:
    """Mean of the pixels divided by 255, and the first principal axes in columns.

    The scores are not standardized: they keep the scale of the pixels, so that later components
    have smaller scores and less well known coefficients.
    """
    centered = pixels / 255.0
    mean = centered.mean(axis=0)
    centered -= mean
    _, axes = np.linalg.eigh(centered.T @ centered)  # ascending
    return mean, axes[:, : -n_components - 1 : -1]


def _scores(pixels: NDArray, mean: Floats, axes: Floats) -> Floats:
    return (pixels / 255.0 - mean) @ axes


def with_intercept(covariates: NDArray) -> Floats:
    """Design matrix: a column of ones in front."""
    return np.column_stack([np.ones(len(covariates)), covariates])


@dataclass(frozen=True)
class Digits:
    """Design matrices and labels (0 for a 7, 1 for a 9).

    Attributes
    ----------
    design, labels : arrays, shapes (n, d) and (n,)
        Training rows.
    test_design, test_labels : arrays, shapes (n_test, d) and (n_test,)
        Test rows, on the principal axes of the training rows.
    """

    design: Floats
    labels: NDArray
    test_design: Floats
    test_labels: NDArray

    @classmethod
    def of(cls, data: Arrays, n_components: int = N_COMPONENTS) -> "Digits":
        """From the arrays of the data set ``mnist_7v9``."""
        found = _axes(data["X_train"], n_components)
        train, test = (with_intercept(_scores(data[x], *found)) for x in ("X_train", "X_test"))
        return cls(train, data["y_train"], test, data["y_test"])


def logistic_regression(design: NDArray, labels: NDArray) -> pm.Model:
    """Logistic regression, all coefficients with the same normal prior."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, PRIOR_SD, shape=design.shape[1])
        pm.Bernoulli("label", logit_p=design @ beta, observed=labels)
    return model


def posterior_mode(design: NDArray, labels: NDArray) -> tuple[Floats, Floats]:
    """Mode of that model by Newton's method, and the negative Hessian there."""
    beta, precision = np.zeros(design.shape[1]), PRIOR_SD**-2 * np.eye(design.shape[1])
    for _ in range(20):
        probability = expit(design @ beta)
        gradient = design.T @ (labels - probability) - precision @ beta
        information = (design.T * probability * (1.0 - probability)) @ design + precision
        beta += np.linalg.solve(information, gradient)
    return beta, information


def papers_walk(n_parameters: int, epsilon: float, **settings: object) -> AusterityMH:
    """The paper's algorithm with its fixed proposal, for the model on the context stack."""
    walk = RandomWalkProposal(covariance=np.full(n_parameters, PROPOSAL_SD**2), scaling=1.0)
    return AusterityMH(
        epsilon=epsilon,
        batch_size=BATCH_SIZE,
        control_variates=None,
        sampling="windows",
        proposal=walk,
        tune=False,
        **settings,
    )
