"""A study over parameters: axes make cells, cells run on Dask, results are kept as they come."""
