/* One rule of docs/mpi.md by its name: RULE [ARGUMENT]. Ends with "kept" from rank 0, or says what is wrong.
 *
 * Messages are columns of a matrix of doubles: not contiguous, and long enough for the layer. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { rows = 4096, columns = 4, messages = 200 };

static int rank, size;
static MPI_Datatype column;

static double* matrix(int seed) {
  double* const made = malloc(rows * columns * sizeof *made);
  for (int i = 0; i < rows * columns; ++i) made[i] = seed + i % 1000;
  return made;
}

static int wrong(char const* what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 9);
  return 1;
}

/* Column 1 came from matrix(from), all else is that of matrix(own). */
static void check(double const* got, int from, int own) {
  for (int i = 0; i < rows * columns; ++i)
    if (got[i] != (i % columns == 1 ? from : own) + i % 1000) wrong("a wrong number");
}

static void ring(int round) {
  double *const out = matrix(round * 10 + rank), *const in = matrix(-1);
  int const to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Sendrecv(out + 1, 1, column, to, round % 7, in + 1, 1, column, from, round % 7, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  check(in, round * 10 + from, -1);
  free(out), free(in);
}

/* Two ranks take turns: one sends, then the other. */
static void back_and_forth(int round) {
  double *const out = matrix(round * 10 + rank), *const in = matrix(-1);
  if (rank == 0) MPI_Send(out + 1, 1, column, 1, 3, MPI_COMM_WORLD);
  MPI_Recv(in + 1, 1, column, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out + 1, 1, column, 0, 3, MPI_COMM_WORLD);
  check(in, round * 10 + 1 - rank, -1);
  free(out), free(in);
}

static void plain(void) {
  for (int i = 0; i < messages; ++i) ring(i);
}

/* Isendrecv must not overtake a message that a probe has seen. */
static void isendrecv_after_probe(void) {
#if MPI_VERSION >= 4
  for (int round = 0; round < 50; ++round) {
    double *const out = matrix(rank), *const in = matrix(-1), *const next = matrix(100 + rank),
                  *const last = matrix(-1);
    int const to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request sent, both, third;
    MPI_Status seen;
    int count = 0;
    MPI_Isend(out + 1, 1, column, to, 3, MPI_COMM_WORLD, &sent);
    MPI_Probe(from, 3, MPI_COMM_WORLD, &seen);
    MPI_Get_count(&seen, column, &count);
    if (count != 1) wrong("a probe tells another size");
    if (round % 2) {
      MPI_Isendrecv(next + 1, 1, column, to, 3, in + 1, 1, column, from, 3, MPI_COMM_WORLD, &both);
    } else {
      MPI_Isendrecv(next + 1, 1, column, to, 3, in + 1, 1, column, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &both);
    }
    MPI_Irecv(last + 1, 1, column, from, 3, MPI_COMM_WORLD, &third);
    MPI_Wait(&both, &seen);
    check(in, from, -1);
    MPI_Wait(&third, MPI_STATUS_IGNORE);
    check(last, 100 + from, -1);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(out), free(in), free(next), free(last);
  }
#endif
}

/* A thread that only looks, while another receives. */
static volatile int watching = 1;
static void* watch(void* unused) {
  (void)unused;
  while (watching) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  return NULL;
}
static void watcher(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, watch, NULL);
  for (int round = 0; round < 8 * messages; ++round) {
    int const to = (rank + 1) % size, from = (rank + size - 1) % size;
    int out[16], in[16];
    for (int i = 0; i < 16; ++i) out[i] = round + i;
    MPI_Request sent;
    MPI_Isend(out, 16, MPI_INT, to, round % 7, MPI_COMM_WORLD, &sent);
    MPI_Recv(in, 16, MPI_INT, from, round % 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (in[15] != round + 15) wrong("a wrong number");
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    if (round % 50 == 0) ring(round);
  }
  watching = 0;
  pthread_join(thread, NULL);
}

/* From some moment on no rank may read another's memory by system calls, as in a container that forbids it. */
static void forbidden(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog const program = {sizeof filter / sizeof *filter, filter};
  for (int i = 0; i < 20; ++i) ring(i), back_and_forth(i);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return;
  for (int i = 0; i < messages; ++i) {
    ring(i), back_and_forth(i);
    /* Collectives do not look after what was sent before them. */
    double *const out = matrix(rank), *const in = matrix(-1);
    MPI_Request sent;
    MPI_Isend(out + 1, 1, column, 1 - rank, 4, MPI_COMM_WORLD, &sent);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in + 1, 1, column, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    check(in, 1 - rank, -1);
    free(out), free(in);
  }
}

/* Sends that are cancelled do not use up the layer's room. */
static void cancelled_sends(void) {
  int all = 0;
  for (int i = 0; i < 2 * messages; ++i) {
    double* const out = matrix(rank);
    MPI_Request request;
    MPI_Status status;
    int flag = 0, cancelled = 0;
    if (rank == 0) {
      MPI_Issend(out + 1, 1, column, 1, 5, MPI_COMM_WORLD, &request);
      MPI_Cancel(&request);
      for (int tries = 0; tries < 100000 && !flag; ++tries) MPI_Test(&request, &flag, &status);
      if (flag) MPI_Test_cancelled(&status, &cancelled);
    }
    if (rank == 1) /* takes part in the cancelling */
      for (int tries = 0; tries < 20; ++tries) MPI_Iprobe(0, 6, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    int told[2] = {flag, cancelled};
    MPI_Bcast(told, 2, MPI_INT, 0, MPI_COMM_WORLD);
    all += told[1];
    if (rank == 1 && !told[1]) MPI_Recv(out + 1, 1, column, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0 && !told[0]) MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(out);
  }
  if (rank == 0) printf("cancelled %d\n", all);
  for (int i = 0; i < messages; ++i) ring(i);
}

/* A send that is the MPI's is cancelled before it has ended. The many requests make the MPI take memory for it that no
 * request was in before. */
static void cancelled_send_of_the_mpi(void) {
  enum { bytes = 100000, sends = 40 };
  char* const data = calloc(1, bytes);
  MPI_Request requests[sends];
  for (int i = 0; i < sends && rank == 0; ++i) MPI_Isend(data, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
  if (rank == 0) MPI_Cancel(&requests[sends - 1]);
  for (int i = 0; i < sends && rank == 1; ++i) MPI_Recv(data, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Waitall(sends, requests, MPI_STATUSES_IGNORE);
  free(data);
}

/* Synchronous sends that have ended: the layer has forgotten them, and the MPI takes a cancel of them without harm. */
static void cancelled_after_their_end(void) {
  enum { sends = 200 };
  char* const data = calloc(1, 100000);
  MPI_Request requests[sends];
  for (int i = 0; i < 6 * sends; ++i) {
    int const bytes = i / sends % 3 == 0 ? 0 : i / sends % 3 == 1 ? 100 : 100000, place = i % sends;
    int flag = 0;
    if (rank == 1) MPI_Recv(data, bytes, MPI_BYTE, 0, place, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Issend(data, bytes, MPI_BYTE, 1, place, MPI_COMM_WORLD, &requests[place]);
    while (rank == 0 && !flag) MPI_Request_get_status(requests[place], &flag, MPI_STATUS_IGNORE);
    if (rank != 0 || place != sends - 1) continue;
    for (int k = 0; k < sends; ++k) MPI_Cancel(&requests[k]);
    for (int k = 0; k < sends; ++k) {
      MPI_Status status;
      int cancelled = 1;
      MPI_Wait(&requests[k], &status);
      MPI_Test_cancelled(&status, &cancelled);
      if (cancelled) wrong("a send that had ended was cancelled");
    }
  }
  free(data);
  plain();
}

/* A receive of a message that a probe has taken out, and the one before it, is cancelled or has it. */
static void cancel_after_probe(void) {
  for (int round = 0; round < 8; ++round) {
    int const is_persistent = round & 1, peer = 1 - rank;
    double* const data = matrix(rank);
    int numbers[200];
    for (int i = 0; i < 200; ++i) numbers[i] = rank + i;
    if (rank == 0) {
      MPI_Send(numbers, 200, MPI_INT, 1, 4, MPI_COMM_WORLD);
      MPI_Send(data + 1, 1, column, 1, 5, MPI_COMM_WORLD);
    } else if (rank == 1) {
      MPI_Probe(0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int tag = 4; tag <= 5; ++tag) {
        void* const into = tag == 4 ? (void*)numbers : (void*)(data + 1);
        int const count = tag == 4 ? 200 : 1;
        MPI_Datatype const type = tag == 4 ? MPI_INT : column;
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0;
        if (is_persistent) MPI_Recv_init(into, count, type, 0, tag, MPI_COMM_WORLD, &request), MPI_Start(&request);
        if (!is_persistent) MPI_Irecv(into, count, type, 0, tag, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled) MPI_Recv(into, count, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (is_persistent) MPI_Request_free(&request);
      }
      for (int i = 0; i < 200; ++i)
        if (numbers[i] != i) wrong("a wrong number");
      check(data, peer, rank);
    }
    free(data);
  }
}

/* A message that is too long is an error of its receive: nothing is written behind the buffer, the sender goes on. */
static void truncated(void) {
  MPI_Datatype half;
  MPI_Type_vector(rows / 2, 1, columns, MPI_DOUBLE, &half);
  MPI_Type_commit(&half);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < messages; ++i) {
    double* const data = matrix(rank == 0 ? 7 : -1);
    if (rank == 0) {
      MPI_Send(data + 1, 1, column, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      int class = 0, flag = 0;
      MPI_Request request;
      MPI_Status status;
      switch (i % 4) {
        case 0: MPI_Error_class(MPI_Recv(data + 1, 1, half, 0, 0, MPI_COMM_WORLD, &status), &class); break;
        case 1:
          MPI_Irecv(data + 1, 1, half, 0, 0, MPI_COMM_WORLD, &request);
          MPI_Error_class(MPI_Wait(&request, &status), &class);
          break;
        case 2:
          MPI_Probe(0, 0, MPI_COMM_WORLD, &status);
          MPI_Error_class(MPI_Recv(data + 1, 1, half, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
          break;
        default:
          MPI_Irecv(data + 1, 1, half, 0, 0, MPI_COMM_WORLD, &request);
          for (int tries = 0; tries < 1000 && !flag; ++tries) MPI_Request_get_status(request, &flag, &status);
          MPI_Error_class(MPI_Wait(&request, &status), &class);
      }
      if (class != MPI_ERR_TRUNCATE) wrong("no MPI_ERR_TRUNCATE");
      for (int k = rows / 2 * columns; k < rows * columns; ++k)
        if (data[k] != -1 + k % 1000) wrong("bytes behind the buffer");
    }
    free(data);
  }
  MPI_Type_free(&half);
  plain();
}

/* Not even the layer's record fits into the buffer: the receive fails as above, and later messages arrive right. */
static void truncated_records(void) {
  enum { most = 96 };
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  plain();
  for (int i = 0; i < 2 * messages; ++i) {
    double* const data = matrix(rank == 0 ? 7 : -1);
    if (rank == 0) {
      if (i % 3 == 2)
        MPI_Ssend(data + 1, 1, column, 1, 0, MPI_COMM_WORLD);
      else
        MPI_Send(data + 1, 1, column, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
      unsigned char small[2 * most];
      int const room = i % 5 == 0 ? 0 : 1 + i * 7 % 63;
      int class = 0;
      MPI_Request request;
      memset(small, 0x5a, sizeof small);
      switch (i % 4) {
        case 0:
          MPI_Error_class(MPI_Recv(small, room, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
          break;
        case 1:
          MPI_Irecv(small, room, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
          MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
          break;
        case 2:
          MPI_Probe(0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          MPI_Error_class(MPI_Recv(small, room, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
          break;
        default:
          MPI_Recv_init(small, room, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
          MPI_Start(&request);
          MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
          MPI_Request_free(&request);
      }
      if (class != MPI_ERR_TRUNCATE) wrong("no MPI_ERR_TRUNCATE");
      for (int k = room; k < 2 * most; ++k)
        if (small[k] != 0x5a) wrong("bytes behind the buffer");
    }
    free(data);
  }
  plain();
}

/* Threads get the error of a message that is too long at the same time, each on a communicator of its own. */
enum { truncating = 4, rounds_a_thread = 300 };
static MPI_Comm truncated_comms[truncating];
static MPI_Datatype truncated_type;
static void* truncated_thread(void* number) {
  MPI_Comm const comm = truncated_comms[(intptr_t)number];
  double* const data = matrix(rank == 0 ? 7 : -1);
  for (int i = 0; i < rounds_a_thread; ++i) {
    int class = 0;
    if (rank == 0) {
      MPI_Send(data + 1, 1, column, 1, 0, comm);
    } else {
      MPI_Error_class(MPI_Recv(data + 1, 1, truncated_type, 0, 0, comm, MPI_STATUS_IGNORE), &class);
#ifdef OPEN_MPI
      if (class != MPI_ERR_TRUNCATE) wrong("no MPI_ERR_TRUNCATE");
#else /* MPICH keeps the last 128 errors of all threads, and forgets the class of one that is older. */
      if (class == MPI_SUCCESS) wrong("no error");
#endif
    }
  }
  free(data);
  return NULL;
}
static void threaded_truncated(void) {
  pthread_t threads[truncating];
  MPI_Type_vector(rows / 2, 1, columns, MPI_DOUBLE, &truncated_type);
  MPI_Type_commit(&truncated_type);
  for (intptr_t i = 0; i < truncating; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &truncated_comms[i]);
    MPI_Comm_set_errhandler(truncated_comms[i], MPI_ERRORS_RETURN);
  }
  for (intptr_t i = 0; i < truncating; ++i) pthread_create(&threads[i], NULL, truncated_thread, (void*)i);
  for (int i = 0; i < truncating; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < truncating; ++i) MPI_Comm_free(&truncated_comms[i]);
  MPI_Type_free(&truncated_type);
  plain();
}

/* Wrong arguments are errors of MPI, whatever the layer would do with them. */
static void wrong_counts(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  double *const out = matrix(rank), *const in = matrix(-1);
  int const to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Request sent;
  MPI_Isend(out + 1, 1, column, to, 2, MPI_COMM_WORLD, &sent);
  MPI_Probe(from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (MPI_Sendrecv_replace(in + 1, -1, column, to, 2, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS)
    wrong("a count of -1 is taken");
  if (MPI_Send(out, -1, column, to, 2, MPI_COMM_WORLD) == MPI_SUCCESS) wrong("a count of -1 is sent");
  MPI_Recv(in + 1, 1, column, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(in, from, -1);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  free(out), free(in);
  plain();
}

/* A type that is none: an error of its communicator alone, and no error where there is nothing to send. */
static void null_types(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  double* const data = matrix(rank);
  if (MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, comm) == MPI_SUCCESS) wrong("no type is broadcast");
  if (MPI_Send(data, 1, MPI_DATATYPE_NULL, (rank + 1) % size, 2, comm) == MPI_SUCCESS) wrong("no type is sent");
#ifndef OPEN_MPI /* Open MPI takes it as an error */
  MPI_Datatype types[8];
  int zeros[8] = {0};
  for (int i = 0; i < 8; ++i) types[i] = MPI_DATATYPE_NULL;
  MPI_Alltoallw(data, zeros, zeros, types, data + 1, zeros, zeros, types, MPI_COMM_WORLD);
#endif
  free(data);
  MPI_Comm_free(&comm);
  plain();
}

static void forks(void) {
  ring(1);
  pid_t const child = fork();
  if (child == 0) {
    volatile double sum = 0;
    double* const own = matrix(3);
    for (int i = 0; i < rows; ++i) sum += own[i];
    free(own);
    exit(0);
  }
  plain();
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) wrong("the child did not end well");
  plain();
}

/* The buffers of messages go away when these have ended. */
static void unmapped(void) {
  size_t const bytes = rows * columns * sizeof(double);
  for (int i = 0; i < messages; ++i) {
    double* const out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double* const in =
        i % 2 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(bytes);
    for (int k = 0; k < rows * columns; ++k) out[k] = rank + k % 1000, in[k] = -1 + k % 1000;
    mprotect(out, bytes, PROT_READ);
    MPI_Request request[2];
    int const to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Irecv(in + 1, 1, column, from, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(out + 1, 1, column, to, 0, MPI_COMM_WORLD, &request[1]);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
    munmap(out, bytes);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    check(in, from, -1);
    if (i % 2)
      munmap(in, bytes);
    else
      free(in);
  }
}

/* The program maps other memory over blocks of malloc. When it has freed them, malloc gives out the same addresses
 * again. */
static void replaced(void) {
  size_t const page = 4096, bytes = (rows * columns * sizeof(double) + page - 1) / page * page;
  int const flags = MAP_PRIVATE | MAP_ANONYMOUS, both = PROT_READ | PROT_WRITE;
  for (int i = 0; i < messages; ++i) {
    void* block = NULL;
    if (posix_memalign(&block, page, bytes) != 0) (void)wrong("no memory");
    double* const out = block;
    memset(out, 1, bytes);
    if (i % 5 == 0) mmap(out, bytes, both, flags | MAP_FIXED, -1, 0);
    if (i % 5 == 1) mmap((char*)out + page, page, both, flags | MAP_FIXED, -1, 0);
    if (i % 5 == 2) mremap(mmap(NULL, bytes, both, flags, -1, 0), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, out);
    if (i % 5 == 3) {
      madvise(out, bytes, MADV_DONTNEED);
      for (int k = 0; k < rows * columns; ++k)
        if (out[k] != 0) (void)wrong("MADV_DONTNEED leaves bytes");
    }
    char* gone = NULL; /* a page that now lies elsewhere, and stays the program's own */
    if (i % 5 == 4) {
      char* const place = mmap(NULL, page, both, flags, -1, 0);
      /* UCX 1.13, which Debian's MPICH loads, takes the program's mremap and loses its last argument. */
      if (mremap((char*)out + page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place) gone = place;
      mmap((char*)out + page, page, both, flags | MAP_FIXED, -1, 0);
    }
    for (int k = 0; k < rows * columns; ++k) out[k] = rank + k % 1000;
    double* const in = matrix(-1);
    int const to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Sendrecv(out + 1, 1, column, to, 0, in + 1, 1, column, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, from, -1);
    free(in), free(out);
    ring(i);
    for (size_t k = 0; gone != NULL && k < page; ++k)
      if (gone[k] != 1) (void)wrong("memory that was moved away has changed");
    if (gone != NULL) munmap(gone, page);
  }
}

/* Long messages from one type to another, by every mode of sending: both ends copy them. */
static void joint(void) {
  enum { blocks = 3000 };
  int lengths[blocks], places[blocks];
  MPI_Datatype types[4];
  for (int i = 0; i < blocks; ++i) lengths[i] = 1 + (i * 7) % 8, places[i] = 16 * i + i % 8;
  int all = 0;
  for (int i = 0; i < blocks; ++i) all += lengths[i];
  MPI_Type_indexed(blocks, lengths, places, MPI_DOUBLE, &types[0]);
  MPI_Type_vector(all, 1, 3, MPI_DOUBLE, &types[1]);
  MPI_Type_contiguous(all, MPI_DOUBLE, &types[2]);
  MPI_Type_vector(all / 2, 2, 5, MPI_DOUBLE, &types[3]);
  for (int i = 0; i < 4; ++i) MPI_Type_commit(&types[i]);
  int const longest = 16 * blocks + 3 * all + 16;
  for (int i = 0; i < messages; ++i) {
    double *const out = malloc(longest * sizeof *out), *const in = malloc(longest * sizeof *in);
    double *const packed = malloc(all * sizeof *packed), *const wanted = malloc(longest * sizeof *wanted);
    int const even = all % 2 == 0, n = even ? 4 : 3;
    MPI_Datatype const from = types[i % n], to = types[i / n % n];
    for (int k = 0; k < longest; ++k) out[k] = i + k, in[k] = wanted[k] = -k;
    int position = 0;
    MPI_Pack(out, 1, from, packed, all * (int)sizeof *packed, &position, MPI_COMM_WORLD);
    position = 0;
    MPI_Unpack(packed, all * (int)sizeof *packed, &position, wanted, 1, to, MPI_COMM_WORLD);
    for (int side = 0; side < 2; ++side) {
      MPI_Request request;
      if (rank == side && i % 5 == 0)
        MPI_Isend(out, 1, from, 1 - rank, 3, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
      else if (rank == side && i % 5 == 1)
        MPI_Ssend(out, 1, from, 1 - rank, 3, MPI_COMM_WORLD);
      else if (rank == side)
        MPI_Send(out, 1, from, 1 - rank, 3, MPI_COMM_WORLD);
      else
        MPI_Recv(in, 1, to, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < longest; ++k)
      if (in[k] != wanted[k]) wrong("a wrong number");
    free(out), free(in), free(packed), free(wanted);
  }
  for (int i = 0; i < 4; ++i) MPI_Type_free(&types[i]);
}

/* Two ranks that wait for each other's messages take them at once, where threads are allowed, too. The messages are so
   long that a sender is patient for a millisecond. */
static void threaded_exchange(void) {
  enum { blocks = 1024, block = 512, all = 2 * blocks * block, times = 40 };
  MPI_Datatype type;
  MPI_Type_vector(blocks, block, 2 * block, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  double *const out = malloc(all * sizeof *out), *const in = malloc(all * sizeof *in);
  for (int i = 0; i < times; ++i) {
    MPI_Request both[2];
    for (int k = 0; k < all; ++k) out[k] = i + rank + k % 1000, in[k] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in, 1, type, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, 1, type, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int k = 0; k < all; ++k)
      if (in[k] != (k / block % 2 ? -1 : i + 1 - rank + k % 1000)) wrong("a wrong number");
  }
  free(out), free(in);
  MPI_Type_free(&type);
}

static void dies(void) {
  plain();
  if (rank == 1) raise(SIGKILL);
  for (;;) ring(0);
}

static void aborts(void) {
  plain();
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 5);
  for (;;) ring(0);
}

/* Receives that nothing answers, and sends that were let go, are open when the program ends. */
static void finalizes_with_open_requests(void) {
  static double in[rows * columns];
  MPI_Request request;
  plain();
  MPI_Irecv(in + 1, 1, column, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Recv_init(in + 1, 1, column, MPI_ANY_SOURCE, 98, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  double *const out = matrix(rank), *const got = matrix(-1);
  int const to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI_Isend(out + 1, 1, column, to, 1, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Recv(got + 1, 1, column, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(got, from, -1);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* More bytes than an int counts. */
static void huge(void) {
#if MPI_VERSION >= 4
  long const blocks = (1L << 31) / 4096 + 3, step = 4096 + 64;
  MPI_Datatype type;
  MPI_Type_vector_c(blocks, 4096, step, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  unsigned char* const data = malloc((size_t)(blocks * step));
  for (long i = 0; i < blocks; ++i) memset(data + i * step, rank == 0 ? (int)(i % 251) : 255, (size_t)step);
  for (int tag = 0; tag < 2 && rank == 0; ++tag) MPI_Send_c(data, 1, type, 1, tag, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Request request;
    MPI_Status status;
    MPI_Count bytes = 0;
    int flag = 0;
    MPI_Recv_c(data, 1, type, 0, 0, MPI_COMM_WORLD, &status);
    MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    if (bytes != blocks * 4096) wrong("the status has another size");
    for (long i = 0; i < blocks; ++i) {
      if (data[i * step] != i % 251 || data[i * step + 4095] != i % 251) wrong("a wrong byte");
      if (i + 1 < blocks && data[i * step + 4096] != 255) wrong("a gap has changed");
    }
    MPI_Irecv_c(data, 1, type, 0, 1, MPI_COMM_WORLD, &request);
    while (!flag) MPI_Request_get_status(request, &flag, &status);
    MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    if (bytes != blocks * 4096) wrong("the status of MPI_Request_get_status has another size");
    MPI_Wait(&request, &status);
    MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
    if (bytes != blocks * 4096) wrong("the status after MPI_Request_get_status has another size");
  }
  free(data);
  MPI_Type_free(&type);
#endif
}

enum { untouched = 77 };
static void expect_untouched(MPI_Status* status, char const* call) {
  if (status->MPI_ERROR != untouched) wrong(call);
  if (status->MPI_SOURCE != 0 || status->MPI_TAG != 5) wrong("another source or tag");
  memset(status, 0xab, sizeof *status);
  status->MPI_ERROR = untouched;
}

/* Calls that complete one message leave MPI_ERROR of a status as it was. */
static void status_errors(void) {
  for (int round = 0; round < 40 && rank < 2; ++round) {
    int const short_ones = round % 2;
    double* const data = matrix(rank == 0 ? round : -1);
    MPI_Datatype const type = short_ones ? MPI_INT : column;
    if (rank == 0) {
      MPI_Send(data + 1, 1, type, 1, 5, MPI_COMM_WORLD);
    } else {
      MPI_Status status;
      MPI_Message message;
      MPI_Request request;
      int flag = 0;
      memset(&status, 0xab, sizeof status);
      status.MPI_ERROR = untouched;
      switch (round / 2 % 5) {
        case 0:
          MPI_Mprobe(0, 5, MPI_COMM_WORLD, &message, &status);
          expect_untouched(&status, "MPI_Mprobe set MPI_ERROR");
          MPI_Mrecv(data + 1, 1, type, &message, &status);
          expect_untouched(&status, "MPI_Mrecv set MPI_ERROR");
          break;
        case 1:
          while (!flag) MPI_Improbe(0, 5, MPI_COMM_WORLD, &flag, &message, &status);
          expect_untouched(&status, "MPI_Improbe set MPI_ERROR");
          MPI_Imrecv(data + 1, 1, type, &message, &request);
          MPI_Wait(&request, &status);
          expect_untouched(&status, "MPI_Wait after MPI_Imrecv set MPI_ERROR");
          break;
        case 2:
          MPI_Probe(0, 5, MPI_COMM_WORLD, &status);
          expect_untouched(&status, "MPI_Probe set MPI_ERROR");
          MPI_Recv(data + 1, 1, type, 0, 5, MPI_COMM_WORLD, &status);
          expect_untouched(&status, "MPI_Recv after MPI_Probe set MPI_ERROR");
          break;
        case 3:
          while (!flag) MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, &status);
          expect_untouched(&status, "MPI_Iprobe set MPI_ERROR");
          MPI_Irecv(data + 1, 1, type, 0, 5, MPI_COMM_WORLD, &request);
          for (flag = 0; !flag;) MPI_Test(&request, &flag, &status);
          expect_untouched(&status, "MPI_Test set MPI_ERROR");
          break;
        default:
          MPI_Recv(data + 1, 1, type, 0, 5, MPI_COMM_WORLD, &status);
          expect_untouched(&status, "MPI_Recv set MPI_ERROR");
      }
      if (!short_ones) check(data, round, -1);
    }
    free(data);
  }
}

int main(int argc, char** argv) {
  static struct {
    char const* name;
    void (*run)(void);
  } const rules[] = {{"plain", plain},
                     {"isendrecv_after_probe", isendrecv_after_probe},
                     {"watcher", watcher},
                     {"cancelled_sends", cancelled_sends},
                     {"cancelled_send_of_the_mpi", cancelled_send_of_the_mpi},
                     {"cancelled_after_their_end", cancelled_after_their_end},
                     {"cancel_after_probe", cancel_after_probe},
                     {"truncated", truncated},
                     {"truncated_records", truncated_records},
                     {"wrong_counts", wrong_counts},
                     {"null_types", null_types},
                     {"forks", forks},
                     {"unmapped", unmapped},
                     {"replaced", replaced},
                     {"joint", joint},
                     {"threaded_exchange", threaded_exchange},
                     {"threaded_truncated", threaded_truncated},
                     {"dies", dies},
                     {"aborts", aborts},
                     {"finalizes", finalizes_with_open_requests},
                     {"huge", huge},
                     {"status_errors", status_errors},
                     {"forbidden", forbidden}};
  int provided;
  MPI_Init_thread(&argc, &argv,
                  argc > 1 && (strcmp(argv[1], "watcher") == 0 || strstr(argv[1], "threaded")) ? MPI_THREAD_MULTIPLE
                                                                                               : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  int known = 0;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i)
    if (argc > 1 && strcmp(argv[1], rules[i].name) == 0) rules[i].run(), known = 1;
  MPI_Type_free(&column);
  if (known && rank == 0) printf("kept\n");
  fflush(stdout);
  MPI_Finalize();
  return !known;
}
