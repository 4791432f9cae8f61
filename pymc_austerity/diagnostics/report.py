"""A page of text about a run."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from pymc_austerity.design.wording import percentage
from pymc_austerity.diagnostics.advice import Facts, advice_on, facts_of
from pymc_austerity.diagnostics.decisions import block_usage, contradicts, needed_audits

_WIDTH = 88


def report(
    idata: Any, *, limit: float | None = None, prob: float = 0.95, step_method: int | None = None
) -> str:
    """How exact a run was, how cheap it was, and what to change: one page of text.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run of AusterityMH or AusterityGibbs.
    limit : float, optional
        Largest share of wrong decisions that is acceptable, in [0, 1]; by default the ``max_error``
        of the run, or else its ``epsilon``.
    prob : float
        Coverage of the interval of the audit, in (0, 1).
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all together.

    Returns
    -------
    str
        Lines of at most 88 characters.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or an argument cannot be used.

    See Also
    --------
    pymc_austerity.diagnostics.data_usage
    pymc_austerity.diagnostics.audit : Whether audited decisions agree with `epsilon`.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import report
    >>> values = {
    ...     "n_rows_used": 500,
    ...     "data_fraction": 0.05,
    ...     "n_looks": 1,
    ...     "used_all_rows": False,
    ...     "accepted": 1.0,
    ...     "decision_error": 0.01,
    ...     "n_audited": 1,
    ...     "n_wrong": 0,
    ... }
    >>> run = xr.Dataset(
    ...     {name: (("chain", "draw"), np.full((2, 100), value)) for name, value in values.items()},
    ...     attrs={"n_rows": 10_000, "epsilon": 0.05},
    ... )
    >>> print(report(run))
    200 decisions in 2 chains on 10,000 rows
    <BLANKLINE>
    How well mixed
      - Convergence was not checked, because only the statistics of the run were given,
        without its draws.
    <BLANKLINE>
    How exact
      - The test stopped at a tail probability of 0.01 on average and 0.01 at most (epsilon
        0.05). With a single look for each decision, this would mean 2 wrong decisions (1%).
      - 0.0% of the decisions are exact: they read all rows, or needed none.
      - Audit: 200 of 200 decisions checked on all rows, 0 of these wrong: 0.00%, with 95%
        interval 0.00% to 1.83%. This is at most the 5.00% allowed by epsilon.
    <BLANKLINE>
    How cheap
      - A decision read 5.00% of the rows on average: mean 500, median 500, 95% quantile
        500 rows.
      - It took 1.0 looks on average.
      - 100% of the proposals were accepted.
    <BLANKLINE>
    What to change
      - Convergence was not checked, because only the statistics of the run were given,
        without its draws: that takes two chains or more of at least 100 draws each.
    """
    facts = facts_of(idata, limit, prob, step_method)
    sections = {
        "How well mixed": _mixed(facts),
        "How exact": _exactness(facts, prob),
        "How cheap": [
            *_rows_and_looks(facts),
            _gradients(facts),
            _accepted(facts),
            _by_block(facts),
            _set_up(facts),
        ],
        "What to change": advice_on(facts) or ["Nothing stands out."],
    }
    pages = [_heading(facts)]
    for title, items in sections.items():
        if not items:
            continue
        pages += ["", title, *(_item(text) for text in items if text)]
    return "\n".join(pages)


def _item(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _heading(facts: Facts) -> str:
    n_chains, n_methods = (facts.statistics.sizes[name] for name in ("chain", "step_method"))
    return (
        f"{facts.usage.loc['all', 'n_decisions']:,.0f} {facts.info.counted}s in {n_chains} "
        + ("chain" if n_chains == 1 else "chains")
        + (f" by {n_methods} step methods" if n_methods > 1 else "")
        + (f" by {facts.info.of_pymc}" if facts.info.of_pymc else "")
        + _size_of_data(facts)
    )


def _size_of_data(facts: Facts) -> str:
    n_rows, n_factors = facts.info.constant("n_rows"), facts.info.constant("n_factors")
    if n_rows is None:
        return ""
    if facts.info.is_gibbs and n_factors is not None:
        return f", each on {n_rows:,} of {n_factors:,} factors at most"
    return f" on {n_rows:,} rows"


# ------------------------------------------------------------------ how well mixed


def _mixed(facts: Facts) -> list[str]:
    found = facts.convergence
    if found is None:
        return [f"Convergence was not checked, because {facts.unchecked}."]
    verb = ("do NOT " if found.is_apart else "may not ") if found.chains_disagree else ""
    return [
        f"The largest r_hat is {found.r_hat:.2f} ('{found.name}'): the chains {verb}agree.",
        f"The smallest effective sample size is {found.ess:,.0f} of {found.n_draws:,} draws "
        f"('{found.ess_name}').",
    ]


# ------------------------------------------------------------------ how exact


def _exactness(facts: Facts, prob: float) -> list[str]:
    info, read = facts.info, ""
    if info.of_pymc:
        reason = facts.statistics.attrs.get("reason")
        read = "All rows were evaluated" + (f", because {reason}." if reason else ".")
    elif info.is_poisson:
        read = (
            "Every decision is exact: rows were drawn at rates that bound what they can change, "
            "which leaves the posterior invariant."
        )
    elif info.is_exact:
        kernel = "Gibbs sampling" if info.is_gibbs else "Metropolis-Hastings"
        read = (
            f"Every {info.decision} is exact: all {info.rows} were read, or none was needed. This "
            f"is plain {kernel}."
        )
    if read:
        return [read, "Audit: there is nothing to audit."]
    if not info.has_verdicts:
        return [_without_verdicts(facts), f"Audit: {info.nothing_to_audit}"]
    tail = _tail(facts) if info.is_normal else _not_normal(facts)
    return [tail, _exact(facts), _audited(facts, prob)]


def _without_verdicts(facts: Facts) -> str:
    if facts.info.acceptance_rules == {"none"}:
        return (
            "No test decided, and every proposal was accepted: how far the draws are from the "
            "posterior depends on the proposals alone."
        )
    return (
        "The noise of a sample was made part of a random decision; where it is normal, acceptance "
        f"probabilities were off by {facts.audit.loc['all', 'error_max']:.1g} at most."
    )


def _tail(facts: Facts) -> str:
    row, info = facts.audit.loc["all"], facts.info
    epsilon, n_wrong = _epsilons(facts), row["expected_wrong"]
    at_most = "at most" if info.unit != "draws" else "in the worst draw"
    values = f"{row['error_mean']:.2g} on average and {row['error_max']:.2g} {at_most}" + (
        f" (epsilon {epsilon})" if epsilon else ""
    )
    wrong = f"{n_wrong:,.0f}" if n_wrong >= 10.0 else f"{n_wrong:.2g}"
    plural = "" if wrong == "1" else "s"
    wrong += f" wrong {info.decision}{plural} ({percentage(row['error_mean'])})"
    if info.is_bounded:
        return f"The inequality bounded the error by {values}, which allows for {wrong} at most."
    return (
        f"The test stopped at a tail probability of {values}. With a single look for each "
        f"{info.decision}, this would mean {wrong}."
    )


def _not_normal(facts: Facts) -> str:
    return (
        "Before the run, means of first looks were NOT normal enough for the test (epsilon "
        f"{_epsilons(facts)}): its own estimate of the error is wrong, and only an audit is valid."
    )


def _epsilons(facts: Facts) -> str:
    """The tail probabilities at which the test stopped: at most three, or their range."""
    values = facts.info.constants("epsilon")
    if "test_epsilon" in facts.statistics:
        values = np.unique(facts.statistics["test_epsilon"].values).tolist()
    texts = list(dict.fromkeys(f"{value:.3g}" for value in values if np.isfinite(value)))
    return ", ".join(texts) if len(texts) <= 3 else f"from {texts[0]} to {texts[-1]}"


def _exact(facts: Facts) -> str:
    share, info = facts.usage.loc["all", "exact_fraction"], facts.info
    if info.unit == "draws":
        return f"In {share:.1%} of the draws all {info.decision}s are exact."
    return f"{share:.1%} of the decisions are exact: they read all {info.rows}, or needed none."


def _audited(facts: Facts, prob: float) -> str:
    row, info = facts.audit.loc["all"], facts.info
    n_audited, limit = row["n_audited"], row["limit"]
    checked = f"{row['n_decisions']:,.0f} {info.decision}s"
    if not n_audited:
        return f"Audit: none of the {checked} was checked on all {info.rows}."
    if info.has_sweeps:
        checked = f"the decisions in {row['n_decisions']:,.0f} sweeps"
    return (
        f"Audit: {n_audited:,.0f} of {checked} checked on all {info.rows}, "
        f"{row['n_wrong']:,.0f} of these wrong: {row['wrong_rate']:.2%}, with "
        f"{prob:.0%} interval {row['wrong_rate_low']:.2%} to {row['wrong_rate_high']:.2%}."
        + ("" if np.isnan(limit) else f" {_verdict(row)} the {limit:.2%} {facts.limit_words}.")
    )


def _verdict(row: pd.Series) -> str:
    if contradicts(row):
        return "This is MORE than"
    if row["wrong_rate_high"] <= row["limit"]:
        return "This is at most"
    if row["n_audited"] < needed_audits(row["limit"]):
        return "These are too few to confirm"
    return "This is compatible with"


# ------------------------------------------------------------------ how cheap


def _rows_and_looks(facts: Facts) -> list[str]:
    row, info = facts.usage.loc["all"], facts.info
    if info.of_pymc:
        return [
            f"A draw read {row['rows_mean']:,.0f} rows on average, all of them "
            f"{row['data_fraction']:,.1f} times."
        ]
    if info.acceptance_rules == {"none"}:
        return []
    looks = f"It took {row['looks_mean']:.1f} looks on average."
    return [
        f"{info.a_counted.capitalize()} read {row['data_fraction']:.2%} of "
        f"{'its' if info.is_gibbs else 'the'} {info.rows} on average: mean "
        f"{row['rows_mean']:,.0f}, median {row['rows_median']:,.0f}, 95% quantile "
        f"{row['rows_q95']:,.0f} {info.rows}.",
        "" if info.is_poisson else looks,
    ]


def _gradients(facts: Facts) -> str:
    n_rows = facts.usage.loc["all", "proposal_rows"]
    return f"A proposal read {n_rows:,.0f} rows for its gradients." if n_rows > 0 else ""


def _accepted(facts: Facts) -> str:
    acceptance = facts.usage.loc["all", "acceptance"]
    if facts.info.of_pymc:
        return ""
    if acceptance != acceptance:
        return "Acceptance is not known: step methods of other kinds record it as well."
    if facts.info.is_gibbs:
        return f"{acceptance:.0%} of the updates changed their entry."
    return f"{acceptance:.0%} of the proposals were accepted."


def _by_block(facts: Facts) -> str:
    if not facts.statistics.attrs.get("blocks"):
        return ""
    parts = [
        f"{name} {row['rows_mean']:,.0f} rows, {row['acceptance']:.0%} accepted"
        for name, row in block_usage(facts.statistics).iterrows()
    ]
    return f"By block: {'; '.join(parts)}."


def _set_up(facts: Facts) -> str:
    seconds = facts.info.constants("setup_seconds")
    return f"Setting up took {sum(seconds):.1f} s." if seconds else ""
