"""A plan for 10,000,000,000 rows on a cluster, from parts that were measured here."""
