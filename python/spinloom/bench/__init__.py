"""The work of `spinloom bench` and `spinloom calibrate mpi`: rows, peers, measurements, reports."""
