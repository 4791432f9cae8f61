"""The decision of every step: whether to accept a proposal, and with which error."""
