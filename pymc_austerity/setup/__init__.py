"""Once, before the chains: from a model and settings to what decisions are taken on."""
