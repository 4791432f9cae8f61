"""Models on a few example rows: what is cut to rows of the named data, and what is refused."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model import (
    ModelAt,
    find_predictors,
    split_log_density,
    verify,
    verify_examples,
)

N_EXAMPLE, N_ROWS = 40, 500
rng = np.random.default_rng(1)
DATA = {
    "x": rng.normal(size=(N_ROWS, 3)),
    "group": rng.integers(0, 4, N_ROWS),
    "y": rng.normal(size=N_ROWS),
    "count": rng.poisson(2.0, N_ROWS),
    "kind": rng.integers(0, 3, N_ROWS),
}
# all rows of the example are alike, so that whatever is concluded from them is wrong of others
EXAMPLE = {name: np.repeat(array[:1], N_EXAMPLE, axis=0) for name, array in DATA.items()}


def data(name):
    return pm.Data(name, EXAMPLE[name])


def slopes():
    return pm.Normal("slopes", shape=3)


def observe(mean, sigma=1.0):
    pm.Normal("y", mean, sigma, observed=EXAMPLE["y"])


def split(build, names=None, **settings):
    """The model on the example, split."""
    with pm.Model() as model:
        build()
    names = names or [v.name for v in (*model.data_vars, *model.observed_RVs) if v.name in DATA]
    return split_log_density(model, examples=names, **settings)


def check(likelihood):
    """Windows of other rows, in the place of the example and by the cut graph."""
    point = likelihood.model.initial_point()
    generator = np.random.default_rng(2)
    verified = verify(likelihood, point, rng=generator)
    starts = (0, 111, N_ROWS - N_EXAMPLE)
    windows = [
        {
            name: DATA[name][start : start + N_EXAMPLE].astype(v.dtype)
            for name, v in likelihood.examples.variables.items()
        }
        for start in starts
    ]
    verify_examples(likelihood, verified, point, windows, rng=generator)


def transformed():
    observe(pt.log(abs(data("x")) + 1.0) @ slopes())


def standardized():
    observe((data("x") - [0.1, 0.2, 0.3]) / [1.0, 2.0, 3.0] @ slopes())


def groups():
    observe(pm.Normal("level", shape=4)[data("group")] + data("x") @ slopes())


def centered_groups():
    level = pm.Normal("level", shape=4)
    observe((level - level.mean())[data("group")])


def poisson():
    pm.Poisson("count", pt.exp(data("x") @ slopes() + 0.1 * data("y")), observed=EXAMPLE["count"])


def categorical():
    weights = pm.Normal("weights", shape=(3, 3))
    pm.Categorical("kind", logit_p=data("x") @ weights, observed=EXAMPLE["kind"])


def binomial():
    p = pm.math.invlogit(data("x") @ slopes())
    pm.Binomial("kind", n=data("count") + 3, p=p, observed=EXAMPLE["kind"])


def width_of_data():
    x = data("x")
    observe(x @ pm.Normal("slopes", shape=x.shape[1]) / x.shape[1])


def two_observed():
    mean = data("x") @ slopes()
    observe(mean)
    pm.Poisson("count", pt.exp(mean), observed=EXAMPLE["count"])


def as_many_levels_as_example_rows():
    tau = pm.HalfNormal("tau")
    level = tau * pm.Normal("level", shape=N_EXAMPLE)
    observe(level[data("group")])


MODELS = [
    transformed,
    standardized,
    groups,
    centered_groups,
    poisson,
    categorical,
    binomial,
    width_of_data,
    two_observed,
    as_many_levels_as_example_rows,
]


class TestRecipes:
    @pytest.mark.few(
        "binomial", "two_observed", "groups", "standardized", "transformed", "centered_groups"
    )
    @pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
    def test_rows_that_differ_fit_in_the_place_of_an_example_whose_rows_do_not(self, build):
        check(split(build))

    def test_what_is_computed_from_a_row_is_a_leaf_with_a_recipe(self):
        likelihood = split(transformed)
        computed = [k for k, leaf in enumerate(likelihood.leaves) if leaf.is_computed]
        assert len(computed) == 1
        given = {name: DATA[name] for name in likelihood.examples.variables}
        leaves = likelihood.recipes(given)
        np.testing.assert_allclose(leaves[computed[0]], np.log(abs(DATA["x"]) + 1.0), rtol=1e-11)
        assert all(leaf.flags.c_contiguous and leaf.flags.writeable for leaf in leaves)

    def test_predictors_are_found_as_with_all_rows(self):
        likelihood = split(groups)
        with pm.Model() as model:
            level, b = pm.Normal("level", shape=4), pm.Normal("slopes", shape=3)
            mean = level[pm.Data("group", DATA["group"])] + pm.Data("x", DATA["x"]) @ b
            pm.Normal("y", mean, 1.0, observed=DATA["y"])
        names = []
        for one in (likelihood, split_log_density(model)):
            structure = find_predictors(ModelAt(one, one.value_vars, {}, one.model.initial_point()))
            names.append([predictor.name for predictor in structure.predictors])
        assert names[0] == names[1] == ["level[group] + x @ slopes - y"]

    def test_the_guard_finds_what_is_wrong(self):
        likelihood = split(groups)
        (y,) = (leaf for leaf in likelihood.leaves if leaf.placeholder.name == "y")
        wrong = likelihood.rows + (y.placeholder - y.array[0])  # right on the example
        with pytest.raises(NotRowwiseError, match="other numbers on rows of the sources"):
            check(replace(likelihood, rows=wrong))

    def test_equal_columns_of_the_example_are_not_taken_for_one(self):
        def build():
            b = pm.Normal("b", shape=2)
            observe(b[0] * data("group") + b[1] * data("kind"))

        EXAMPLE["kind"][:], EXAMPLE["group"][:] = 1, 1
        check(split(build))


def all_rows():
    x = data("x")
    observe((x - x.mean(0)) @ slopes())


def number_of_rows():
    x = data("x")
    observe(x @ slopes() / x.shape[0])


def total_size():
    mean = data("x") @ slopes()
    pm.Normal("y", mean, 1.0, observed=EXAMPLE["y"], total_size=N_ROWS)


def array_without_source():
    pm.Normal("y", EXAMPLE["x"] @ slopes(), 1.0, observed=EXAMPLE["y"])


def observed_without_source():
    pm.Normal("y", data("x") @ slopes(), 1.0, observed=EXAMPLE["y"])


def constant_without_source():
    observe(data("x") @ slopes(), np.ones(N_EXAMPLE))


def mask():
    y, x = data("y"), data("x")
    pm.Potential("p", pm.logp(pm.Normal.dist(x @ slopes(), 1.0), y)[abs(y) >= 0.0])


def lag():
    y, a = data("y"), pm.Normal("a")
    pm.Potential("p", pm.logp(pm.Normal.dist(a * y[:-1], 1.0), y[1:]))


def parameter_of_each_row():
    observe(pm.Normal("level", shape=N_EXAMPLE) + data("x") @ slopes())


def row_numbers():
    observe(data("x") @ slopes() + pm.Normal("trend") * pt.arange(N_EXAMPLE))


def joined():
    pm.Normal("y", 0.0, pm.HalfNormal("s"), observed=EXAMPLE["y"])
    both = pt.concatenate([data("x")[:20] @ slopes(), data("group")[20:]])
    pm.Potential("p", both)


REFUSED = [
    (all_rows, {}, "a mean is computed from all rows of 'x'"),
    (number_of_rows, {}, "the number of rows of 'x'"),
    (total_size, {}, "leave total_size= out"),
    (array_without_source, {"names": ["y"]}, "hold it in a pm.Data and name a source for it"),
    (
        observed_without_source,
        {"names": ["x"]},
        r"add its source, as in data={\.\.\., 'y': source}",
    ),
    (constant_without_source, {}, "an array of shape 40 without a name has one entry for each row"),
    (mask, {"likelihood": ["p"]}, "a mask that depends on parameters or on rows in sources"),
    (lag, {"likelihood": ["p"]}, "by their numbers in the example"),
    (joined, {"likelihood": ["p"]}, "by their numbers in the example"),
    (parameter_of_each_row, {}, "'level' has one entry for each row of the example"),
    (row_numbers, {}, "the numbers of the rows"),
]


def unread_data():
    data("kind")
    transformed()


def term_in_full():
    x = data("x")
    pm.Potential("penalty", -abs(x @ slopes()).sum())
    observe(pm.Normal("mean"))


def a_prior_that_reads_rows():
    x = data("x")
    observe(x @ pm.Normal("slopes", x.mean(), shape=3))


def no_observed_variable():
    pm.Potential("p", pm.logp(pm.Normal.dist(pm.Normal("mean"), 1.0), data("y")))


def mini_batches():
    batch = pm.Minibatch(EXAMPLE["y"], batch_size=10)
    pm.Normal("y", pm.Normal("mean"), 1.0, observed=batch, total_size=N_EXAMPLE)


MISTAKEN = [
    (groups, {"names": ["x", "y", "group", "z"]}, "'z', which the model does not have"),
    (groups, {"names": ["x", "y", "group", "slopes"]}, "'slopes', which is neither a pm.Data"),
    (unread_data, {"names": ["x", "y", "kind"]}, "'kind', which the rows .* do not read"),
    (term_in_full, {"names": ["x", "y"]}, "'penalty' reads 'x', whose rows are in data="),
    (a_prior_that_reads_rows, {}, "'slopes' reads 'x'.*give the prior numbers"),
    (no_observed_variable, {}, "no observed variable of the model reads"),
    (mini_batches, {}, "not possible with pm.Minibatch"),
]
CASES = [
    *((NotRowwiseError, *case) for case in REFUSED),
    *((SettingError, *case) for case in MISTAKEN),
]


@pytest.mark.parametrize(
    ("error", "build", "settings", "words"), CASES, ids=[case[1].__name__ for case in CASES]
)
def test_is_refused_in_one_sentence(error, build, settings, words):
    with pytest.raises(error, match=words) as refusal:
        split(build, **settings)
    assert str(refusal.value).count(". ") == 0
