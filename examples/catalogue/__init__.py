"""Models that other people wrote: `AusterityMH()` beside the NUTS of PyMC.

Every file of a folder that has a function ``build_model()`` is one model, such as those of the
public repository ricardoV94/pymc-model-catalogue. Each model is sampled in a process of its own by
both, with a limit on processor time.
"""
