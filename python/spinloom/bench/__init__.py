"""What `spinloom bench` and `spinloom calibrate --mpi` do: rows, peers, measurements, reports."""
