/* Answers as a GPU-aware MPI would, in place of an MPI that is not: preloaded, on the driver of tests/gpu/driver with
 * FAKE_GPU_OPEN, whose device memory any MPI can touch. */
int MPIX_Query_cuda_support(void); /* Open MPI, newer MPICH */
int MPIX_Query_cuda_support(void) { return 1; }
int MPIX_GPU_query_support(int kind, int* is_supported); /* MPICH; kind 0: CUDA */
int MPIX_GPU_query_support(int kind, int* is_supported) {
  *is_supported = kind == 0;
  return 0;
}
