! Every rank sends a column to the next one, in a type that it has handed out before; handles are integers here.
program column
  use mpi
  implicit none
  integer, parameter :: rows = 8192, stride = 4
  external :: MPIX_Type_commit_comm, MPIX_Type_free_comm
  integer :: rank, ranks, code, type, next, before, i, wrong, all_wrong
  double precision, allocatable :: from(:, :), to(:, :)

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call MPI_Type_vector(rows, 1, stride, MPI_DOUBLE_PRECISION, type, code)
  call MPIX_Type_commit_comm(type, MPI_COMM_WORLD, code)
  if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, code)

  allocate (from(stride, rows), to(stride, rows))
  from(1, :) = [(1d6 * rank + i, i=1, rows)]
  to = -1
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  call MPI_Sendrecv(from, 1, type, next, 0, to, 1, type, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
  wrong = count(to(1, :) /= [(1d6 * before + i, i=1, rows)]) + count(to(2:, :) /= -1)

  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, code)
  call MPIX_Type_free_comm(type, MPI_COMM_WORLD, code)
  if (type /= MPI_DATATYPE_NULL) all_wrong = all_wrong + 1
  if (rank == 0) print '(i0, " ranks, ", a)', ranks, trim(merge("good ", "WRONG", all_wrong == 0))
  call MPI_Finalize(code)
end program
