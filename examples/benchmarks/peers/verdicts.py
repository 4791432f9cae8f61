"""Where the paper's setting is slower or wronger than exact sampling, in words."""

from collections.abc import Iterator

from examples.benchmarks.peers.results import Results, converged, seconds_to_1000, title
from examples.benchmarks.peers.samplers import LABELS

CLOSE_MEAN, CLOSE_SD = 0.1, 0.05


def verdicts(results: Results) -> Iterator[str]:
    """One sentence for every posterior on which both were run."""
    for model, n_rows in results.posteriors:
        paper = results.of(model, n_rows).get("paper")
        exact = results.fastest_exact(model, n_rows)
        if paper is None:
            continue
        where = f"**{title(model, n_rows)}**"
        if "failed" in paper:
            yield f"{where}: the paper's setting made no draws in the time it was given."
            continue
        if not converged(paper):
            yield f"{where}: {unconverged(results, model, n_rows)}"
            continue
        if exact is None:
            continue
        other = results.get(model, n_rows, exact)
        speed = paper["ess_per_second_median"] / other["ess_per_second_median"]
        times = float(f"{max(speed, 1 / speed):.2g}")
        than = "as fast as" if speed >= 1 else "slower than"
        comparison = f"{times:g} times {than} {LABELS[exact]}"
        share = paper["rows_per_evaluation"] / n_rows
        yield (
            f"{where}: {comparison}, reading {100 * share:.0f} % of the rows for a "
            f"decision{accuracy(results, model, n_rows)}."
        )


def unconverged(results: Results, model: str, n_rows: int) -> str:
    """What a chain that has not converged says all the same: its effective draws are too many."""
    paper = results.of(model, n_rows)["paper"]
    spent = paper["tuning_seconds"] + paper["sampling_seconds"]
    so_far = (
        f"The paper's setting had not converged after {paper['n_draws']:,} draws from the mode, "
        f"{spent:.0f} s"
    )
    exact = results.fastest_exact(model, n_rows)
    if exact is None:
        return (
            f"undecided. {so_far}; no sampler on all rows had converged in the time it was given."
        )
    exact_seconds = seconds_to_1000(results.get(model, n_rows, exact))
    own_seconds = seconds_to_1000(paper)
    slower = spent >= exact_seconds or own_seconds is None or own_seconds > 2.0 * exact_seconds
    return (
        f"{'slower' if slower else 'undecided'}. {so_far}, with {paper['ess_min']:.2g} effective "
        f"draws of the least well sampled parameter by its own reckoning; {LABELS[exact]} takes "
        f"{exact_seconds:.0f} s in all to 1,000."
    )


def accuracy(results: Results, model: str, n_rows: int) -> str:
    """How wrong the paper's setting is, as far as its draws can tell."""
    found = results.errors(model, n_rows, "paper")
    paper = results.get(model, n_rows, "paper")
    if found is None or paper is None:
        return ""
    of_mean, of_sd = found
    size = f"means off by up to {of_mean:.2f} sds, sds by {100 * of_sd:.0f} %"
    if of_mean <= CLOSE_MEAN and of_sd <= CLOSE_SD:
        return f"; right: {size}"
    if paper["ess_min"] < 500:
        return f"; {size}, with only {paper['ess_min']:.0f} effective draws to tell"
    return f"; wrong: {size}"
