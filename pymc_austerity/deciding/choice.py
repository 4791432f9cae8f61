"""The decider for each way of sampling rows."""

from typing import TypeAlias

from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.exact import AnyLogRatio, ExactDecider
from pymc_austerity.deciding.firefly import FireflyDecider
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.settings import Settings

AnyDecider: TypeAlias = Decider | ExactDecider


def decider_of(settings: Settings, target: AnyLogRatio) -> AnyDecider:
    """The decider for the way in which a target samples its rows.

    Parameters
    ----------
    settings : Settings
        What the user chose.
    target : AnyLogRatio
        What decisions are about.
    """
    if not isinstance(target.sampling, PoissonSampling):
        return Decider(settings, target)  # type: ignore[arg-type]
    kind = FireflyDecider if settings.test == "firefly" else ExactDecider
    return kind(settings, target, target.sampling)
