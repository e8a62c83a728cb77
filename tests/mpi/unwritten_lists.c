/* Receives elements whose two neighbouring members make one block: MPICH 5.0 counts two blocks for each, writes a list
 * of one for each, and reads as many as it has counted, where it copies by system calls. Memory that was used before is
 * not zero.
 *   mpiexec -n 2 ./unwritten_lists ELEMENTS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { first = 8, second = 16, begins = 20, extent = 48 };

/* Leaves the bytes of negative numbers in memory that malloc gives out again. */
static void soil(void) {
  for (size_t bytes = 1 << 10; bytes <= 1 << 22; bytes *= 2) {
    char* const block = malloc(bytes);
    memset(block, 0xa5, bytes);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(block);
  }
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  const int elements = count > 1 ? atoi(words[1]) : 1500;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype pair, members, type;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_struct(2, (int[]){2, 2}, (MPI_Aint[]){begins, begins + first}, (MPI_Datatype[]){MPI_INT, pair},
                         &members);
  MPI_Type_create_resized(members, 4, extent, &type);
  MPI_Type_commit(&type);
  const size_t bytes = (size_t)elements * (first + second);
  char* const sent = malloc(bytes);
  char* const got = calloc((size_t)elements + 1, extent);
  for (size_t i = 0; i < bytes; ++i) sent[i] = (char)(i * 7 + 1);
  soil();
  if (rank == 0) {
    MPI_Send(sent, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  } else {
    size_t wrong = 0;
    MPI_Recv(got, elements, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < bytes; ++i) {
      const size_t each = first + second;
      wrong += got[i / each * extent + begins + i % each] != sent[i];
    }
    printf("%d elements, %zu wrong\n", elements, wrong);
  }
  MPI_Type_free(&pair);
  MPI_Type_free(&members);
  MPI_Type_free(&type);
  free(sent);
  free(got);
  MPI_Finalize();
  return 0;
}
