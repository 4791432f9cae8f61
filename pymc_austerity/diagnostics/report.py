"""A page of text about a run."""

import textwrap
from typing import Any

import numpy as np

from pymc_austerity.diagnostics.advice import advice_on
from pymc_austerity.diagnostics.audits import contradicts
from pymc_austerity.diagnostics.facts import Facts, facts_of

__all__ = ["report"]

_WIDTH = 88


def report(
    idata: Any,
    *,
    promised: float | None = None,
    probability: float = 0.95,
    step_method: int | None = None,
) -> str:
    """How exact a run was, how cheap, and what to change: one page of text.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of AusterityMH, or a netCDF file of one.
    promised : float, optional
        Largest share of wrong decisions that is acceptable, in [0, 1]; by default the ``max_error``
        of the run, or else its ``epsilon``.
    probability : float
        Coverage of the interval of the audit, in (0, 1).
    step_method : int, optional
        Which AusterityMH of a compound run, counted from 0; by default all together.

    Returns
    -------
    str
        Lines of at most 88 characters.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not a run of AusterityMH, or an argument cannot be used.

    See Also
    --------
    data_usage, decision_errors, audit : the numbers in it.

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
    ...     "audited": True,
    ...     "audit_agrees": True,
    ... }
    >>> run = xr.Dataset(
    ...     {name: (("chain", "draw"), np.full((2, 100), value)) for name, value in values.items()},
    ...     attrs={"n_rows": 10_000, "epsilon": 0.05},
    ... )
    >>> print(report(run))
    200 decisions in 2 chains, about 10,000 rows
    <BLANKLINE>
    How exact
      - The test stopped at a tail probability of 0.01 on average and 0.01 at most (epsilon
        0.05); it expects 2.0 wrong decisions (1.00%), as if it had looked only once.
      - 0.0% of the decisions are exact: they saw all rows, or needed none.
      - Audit: of 200 audited decisions, 0 were wrong: 0.00%, with 95% interval 0.00% to
        1.83%. This is at most the 5.00% allowed by epsilon.
    <BLANKLINE>
    How cheap
      - A decision read 5.00% of the rows on average: mean 500, median 500, 95% quantile
        500 rows.
      - It took 1.0 looks on average.
      - 100% of the proposals were accepted.
    <BLANKLINE>
    What to change
      - Nothing stands out.
    """
    facts = facts_of(idata, promised, probability, step_method)
    sections = {
        "How exact": [_tail(facts), _exact(facts), _audited(facts, probability)],
        "How cheap": [_rows(facts), _looks(facts), _accepted(facts), _set_up(facts)],
        "What to change": advice_on(facts) or ["Nothing stands out."],
    }
    pages = [_heading(facts)]
    for title, items in sections.items():
        pages += ["", title, *(_item(text) for text in items if text)]
    return "\n".join(pages)


def _item(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _heading(facts: Facts) -> str:
    n_chains = facts.statistics.sizes["chain"]
    n_methods = facts.statistics.sizes["step_method"]
    n_rows = facts.constant("n_rows")
    return (
        f"{facts.usage.loc['all', 'n_decisions']:,.0f} decisions in {n_chains} "
        + ("chain" if n_chains == 1 else "chains")
        + (f" by {n_methods} step methods" if n_methods > 1 else "")
        + (f", about {n_rows:,} rows" if n_rows is not None else "")
    )


def _tail(facts: Facts) -> str:
    row = facts.errors.loc["all"]
    epsilon = _epsilons(facts)
    return (
        f"The test stopped at a tail probability of {row['error_mean']:.2g} on average and "
        f"{row['error_max']:.2g} at most" + (f" (epsilon {epsilon})" if epsilon else "") + "; it "
        f"expects {row['expected_wrong']:,.1f} wrong decisions ({row['error_mean']:.2%}), as if it "
        "had looked only once."
    )


def _epsilons(facts: Facts) -> str:
    """The tail probabilities at which the test stopped, at most three or their range."""
    values = facts.constants("epsilon")
    if "test_epsilon" in facts.statistics:
        values = np.unique(facts.statistics["test_epsilon"].values).tolist()
    texts = list(dict.fromkeys(f"{value:.3g}" for value in values if np.isfinite(value)))
    return ", ".join(texts) if len(texts) <= 3 else f"from {texts[0]} to {texts[-1]}"


def _exact(facts: Facts) -> str:
    share = facts.usage.loc["all", "exact_fraction"]
    return f"{share:.1%} of the {_unit(facts)} are exact: they saw all rows, or needed none."


def _unit(facts: Facts) -> str:
    return "decisions" if set(facts.constants("steps_per_draw")) == {1} else "draws"


def _audited(facts: Facts, probability: float) -> str:
    row = facts.audit.loc["all"]
    if not row["n_audited"]:
        return "Audit: none."
    if contradicts(row):
        verdict = "is MORE than"
    elif row["wrong_rate_high"] <= row["promised"]:
        verdict = "is at most"
    else:
        verdict = "is compatible with"
    return (
        f"Audit: of {row['n_audited']:,.0f} audited {_unit(facts)}, {row['n_wrong']:,.0f} were "
        f"wrong: {row['wrong_rate']:.2%}, with {probability:.0%} interval "
        f"{row['wrong_rate_low']:.2%} to {row['wrong_rate_high']:.2%}. This {verdict} the "
        f"{row['promised']:.2%} {facts.promise}."
    )


def _rows(facts: Facts) -> str:
    row = facts.usage.loc["all"]
    return (
        f"A decision read {row['data_fraction']:.2%} of the rows on average: mean "
        f"{row['rows_mean']:,.0f}, median {row['rows_median']:,.0f}, 95% quantile "
        f"{row['rows_q95']:,.0f} rows."
    )


def _looks(facts: Facts) -> str:
    return f"It took {facts.usage.loc['all', 'looks_mean']:.1f} looks on average."


def _accepted(facts: Facts) -> str:
    acceptance = facts.usage.loc["all", "acceptance"]
    if acceptance != acceptance:
        return "Acceptance is not known: step methods of other kinds record it as well."
    return f"{acceptance:.0%} of the proposals were accepted."


def _set_up(facts: Facts) -> str:
    seconds = facts.constants("setup_seconds")
    return f"Setting up took {sum(seconds):.1f} s." if seconds else ""
