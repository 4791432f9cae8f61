"""A step method written outside a model: settings, from which ``pm.sample`` constructs it."""

from typing import Any

import pymc as pm

__all__ = ["DeferredStep", "is_without_model", "with_model"]


class DeferredStep:
    """The settings of a step method, for any number of models.

    ``pm.sample(step=...)`` constructs the step method for the model that it samples. Settings that
    depend on the model, such as names of variables, are checked at that point.

    Parameters
    ----------
    cls : type
        The step method.
    vars : sequence of variables or names, optional
        The variables that it samples.
    settings : dict
        Its other arguments.
    """

    def __init__(self, cls: type, vars: Any, settings: dict[str, Any]) -> None:
        self._class, self._vars, self._settings = cls, vars, settings

    def for_model(self, model: pm.Model) -> Any:
        """The step method of a model.

        Parameters
        ----------
        model : pymc.Model
            The model.
        """
        return self._class(self._vars, **(self._settings | {"model": model}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no {name!r} before it is made for a model: construct it inside of "
            "`with pm.Model():`, or give model=."
        )

    def __repr__(self) -> str:
        settings = {"vars": self._vars} if self._vars is not None else {}
        words = ", ".join(
            f"{name}={value!r}" for name, value in (settings | self._settings).items()
        )
        return f"{self._class.__name__}({words})"


def is_without_model(settings: dict[str, Any]) -> bool:
    """Whether no model is given, nor is one on the context stack."""
    if settings.get("model") is not None:
        return False
    try:
        pm.modelcontext(None)
    except TypeError:
        return True
    return False


def with_model(step: Any, model: pm.Model) -> Any:
    """The ``step`` argument of ``pm.sample``, constructed for its model.

    Parameters
    ----------
    step : step method, or list of them
        Step methods that were constructed inside a model are returned unchanged.
    model : pymc.Model
        The model that is sampled.
    """
    if isinstance(step, list | tuple):
        return [with_model(each, model) for each in step]
    return step.for_model(model) if isinstance(step, DeferredStep) else step
