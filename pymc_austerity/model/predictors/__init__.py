"""Rows as functions of a few linear predictors."""
