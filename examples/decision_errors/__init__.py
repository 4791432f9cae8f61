"""How often the sequential test decides wrongly: digits 7 and 9 of MNIST, 2,000 real decisions.

A chain that reads all the data visits points of the posterior. From each of 2,000 of them a
proposal and a uniform number are drawn: (theta, theta', u) is what Metropolis-Hastings decides
about. All rows give the right decision; the sequential test is then asked at several epsilon, with
rows drawn in both ways. For some of the pairs (theta, theta') the acceptance probability of the
test is measured too. Two pictures: over the distance from the threshold, and over epsilon (figure 2
of the arXiv version of the paper).

Run ``python -m examples.decision_errors``. The data are read from the folder named by ``--data`` or
by the environment variable PYMC_AUSTERITY_DATA, else downloaded. ``--quick`` asks about 400 triples
and leaves the site as it is; otherwise the tables and the pictures of its page are written.
"""
