! As caught.c, in Fortran; the sums and copies are checked, in place too.
program caught
  use mpi_f08
  implicit none

  integer :: a(4096), b(4096), counts(64), turn, size, rank, ierror
  call MPI_Init(ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  counts = 2
  do turn = 1, 3
    a = rank + 1
    b = 0
    call MPI_Allgather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    if (b(2 * size) /= size) stop 1
    call MPI_Allreduce(MPI_IN_PLACE, a, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (a(2) /= size * (size + 1) / 2 .or. a(3) /= rank + 1) stop 2
    call MPI_Alltoall(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    a(1) = rank + 50
    call MPI_Bcast(a, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (a(1) /= 50) stop 3
    call MPI_Exscan(a, b, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call MPI_Gather(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    b = 0
    call MPI_Reduce(a, b, 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    if (rank == 0 .and. b(1) /= 50 * size) stop 4
    call MPI_Reduce_scatter(a, b, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call MPI_Reduce_scatter_block(a, b, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call MPI_Scan(a, b, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (b(1) /= 50 * (rank + 1)) stop 5
    call MPI_Scatter(a, 2, MPI_INTEGER, b, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    if (b(1) /= 50 .and. rank == 0) stop 6
  end do
  call MPI_Finalize(ierror)
end program caught
