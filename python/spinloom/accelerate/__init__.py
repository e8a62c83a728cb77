"""The package that speeds up MPI programs: the layer, its report, prices of this machine, advice."""
