"""The comparison with other samplers: its numbers, its tables, and one small cell."""

import importlib.util
import json

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

from examples.benchmarks.peers import problems, pymc_samplers, reference, results, summary, tables

MODEL, N_ROWS = "logistic-20", 1_000_000


def a_cell(sampler, speed, **others):
    """A cell as it is written, with made-up numbers."""
    cell = {
        "model": MODEL,
        "n_rows": N_ROWS,
        "sampler": sampler,
        "date": "2026-01-01",
        "python": "3.11",
        "versions": {"pymc": "5"},
        "revision": "abc",
        "limit_seconds": 60.0,
        "mean": [0.0, 1.0],
        "sd": [1.0, 2.0],
        "n_draws": 1_000,
        "ess_min": 900.0,
        "rhat_max": 1.0,
        "setup_seconds": 2.0,
        "compile_seconds": 3.0,
        "tuning_seconds": 1.0,
        "sampling_seconds": 0.1,
        "ess_per_second_median": 1.1 * speed,
        "ess_per_second_min": speed,
        "rows_per_evaluation": 300.0,
        "evaluations_per_draw": 1.0,
        "tuning_share": 1.0,
        "stopped_early": False,
        "facts": {},
        "peak_mb": 500.0,
    }
    return cell | others


@pytest.fixture
def folder(tmp_path):
    cells = [
        a_cell("ours", 1_000.0),
        a_cell("nutpie", 1.0),
        a_cell("paper", 0.5, mean=[0.5, 1.0], rows_per_evaluation=500_000.0, ess_min=2_000.0),
        a_cell("hmcecs", 1.0) | {"failed": "TimeoutError: too slow"},
        {
            **a_cell("reference", 1.0),
            "n_points": 100,
            "pareto_k": 0.1,
            "mean_error": [0.0, 0.0],
            "sd_error": [0.0, 0.0],
        },
    ]
    for i, cell in enumerate(cells):
        (tmp_path / f"{i}.json").write_text(json.dumps(cell))
    return tmp_path


class TestTables:
    def test_ratios_are_larger_than_one_where_ours_is_better(self, folder):
        text = "\n".join(tables.ratios(results.Results.read(folder)))
        for heading, found in {
            "Other samplers of this package": "| 2,000 / 287 |",
            "All rows": "| 1,000 / 144 |",
            "Some of the rows": "| no draws in 60 s |",
        }.items():
            _, _, after = text.partition(f"**{heading}**")
            assert found in after.strip().splitlines()[2]

    def test_versions_on_a_gpu_are_told_apart(self, folder):
        its = {"facts": {"gpu": "a GPU"}, "versions": {"pymc": "6"}, "revision": "def"}
        (folder / "gpu.json").write_text(json.dumps(a_cell("numpyro_nuts_gpu", 1.0) | its))
        first, second = tables.provenance(results.Results.read(folder)).split("\n\n")
        assert "pymc 5; this package at revision abc" in first
        assert second.startswith("On a GPU") and "pymc 6; this package at revision def" in second

    def test_posteriors_without_this_package_are_left_out(self, folder):
        others = a_cell("numpyro_nuts_gpu", 1.0) | {"n_rows": 10_000}
        (folder / "gpu.json").write_text(json.dumps(others))
        assert results.Results.read(folder).posteriors == [(MODEL, N_ROWS)]

    def test_who_is_first_as_plain_text(self, folder):
        tables.write(folder, folder / "peers.md")
        header, row = (folder / "peers_first.csv").read_text().splitlines()
        assert header.startswith('posterior,"AusterityMH(), s",')
        assert row == '"Logistic, D = 20, N = 1,000,000",7,-,"nutpie: 1,006",none converged,-,-,-'

    def test_a_reference_for_other_rows_is_refused(self, folder):
        for name, rows in {"reference": "ab", "nutpie": "ab", "ours": "cd"}.items():
            (folder / f"{name}.json").write_text(json.dumps(a_cell(name, 1.0, rows=rows)))
        found = results.Results.read(folder)
        assert found.errors(MODEL, N_ROWS, "nutpie") == (0.0, 0.0)
        with pytest.raises(ValueError, match="ours on logistic-20, N = 1,000,000, had other rows"):
            found.errors(MODEL, N_ROWS, "ours")


class TestReference:
    def test_moments_of_a_skew_density(self):
        """Log of a gamma variable: the normal approximation is off, the weights put it right."""
        shape = 20.0

        def value(z):
            return float(shape * z[0] - np.exp(z[0]))

        def gradient(z):
            return np.array([shape - np.exp(z[0])])

        mean, root = reference.normal_approximation(value, gradient, np.zeros(1))
        assert mean[0] == pytest.approx(np.log(shape), abs=1e-5)
        rng = np.random.default_rng(1)
        found = reference.importance_moments(value, mean, root, 20_000, rng)
        sd = np.sqrt(polygamma(1, shape))
        assert abs(found["mean"][0] - digamma(shape)) < 4 * found["mean_error"][0] * sd
        assert abs(found["sd"][0] / sd - 1.0) < 4 * found["sd_error"][0]
        assert found["mean_error"][0] < 0.01

    @pytest.mark.exhaustive
    def test_heavy_tails_need_heavy_points(self):
        """Student's t: weights of normal points have no variance."""
        degrees = 7.0

        def value(z):
            return float(stats.multivariate_t(shape=np.eye(2), df=degrees).logpdf(z))

        mean, root = np.array([0.3, -0.2]), np.eye(2)
        with pytest.raises(reference.UnevenWeights, match="Pareto k"):
            reference.importance_moments(value, mean, root, 10_000, np.random.default_rng(1))
        rng = np.random.default_rng(2)
        found = reference.importance_moments(value, mean, root, 10_000, rng, heavy=True)
        sd = np.sqrt(degrees / (degrees - 2.0))
        assert np.abs(found["mean"]).max() < 4 * max(found["mean_error"]) * sd
        assert np.abs(found["sd"] / sd - 1.0).max() < 4 * max(found["sd_error"])
        assert max(found["sd_error"]) < 0.02


class TestModels:
    @pytest.mark.skipif(importlib.util.find_spec("numpyro") is None, reason="NumPyro is not there")
    @pytest.mark.parametrize(
        "name", ["logistic-20", "poisson", "student_t", "hierarchical", "rare", "saturation"]
    )
    @pytest.mark.few("poisson", "student_t", "hierarchical", "rare", "saturation")
    def test_both_languages_describe_the_same_posterior(self, name):
        import jax
        from numpyro.infer import util

        from examples.benchmarks.peers.jax_models import MODELS

        jax.config.update("jax_enable_x64", True)
        problem = problems.build(name, 400)
        model = problem.model(problem.rows)
        rng = np.random.default_rng(1)
        both = []
        for _ in range(2):
            z = {
                v.name: 0.3 * rng.standard_normal(np.shape(model.initial_point()[v.name]))
                for v in model.value_vars
            }
            named = {name.removesuffix("_log__"): values for name, values in z.items()}
            ours = float(model.compile_logp(mode="FAST_COMPILE")(z))
            theirs = -float(
                util.potential_energy(MODELS[problem.family], (problem.rows,), {}, named)
            )
            both.append((ours, theirs))
        (first, other_first), (second, other_second) = both
        assert first - second == pytest.approx(other_first - other_second, rel=1e-8)

    @pytest.mark.parametrize("name", ["rare", "saturation"])
    def test_a_batch_counts_for_all_rows(self, name):
        problem = problems.build(name, 400)
        half = {key: values[:200] for key, values in problem.rows.items()}
        point = problem.model(problem.rows).initial_point()

        def rows_part(model):
            return float(model.compile_logp(model.observed_RVs, mode="FAST_COMPILE")(point))

        batch = problem.model(problem.rows, half)
        logp = batch.compile_logp(batch.observed_RVs, sum=False, mode="FAST_COMPILE")
        assert rows_part(batch) == pytest.approx(2.0 * rows_part(problem.model(half)))
        assert logp(point)[0].shape == (200,)


class TestCells:
    def test_ours_on_few_rows(self):
        problem = problems.logistic(2_000, 3)
        run = pymc_samplers.defaults(problem, 60.0, share=0.005)
        flat = summary.flatten(run.draws, problem.positive)
        assert flat.shape == (1_000, 3)
        assert run.sampling_seconds > 0 and run.compile_seconds > 0
        assert summary.moments(flat)["ess_min"] > 50
