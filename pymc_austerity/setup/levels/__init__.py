"""Set-up of models with groups."""
