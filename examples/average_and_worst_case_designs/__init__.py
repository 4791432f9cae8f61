"""Designs of tests for the average and the worst case (ICML figure 6): digits and mixed signals.

Tests are designed on 100 decisions of an exact chain for several targets, and run on 100 others.
An average design bounds the mean error of acceptance probabilities over decisions like those it has
seen, a worst-case design the error of any decision. A third design reads 600 rows a look whatever
the target, and only chooses epsilon; a fourth one also chooses the shape of the boundary.

Run ``python -m examples.average_and_worst_case_designs``. The digits are read from the folder named
by ``--data`` or by the environment variable PYMC_AUSTERITY_DATA, else downloaded; the mixed signals
are simulated. ``--quick`` takes few decisions and leaves the site as it is.
"""
