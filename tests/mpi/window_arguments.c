/* The error classes of accesses in an open epoch, by their arguments: with no bytes and various basic types, and wrong
 * ones. What an MPI takes, and what it refuses by which class, does not depend on who carries the window.
 * "wrong": the wrong ones, some of which end Open MPI 5.0.11 by a signal.
 *   mpiexec -n 2 ./window_arguments; mpiexec -n 2 ./window_arguments wrong */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { types_count = 4 };
static int own[64], result[64], memory[64];

static int class_of(int code) {
  int class = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

static void multiply(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] *= ((int*)in)[i];
}

/* Elements of none, one or a type that has none, at each of three places. */
static void without_bytes(MPI_Datatype none, MPI_Datatype one, MPI_Win window) {
  const MPI_Datatype types[types_count] = {none, MPI_INT, one, MPI_DOUBLE};
  for (int i = 0; i < types_count; ++i) {
    for (int j = 0; j < types_count; ++j) {
      for (int k = 0; k < types_count; ++k) {
        const int a = i == 0, b = j == 0, c = k == 0;
        const MPI_Datatype from = types[i], into = types[j], to = types[k];
        printf("%d %d %d: put %d get %d accumulate %d get_accumulate %d\n", i, j, k,
               class_of(MPI_Put(own, a, from, 1, 0, c, to, window)),
               class_of(MPI_Get(own, a, from, 1, 0, c, to, window)),
               class_of(MPI_Accumulate(own, a, from, 1, 0, c, to, MPI_SUM, window)),
               class_of(MPI_Get_accumulate(own, a, from, result, b, into, 1, 0, c, to, MPI_SUM, window)));
      }
    }
  }
}

static void wrong_ones(MPI_Datatype one, MPI_Datatype raw, MPI_Win window) {
  MPI_Op own_op;
  MPI_Op_create(multiply, 1, &own_op);
  const MPI_Datatype null = MPI_DATATYPE_NULL, whole = MPI_INT;
  struct {
    const char* what;
    int code;
  } const rows[] = {
      {"put of a null type", MPI_Put(own, 1, null, 1, 0, 1, whole, window)},
      {"put of none of a null type", MPI_Put(own, 0, null, 1, 0, 0, whole, window)},
      {"put to a null type", MPI_Put(own, 1, whole, 1, 0, 1, null, window)},
      {"put to no rank, of a null type", MPI_Put(own, 1, null, MPI_PROC_NULL, 0, 1, whole, window)},
      {"put to no rank", MPI_Put(own, 1, whole, MPI_PROC_NULL, 0, 1, whole, window)},
      {"put of a type that is not committed", MPI_Put(own, 1, raw, 1, 0, 4, whole, window)},
      {"put to such a type", MPI_Put(own, 4, whole, 1, 0, 1, raw, window)},
      {"get of a negative count", MPI_Get(own, -1, whole, 1, 0, 1, whole, window)},
      {"get from rank 7", MPI_Get(own, 1, whole, 7, 0, 1, whole, window)},
      {"get to a null type", MPI_Get(own, 1, null, 1, 0, 1, whole, window)},
      {"accumulate by no operation", MPI_Accumulate(own, 1, whole, 1, 0, 1, whole, MPI_OP_NULL, window)},
      {"accumulate by one of the program's", MPI_Accumulate(own, 1, whole, 1, 0, 1, whole, own_op, window)},
      {"accumulate of a null type", MPI_Accumulate(own, 1, null, 1, 0, 1, whole, MPI_SUM, window)},
      {"accumulate of such a type", MPI_Accumulate(own, 1, raw, 1, 0, 4, whole, MPI_SUM, window)},
      {"fetch of a null type", MPI_Fetch_and_op(own, result, null, 1, 0, MPI_SUM, window)},
      {"fetch of a derived type", MPI_Fetch_and_op(own, result, one, 1, 0, MPI_SUM, window)},
      {"fetch by no operation", MPI_Fetch_and_op(own, result, whole, 1, 0, MPI_OP_NULL, window)},
      {"swap of a null type", MPI_Compare_and_swap(own, own, result, null, 1, 0, window)},
      {"swap of a derived type", MPI_Compare_and_swap(own, own, result, one, 1, 0, window)},
      {"swap of doubles", MPI_Compare_and_swap(own, own, result, MPI_DOUBLE, 1, 0, window)},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) printf("%s: %d\n", rows[i].what, class_of(rows[i].code));
  MPI_Op_free(&own_op);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype none, one, raw;
  MPI_Win window;
  MPI_Type_contiguous(0, MPI_INT, &none);
  MPI_Type_commit(&none);
  MPI_Type_contiguous(1, MPI_INT, &one);
  MPI_Type_commit(&one);
  MPI_Type_contiguous(4, MPI_INT, &raw);
  MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, window);
  const int wrong = count > 1 && strcmp(words[1], "wrong") == 0;
  if (rank == 0 && !wrong) without_bytes(none, one, window);
  if (rank == 0 && wrong) wrong_ones(one, raw, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Type_free(&none);
  MPI_Type_free(&one);
  MPI_Type_free(&raw);
  MPI_Finalize();
  return 0;
}
