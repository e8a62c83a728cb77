! A Fortran program whose record is known: test_record_more.py says what the traces must hold. Two ranks.
program exchange
  use mpi
  implicit none
  integer :: rank, code, request, row
  integer :: status(MPI_STATUS_SIZE)
  double precision :: grid(8, 6)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Type_vector(6, 1, 8, MPI_DOUBLE_PRECISION, row, code)
  call MPI_Type_commit(row, code)
  grid = rank
  call MPI_Irecv(grid(8, 1), 1, row, 1 - rank, 4, MPI_COMM_WORLD, request, code)
  call MPI_Send(grid(1, 1), 1, row, 1 - rank, 4, MPI_COMM_WORLD, code)
  call MPI_Wait(request, status, code)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  call MPI_Type_free(row, code)
  print '(a, f4.1)', 'got ', grid(8, 6)
  call MPI_Finalize(code)
end program
