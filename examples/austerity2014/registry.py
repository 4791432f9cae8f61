"""The experiments there are, in the order of the paper; those beyond it last."""

from importlib import import_module

from examples.austerity2014.experiment import Experiment

NAMES = (
    "random_walk",
    "ica",
    "variable_selection",
    "sgld_pitfall",
    "sgld_intrusions",
    "markov_field",
    "shrinking_epsilon",
)
"""Modules of this package with a constant ``EXPERIMENT`` of the same name."""


def experiment(name: str) -> Experiment:
    """An experiment by its name."""
    found: Experiment = import_module(f"examples.austerity2014.{name}").EXPERIMENT
    return found
