"""Crossed factors beside the programs crossed-effects and GPBoost."""
