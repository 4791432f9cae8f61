"""Predictors and rows the slow way: every graph compiled by itself, every term spelled out."""

import numpy as np
import pytensor

from pymc_austerity._pymc import Mode
from pymc_austerity.model import ModelAt, find_predictors, split_log_density
from tests.model.splitting import raveled
from tests.zoo.all_shapes import SHAPES

PLAIN = Mode(linker="py", optimizer=None)
STABLE = Mode(linker="py", optimizer="fast_run").excluding("fusion")


def of_shape(name, rng, n_rows=53):
    """A model of the zoo, with its structure."""
    return Structured(SHAPES[name].build(n_rows), rng, SHAPES[name].settings)


class Structured:
    """A model that was split, its structure, and points around its start."""

    def __init__(self, model, rng, settings=None):
        self.model, self.rng = model, rng
        self.start = model.initial_point()
        self.split = split_log_density(model, point=self.start, **(settings or {}))
        self.variables = list(model.value_vars)
        self.at = ModelAt(self.split, self.variables, {}, self.start)
        self.structure = find_predictors(self.at)
        self.placeholders = [leaf.placeholder for leaf in self.split.leaves]
        self._functions = {}

    def block(self, n):
        indices = self.rng.integers(0, self.split.n_rows, n)
        return [np.ascontiguousarray(leaf.array[indices]) for leaf in self.split.leaves]

    def point(self, spread=0.2):
        return {
            name: (value + spread * self.rng.standard_normal(value.shape)).astype(value.dtype)
            if value.dtype.kind == "f"
            else value
            for name, value in ((n, np.asarray(v)) for n, v in self.start.items())
        }

    def raveled(self, point):
        return raveled(point, self.variables)

    def near(self, spread=0.3):
        """A point around the start, raveled."""
        return self.raveled(self.point(spread))

    def rows(self, point, block):
        """By the cut graph."""
        values = [point[v.name] for v in self.split.value_vars]
        return self._evaluated(self.split.rows, self.split.value_vars, values, block, STABLE)

    def etas(self, theta, block):
        return [self._eta(predictor, theta, block) for predictor in self.structure.predictors]

    def of_etas(self, etas, block):
        return self._evaluated(self.structure.function, self.structure.etas, etas, block)

    def _eta(self, predictor, theta, block):
        total = np.zeros(len(block[0]))
        for term in predictor.terms:
            total += term.scale * self._term(term, theta, block)
        if predictor.offset is not None:
            total += self._evaluated(predictor.offset, [], [], block)
        return total.astype(self.structure.dtype)

    def _term(self, term, theta, block):
        data = 1.0 if term.data is None else self._evaluated(term.data, [], [], block)
        if term.columns is None:
            return data @ theta[term.entries] if term.is_matrix else data * theta[term.entries[0]]
        columns = self._evaluated(term.columns, [], [], block)
        assert columns.shape[0] == len(block[0]) and columns.dtype.kind in "iu"
        products = data * theta[term.entries[columns]]
        return products.sum(axis=1) if term.is_matrix else products

    def _evaluated(self, graph, inputs, values, block, mode=PLAIN):
        if graph not in self._functions:
            every = [*inputs, *self.placeholders]
            function = pytensor.function(every, graph, mode=mode, on_unused_input="ignore")
            self._functions[graph] = function
        with np.errstate(all="ignore"):
            return self._functions[graph](*values, *block)
