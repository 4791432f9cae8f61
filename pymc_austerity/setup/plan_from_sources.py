"""The plan where rows are elsewhere: exact decisions from a pool, or tests on a local store."""

from pymc_austerity.design.wording import in_round_numbers
from pymc_austerity.setup.checked_bounds import NotExactError
from pymc_austerity.setup.exact import MOST_ROWS
from pymc_austerity.setup.exact_from_sources import (
    PoolOfSample,
    pool_of_sample,
    pooled_sampling,
)
from pymc_austerity.setup.plans import (
    About,
    Plan,
    not_exact,
    not_possible,
    refuse_too_few_for_strata,
)
from pymc_austerity.setup.sequential_from_sources import (
    rows_of_first_look,
    stored_in_strata,
    stored_uniformly,
)
from pymc_austerity.setup.source_rows import ExpandedSourceRows
from pymc_austerity.setup.strata import FEWEST_FIRST_ROWS, has_room_for_strata

__all__ = ["plan_from_sources"]


def plan_from_sources(about: About) -> Plan:
    """Choose the plan where rows are elsewhere, from a sample of them."""
    settings = about.settings
    if not (settings.decides_exactly or settings.may_decide_exactly):
        return _stored(about)
    try:
        pool = pool_of_sample(
            about.problem, about.residuals, about.anchor, only_cheap=settings.may_decide_exactly
        )
        _refuse_many_rows(pool.expected_rows, about)
        return _pooled(pool, about)
    except NotExactError as reason:
        if settings.decides_exactly:
            raise not_possible(settings, reason) from None
        return not_exact(_stored(about), str(reason))


def _refuse_many_rows(expected: float, about: About) -> None:
    if about.settings.decides_exactly or expected <= FEWEST_FIRST_ROWS:
        return
    problem, residuals, settings = about.problem, about.residuals, about.settings
    pairs = about.pilot_pairs()
    if expected > min(MOST_ROWS, rows_of_first_look(problem, residuals, pairs, settings)):
        raise NotExactError(f"they are expected to read {in_round_numbers(expected)} rows")


def _pooled(pool: PoolOfSample, about: About) -> Plan:
    problem, rows = about.problem, about.problem.prepared.from_sources
    assert rows is not None
    sampling = pooled_sampling(
        problem,
        about.residuals,
        about.anchor,
        pool,
        steps_per_draw=about.settings.steps_per_draw,
        say=about.say,
    )
    detail = (
        f"Rows of decisions are taken from {sampling.source.n_rows:,} that were drawn beforehand, "
        f"in {rows.n_passes} passes over all {rows.n_rows:,} rows."
    )
    source = ExpandedSourceRows(rows, about.residuals.block_of)
    return about.plan(sampling.function, source, sampling, detail)


def _stored(about: About) -> Plan:
    """A sequential test on rows that are stored in sampling order."""
    problem, residuals, settings = about.problem, about.residuals, about.settings
    rows = problem.prepared.from_sources
    assert rows is not None
    if settings.by_influence and has_room_for_strata(settings):
        pairs = about.pilot_pairs()
        source, sampling, words = stored_in_strata(
            problem, residuals, pairs, settings, say=about.say
        )
    else:
        refuse_too_few_for_strata(settings)
        source, sampling, words = stored_uniformly(problem, residuals, settings, say=about.say)
    where = (
        f"They were stored on this machine in the order of sampling ({source.n_bytes / 1e9:,.2g} "
        f"GB), in {rows.n_passes} passes over all of them."
    )
    return about.plan(residuals.function, source, sampling, f"{words}.", where)
