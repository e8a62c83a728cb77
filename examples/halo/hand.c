#include "hand.h"

#include <stddef.h>

static size_t place(const int sizes[3], int z, int y, int x) {
  return ((size_t)z * (size_t)sizes[1] + (size_t)y) * (size_t)sizes[2] + (size_t)x;
}

void hand_pack(const double* grid, const int sizes[3], const struct box* box, double* packed) {
  for (int z = 0; z < box->length[0]; ++z) {
    for (int y = 0; y < box->length[1]; ++y) {
      const double* row = grid + place(sizes, box->start[0] + z, box->start[1] + y, box->start[2]);
      for (int x = 0; x < box->length[2]; ++x) *packed++ = row[x];
    }
  }
}

void hand_unpack(double* grid, const int sizes[3], const struct box* box, const double* packed) {
  for (int z = 0; z < box->length[0]; ++z) {
    for (int y = 0; y < box->length[1]; ++y) {
      double* row = grid + place(sizes, box->start[0] + z, box->start[1] + y, box->start[2]);
      for (int x = 0; x < box->length[2]; ++x) row[x] = *packed++;
    }
  }
}
