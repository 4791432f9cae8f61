"""Compiled kernels: numbers, residuals, what is computed where, pickling, the cache on disk."""

import ctypes
import os
import pickle
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity._pymc import PYMC_GENERATION
from pymc_austerity.model.kernel import generated
from pymc_austerity.model.kernel.kernel import Kernel, kernel_of, written_kernel
from pymc_austerity.model.predictors.structure import Predictor, Term
from tests.model.kernel.structures import leaf, run_by_python, structure

N_ROWS, N_COLUMNS, N_GROUPS = 40, 6, 5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setattr(generated, "_FOLDER", str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("pymc_austerity_kernel_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def normal(rng, dtype="float64"):
    """y ~ Normal(a[group] + x b + o, exp(s)) with parameters in the order b, s, a."""
    x = leaf(rng.normal(size=(N_ROWS, N_COLUMNS)).astype(dtype), "x")
    y = leaf(rng.normal(size=N_ROWS).astype(dtype), "y")
    offset = leaf(rng.normal(size=N_ROWS).astype(dtype), "o")
    group = leaf(rng.integers(0, N_GROUPS, N_ROWS).astype("int32"), "group")
    entries = np.arange(N_COLUMNS), N_COLUMNS + 1 + np.arange(N_GROUPS)
    mean = Predictor(
        (Term(entries[0], None, x.placeholder), Term(entries[1], group.placeholder, None, 2.0)),
        offset.placeholder,
        "mean",
    )
    scale = Predictor((Term(np.array([N_COLUMNS])),), None, "log scale")

    def function(mean, log_scale, y, offset, group):
        return pm.logp(pm.Normal.dist(mean, pt.exp(log_scale)), y)

    size = N_COLUMNS + 1 + N_GROUPS
    return structure([mean, scale], function, [x, y, offset, group], size)


def etas_of_normal(made, theta):
    x, _, offset, group = (leaf.array.astype(float) for leaf in made.leaves)
    a = theta[N_COLUMNS + 1 :]
    mean = x @ theta[:N_COLUMNS] + 2 * a[group.astype(int)] + offset
    return np.column_stack([mean, np.full(N_ROWS, theta[N_COLUMNS])])


def normal_by_hand(made, etas):
    y = made.leaves[1].array.astype(float)
    return -0.5 * ((y - etas[:, 0]) / np.exp(etas[:, 1])) ** 2 - etas[:, 1]


def constants_of_normal(made, etas):
    """Predictors and derivatives of the log-density at an anchor."""
    r, precision = made.leaves[1].array - etas[:, 0], np.exp(-2 * etas[:, 1])
    gradient = [r * precision, r**2 * precision - 1]
    hessian = [-precision, -2 * r * precision, -2 * r**2 * precision]
    return np.ascontiguousarray(np.column_stack([etas, *gradient, *hessian]))


def expansion(constants, etas, order):
    """The expansion, entry by entry."""
    at, gradient = constants[:, :2], constants[:, 2:4]
    step = etas - at
    value = np.sum(gradient * step, axis=1)
    if order >= 2:
        h = constants[:, 4:7]
        value += 0.5 * (h[:, 0] * step[:, 0] ** 2 + h[:, 2] * step[:, 1] ** 2)
        value += h[:, 1] * step[:, 0] * step[:, 1]
    return value


@pytest.fixture
def three_points(rng):
    return 0.4 * rng.standard_normal((3, N_COLUMNS + 1 + N_GROUPS))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_differences_and_residuals(order, rng, three_points):
    made = normal(rng)
    new, old, anchor = three_points
    kernel = kernel_of(made, order)
    block = [leaf.array for leaf in made.leaves]
    etas = [etas_of_normal(made, point) for point in (new, old)]
    expected = normal_by_hand(made, etas[0]) - normal_by_hand(made, etas[1])
    if order:
        constants = constants_of_normal(made, etas_of_normal(made, anchor))
        assert constants.shape[1] == kernel.n_constants
        block.append(constants)
        expected -= expansion(constants, etas[0], order) - expansion(constants, etas[1], order)
    np.testing.assert_allclose(kernel(new, old, *block), expected, rtol=1e-11, atol=1e-12)
    if order:
        by_row, data = kernel_of(made, order, by_row=True).at(anchor), block[:-1]
        assert by_row.n_constants == 0
        np.testing.assert_allclose(by_row(new, old, *data), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("order", "ratio"), [(1, 4), (2, 8)])
def test_residuals_are_of_the_next_order(order, ratio, rng, three_points):
    """Halving the distances to the anchor divides residuals by a power of two."""
    made = normal(rng)
    kernel = kernel_of(made, order)
    anchor, *steps = three_points
    constants = constants_of_normal(made, etas_of_normal(made, anchor))
    block = [*(leaf.array for leaf in made.leaves), constants]

    def size(h):
        return np.linalg.norm(kernel(anchor + h * steps[0], anchor + h * steps[1], *block))

    assert size(1e-2) / size(5e-3) == pytest.approx(ratio, rel=0.1)


def test_rows_in_single_precision_are_evaluated_in_double(rng, three_points):
    made = normal(rng, "float32")
    new, old, _ = three_points
    found = kernel_of(made, 0)(new, old, *[leaf.array for leaf in made.leaves])
    expected = [normal_by_hand(made, etas_of_normal(made, point)) for point in (new, old)]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected[0] - expected[1], rtol=1e-9, atol=1e-11)


def test_entries_in_any_order(rng):
    """Terms may read any entries; the point is put in their order."""
    x, y = rng.normal(size=(N_ROWS, 3)), rng.integers(0, 2, N_ROWS)
    x, y = leaf(x, "x"), leaf(y, "y")
    entries = np.array([4, 0, 2])
    predictor = Predictor((Term(entries, None, x.placeholder), Term(np.array([3]))), None, "xb")
    made = structure(
        [predictor], lambda eta, y: pm.logp(pm.Bernoulli.dist(logit_p=eta), y), [x, y], 5
    )
    new, old = rng.normal(size=(2, 5))
    found = kernel_of(made, 0)(new, old, x.array, y.array)
    sign = 1 - 2 * y.array
    density = [-np.logaddexp(0, sign * (x.array @ p[entries] + p[3])) for p in (new, old)]
    np.testing.assert_allclose(found, density[0] - density[1], rtol=1e-12)


def counts(rng):
    """Poisson rows whose rate may be invalid."""
    y, x = leaf(rng.poisson(2, N_ROWS), "y"), leaf(rng.normal(size=N_ROWS), "x")
    predictor = Predictor(
        (Term(np.array([0]), None, x.placeholder), Term(np.array([1]))), None, "rate"
    )
    made = structure([predictor], lambda eta, y: pm.logp(pm.Poisson.dist(eta), y), [x, y], 2)
    return made, [x.array, y.array]


def test_a_failed_check_is_minus_infinity(rng):
    made, block = counts(rng)
    good, bad = np.array([0.0, 3.0]), np.array([0.0, -3.0])
    kernel = kernel_of(made, 0)
    assert np.all(kernel(bad, good, *block) == -np.inf)
    assert np.all(np.isnan(kernel(bad, bad, *block)))


def of_one_column(rng, function):
    """Rows of counts as a function of one coefficient."""
    y, x = leaf(rng.poisson(2, N_ROWS), "y"), leaf(rng.normal(size=N_ROWS), "x")
    predictor = Predictor((Term(np.array([0]), None, x.placeholder),), None, "eta")
    return structure([predictor], function, [x, y], 1)


def test_terms_of_the_data_alone_are_left_out(rng):
    made = of_one_column(rng, lambda eta, y: y * eta - pt.exp(eta) - pt.gammaln(y + 1))
    source = written_kernel(made, 0).source
    assert "math.exp" in source and "lgamma" not in source


def test_what_rows_have_in_common_is_computed_before_the_loop(rng):
    source = written_kernel(normal(rng), 0).source
    before, loop = source.split("for n in range")
    # of either point; PyMC 6 checks the scale by an exponential of its own
    assert before.count("math.exp") == (2 if PYMC_GENERATION < 6 else 4)
    assert "math.exp" not in loop


def test_only_the_branch_taken_is_computed(rng):
    made = of_one_column(rng, lambda eta, y: pt.switch(pt.eq(y, 1), pt.gammaln(eta), pt.erf(eta)))
    lines = written_kernel(made, 0).source.splitlines()
    indents = {f: len(a) - len(a.lstrip()) for f in ("lgamma", "erf(") for a in lines if f in a}
    assert indents == {"lgamma": 8, "erf(": 8}


def test_data_are_not_in_the_source(rng):
    first = written_kernel(normal(rng), 2).source
    assert written_kernel(normal(rng), 2).source == first


def test_an_operation_without_a_rule_is_a_reason(rng):
    made = of_one_column(rng, lambda eta, y: pt.gammaincc(y + 1, eta))
    assert kernel_of(made, 0) == "the operation GammaIncC has no rule"


def test_pickling(rng, three_points):
    made = normal(rng)
    kernel = kernel_of(made, 0)
    again = pickle.loads(pickle.dumps(kernel))
    block = [leaf.array for leaf in made.leaves]
    new, old, _ = three_points
    np.testing.assert_array_equal(again(new, old, *block), kernel(new, old, *block))


def test_python_and_numba_agree(rng, three_points):
    made = normal(rng)
    kernel = kernel_of(made, 0)
    block = [leaf.array for leaf in made.leaves]
    new, old, _ = three_points
    found = np.empty(N_ROWS)
    run_by_python(kernel.source)(new, old, kernel.starts, found, *block)
    np.testing.assert_allclose(kernel(new, old, *block), found, rtol=1e-12, atol=1e-13)


def by_address(kernel, new, old, rows, block):
    """Differences of some rows, by the function that compiled code calls."""
    numbers = [number for array in block for number in (array.ctypes.data, *array.shape)]
    table, out = np.array(numbers), np.empty(rows.size)
    points = [kernel.ordered(point) for point in (new, old)]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(kernel.address)
    first = [array.ctypes.data for array in (*points, kernel.starts, rows)]
    function(*first, rows.size, table.ctypes.data, out.ctypes.data)
    return out


@pytest.mark.parametrize("order", [0, 2])
def test_compiled_code_reads_rows_by_their_positions(order, rng, three_points):
    made = normal(rng, "float32")
    kernel, (new, old, _) = kernel_of(made, order), three_points
    block = [leaf.array for leaf in made.leaves]
    if order:
        block.append(rng.normal(size=(N_ROWS, kernel.n_constants)))
    rows = rng.permutation(N_ROWS)[:17].astype(np.uint64)
    found = by_address(kernel, new, old, rows, block)
    np.testing.assert_array_equal(found, kernel(new, old, *block)[rows.astype(int)])


SECOND_PROCESS = """
import pickle, sys
from pymc_austerity.model.kernel import generated
generated._FOLDER = sys.argv[1]
kernel = pickle.load(open(sys.argv[2], "rb"))
kernel.compile()
print(sum(kernel._function.stats.cache_hits.values()))
"""


def test_a_second_process_compiles_nothing(folder, rng):
    kernel = kernel_of(normal(rng), 0)
    stored = folder / "kernel.pickle"
    stored.write_bytes(pickle.dumps(kernel))
    found = subprocess.run(
        [sys.executable, "-c", SECOND_PROCESS, str(folder), str(stored)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == "1"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(folder, rng):
    folder.chmod(0o500)
    assert isinstance(kernel_of(counts(rng)[0], 0), Kernel)


def test_no_folder_at_all(folder, rng, monkeypatch):
    blocked = folder / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(generated, "_FOLDER", str(blocked))
    made, block = counts(rng)
    kernel = kernel_of(made, 1)
    assert kernel.source.count("CACHE") == 2
    differences = kernel(np.array([0, 3.0]), np.array([0, 2.0]), *block, np.zeros((N_ROWS, 3)))
    assert np.isfinite(differences).all()
    assert kernel.address


@pytest.mark.parametrize("writable", [True, False])
def test_an_interrupted_import_leaves_nothing(folder, monkeypatch, writable):
    if not writable:
        monkeypatch.setattr(generated, "_written", lambda *of: None)
    monkeypatch.setattr(sys, "interrupted", True, raising=False)
    source = "import sys\nif sys.interrupted:\n    raise KeyboardInterrupt\nanswer = 42\n"
    with pytest.raises(KeyboardInterrupt):
        generated.module_of(source)
    monkeypatch.setattr(sys, "interrupted", False, raising=False)
    assert generated.module_of(source).answer == 42
