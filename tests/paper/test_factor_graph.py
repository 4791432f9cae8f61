"""Which factors an entry touches, against flips of every entry at every configuration."""

from itertools import combinations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity import NotRowwiseError
from pymc_austerity.model import (
    ModelAt,
    compile_row_differences,
    compile_row_free_difference,
    split_log_density,
)
from pymc_austerity.paper.factors import (
    compile_gathered_differences,
    touching_rows,
    verify_touching,
)

FAST = {"mode": "FAST_COMPILE"}

rng = np.random.default_rng(3)
FIRST, SECOND = np.array(list(combinations(range(6), 2))).T
TRIPLES = np.array(list(combinations(range(6), 3))).T
PAIRS, EIGHTS = rng.normal(size=(15, 4)), rng.normal(size=(20, 8))
FIELD, DESIGN = rng.normal(size=6), rng.normal(size=(9, 6))


def triples(x, theta):
    i, j, k = TRIPLES
    return pt.constant(EIGHTS)[np.arange(20), 4 * x[i] + 2 * x[j] + x[k]]


def spins(x, theta):
    return theta * (2 * x - 1)[FIRST] * (2 * x - 1)[SECOND]


def field_and_pairs(x, theta):
    return pt.concatenate([FIELD * x, theta * x[FIRST] * x[SECOND]])


def one_matrix_of_indices(x, theta):
    return theta * x[np.stack([FIRST, SECOND], axis=1)].prod(axis=1)


def counted_from_the_end(x, theta):
    return theta * x[np.array([-1, 0, 2])]


def reordered_first(x, theta):
    return theta * x[::-1][np.tile(FIRST, 4)] * x[np.array([1, 0, 3, 2, 5, 4])][np.tile(SECOND, 4)]


def function_of_an_entry_first(x, theta):
    return pt.exp(theta * x * (1 - x) + x)[np.tile(FIRST, 4)]


def inside_an_index_of_data(x, theta):
    return pt.constant(np.arange(12.0))[2 * x[FIRST] + FIRST]


def grid(x, theta):
    return theta * x[np.array([0, 1, 1]), np.array([1, 2, 0])] * x[0, np.array([0, 1, 2])]


def lattice(x, theta):
    return theta * x[1:, :] * x[:-1, :]


def raveled(x, theta):
    return theta * x.T.ravel()[np.tile(FIRST, 4)]


ANALYSED = [
    (triples, (6,)),
    (spins, (6,)),
    (field_and_pairs, (6,)),
    (one_matrix_of_indices, (6,)),
    (counted_from_the_end, (6,)),
    (reordered_first, (6,)),
    (function_of_an_entry_first, (6,)),
    (inside_an_index_of_data, (6,)),
    (grid, (2, 3)),
    (lattice, (3, 2)),
    (raveled, (2, 3)),
]


def design(x, theta):
    return pm.math.dot(DESIGN, x)


def index_that_is_sampled(x, theta):
    return theta * x[pt.cast(x, "int64")[FIRST]]


def mean_of_all(x, theta):
    return x[FIRST] * x.mean()


def shifted_by_another_parameter(x, theta):
    return x[pt.cast(pt.clip(pt.round(theta), 0, 1), "int64") * FIRST] * 1.0


def summed_up(x, theta):
    return pt.cumsum(x)[np.tile(FIRST, 4)] * 1.0


UNKNOWN = [design, index_that_is_sampled, mean_of_all, shifted_by_another_parameter, summed_up]


def split_of(factors, shape=(6,)):
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=shape)
        theta = pm.Normal("theta", 0.7)
        pm.Potential("factors", factors(x, theta))
    return split_log_density(model, likelihood=["factors"]), model.rvs_to_values[x]


def by_brute_force(split, variable, shape):
    """Factors that some flip changes, whatever the other entries are."""
    evaluate = split.model.compile_fn(split.full, inputs=split.value_vars, on_unused_input="ignore")
    configurations = list(product([0, 1], repeat=int(np.prod(shape))))
    values = {c: evaluate({"x": np.array(c).reshape(shape), "theta": 0.7}) for c in configurations}
    touched = []
    for entry in range(int(np.prod(shape))):
        changed = np.zeros(split.n_rows, dtype=bool)
        for c in configurations:
            if c[entry] == 0:
                flipped = (*c[:entry], 1, *c[entry + 1 :])
                changed |= values[c] != values[flipped]
        touched.append(np.flatnonzero(changed).tolist())
    return touched


@pytest.mark.parametrize(
    ("factors", "shape"), ANALYSED, ids=lambda value: getattr(value, "__name__", "")
)
def test_touching_factors_are_those_that_flips_change(factors, shape):
    split, variable = split_of(factors, shape)
    touches = touching_rows(split, variable, shape)
    found = [touches.of(entry).tolist() for entry in range(6)]
    assert found == by_brute_force(split, variable, shape)
    assert any(len(own) < split.n_rows for own in found)


@pytest.mark.parametrize("factors", UNKNOWN)
def test_what_cannot_be_analysed_touches_everything(factors):
    split, variable = split_of(factors)
    assert touching_rows(split, variable, (6,)) is None


def test_other_variables_have_their_own_factors():
    with pm.Model() as model:
        x, z = pm.Bernoulli("x", 0.5, shape=6), pm.Bernoulli("z", 0.5, shape=2)
        pm.Potential("factors", x[FIRST] * z[SECOND % 2] * 1.0)
    split = split_log_density(model, likelihood=["factors"])
    touches = touching_rows(split, model.rvs_to_values[z], (2,))
    np.testing.assert_array_equal(touches.of(1), np.flatnonzero(SECOND % 2))


# ------------------------------------------------------------------ the numerical guard


def guarded(factors, spoil):
    split, variable = split_of(factors)
    point = split.model.initial_point()
    functions = compile_gathered_differences(
        split, split.value_vars[:1], {split.value_vars[1]: pt.constant(0.7)}, point,
        compile_kwargs=FAST,
    )  # fmt: skip
    touches = touching_rows(split, variable, (6,))
    lists = spoil([touches.of(entry) for entry in range(6)])

    def differences(proposed, current, rows):
        return functions.rows(proposed, current, rows, *functions.leaves, *functions.tables)

    verify_touching(
        lists, differences, split.n_rows, rng=np.random.default_rng(1), dtype=np.dtype(np.int64)
    )


@pytest.mark.parametrize("factors", [triples, spins, field_and_pairs])
def test_right_lists_pass_and_a_missing_factor_is_found(factors):
    guarded(factors, lambda lists: lists)
    guarded(factors, lambda lists: [None, *lists[1:]])
    with pytest.raises(NotRowwiseError, match="does not read"):
        guarded(factors, lambda lists: [lists[0][1:], *lists[1:]])


# ------------------------------------------------------------------ rows picked by position


@pytest.mark.parametrize("factors", [triples, spins, field_and_pairs, design])
@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
@pytest.mark.few(
    "FAST_COMPILE-triples",
    "FAST_COMPILE-spins",
    "FAST_COMPILE-field_and_pairs",
    "FAST_COMPILE-design",
    "NUMBA-spins",
)
def test_picked_rows_are_the_rows(factors, mode):
    split, _ = split_of(factors)
    point = split.model.initial_point()
    kwargs = {"compile_kwargs": {"mode": mode}}
    x_only = (split.value_vars[:1], {split.value_vars[1]: pt.constant(0.7)}, point)
    picked = compile_gathered_differences(split, *x_only, **kwargs)
    plain = compile_row_differences(ModelAt(split, *x_only), **kwargs)
    plain_exact = compile_row_free_difference(ModelAt(split, *x_only), **kwargs)
    generator = np.random.default_rng(5)
    proposed, current = generator.integers(0, 2, size=(2, 6))
    rows = generator.permutation(split.n_rows)[:7]
    np.testing.assert_allclose(
        picked.rows(proposed, current, rows, *picked.leaves, *picked.tables),
        plain(proposed, current, *[array[rows] for array in split.arrays]),
    )
    np.testing.assert_allclose(picked.exact(proposed, current), plain_exact(proposed, current))
