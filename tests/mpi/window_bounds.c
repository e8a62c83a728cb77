/* Puts of distributed arrays and of types that step back, of some of which MPIs say other bounds than those of their
 * type maps. Says how many were refused, and a hash of what all memory holds then.
 *   mpiexec -n 2 ./window_bounds */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { dimensions_max = 3, seeds = 400, elements_max = 60 * 60 * 60, middle = 1 << 12 };

/* MPI_DATATYPE_NULL: this MPI does not make it, or it is empty. */
static MPI_Datatype dealt(int seed, int order) {
  srand((unsigned)seed);
  const int dimensions = 1 + rand() % dimensions_max;
  int sizes[dimensions_max], how[dimensions_max], arguments[dimensions_max], grid[dimensions_max], ranks = 1;
  for (int i = 0; i < dimensions; ++i) {
    grid[i] = 1 + rand() % 3;
    sizes[i] = (1 + rand() % 20) * grid[i];
    how[i] = rand() % 2 != 0 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK;
    const int blocks = how[i] == MPI_DISTRIBUTE_CYCLIC && rand() % 2 != 0;
    arguments[i] = blocks ? 1 + rand() % 4 : MPI_DISTRIBUTE_DFLT_DARG;
    ranks *= grid[i];
  }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  int bytes = 0;
  if (MPI_Type_create_darray(ranks, rand() % ranks, dimensions, sizes, how, arguments, grid,
                             order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT, &made) != MPI_SUCCESS) {
    return MPI_DATATYPE_NULL;
  }
  MPI_Type_size(made, &bytes);
  if (bytes == 0) MPI_Type_free(&made);
  return made;
}

static MPI_Datatype stepping_back(int seed) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_hvector(2 + seed % 3, 2, seed % 2 != 0 ? -4 : -12, MPI_INT, &made);
  return made;
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0, ranks = 0, puts = 0, refused = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t bytes = (elements_max + middle) * sizeof(int);
  int* const mine = calloc(bytes, 1);
  int* const sent = malloc(bytes);
  MPI_Win window;
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes / sizeof(int); ++i) sent[i] = (int)(i * 2654435761U) + rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win_create(mine, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  for (int seed = 0; seed < seeds; ++seed) {
    for (int kind = 0; kind < 3; ++kind) {
      MPI_Datatype type = kind == 2 ? stepping_back(seed) : dealt(seed, kind);
      if (type == MPI_DATATYPE_NULL) continue;
      MPI_Type_commit(&type);
      MPI_Win_fence(0, window);
      refused += MPI_Put((char*)sent + middle, 1, type, (rank + 1) % ranks, middle, 1, type, window) != MPI_SUCCESS;
      MPI_Win_fence(0, window);
      ++puts;
      for (size_t i = 0; i < bytes / sizeof(int); ++i) hash = (hash ^ (uint32_t)mine[i]) * 0x100000001b3;
      memset(mine, 0, bytes);
      MPI_Type_free(&type);
    }
  }
  uint64_t all[2] = {0, 0};
  MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d puts, %d refused, %016llx %016llx\n", puts, refused, (unsigned long long)all[0],
           (unsigned long long)all[1]);
  MPI_Win_free(&window);
  free(mine);
  free(sent);
  MPI_Finalize();
  return 0;
}
