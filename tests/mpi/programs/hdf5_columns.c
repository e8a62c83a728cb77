// Ranks write interleaved columns of one HDF5 file together, and read them again. The file is columns.h5.
#include <hdf5.h>
#include <stdio.h>

int main(int argc, char** argv) {
  enum { rows = 256, columns = 64 };
  static double table[rows][columns], again[rows][columns];
  int rank = 0, ranks = 0, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) table[i][j] = rank + i * 1e-3 + j * 1e-6;
  }
  hid_t const parallel = H5Pcreate(H5P_FILE_ACCESS), together = H5Pcreate(H5P_DATASET_XFER);
  hid_t const timeless = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(timeless, 0);
  H5Pset_fapl_mpio(parallel, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
  hid_t const file = H5Fcreate("columns.h5", H5F_ACC_TRUNC, H5P_DEFAULT, parallel);
  hsize_t const whole[] = {rows, (hsize_t)(columns * ranks)}, part[] = {rows, columns};
  hsize_t const start[] = {0, (hsize_t)rank}, stride[] = {1, (hsize_t)ranks};
  hid_t const space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, part, NULL);
  hid_t const data = H5Dcreate(file, "table", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, timeless, H5P_DEFAULT);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, part, NULL);
  H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, together, table);
  H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, together, again);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) wrong += again[i][j] != table[i][j];
  }
  H5Dclose(data);
  H5Sclose(space);
  H5Sclose(memory);
  H5Fclose(file);
  H5Pclose(parallel);
  H5Pclose(together);
  H5Pclose(timeless);
  MPI_Finalize();
  if (wrong > 0) fprintf(stderr, "rank %d reads %d wrong values\n", rank, wrong);
  return wrong > 0;
}
