"""What every step method of this package tells about itself, whoever makes its moves."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm

from pymc_austerity._pymc import Competence, Sampler
from pymc_austerity.errors import SettingError
from pymc_austerity.step_methods.interrupts import stop_if_interrupted
from pymc_austerity.step_methods.summary import StatisticsTypes, Words

_log = logging.getLogger("pymc.austerity")


class WholeModelSampler:
    """Has the method of PyMC's coming base class of samplers, of which it is a virtual subclass.

    PyMC plans ``pm.sample(sampler=...)`` (pull request 8358). Its samplers hold the settings of an
    algorithm, and get the model and what is to be known of the run when sampling begins.
    """

    def sample_from_init(
        self,
        *,
        model: pm.Model | None = None,
        draws: int = 1000,
        tune: int | None = 1000,
        chains: int | None = None,
        cores: int | None = None,
        blas_cores: int | str | None = "auto",
        initvals: Any = None,
        random_seed: Any = None,
        progressbar: bool = True,
        quiet: bool = False,
        discard_tuned_samples: bool = True,
        keep_warning_stat: bool = False,
        var_names: Sequence[str] | None = None,
        idata_kwargs: dict[str, Any] | None = None,
        compute_convergence_checks: bool = True,
    ) -> Any:
        """Sample a model: ``pm.sample(step=self, ...)``, whose arguments these are.

        Returns
        -------
        InferenceData or DataTree
        """
        run = locals() | {"step": self, "tune": 1000 if tune is None else tune}
        del run["self"]
        return pm.sample(**run)


if hasattr(Sampler, "register"):
    Sampler.register(WholeModelSampler)


class AusterityStep(WholeModelSampler):
    """Base class of the step methods of this package.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    subsampled : list of str
        Names of the variables that have the rows.
    setup_seconds : float
        Time that set-up took.
    stages : mapping of str to float
        What its stages took, in seconds.
    deterministics_by_row : tuple of str
        Deterministics with one entry per row.
    constructed_as : str
        Name of what the user constructed.
    is_chosen_by_default : bool
        Whether the user left the choice of a step method to `AusterityMH`.
    steps_per_draw : int
        Transitions between recorded draws.
    learnt : Any
        What chains begin with, from an earlier run; None without one.
    """

    n_rows: int
    subsampled: Any
    setup_seconds: float
    stages: Mapping[str, float] = {}
    deterministics_by_row: tuple[str, ...] = ()
    constructed_as: str
    is_chosen_by_default: bool = False
    steps_per_draw: int = 1
    learnt: Any = None
    stats_dtypes_shapes: dict[str, Any]
    _model: pm.Model | None
    _explanation: str

    def __init_subclass__(cls, *, shown_as: str = "", **kwargs: Any) -> None:
        """Show the name that users know, in PyMC's log as in ours."""
        super().__init_subclass__(**kwargs)
        cls.__name__ = cls.constructed_as = shown_as or cls.__name__

    def step(self, point: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Take a step, unless the chain was interrupted since the previous one."""
        stop_if_interrupted()
        return super().step(point)  # type: ignore[misc, no-any-return]

    def _is_for(self, model: pm.Model) -> None:
        """Remember the model, and which parts it has."""
        self._model = model
        self._parts_of_model = _parts(model)

    def end_setup(self, stages: Mapping[str, float]) -> None:
        """End set-up: the constants of the run are known, and what was built is logged.

        Parameters
        ----------
        stages : mapping of str to float
            What the stages of set-up took, in seconds.
        """
        self.stages, self.setup_seconds = stages, sum(stages.values())
        types = {name: kind for name, (kind, _) in self.stats_dtypes_shapes.items()}
        self.stats_dtypes: list[dict] = [StatisticsTypes(types, self.constants)]
        _log.info(self.summary)

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        raise NotImplementedError

    @property
    def _common_constants(self) -> dict[str, Any]:
        """Those that all step methods have."""
        return {
            "sampler": type(self).__name__,
            "n_rows": self.n_rows,
            "subsampled": ", ".join(self.subsampled),
            "setup_seconds": round(self.setup_seconds, 3),
            "resumed": float(self.learnt is not None),
        }

    @property
    def _words(self) -> Words:
        """Description of what was built."""
        raise NotImplementedError

    @property
    def _who(self) -> str:
        """Who does what the first line of the summary says."""
        return f"{type(self).__name__} on {', '.join(self.subsampled)}"

    @property
    def summary(self) -> str:
        """Two lines: what was built and how exact it is, and what it costs."""
        what, cost, _ = self._words
        steps = self.steps_per_draw
        several = f", {steps} transitions a draw" if steps > 1 else ""
        return (
            f"{self._who}: {what}\nCost: {cost}{several}; set-up took {self.setup_seconds:.1f} s."
        )

    def explain(self) -> str:
        """What is subsampled, what is evaluated in full, and why, in plain language.

        Returns
        -------
        str
            Some lines of text.
        """
        lines = [self.summary, *self._words.details, self._explanation]
        if stages := [f"{text} {time:.1f} s" for text, time in self.stages.items() if time > 0.05]:
            lines.append(f"Set-up: {', '.join(stages)}.")
        return "\n".join(filter(None, lines))

    def __repr__(self) -> str:
        return f"<{self.summary.splitlines()[0]}>"

    def refuse_other_model(self, model: pm.Model) -> None:
        """Reject a model that this step method was not made for, or that has changed since.

        Raises
        ------
        SettingError
            Says what to do.
        """
        name = self.constructed_as
        if self._model is None:  # a copy, from another process
            return
        if model is not self._model:
            raise SettingError(
                f"this {name} was constructed for another model than the one that is sampled: "
                f"construct a new {name} inside of `with model:`."
            )
        changed = sorted(_parts(model) ^ self._parts_of_model)
        if changed:
            raise SettingError(
                f"{', '.join(map(repr, changed))} was added to the model or removed after this "
                f"{name} was constructed: construct a new {name}."
            )

    def _refuse_impossible_start(self, log_density: float) -> None:
        """Reject a start that the user chose and that has zero prior density.

        Parameters
        ----------
        log_density : float
            Log-density of the row-free part, or its difference from the initial point, nats.

        Raises
        ------
        SettingError
            It is not finite.
        """
        if not np.isfinite(log_density):
            raise SettingError(
                "the log-density of the priors is not finite where this chain starts: give other "
                "initvals to pm.sample."
            )

    @staticmethod
    def competence(var: Any, has_grad: bool = False) -> Competence:
        """Never selected automatically: users must request it."""
        return Competence.INCOMPATIBLE


def _parts(model: pm.Model) -> frozenset[str]:
    """Names of the parts of the log-density."""
    return frozenset(part.name for part in [*model.basic_RVs, *model.potentials])
