"""Every step: whether to accept a proposal, and with which error."""
