! Calls every collective that libcolibri.so catches as Fortran programs do, and wrongly. Prints, per
! rank and kind of call, a number made of everything that the calls wrote, and the error classes: the
! same with the library as without.
!
! Defined by the compiler's options: F08 (use mpi_f08, ierror left out), USEMPI (use mpi), else
! mpif.h; MPICH_CRASHES (what that does by itself in 4.0.2 is left out); LARGE (large counts).
#if defined(F08)
#define USES use mpi_f08
#define CONSTANTS
#define COMM_T type(MPI_Comm)
#define TYPE_T type(MPI_Datatype)
#define OP_T type(MPI_Op)
#define HANDLER_T type(MPI_Errhandler)
#define IERR
#else
#if defined(USEMPI)
#define USES use mpi
#define CONSTANTS
#else
#define USES
#define CONSTANTS include 'mpif.h'
#endif
#define COMM_T integer
#define TYPE_T integer
#define OP_T integer
#define HANDLER_T integer
#define IERR , ierror
#endif

module notes
  implicit none
  integer, parameter :: most = 300
  character(48) :: names(most) = ' '
  integer(8) :: numbers(most) = 0
  integer :: known = 0
  interface
    ! In cases.c.
    function begins_there(name) bind(c, name='begins') result(does)
      use, intrinsic :: iso_c_binding, only: c_char, c_int
      character(c_char), intent(in) :: name(*)
      integer(c_int) :: does
    end function begins_there
  end interface
contains
  ! Whether the case is to be called; see cases.c.
  logical function begins(name)
    use, intrinsic :: iso_c_binding, only: c_null_char
    character(*), intent(in) :: name
    begins = begins_there(trim(name) // c_null_char) /= 0
  end function begins

  subroutine note(name, values)
    character(*), intent(in) :: name
    integer, intent(in) :: values(:)
    integer :: i, v
    do i = 1, known
      if (names(i) == name) exit
    end do
    if (i > most) stop 9
    if (i > known) then
      known = i
      names(i) = name
    end if
    do v = 1, size(values)
      numbers(i) = mod(numbers(i) * 31 + values(v) + 4294967296_8, 1000000007_8)
    end do
  end subroutine note
end module notes

! What MPI calls back.
module called_back
  USES
  implicit none
  integer :: raised = 0, right = 0
  COMM_T :: expected
contains
  ! x -> a x + b modulo 1009: associative, not commutative.
#if defined(F08)
  subroutine composing(invec, inoutvec, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: f(:, :), g(:, :)
    integer :: i
    call c_f_pointer(invec, f, [2, length])
    call c_f_pointer(inoutvec, g, [2, length])
#else
  subroutine composing(f, g, length, datatype)
    integer :: length, datatype
    integer :: f(2, length), g(2, length)
    integer :: i
#endif
    do i = 1, length
      g(2, i) = mod(f(2, i) * g(1, i) + g(2, i), 1009)
      g(1, i) = mod(f(1, i) * g(1, i), 1009)
    end do
  end subroutine composing

  subroutine raise(comm, code)
    COMM_T :: comm
    integer :: code
    raised = raised + 1
    if (comm == expected) right = right + 1
  end subroutine raise
end module called_back

program conformance
  USES
  use notes
  use called_back
  implicit none
  CONSTANTS
  integer :: world_rank, world_size, ierror, i
  COMM_T :: half, backwards
  TYPE_T :: pair, gaps
  OP_T :: compose

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, world_rank IERR)
  call MPI_Comm_size(MPI_COMM_WORLD, world_size IERR)
  call make_types
  call MPI_Comm_split(MPI_COMM_WORLD, mod(world_rank, 2), 0, half IERR)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, backwards IERR)
  call on(MPI_COMM_WORLD)
  call on(half)
  call on(backwards)
  call on(MPI_COMM_SELF)
  call bottom(backwards)
  call intercommunicator
  if (begins('error handlers')) call errors
  call MPI_Comm_free(half IERR)
  call MPI_Comm_free(backwards IERR)
  call MPI_Op_free(compose IERR)
  call MPI_Type_free(pair IERR)
  call MPI_Type_free(gaps IERR)
  call print_notes
  call MPI_Finalize(ierror)

contains

  ! All by the first rank: launchers mix the lines of several.
  subroutine print_notes
    integer :: rank
    do rank = 0, world_size - 1
      if (world_rank == rank .and. rank > 0) then
        call MPI_Send(known, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD IERR)
        call MPI_Send(names, 48 * most, MPI_CHARACTER, 0, 2, MPI_COMM_WORLD IERR)
        call MPI_Send(numbers, most, MPI_INTEGER8, 0, 3, MPI_COMM_WORLD IERR)
      end if
      if (world_rank > 0) cycle
      if (rank > 0) then
        call MPI_Recv(known, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
        call MPI_Recv(names, 48 * most, MPI_CHARACTER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
        call MPI_Recv(numbers, most, MPI_INTEGER8, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERR)
      end if
      do i = 1, known
        print '(i0, 1x, a, 1x, i0)', rank, trim(names(i)), numbers(i)
      end do
    end do
  end subroutine print_notes

  subroutine make_types
    TYPE_T :: bare
    integer(MPI_ADDRESS_KIND) :: lower, extent
    call MPI_Type_contiguous(2, MPI_INTEGER, pair IERR)
    call MPI_Type_commit(pair IERR)
    call MPI_Type_vector(2, 1, 3, MPI_INTEGER, bare IERR)
    lower = 0
    extent = 20
    call MPI_Type_create_resized(bare, lower, extent, gaps IERR)
    call MPI_Type_commit(gaps IERR)
    call MPI_Type_free(bare IERR)
    call MPI_Op_create(composing, .false., compose IERR)
  end subroutine make_types

  ! So many words that tell who made them.
  function made(words, seed) result(all)
    integer, intent(in) :: words, seed
    integer :: all(words), w
    all = [(mod(seed * 31 + w * 7, 1000) + 1, w = 1, words)]
  end function made

  subroutine on(comm)
    COMM_T, intent(in) :: comm
    integer, parameter :: lengths(4) = [0, 1, 5, 40]
    integer :: me, l
    call MPI_Comm_rank(comm, me IERR)
    do l = 1, size(lengths)
      call moving(comm, lengths(l))
      call combining(comm, lengths(l), 'integer sum', MPI_INTEGER, MPI_SUM, 1, me, 0)
      call combining(comm, lengths(l), 'integer bxor', MPI_INTEGER, MPI_BXOR, 1, me, 0)
      call combining(comm, lengths(l), 'complex sum', MPI_DOUBLE_COMPLEX, MPI_SUM, 4, me, 1)
      call combining(comm, lengths(l), 'complex product', MPI_DOUBLE_COMPLEX, MPI_PROD, 4, me, 1)
      call combining(comm, lengths(l), 'double max', MPI_DOUBLE_PRECISION, MPI_MAX, 2, me, 2)
      call combining(comm, lengths(l), 'logical and', MPI_LOGICAL, MPI_LAND, 1, me, 3)
      call combining(comm, lengths(l), 'logical xor', MPI_LOGICAL, MPI_LXOR, 1, me, 3)
      call combining(comm, lengths(l), 'maxloc', MPI_2INTEGER, MPI_MAXLOC, 2, me, 0)
      call combining(comm, lengths(l), 'minloc', MPI_2DOUBLE_PRECISION, MPI_MINLOC, 4, me, 2)
      call combining(comm, lengths(l), 'composition', pair, compose, 2, me, 0)
    end do
    call MPI_Barrier(comm IERR)
  end subroutine on

  subroutine moving(comm, n)
    COMM_T, intent(in) :: comm
    integer, intent(in) :: n
    integer :: me, p, root
    integer, allocatable :: one(:), every(:), into(:), all(:), spread(:), sparse(:)
    character(n) :: text
    double complex :: values(n)
#if defined(LARGE)
    integer(MPI_COUNT_KIND) :: many
#endif
    call MPI_Comm_rank(comm, me IERR)
    call MPI_Comm_size(comm, p IERR)
    allocate (one(2 * n), every(2 * n * p), into(2 * n), all(2 * n * p), spread(5 * n), sparse(4 * n))
    one = made(2 * n, me)
    every = made(2 * n * p, me + 50)
    do root = 0, p - 1
      into = made(2 * n, me + 3)
      if (begins('bcast')) then
        call MPI_Bcast(into, 2 * n, MPI_INTEGER, root, comm IERR)
        call note('bcast', into)
      end if
      ! Two integers with a gap are of one signature with two without.
      spread = made(5 * n, me + 4)
      if (begins('bcast with gaps')) then
        if (me == root) then
          call MPI_Bcast(into, 2 * n, MPI_INTEGER, root, comm IERR)
        else
          call MPI_Bcast(spread, n, gaps, root, comm IERR)
        end if
        call note('bcast with gaps', spread)
      end if
      ! A section, which the compiler may copy, or MPI describe.
      sparse = made(4 * n, me + 5)
      if (begins('bcast of a section')) then
        call MPI_Bcast(sparse(1:4 * n:2), 2 * n, MPI_INTEGER, root, comm IERR)
        call note('bcast of a section', sparse)
      end if
      text = repeat(char(mod(me, 20) + 65), n)
      if (begins('bcast of characters')) then
        call MPI_Bcast(text, n, MPI_CHARACTER, root, comm IERR)
        call note('bcast of characters', [(ichar(text(i:i)), i = 1, n)])
      end if
      values = cmplx(me, root, kind(1d0))
      if (begins('bcast of complex')) then
        call MPI_Bcast(values, n, MPI_DOUBLE_COMPLEX, root, comm IERR)
        call note('bcast of complex', [nint(dble(values)), nint(aimag(values))])
      end if

      all = -1
      ! What counts at the root only is wrong elsewhere.
      if (begins('gather')) then
        if (me == root) then
          call MPI_Gather(one, 2 * n, MPI_INTEGER, all, n, pair, root, comm IERR)
        else
          call MPI_Gather(one, 2 * n, MPI_INTEGER, all, -7, MPI_DATATYPE_NULL, root, comm IERR)
        end if
        call note('gather', all)
      end if
      all = every
      if (begins('gather in place')) then
        if (me == root) then
          call MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2 * n, MPI_INTEGER, root, comm IERR)
        else
          call MPI_Gather(one, n, pair, all, 0, MPI_INTEGER, root, comm IERR)
        end if
        call note('gather in place', all)
      end if
      spread = -2
      if (begins('scatter')) then
        if (me == root) then
          call MPI_Scatter(every, 2 * n, MPI_INTEGER, spread, n, gaps, root, comm IERR)
        else
          call MPI_Scatter(every, -7, MPI_DATATYPE_NULL, spread, n, gaps, root, comm IERR)
        end if
        call note('scatter', spread)
      end if
      into = -3
      if (begins('scatter in place')) then
        if (me == root) then
          call MPI_Scatter(every, n, pair, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm IERR)
        else
          call MPI_Scatter(every, 0, MPI_INTEGER, into, 2 * n, MPI_INTEGER, root, comm IERR)
        end if
        call note('scatter in place', into)
      end if
#if defined(LARGE)
      many = 2 * n
      into = made(2 * n, me + 8)
      if (begins('bcast, large')) then
        call MPI_Bcast(into, many, MPI_INTEGER, root, comm IERR)
        call note('bcast, large', into)
      end if
#endif
    end do
    all = -4
    if (begins('allgather')) then
      call MPI_Allgather(one, 2 * n, MPI_INTEGER, all, n, pair, comm IERR)
      call note('allgather', all)
    end if
    all = every
    if (begins('allgather in place')) then
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2 * n, MPI_INTEGER, comm IERR)
      call note('allgather in place', all)
    end if
    if (begins('alltoall')) then
      call MPI_Alltoall(every, n, pair, all, 2 * n, MPI_INTEGER, comm IERR)
      call note('alltoall', all)
    end if
    if (begins('alltoall in place')) then
      call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2 * n, MPI_INTEGER, comm IERR)
      call note('alltoall in place', all)
    end if
#if defined(LARGE)
    many = 2 * n
    if (begins('allreduce, large')) then
      call MPI_Allreduce(one, into, many, MPI_INTEGER, MPI_SUM, comm IERR)
      call note('allreduce, large', into)
    end if
    if (begins('allgather, large')) then
      call MPI_Allgather(one, many, MPI_INTEGER, all, many, MPI_INTEGER, comm IERR)
      call note('allgather, large', all)
    end if
#endif
    call note('what was sent', [one, every])
  end subroutine moving

  ! Operands as words, so many for an element; `form` tells what is in them.
  subroutine combining(comm, n, what, datatype, op, words, me, form)
    COMM_T, intent(in) :: comm
    integer, intent(in) :: n, words, me, form
    character(*), intent(in) :: what
    TYPE_T, intent(in) :: datatype
    OP_T, intent(in) :: op
    integer :: p, root, counts(64), total, mine
    integer, allocatable :: one(:), every(:), varied(:), into(:), all(:)
    call MPI_Comm_size(comm, p IERR)
    counts(1:p) = [(merge(0, n + mod(i, 2), mod(i, 3) == 1), i = 0, p - 1)]
    total = sum(counts(1:p))
    mine = counts(me + 1)
    allocate (one(words * n), every(words * n * p), varied(words * total), into(words * n), &
              all(words * max(n * p, total)))
    one = operand(words * n, me + 1, form)
    every = operand(words * n * p, me + 2, form)
    varied = operand(words * total, me + 3, form)
    do root = 0, p - 1
      into = -1
      if (begins('reduce ' // what)) then
        call MPI_Reduce(one, into, n, datatype, op, root, comm IERR)
        if (me == root) call note('reduce ' // what, into)
      end if
      into = one
      if (begins('reduce in place ' // what)) then
        if (me == root) then
          call MPI_Reduce(MPI_IN_PLACE, into, n, datatype, op, root, comm IERR)
        else
          call MPI_Reduce(one, into, n, datatype, op, root, comm IERR)
        end if
        if (me == root) call note('reduce in place ' // what, into)
      end if
    end do
    into = -1
    if (begins('allreduce ' // what)) then
      call MPI_Allreduce(one, into, n, datatype, op, comm IERR)
      call note('allreduce ' // what, into)
    end if
    into = one
    if (begins('allreduce in place ' // what)) then
      call MPI_Allreduce(MPI_IN_PLACE, into, n, datatype, op, comm IERR)
      call note('allreduce in place ' // what, into)
    end if
    into = -1
    if (begins('scan ' // what)) then
      call MPI_Scan(one, into, n, datatype, op, comm IERR)
      call note('scan ' // what, into)
    end if
    into = one
    if (begins('scan in place ' // what)) then
      call MPI_Scan(MPI_IN_PLACE, into, n, datatype, op, comm IERR)
      call note('scan in place ' // what, into)
    end if
    into = -1
    if (begins('exscan ' // what)) then
      call MPI_Exscan(one, into, n, datatype, op, comm IERR)
      if (me > 0) call note('exscan ' // what, into)
    end if
    into = one
    if (begins('exscan in place ' // what)) then
      call MPI_Exscan(MPI_IN_PLACE, into, n, datatype, op, comm IERR)
      if (me > 0) call note('exscan in place ' // what, into)
    end if
#if defined(MPICH_CRASHES)
    if (op /= compose) then
#endif
    into = -1
    if (begins('reduce_scatter_block ' // what)) then
      call MPI_Reduce_scatter_block(every, into, n, datatype, op, comm IERR)
      call note('reduce_scatter_block ' // what, into)
    end if
    all(1:words * n * p) = every
    if (begins('reduce_scatter_block in place ' // what)) then
      call MPI_Reduce_scatter_block(MPI_IN_PLACE, all, n, datatype, op, comm IERR)
      call note('reduce_scatter_block in place ' // what, all(1:words * n))
    end if
#if defined(MPICH_CRASHES)
    end if
#endif
    all = -1
    if (begins('reduce_scatter ' // what)) then
      call MPI_Reduce_scatter(varied, all, counts, datatype, op, comm IERR)
      call note('reduce_scatter ' // what, all(1:words * mine))
    end if
    all(1:words * total) = varied
    if (begins('reduce_scatter in place ' // what)) then
      call MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, datatype, op, comm IERR)
      call note('reduce_scatter in place ' // what, all(1:words * mine))
    end if
    call note('what was sent', [one, every, varied])
  end subroutine combining

  ! Values whose combinations are exact.
  function operand(words, seed, form) result(all)
    integer, intent(in) :: words, seed, form
    integer :: all(words), w
    select case (form)
    case (0)
      all = made(words, seed)
    case (1)
      ! No zeros, whose signs depend on the order.
      all = transfer([(cmplx(2 + mod(seed + w, 2), 1 + mod(seed + w, 2), kind(1d0)), w = 1, words / 4)], &
                     all, words)
    case (2)
      all = transfer([(dble(mod(seed * 5 + w * 3, 17)) / 2, w = 1, words / 2)], all, words)
    case default
      all = transfer([(mod(seed * 3 + w, 4) > 0, w = 1, words)], all, words)
    end select
  end function operand

  ! Types that hold addresses.
  subroutine bottom(comm)
    COMM_T, intent(in) :: comm
    integer, save, volatile :: placed(10)
    integer :: me, p, root, lengths(1)
    integer, allocatable :: all(:)
    integer(MPI_ADDRESS_KIND) :: places(1)
    TYPE_T :: absolute
    call MPI_Comm_rank(comm, me IERR)
    call MPI_Comm_size(comm, p IERR)
    allocate (all(10 * p))
    call MPI_Get_address(placed, places(1) IERR)
    lengths = 10
    call MPI_Type_create_hindexed(1, lengths, places, MPI_INTEGER, absolute IERR)
    call MPI_Type_commit(absolute IERR)
    do root = 0, p - 1
      placed = made(10, me + root)
      if (begins('bottom bcast')) then
        call MPI_Bcast(MPI_BOTTOM, 1, absolute, root, comm IERR)
        call note('bottom bcast', placed)
      end if
      placed = made(10, me + root)
      all = 0
      if (begins('bottom gather')) then
        call MPI_Gather(MPI_BOTTOM, 1, absolute, all, 10, MPI_INTEGER, root, comm IERR)
        call note('bottom gather', all)
      end if
      all = made(10 * p, me)
      if (begins('bottom scatter')) then
        call MPI_Scatter(all, 10, MPI_INTEGER, MPI_BOTTOM, 1, absolute, root, comm IERR)
        call note('bottom scatter', placed)
      end if
    end do
    if (begins('bottom allgather')) then
      call MPI_Allgather(MPI_BOTTOM, 1, absolute, all, 10, MPI_INTEGER, comm IERR)
      call note('bottom allgather', all)
    end if
    call MPI_Type_free(absolute IERR)
  end subroutine bottom

  subroutine intercommunicator
    COMM_T :: part, inter, all
    integer :: color, data(8), into(8), root
    if (world_size < 2) return
    color = mod(world_rank, 2)
    call MPI_Comm_split(MPI_COMM_WORLD, color, 0, part IERR)
    call MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - color, 7, inter IERR)
    data = made(8, world_rank)
    into = 0
    if (begins('intercommunicator')) then
      call MPI_Allreduce(data, into, 8, MPI_INTEGER, MPI_SUM, inter IERR)
      call note('intercommunicator', into)
    end if
    root = MPI_PROC_NULL
    if (world_rank == 0) root = MPI_ROOT
    if (color == 1) root = 0
    if (begins('intercommunicator')) then
      call MPI_Bcast(data, 8, MPI_INTEGER, root, inter IERR)
      call note('intercommunicator', data)
    end if
    if (begins('merged')) then
      call MPI_Barrier(inter IERR)
      call MPI_Intercomm_merge(inter, color == 1, all IERR)
      call MPI_Allreduce(data, into, 8, MPI_INTEGER, MPI_SUM, all IERR)
      call note('merged', into)
      call MPI_Comm_free(all IERR)
    end if
    call MPI_Comm_free(inter IERR)
    call MPI_Comm_free(part IERR)
  end subroutine intercommunicator

  subroutine classed(name, code)
    character(*), intent(in) :: name
    integer, intent(in) :: code
    integer :: class
    call MPI_Error_class(code, class IERR)
    call note('error: ' // name, [class])
  end subroutine classed

  ! Codes by return, then by a handler, which is told the right communicator.
  subroutine errors
    COMM_T :: comm
    HANDLER_T :: handler
    integer :: turn, data(64), into(64), wrong
    double precision :: reals(4), results(4)
    data = 0
    reals = 0
    call MPI_Comm_dup(MPI_COMM_WORLD, comm IERR)
    expected = comm
    call MPI_Comm_create_errhandler(raise, handler IERR)
    do turn = 1, 2
      if (turn == 1) call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN IERR)
      if (turn == 2) call MPI_Comm_set_errhandler(comm, handler IERR)
      if (begins('error: none')) then
        call MPI_Bcast(data, 4, MPI_INTEGER, 0, comm, wrong)
        call classed('none', wrong)
      end if
      if (begins('error: bcast root')) then
        call MPI_Bcast(data, 4, MPI_INTEGER, world_size, comm, wrong)
        call classed('bcast root', wrong)
      end if
      if (begins('error: bcast count')) then
        call MPI_Bcast(data, -1, MPI_INTEGER, 0, comm, wrong)
        call classed('bcast count', wrong)
      end if
      if (begins('error: bcast type')) then
        call MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, comm, wrong)
        call classed('bcast type', wrong)
      end if
      if (begins('error: reduce root')) then
        call MPI_Reduce(data, into, 4, MPI_INTEGER, MPI_SUM, -7, comm, wrong)
        call classed('reduce root', wrong)
      end if
      if (begins('error: reduce no op')) then
        call MPI_Reduce(data, into, 4, MPI_INTEGER, MPI_OP_NULL, 0, comm, wrong)
        call classed('reduce no op', wrong)
      end if
      if (begins('error: allreduce op')) then
        call MPI_Allreduce(reals, results, 4, MPI_DOUBLE_PRECISION, MPI_LAND, comm, wrong)
        call classed('allreduce op', wrong)
      end if
      if (begins('error: allreduce derived')) then
        call MPI_Allreduce(data, into, 2, pair, MPI_SUM, comm, wrong)
        call classed('allreduce derived', wrong)
      end if
      if (begins('error: scan op')) then
        call MPI_Scan(data, into, 4, MPI_LOGICAL, MPI_SUM, comm, wrong)
        call classed('scan op', wrong)
      end if
      if (begins('error: gather root')) then
        call MPI_Gather(data, 1, MPI_INTEGER, into, 1, MPI_INTEGER, world_size, comm, wrong)
        call classed('gather root', wrong)
      end if
      if (begins('error: alltoall count')) then
        call MPI_Alltoall(data, -1, MPI_INTEGER, into, -1, MPI_INTEGER, comm, wrong)
        call classed('alltoall count', wrong)
      end if
    end do
    call note('errors raised', [raised, right])
    call MPI_Errhandler_free(handler IERR)
    call MPI_Comm_free(comm IERR)
  end subroutine errors
end program conformance
