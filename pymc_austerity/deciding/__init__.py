"""Every step: whether to accept a proposal, and how sure that is."""
