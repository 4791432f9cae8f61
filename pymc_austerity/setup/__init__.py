"""Once, before the chains: from a model and settings to the target of decisions."""
