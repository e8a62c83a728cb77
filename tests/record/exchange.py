"""An mpi4py program whose record is known: test_record_more.py says what the traces must hold. Two ranks."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
data = bytearray(800)
column = MPI.DOUBLE.Create_vector(5, 1, 10).Commit()
requests = [comm.Isend([data, 1, column], dest=1 - rank, tag=6)]
requests.append(comm.Irecv([memoryview(data)[400:440], 5, MPI.DOUBLE], source=1 - rank, tag=6))
MPI.Request.Waitall(requests)
total = bytearray(8)
comm.Allreduce([bytearray(8), 1, MPI.DOUBLE], [total, 1, MPI.DOUBLE])
comm.Barrier()
window = MPI.Win.Create(data, 1, comm=comm)
window.Fence()
window.Accumulate([bytearray(16), 2, MPI.DOUBLE], 1 - rank)
window.Fence()
window.Free()
print(f"rank {rank}\n", end="")
