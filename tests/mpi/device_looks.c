/* MPI_Request_get_status and its newer forms: what they say has come is in the GPU's memory before it is completed. On
 * two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "layer/device.h"

enum { bytes = 3000, requests = 3 };
enum { one, all, any, some, ways };

static int is_there(unsigned char const* window, int from) {
  for (int i = 0; i < bytes; ++i)
    if (window[i] != (unsigned char)(i * 7 + from)) return 0;
  return 1;
}

int main(int argc, char** argv) {
  int rank, wrong = 0, looks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int way = 0; way < ways; ++way) {
#if MPI_VERSION * 10 + MPI_SUBVERSION < 41
    if (way != one) continue;
#endif
    unsigned char *memory[requests], *window[requests];
    MPI_Request request[requests];
    for (int i = 0; i < requests; ++i) {
      memory[i] = device_alloc(bytes, &window[i]);
      for (int k = 0; k < bytes; ++k) window[i][k] = (unsigned char)(rank == 0 ? k * 7 + i : 255);
      if (rank == 1) MPI_Irecv(memory[i], bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
    }
    for (int i = 0; i < requests && rank == 0; ++i) MPI_Send(memory[i], bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
    int seen[requests] = {0}, left = rank == 1 ? requests : 0, index[requests], flag = 0, done = 0;
    while (left > 0) {
      switch (way) {
        case one:
          index[0] = requests - left;
          MPI_Request_get_status(request[index[0]], &flag, MPI_STATUS_IGNORE);
          done = flag;
          break;
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
        case all:
          MPI_Request_get_status_all(requests, request, &flag, MPI_STATUSES_IGNORE);
          done = flag ? requests : 0;
          for (int i = 0; i < requests; ++i) index[i] = i;
          break;
        case any:
          MPI_Request_get_status_any(left, request + requests - left, &index[0], &flag, MPI_STATUS_IGNORE);
          index[0] += requests - left, done = flag;
          if (flag && index[0] != requests - left) { /* the first that is left shall be the next that ends */
            done = 0;
            MPI_Wait(&request[requests - left], MPI_STATUS_IGNORE);
            seen[requests - left] = 1, --left;
          }
          break;
        default: MPI_Request_get_status_some(requests, request, &done, index, MPI_STATUSES_IGNORE);
#endif
      }
      for (int k = 0; k < done; ++k) {
        if (seen[index[k]]++) continue;
        --left, ++looks;
        if (!is_there(window[index[k]], index[k])) ++wrong;
      }
      if (way == any && done) MPI_Wait(&request[index[0]], MPI_STATUS_IGNORE);
    }
    if (rank == 1) MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < requests; ++i) {
      if (!is_there(window[i], i)) ++wrong;
      device_free(memory[i], window[i]);
    }
  }
  int sum[2] = {wrong, looks}, of_all[2];
  MPI_Reduce(sum, of_all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("looks %d wrong %d\n", of_all[1], of_all[0]);
  MPI_Finalize();
  return 0;
}
