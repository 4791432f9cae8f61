"""Rows as one small compiled loop, written from the formula above the linear predictors."""
