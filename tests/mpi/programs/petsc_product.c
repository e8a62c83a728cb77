// The product of a sparse and a dense matrix with PETSc, which sends rows of the dense one by types of its own. Each
// rank writes its values to a file, values.FIRST_ROW.
#include <petscmat.h>
#include <stdio.h>

static double entry(PetscInt row, PetscInt column) { return (double)((row * 7 + column * 13) % 101) / 8; }

int main(int argc, char** argv) {
  PetscInt side = 64, columns = 48, first = 0, last = 0, local = 0, leading = 0, times = 3;
  Mat sparse, dense, product;
  const PetscScalar* values;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &columns, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-times", &times, NULL));
  PetscInt const rows = side * side;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, rows, rows, 5, NULL, 5, NULL, &sparse));
  PetscCall(MatGetOwnershipRange(sparse, &first, &last));
  for (PetscInt row = first; row < last; ++row) {
    PetscInt const near[] = {row - side, row - 1, row, row + 1, row + side};
    for (int i = 0; i < 5; ++i) {
      if (near[i] >= 0 && near[i] < rows) PetscCall(MatSetValue(sparse, row, near[i], i - 2.5, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(sparse, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(sparse, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, last - first, PETSC_DECIDE, rows, columns, NULL, &dense));
  for (PetscInt row = first; row < last; ++row) {
    for (PetscInt column = 0; column < columns; ++column)
      PetscCall(MatSetValue(dense, row, column, entry(row, column), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(dense, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(dense, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(sparse, dense, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &product));
  double const began = MPI_Wtime();
  for (PetscInt i = 0; i < times; ++i) PetscCall(MatMatMult(sparse, dense, MAT_REUSE_MATRIX, PETSC_DEFAULT, &product));
  double const took = MPI_Wtime() - began;
  PetscCall(MatGetLocalSize(product, &local, NULL));
  PetscCall(MatDenseGetLDA(product, &leading));
  PetscCall(MatDenseGetArrayRead(product, &values));
  char name[32];
  snprintf(name, sizeof name, "values.%d", (int)first);
  FILE* const file = fopen(name, "w");
  for (PetscInt column = 0; column < columns; ++column)
    fwrite(values + column * leading, sizeof *values, (size_t)local, file);
  fclose(file);
  PetscCall(MatDenseRestoreArrayRead(product, &values));
  fprintf(stderr, "product %g us\n", times > 0 ? took / times * 1e6 : 0.0);
  PetscCall(MatDestroy(&product));
  PetscCall(MatDestroy(&dense));
  PetscCall(MatDestroy(&sparse));
  PetscCall(PetscFinalize());
  return 0;
}
