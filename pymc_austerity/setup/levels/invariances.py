"""What no row notices: directions, fields along which entries flow, nested levels, and signs."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh, pinv, solve_triangular, svd

from pymc_austerity.levels import (
    Exchange,
    GroupedPosterior,
    LevelsOfFactor,
    NestedLevels,
    Unread,
    VectorFields,
)
from pymc_austerity.setup.levels.anchor import LevelAnchor, NoGroupsError
from pymc_austerity.setup.levels.grouped_model import GroupedModel

_MOST_COLUMNS = 300
_NOTHING, _SAME = 1e-10, 1e-9
"""Share of the curvature, and difference of log-likelihoods in nats, that may be rounding."""

_MOST_STEPS = 1_000
"""Of flows that are verified; those that would take more are not used."""
_NEARBY = 0.1
"""Distance from the anchor, in each entry, at which directions are verified."""

_MOST_TERMS, _MOST_NUMBERS = 400, 20_000_000
"""Terms of fields that are tried, and numbers of them at a point."""

_POINTS, _WINDOWS, _ROWS = 3, 4, 250
"""Points about the anchor, and windows of so many rows, at which fields are looked for."""

_NEGLIGIBLE, _APART = 7.0, 4.0
"""Nats by which a mode may be below another one of comparable weight, and their least distance in
standard deviations."""

_LARGEST, _STEP = 1.0, 1e-2
"""Largest change of an entry by a step that priors allow, and step of differences of the prior."""


def unread_directions(parts: GroupedModel, anchor: LevelAnchor) -> Unread | None:
    """Find directions in common entries and in means of levels; None if there are none.

    The curvature of the rows is zero along them. That no row changes is verified.
    """
    columns = _columns(parts)
    if columns.shape[1] > _MOST_COLUMNS:
        return None
    curved = -(columns.T @ anchor.hessian @ columns).toarray()
    lengths = np.sqrt(np.maximum(curved.diagonal(), 0.0))
    lengths[lengths == 0.0] = 1.0
    values, vectors = eigh(curved / np.outer(lengths, lengths))
    null = vectors[:, np.abs(values) <= _NOTHING * max(values[-1], 0.0)] / lengths[:, None]
    if not null.size:
        return None
    directions = (columns @ (null / np.abs(null).max(axis=0))).T
    if not _change_nothing(parts, anchor.point, VectorFields.of(directions)):
        return None
    weights = np.sqrt(np.maximum(-anchor.hessian.diagonal(), 0.0))
    amounts = np.empty((len(parts.factors), *directions.shape))
    for number, factor in enumerate(parts.factors):
        of_others = weights.copy()
        of_others[factor.entries] = 0.0
        amounts[number] = pinv((of_others * directions).T) * of_others
    return Unread(directions, amounts)


def exchange_of(
    parts: GroupedModel, anchor: LevelAnchor, posterior: GroupedPosterior
) -> Exchange | None:
    """Moves along fields that no row notices; None without any.

    Parameters
    ----------
    parts : GroupedModel
    anchor : LevelAnchor
    posterior : GroupedPosterior
        Means that are drawn given their levels take the place of constant fields.
    """
    found = []
    if posterior.unread is not None and not posterior.means:
        directions = posterior.unread.directions
        precision = -(directions @ (anchor.row_free_hessian @ directions.T))
        try:
            root = cholesky(precision, lower=True)
            found.append(VectorFields.of(solve_triangular(root, directions, lower=True)))
        except LinAlgError:  # the prior does not limit them
            pass
    fields = _fields(parts, anchor)
    if fields is not None:
        found.append(_in_units_of_the_prior(fields, posterior))
    return Exchange(VectorFields.joined(found)) if found else None


class _Term(NamedTuple):
    """A simple vector field, which changes one column of levels, or a common entry.

    Attributes
    ----------
    to : int array
        The entries that change.
    of : int array or None
        The entries of which it is a multiple; None for a constant.
    exponential : bool
        Whether it is one of the exponentials of these.
    """

    to: NDArray[np.int64]
    of: NDArray[np.int64] | None = None
    exponential: bool = False


def _terms(parts: GroupedModel) -> Iterator[_Term]:
    """Constants, multiples of entries of the same level, and of their exponentials.

    Of common entries, multiples of themselves alone and exponentials of any.
    """
    logarithms, common = set(parts.problem.logarithms), parts.blocks.common
    single = [common[j : j + 1] for j in range(common.size)]
    for columns in [*(list(factor.entries.T) for factor in parts.factors), single]:
        for to in columns:
            yield _Term(to)
            for of in columns:
                if columns is not single or of is to:
                    yield _Term(to, of)
                if of[0] in logarithms:
                    yield _Term(to, of, exponential=True)


def _at(terms: Sequence[_Term], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The fields at a point, shape (d, n)."""
    values = np.zeros((theta.size, len(terms)))
    for k, (to, of, exponential) in enumerate(terms):
        number = 1.0 if of is None else theta[of]
        values[to, k] = np.exp(number) if exponential else number
    return values


def _fields(parts: GroupedModel, anchor: LevelAnchor) -> VectorFields | None:
    """Fields that are not constant, of largest entry 1 at the anchor; None if there are none.

    They are the combinations of simple ones along which the derivative of each of some rows is zero
    at some points. That no row changes along their flows is verified.
    """
    terms, size, rng = list(_terms(parts)), anchor.point.size, np.random.default_rng(11)
    is_constant = np.array([term.of is None for term in terms])
    n_terms = len(terms)
    if is_constant.all() or n_terms > _MOST_TERMS or n_terms * size > _MOST_NUMBERS:
        return None
    n_rows, n_leaves = parts.rows.n_rows, len(parts.problem.likelihood.leaves)
    starts = np.linspace(0, max(n_rows - _ROWS, 0), _WINDOWS).astype(int)
    blocks = [parts.rows.window(i, min(i + _ROWS, n_rows))[:n_leaves] for i in np.unique(starts)]
    slopes = []
    for _ in range(_POINTS):
        point = anchor.point + _NEARBY * rng.standard_normal(size)
        at = _at(terms, point)
        slopes += [parts.derivatives.along(point, at, *block) for block in blocks]
    every = np.concatenate(slopes)
    lengths = np.sqrt(np.square(every).sum(axis=0))
    if not np.isfinite(lengths).all():
        return None
    every, read = every / np.where(lengths > 0.0, lengths, 1.0), lengths > 0.0
    null, of_constants = _null_space(every, read), _null_space(every, read & is_constant)
    left = null - of_constants @ (of_constants.T @ null)  # singular values are 0 or 1
    vectors, values, _ = svd(left, full_matrices=False)
    weights = (vectors[:, values > 0.5] / np.where(read, lengths, 1.0)[:, None]).T
    if not weights.size:
        return None
    weights[abs(weights) < _NOTHING * abs(weights).max(axis=1, keepdims=True)] = 0.0
    largest = abs(weights @ _at(terms, anchor.point).T).max(axis=1, keepdims=True)
    if not largest.all():
        raise NoGroupsError("a factor of a product is zero at the mode")
    weights /= largest
    fields = _as_field(terms, weights, size)
    near = fields.combined(_NEARBY * np.eye(len(weights)))
    if near.n_steps(np.ones(len(weights))) > _MOST_STEPS:  # a factor of a product is nearly zero
        return None
    return fields if _change_nothing(parts, anchor.point, near) else None


def _null_space(matrix: NDArray[np.float64], columns: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Orthonormal vectors of some columns, of length 1, whose sum is nothing but rounding."""
    own = matrix[:, columns]
    _, values, rows = svd(own, full_matrices=len(own) < own.shape[1])
    return np.eye(len(columns))[:, columns] @ rows[(values > _NOTHING).sum() :].T


def _as_field(terms: Sequence[_Term], weights: NDArray[np.float64], size: int) -> VectorFields:
    """Sums of simple fields with weights of shape (k, n)."""
    constant = np.zeros((len(weights), size))
    kept: list[tuple[NDArray, NDArray, NDArray, NDArray]] = []
    for own, (to, of, exponential) in zip(weights.T, terms, strict=True):
        if of is None:
            constant[:, to] += own[:, None]
        elif own.any():
            of = np.broadcast_to(of, to.shape)
            its = np.repeat(own[:, None], to.size, axis=1)
            kept.append((its, to, of, np.full(to.size, exponential)))
    joined = [np.concatenate(arrays, axis=-1) for arrays in zip(*kept, strict=True)]
    return VectorFields(constant, *joined)


def _in_units_of_the_prior(fields: VectorFields, posterior: GroupedPosterior) -> VectorFields:
    """Combinations along which the density of the priors falls alike at the anchor."""
    k, anchor = fields.n_directions, posterior.anchor

    def fall(amounts: NDArray[np.float64]) -> float:
        there, volume = fields.flow(amounts, anchor)
        return -(float(posterior.row_free_part(there, anchor)) + volume)

    ends = _STEP * np.eye(k)
    pairs = [
        [0.25 * sum(s * t * fall(s * a + t * b) for s in (1, -1) for t in (1, -1)) for b in ends]
        for a in ends
    ]
    values, vectors = eigh(np.array(pairs) / _STEP**2)
    spreads = 1.0 / np.sqrt(np.maximum(abs(values), 1.0 / _LARGEST**2))
    return fields.combined((vectors * spreads).T)


def nested_levels(
    parts: GroupedModel, anchor: LevelAnchor, factors: Sequence[LevelsOfFactor]
) -> tuple[NestedLevels, ...]:
    """Factors with levels that are each within one level of another, and read in the same way."""
    found = []
    for outer, inner in permutations(range(len(factors)), 2):
        above, below = factors[outer], factors[inner]
        if not (above.prior.is_quadratic and below.prior.is_quadratic):
            continue
        for i, j in np.ndindex(above.entries.shape[1], below.entries.shape[1]):
            own, others = above.entries[:, i], below.entries[:, j]
            within = _level_of_each(anchor, own, others)
            if within is None:
                continue
            places = np.concatenate([own, others])
            rows = np.concatenate([np.arange(own.size), within])
            signs = np.repeat([1.0, -1.0], [own.size, others.size])
            shape = own.size, anchor.point.size
            directions = sparse.csr_array((signs, (rows, places)), shape=shape)
            if _change_nothing(parts, anchor.point, VectorFields.of(directions)):
                found.append(NestedLevels(outer, inner, (i, j), within))
    return tuple(found)


def reflected_mode(
    parts: GroupedModel, anchor: LevelAnchor, posterior: GroupedPosterior
) -> NDArray[np.float64] | None:
    """Another mode of comparable weight, where a product has opposite factors; None without one.

    Parameters
    ----------
    parts, anchor, posterior
        As in `exchange_of`.

    Notes
    -----
    Candidates change the signs of all that one predictor reads, or two of them do, as do those of
    an ability and a discrimination. That no row changes is verified.
    """
    columns, own = _columns(parts), parts.blocks.untouched
    if columns.shape[1] + own.size > _MOST_COLUMNS:
        return None
    for read in _read_together(parts, anchor, columns):
        signs = np.where(columns[:, read].sum(axis=1) > 0.0, -1.0, 1.0)
        moved = (1.0 - signs) * anchor.point
        if -float(moved @ (anchor.hessian @ moved)) < _APART**2:
            continue
        rng = np.random.default_rng(9)
        here = anchor.point + _NEARBY * rng.standard_normal(anchor.point.size)
        if not _same_rows(parts, signs * here, here):
            continue
        point = signs * anchor.point
        for entry in own:  # such as the means of levels
            turned = point.copy()
            turned[entry] *= -1.0
            if float(posterior.row_free_part(turned, point)) > 0.0:
                point = turned
        if float(posterior.row_free_part(point, anchor.point)) > -_NEGLIGIBLE:
            return np.asarray(point)
    return None


def _read_together(
    parts: GroupedModel, anchor: LevelAnchor, columns: sparse.csc_array
) -> Iterator[NDArray[np.bool_]]:
    """Which columns one predictor reads, or two, where some rows keep their log-likelihoods."""
    derivatives, n_leaves = parts.derivatives, len(parts.problem.likelihood.leaves)
    block = parts.rows.window(0, min(_ROWS, parts.rows.n_rows))[:n_leaves]
    designs = derivatives.designs(block)
    near = anchor.point + _NEARBY * np.random.default_rng(9).standard_normal(anchor.point.size)
    etas = [design.eta(near) for design in designs]
    before = derivatives.log_likelihoods(etas, block)
    reads: dict[int, NDArray[np.bool_]] = {}
    for pair in combinations_with_replacement(range(len(etas)), 2):
        turned = [-eta if k in pair else eta for k, eta in enumerate(etas)]
        with np.errstate(all="ignore"):
            after = derivatives.log_likelihoods(turned, block)
        if _are_same(after, before):
            for k in set(pair) - set(reads):
                own = (columns[:, [c]].toarray() for c in range(columns.shape[1]))
                reads[k] = np.array([np.any(designs[k].product(column) != 0.0) for column in own])
            yield reads[pair[0]] | reads[pair[1]]


def _level_of_each(
    anchor: LevelAnchor, own: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """The one of the own entries with which rows read each of the others; None if not just one."""
    if abs(anchor.row_free_hessian[others][:, own]).sum() > 0.0:  # they are the means of others
        return None
    together = sparse.csr_array(anchor.hessian[others][:, own])
    together.eliminate_zeros()
    return together.indices.astype(np.int64) if (np.diff(together.indptr) == 1).all() else None


def _columns(parts: GroupedModel) -> sparse.csc_array:
    """Each common entry, and each column of the levels of each factor as a whole."""
    every = [parts.blocks.common[j : j + 1] for j in range(parts.blocks.common.size)]
    every += [column for factor in parts.factors for column in factor.entries.T]
    entries, starts = np.concatenate(every), np.cumsum([0, *map(len, every)])
    shape = parts.problem.start.size, len(every)
    return sparse.csc_array((np.ones(entries.size), entries, starts), shape=shape)


def _change_nothing(parts: GroupedModel, anchor: NDArray[np.float64], fields: VectorFields) -> bool:
    """Whether each row has the same log-likelihood after a flow."""
    rng = np.random.default_rng(9)
    here = anchor + _NEARBY * rng.standard_normal(anchor.size)
    there, _ = fields.flow(rng.uniform(0.5, 1.0, size=fields.n_directions), here)
    return _same_rows(parts, there, here)


def _same_rows(parts: GroupedModel, there: NDArray[np.float64], here: NDArray[np.float64]) -> bool:
    """Whether each row has the same log-likelihood at two points."""
    values = parts.derivatives.values
    return all(
        _are_same(values(there, *block), values(here, *block)) for block in parts.blocks_of_rows()
    )


def _are_same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return np.allclose(one, other, rtol=_SAME, atol=_SAME)
