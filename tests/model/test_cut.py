"""Every rule is an identity: rows of the result are the result of rows."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity._pymc import Add, Mul, vectorize_graph
from pymc_austerity.model.cut import CannotCut, Cut, Known, refuse_work_on_all_rows

N = 12
MODE = "FAST_COMPILE"
ROWS = np.array([7, 0, 3, 3, 11])

X = np.random.default_rng(1).normal(size=(N, 3))
Z = np.random.default_rng(2).normal(size=(N, 3, 2))
GROUP = np.array([0, 1, 2, 3] * 3)
A = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
b = pt.vector("b", shape=(3,))
t = pt.vector("t", shape=(4,))
B = pt.outer(b, pt.arange(1, 4))
VALUES = {"b": np.array([0.5, -1.0, 2.0]), "t": np.array([1.0, -2.0, 0.5, 3.0])}
i, j = pt.lvector("i"), pt.arange(b[:1].shape[0])
TABLE = np.stack([GROUP % 3, GROUP[::-1] % 3])
mu = pt.constant(X) @ b
XB = pt.constant(X) * b

IDENTITIES = {
    # element-wise operations and reductions
    "add": (pt.exp(mu) + X[:, 0], 0),
    "broadcast": (mu[:, None] + t, 0),
    "sum": (XB.sum(axis=1), 0),
    "maximum": (XB.max(axis=1), 0),
    "argmax": (pt.argmax(XB, axis=1), 0),
    "softmax": (pt.special.softmax(XB, axis=1), 0),
    "log_softmax": (pt.special.log_softmax(XB, axis=-1), 0),
    "cumulative sum": (pt.cumsum(XB, axis=1), 0),
    "sort": (pt.sort(XB, axis=1), 0),
    "argsort": (pt.argsort(XB, axis=-1), 0),
    "searchsorted": (pt.searchsorted(pt.sort(t), mu), 0),
    # shapes
    "transpose": (XB.T, 1),
    "squeeze": (pt.specify_shape(mu[:, None], (N, 1)).squeeze(1), 0),
    "specify_shape": (pt.specify_shape(mu, (N,)), 0),
    "alloc": (pt.alloc(b, N, 3), 0),
    "alloc of rows": (pt.alloc(mu, 2, N), 1),
    "reshape": ((pt.constant(Z) * b[:, None]).reshape((N, 6)), 0),
    "reshape back": (XB.reshape((N, 3, 1)), 0),
    "reshape of two axes into two": (pt.exp(pt.constant(Z) @ t[:2]).reshape((N * 3,))[::3], 0),
    "split rows": (pt.exp(t)[np.arange(2 * N) % 4].reshape((N, 2)), 0),
    "split rows of last axis": (pt.exp(t)[np.arange(2 * N) % 4].reshape((2, N)), 1),
    "split rows among others": (B[np.arange(4 * N) % 3].reshape((2, N, 2, 3)), 1),
    "repeat": (pt.repeat(t, np.array([3, 1, 5, 3])), 0),
    "repeat of columns": (pt.repeat(XB, 2, axis=1), 0),
    # joining
    "join columns": (pt.concatenate([XB, mu[:, None]], axis=1), 0),
    "join rows": (pt.concatenate([mu[:5], t[:1], 2 * mu[5:11]]), 0),
    "stack": (pt.stack([mu, 2 * mu], axis=1), 0),
    # algebra
    "dot": (pt.constant(X) @ B, 0),
    "row times matrix": (pt.dot(b, pt.constant(X.T)), 0),
    "dot of three axes": (pt.dot(pt.constant(Z.transpose(0, 2, 1)), b), 0),
    "dot of three computed axes": (pt.dot(pt.constant(Z) * b[:, None], t[:2]), 0),
    "tensordot": (pt.tensordot(pt.constant(Z), B, axes=[[1], [0]]), 0),
    "batched dot": (pt.matmul(pt.constant(Z.transpose(0, 2, 1)), b[:, None]), 0),
    "solve": (pt.linalg.solve(pt.constant(A) + pt.diag(b**2), pt.constant(X.T)), 1),
    # indexing
    "slice": (pt.concatenate([t, mu])[4:], 0),
    "reversed": (mu[::-1], 0),
    "column": (XB[:, 1], 0),
    "group": (t[GROUP], 0),
    "group of computed": (pt.exp(t)[GROUP], 0),
    "own entry": (XB[np.arange(N), GROUP % 3], 0),
    "vectorized index": (vectorize_graph(t[i], {i: pt.constant(TABLE)}), 1),
    "vectorized index of a matrix": (vectorize_graph(B[i], {i: pt.constant(TABLE)}), 1),
    "vectorized index of two axes": (vectorize_graph(B[i, j], {i: pt.constant(TABLE)}), 1),
    "columns by index": (XB[:, np.array([2, 0])], 0),
    "mask": (pt.concatenate([t, mu])[np.arange(N + 4) >= 4], 0),
    "negative index": (pt.exp(t)[GROUP - 4], 0),
    "index of two axes": (B[GROUP % 3][:, GROUP[:2]], 0),
    # setting
    "set rows": (pt.set_subtensor(mu[np.array([1, 3])], b[:2]), 0),
    "set one row": (pt.set_subtensor(XB[3], b), 0),
    "set one row to a number": (pt.set_subtensor(XB[3], 1.0), 0),
    "set a slice": (pt.set_subtensor(mu[2:6], t), 0),
    "set by mask": (pt.set_subtensor(mu[np.arange(N) < 4], t), 0),
    "set last rows": (pt.set_subtensor(mu[np.array([-1, -2])], b[:2]), 0),
    "add to rows": (pt.inc_subtensor(mu[np.array([0, 7])], b[:2]), 0),
    "set a column": (pt.set_subtensor(XB[:, 1], mu), 0),
    "add to a column": (pt.inc_subtensor(XB[:, 0], b[0]), 0),
    "set an entry of each row": (pt.set_subtensor(XB[np.arange(N), GROUP % 3], mu), 0),
    "set an entry of some rows": (
        pt.set_subtensor(XB[np.array([-2, 4]), np.array([0, 2])], b[:2]),
        0,
    ),
    "set entries to a number": (pt.set_subtensor(XB[np.arange(N), GROUP % 3], -9.0), 0),
    "set entries of columns": (pt.set_subtensor(XB.T[GROUP % 3, np.arange(N)], mu), 1),
    "add to entries": (pt.inc_subtensor(XB[np.arange(N)[::-1], GROUP % 3], mu), 0),
    "set columns by index": (pt.set_subtensor(XB[:, np.array([0, 2])], mu[:, None]), 0),
}


def loop_over(body):
    loop = pytensor.scan(body, [pt.constant(GROUP)], non_sequences=[b[0]], return_updates=False)
    return loop


REFUSALS = {
    "softmax": (pt.special.softmax(mu), "softmax"),
    "cumsum": (pt.cumsum(mu), "cumulative"),
    "sort": (pt.sort(mu), "sort"),
    "merged rows": (XB.reshape((N * 3,)), "reshape"),
    "long rows": (pt.exp(t)[np.arange(40 * N) % 4].reshape((N, 40)), "40 entries"),
    "cholesky": (pt.linalg.cholesky(pt.diag(pt.exp(mu))), "Cholesky"),
    "product among rows": (pt.outer(mu, mu) @ pt.constant(X), "all 12 rows"),
    "mean": (mu - mu.mean(), "all 12 rows"),
    "moving slice": (pt.concatenate([t, mu])[pt.cast(b[0], "int64") :][:N], "slice"),
    "moving mask": (pt.concatenate([mu, t])[pt.concatenate([mu, t]) > b[0]][:N], "mask"),
    "two entries of a row": (
        pt.set_subtensor(XB[np.array([1, 1]), np.array([0, 2])], b[:2]),
        "several entries of a row",
    ),
    "added twice": (pt.inc_subtensor(mu[np.array([1, 1])], b[:2]), "more than once"),
    "recurrence": (pytensor.scan(lambda x, h: x + h, [mu], [b[0]], return_updates=False), "loop"),
    "lengths by row": (loop_over(lambda k, a: pt.exp(a * pt.arange(k)).sum()), "length differs"),
    "slices by row": (loop_over(lambda k, a: (a * pt.constant(X)[:k, 0]).sum()), "length differs"),
}


def cut_of(graph, axis):
    known = Known([b, t], VALUES)
    known.learn_shapes([graph])
    known.learn_values([graph])
    cut = Cut(known, N)
    rows = cut.take(graph, axis)
    refuse_work_on_all_rows(cut)
    return cut, rows


@pytest.mark.parametrize("name", IDENTITIES)
def test_rows_of_the_result_are_the_result_of_rows(name):
    graph, axis = IDENTITIES[name]
    cut, rows = cut_of(graph, axis)
    inputs = [b, t, cut.batch_length, *(leaf.placeholder for leaf in cut.leaves)]
    of_rows = pytensor.function(inputs, rows, mode=MODE, on_unused_input="ignore")
    found = of_rows(*VALUES.values(), len(ROWS), *(leaf.array[ROWS] for leaf in cut.leaves))
    whole = pytensor.function([b, t], graph, mode=MODE, on_unused_input="ignore")
    np.testing.assert_allclose(found, np.take(whole(*VALUES.values()), ROWS, axis), rtol=1e-12)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_mixes_rows_is_refused_in_words(name):
    graph, words = REFUSALS[name]
    with pytest.raises(CannotCut, match=words):
        cut_of(graph, 0)


class TestLeaves:
    def test_data_are_read_where_they_are(self):
        cut, _ = cut_of(mu + XB.sum(axis=1), 0)
        (leaf,) = cut.leaves
        assert np.shares_memory(leaf.array, X)

    def test_a_transposed_array_is_not_copied(self):
        cut, _ = cut_of(pt.dot(b, pt.constant(X).T), 0)
        assert np.shares_memory(cut.leaves[0].array, X)

    @pytest.mark.parametrize("name", ["prop(k, n)", "int64", "f4"])
    def test_a_name_may_read_like_a_type(self, name):
        cut = Cut(Known([b], VALUES), 2)
        leaf = cut.leaf(np.zeros((2, 3)), name, key=0)
        assert leaf.name == name and leaf.type.dtype == "float64" and leaf.type.shape == (None, 3)

    def test_small_types_stay_small(self):
        y = pt.constant(np.arange(N, dtype="int8"))
        cut, _ = cut_of(pt.cast(y, "float64") * mu, 0)
        assert sorted(leaf.array.dtype.name for leaf in cut.leaves) == ["float64", "int8"]

    def test_what_is_constant_along_the_rows_is_no_leaf(self):
        cut, _ = cut_of(mu * pt.constant(np.ones(N)), 0)
        assert len(cut.leaves) == 1

    def test_equal_arrays_are_one_leaf(self):
        index, again = np.arange(N) % 3, np.arange(N) % 3
        cut, rows = cut_of(b[pt.constant(index)] * b[pt.constant(again)], 0)
        (leaf,) = cut.leaves
        found = rows.eval({b: VALUES["b"], leaf.placeholder: index[ROWS]})
        np.testing.assert_allclose(found, VALUES["b"][index[ROWS]] ** 2)

    def test_arrays_that_differ_in_one_row_are_two_leaves(self):
        x = np.arange(float(N))
        y = np.where(np.arange(N) < N - 1, x, -1.0)
        cut, _ = cut_of(b[0] * pt.constant(x) + pt.constant(y), 0)
        assert len(cut.leaves) == 2

    def test_an_array_that_takes_the_place_of_an_equal_one_is_another_leaf(self):
        """Equal arrays are dropped, and others may be made where they were."""
        x, y = pt.constant(X[:, 0]), pt.constant(X[:, 1])
        cut = Cut(Known([b], VALUES), N)
        reverse = np.arange(N)[::-1]
        selections = [cut.selection(reverse, key) for key in range(3)]
        first, same, other = map(cut.take, [x, x, y], [0, 0, 0], selections)
        assert same is first and other is not first
        np.testing.assert_array_equal(cut.leaves[1].array, X[::-1, 1])

    def test_parameters_by_row_are_reported(self):
        e = pt.vector("e", shape=(N,))
        known = Known([e], {"e": np.zeros(N)})
        cut = Cut(known, N)
        cut.take(pt.exp(e), 0)
        assert cut.local == {e}


def test_wide_data_with_few_rows_are_not_taken_for_all_rows():
    wide = pt.vector("wide", shape=(N - 1,))
    scales = np.linspace(1.0, 2.0, N - 1)
    design = np.random.default_rng(3).normal(size=(N, N - 1))
    cut = Cut(Known([wide], {"wide": np.zeros(N - 1)}), N)
    cut.take(pt.constant(design) @ (scales * wide), 0)
    refuse_work_on_all_rows(cut)
    assert cut.local == set()


def test_values_are_computed_by_numpy(monkeypatch):
    for operation in (Add, Mul):
        monkeypatch.delattr(operation, "impl")  # what PyTensor calls for every entry
    x = pt.constant(X)
    graph = pt.mul(x, x, x) + pt.add(x, x, x)
    np.testing.assert_allclose(Known([], {}).value(graph), X**3 + 3 * X)
