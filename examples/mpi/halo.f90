! The halo exchange of halo.c in Fortran: axes are x, y, z, and cells along x lie side by side.
!
!   halo [side [steps [x y z]]]    side of each rank's cube, 128 unless given; ranks along each axis, 0: MPI chooses
program halo
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  implicit none
  integer, parameter :: axes = 3, faces = 2 * axes
  integer :: side = 128, steps = 51, dims(axes) = 0
  integer :: ranks, rank, place(axes), start(axes), peers(faces), step, d, f, wrong, all_wrong
  type(MPI_Comm) :: grid_comm
  type(MPI_Datatype) :: inner(faces), outer(faces)
  type(MPI_Request) :: requests(2 * faces)
  real(real64), allocatable, asynchronous :: grid(:, :, :)
  real(real64), allocatable :: times(:)
  real(real64) :: begin, total, slowest

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_arguments()
  call MPI_Dims_create(ranks, axes, dims)
  call MPI_Cart_create(MPI_COMM_WORLD, axes, dims, [.false., .false., .false.], .false., grid_comm)
  call MPI_Comm_rank(grid_comm, rank)
  call MPI_Cart_coords(grid_comm, rank, axes, place)
  start = place * side
  do d = 1, axes
    call MPI_Cart_shift(grid_comm, d - 1, 1, peers(2 * d - 1), peers(2 * d))
    inner(2 * d - 1) = plane(d, 1)
    inner(2 * d) = plane(d, side)
    outer(2 * d - 1) = plane(d, 0)
    outer(2 * d) = plane(d, side + 1)
  end do

  allocate (grid(0:side + 1, 0:side + 1, 0:side + 1), times(steps))
  wrong = 0
  do step = 1, steps
    call fill()
    call MPI_Barrier(grid_comm)
    begin = MPI_Wtime()
    do f = 1, faces
      call MPI_Irecv(grid, 1, outer(f), peers(f), f, grid_comm, requests(f))
    end do
    do f = 1, faces  ! what is below for us is above for the peer
      call MPI_Isend(grid, 1, inner(f), peers(f), merge(f + 1, f - 1, mod(f, 2) == 1), grid_comm, requests(faces + f))
    end do
    call MPI_Waitall(2 * faces, requests, MPI_STATUSES_IGNORE)
    times(step) = MPI_Wtime() - begin
    wrong = wrong + wrong_cells()
  end do

  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, grid_comm)
  call MPI_Reduce(sum(grid), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, grid_comm)
  call MPI_Reduce(median(times), slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, grid_comm)
  if (rank == 0) then
    print '(2(i0, " x "), i0, " ranks, ", i0, "^3 doubles each: ", i0, " wrong, sum ", i0)', &
      dims, side, all_wrong, int(total, int64)
    print '(f0.1, " us an exchange (median of ", i0, ")")', slowest * 1e6, steps
  end if
  do f = 1, faces
    call MPI_Type_free(inner(f))
    call MPI_Type_free(outer(f))
  end do
  call MPI_Comm_free(grid_comm)
  call MPI_Finalize()
  if (wrong /= 0) error stop

contains

  subroutine read_arguments()
    character(20) :: word
    integer :: i, number
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      read (word, *) number
      if (i == 1) side = number
      if (i == 2) steps = number
      if (i > 2) dims(i - 2) = number
    end do
  end subroutine

  ! The plane `at` along `axis`, without the edges of the grid.
  function plane(axis, at) result(made)
    integer, intent(in) :: axis, at
    type(MPI_Datatype) :: made
    integer :: part(axes), first(axes)
    part = side
    part(axis) = 1
    first = 1
    first(axis) = at
    call MPI_Type_create_subarray(axes, [side + 2, side + 2, side + 2], part, first, MPI_ORDER_FORTRAN, &
                                  MPI_DOUBLE_PRECISION, made)
    call MPI_Type_commit(made)
  end function

  ! Neighbours agree on the value of a cell, because it follows from the cell's place in the whole grid.
  elemental real(real64) function cell_value(x, y, z)
    integer, intent(in) :: x, y, z
    cell_value = step - 1 + (x + start(1)) + 1d3 * (y + start(2)) + 1d6 * (z + start(3))
  end function

  subroutine fill()
    integer :: x, y, z
    grid = -1
    do z = 1, side
      do y = 1, side
        do x = 1, side
          grid(x, y, z) = cell_value(x, y, z)
        end do
      end do
    end do
  end subroutine

  integer function wrong_cells()
    integer :: x, y, z, d, at(axes), outside
    logical :: filled
    wrong_cells = 0
    do z = 0, side + 1
      do y = 0, side + 1
        do x = 0, side + 1
          at = [x, y, z]
          outside = count(at == 0 .or. at == side + 1)
          filled = outside < 2
          do d = 1, axes
            if (at(d) == 0) filled = filled .and. peers(2 * d - 1) /= MPI_PROC_NULL
            if (at(d) == side + 1) filled = filled .and. peers(2 * d) /= MPI_PROC_NULL
          end do
          if (grid(x, y, z) /= merge(cell_value(x, y, z), -1d0, filled)) wrong_cells = wrong_cells + 1
        end do
      end do
    end do
  end function

  ! The value that no more than half of them are below, and more than half are not above.
  real(real64) function median(values)
    real(real64), intent(in) :: values(:)
    integer :: i
    median = 0
    do i = 1, size(values)
      if (count(values < values(i)) <= size(values) / 2 .and. count(values <= values(i)) > size(values) / 2) &
        median = values(i)
    end do
  end function
end program
