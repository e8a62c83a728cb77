// Accesses whose ways are known. Each of two ranks puts and gets between start and complete, after a barrier behind the
// posts: columns in a window of malloc, long blocks and columns in one of static memory, a run of doubles, and columns
// in a window that memory is attached to. "die": rank 1 is killed in the epoch. "forbid": the system copies nothing
// between processes any more once the window of static memory is made.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 20, NUMBERS = 2000, LONG = 16384, ALL = 4 * LONG };

static double still[ALL];
static int rank, wrong, dies;
static MPI_Group other;
static MPI_Datatype column, slabs;

static void expect(const double* numbers, int count, int step, double value) {
  for (int k = 0; k < count; ++k) wrong += numbers[k * step] != value;
}

static void epoch_begins(MPI_Win win) {
  MPI_Win_post(other, 0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_start(other, 0, win);
}

static void epoch_ends(MPI_Win win) {
  MPI_Win_complete(win);
  MPI_Win_wait(win);
}

// One put and one get of a type; what has come is looked at at once.
static void access_by(MPI_Win win, double* base, MPI_Aint place, int count, MPI_Datatype type, int numbers, int step) {
  double* const mine = malloc(ALL * sizeof *mine);
  for (int round = 0; round < ROUNDS; ++round) {
    const double value = 10 * round;
    for (int k = 0; k < ALL; ++k) mine[k] = value + rank;
    epoch_begins(win);
    MPI_Put(mine, count, type, 1 - rank, place, count, type, win);
    if (dies && rank == 1 && round == 3) raise(SIGKILL);
    epoch_ends(win);
    expect(base, numbers, step, value + 1 - rank);
    epoch_begins(win);
    MPI_Get(mine, count, type, 1 - rank, place, count, type, win);
    epoch_ends(win);
    expect(mine, numbers, step, value + rank);
  }
  free(mine);
}

static void forbid_copies(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ++wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  dies = argc > 1 && strcmp(argv[1], "die") == 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int peer = 1 - rank;
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &peer, &other);
  MPI_Type_vector(NUMBERS, 1, 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Type_vector(2, LONG / 2, LONG, MPI_DOUBLE, &slabs);
  MPI_Type_commit(&slabs);
  MPI_Win win;
  double* const base = malloc(ALL * sizeof *base);
  MPI_Win_create(base, ALL * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  access_by(win, base, 0, 1, column, NUMBERS, 2);
  access_by(win, base, 0, NUMBERS, MPI_DOUBLE, NUMBERS, 1);
  MPI_Win_free(&win);
  MPI_Win_create(still, sizeof still, sizeof *still, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  if (argc > 1 && strcmp(argv[1], "forbid") == 0) forbid_copies();
  access_by(win, still, 0, 1, slabs, LONG / 2, 1);
  access_by(win, still, 0, 1, column, NUMBERS, 2);
  MPI_Win_free(&win);
  MPI_Aint mine, theirs;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, base, ALL * sizeof *base);
  MPI_Get_address(base, &mine);
  MPI_Sendrecv(&mine, 1, MPI_AINT, peer, 0, &theirs, 1, MPI_AINT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  access_by(win, base, theirs, 1, column, NUMBERS, 2);
  MPI_Win_detach(win, base);
  MPI_Win_free(&win);
  free(base);
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", all_wrong);
  MPI_Type_free(&column);
  MPI_Type_free(&slabs);
  MPI_Group_free(&all);
  MPI_Group_free(&other);
  MPI_Finalize();
  return 0;
}
