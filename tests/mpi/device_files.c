/* Files that are written from a GPU's memory and read into it, by every call that does so:
 *   device_files PATH          each call writes, and each reads; the bytes are compared by the host's own reads of the
 *   file device_files PATH errors   one call that must fail, by the error handler of its file
 * Ends with "calls N wrong 0", or with the error's text, from rank 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"

enum { items = 3000, stride = 3, span = items * stride };
enum {
  own,
  own_later,
  own_all,
  own_all_later,
  own_split,
  at,
  at_later,
  at_all,
  at_all_later,
  at_split,
  shared,
  shared_later,
  ordered,
  ordered_split,
  ways
};
static char const* const names[ways] = {"own",    "own_later",    "own_all", "own_all_later", "own_split",
                                        "at",     "at_later",     "at_all",  "at_all_later",  "at_split",
                                        "shared", "shared_later", "ordered", "ordered_split"};

static int rank, size, wrong, calls;
static int *memory, *window; /* the address that MPI is told, and the one that is seen here */
static int* in_file;

/* One call, or the two that it has. */
#define NOW(write, read, ...) \
  return writes ? MPI_File_##write(__VA_ARGS__, status) : MPI_File_##read(__VA_ARGS__, status)
#define LATER(write, read, ...)                                                                            \
  return code = writes ? MPI_File_##write(__VA_ARGS__, &request) : MPI_File_##read(__VA_ARGS__, &request), \
         code == MPI_SUCCESS ? ended(&request, status) : code
#define SPLIT(write, read, end_write, end_read, ...)                            \
  code = writes ? MPI_File_##write(__VA_ARGS__) : MPI_File_##read(__VA_ARGS__); \
  if (code != MPI_SUCCESS) return code;                                         \
  return writes ? MPI_File_##end_write(file, buffer, status) : MPI_File_##end_read(file, buffer, status)

static int ended(MPI_Request* request, MPI_Status* status) {
  static int turn;
  int code = MPI_SUCCESS, flag = 0;
  if (turn++ % 2 == 0) return MPI_Wait(request, status);
  while (flag == 0 && code == MPI_SUCCESS) code = MPI_Test(request, &flag, status);
  return code;
}

static int transfer(int way, int writes, MPI_File file, MPI_Offset place, void* buffer, int count, MPI_Datatype type,
                    MPI_Status* status) {
  MPI_Request request;
  int code;
  switch (way) {
    case own: NOW(write, read, file, buffer, count, type);
    case own_later: LATER(iwrite, iread, file, buffer, count, type);
    case own_all: NOW(write_all, read_all, file, buffer, count, type);
    case own_all_later: LATER(iwrite_all, iread_all, file, buffer, count, type);
    case own_split: SPLIT(write_all_begin, read_all_begin, write_all_end, read_all_end, file, buffer, count, type);
    case at: NOW(write_at, read_at, file, place, buffer, count, type);
    case at_later: LATER(iwrite_at, iread_at, file, place, buffer, count, type);
    case at_all: NOW(write_at_all, read_at_all, file, place, buffer, count, type);
    case at_all_later: LATER(iwrite_at_all, iread_at_all, file, place, buffer, count, type);
    case at_split:
      SPLIT(write_at_all_begin, read_at_all_begin, write_at_all_end, read_at_all_end, file, place, buffer, count, type);
    case shared: NOW(write_shared, read_shared, file, buffer, count, type);
    case shared_later: LATER(iwrite_shared, iread_shared, file, buffer, count, type);
    case ordered: NOW(write_ordered, read_ordered, file, buffer, count, type);
    default:
      SPLIT(write_ordered_begin, read_ordered_begin, write_ordered_end, read_ordered_end, file, buffer, count, type);
  }
}
#if MPI_VERSION >= 4
static int transfer_large(int way, int writes, MPI_File file, MPI_Offset place, void* buffer, int count,
                          MPI_Datatype type, MPI_Status* status) {
  MPI_Request request;
  int code;
  switch (way) {
    case own: NOW(write_c, read_c, file, buffer, count, type);
    case own_all_later: LATER(iwrite_all_c, iread_all_c, file, buffer, count, type);
    case at_later: LATER(iwrite_at_c, iread_at_c, file, place, buffer, count, type);
    case at_split:
      SPLIT(write_at_all_begin_c, read_at_all_begin_c, write_at_all_end, read_at_all_end, file, place, buffer, count,
            type);
    case shared: NOW(write_shared_c, read_shared_c, file, buffer, count, type);
    case ordered_split:
      SPLIT(write_ordered_begin_c, read_ordered_begin_c, write_ordered_end, read_ordered_end, file, buffer, count,
            type);
    default: return transfer(way, writes, file, place, buffer, count, type, status);
  }
}
#else
/* The layer has these calls for an MPI that has none: programs that look for them at run time find them. */
typedef int (*WriteAt)(MPI_File, MPI_Offset, void const*, long long, MPI_Datatype, MPI_Status*);
typedef int (*ReadShared)(MPI_File, void*, long long, MPI_Datatype, MPI_Status*);
static int transfer_large(int way, int writes, MPI_File file, MPI_Offset place, void* buffer, int count,
                          MPI_Datatype type, MPI_Status* status) {
  WriteAt const write_at = (WriteAt)dlsym(RTLD_DEFAULT, "MPI_File_write_at_c");
  ReadShared const read_shared = (ReadShared)dlsym(RTLD_DEFAULT, "MPI_File_read_shared_c");
  if (way == at && writes && write_at != NULL) return write_at(file, place, buffer, count, type, status);
  if (way == shared && !writes && read_shared != NULL) return read_shared(file, buffer, count, type, status);
  return transfer(way, writes, file, place, buffer, count, type, status);
}
#endif

static int is_shared(int way) { return way >= shared; }
static int item(int of_rank, int turn, int i) { return (of_rank + 1) * 1000000 + turn * 10000 + i; }
static void say(int way, char const* what, int i, int found) {
  if (wrong++ < 4) fprintf(stderr, "rank %d, %s, %s: item %d is %d\n", rank, names[way], what, i, found);
}

static void write_whole(char const* path, int turn) {
  FILE* const file = fopen(path, "wb");
  for (int of = 0; of < size; ++of)
    for (int i = 0; i < items; ++i) in_file[of * items + i] = item(of, turn, i);
  if (file == NULL || fwrite(in_file, sizeof(int), (size_t)(items * size), file) != (size_t)(items * size)) abort();
  fclose(file);
}
static void read_whole(char const* path) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL || fread(in_file, sizeof(int), (size_t)(items * size), file) != (size_t)(items * size)) ++wrong;
  if (file != NULL) fclose(file);
}
/* Returns the rank whose bytes lie at the place of `of`: with the shared pointer, ranks write in any order. */
static int owner_at(int way, int turn, int of) {
  for (int other = 0; (way == shared || way == shared_later) && other < size; ++other)
    if (in_file[of * items] == item(other, turn, 0)) return other;
  return of;
}

static MPI_File opened(char const* path) {
  MPI_File file;
  MPI_Barrier(MPI_COMM_WORLD);
  if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
    abort();
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  return file;
}

static void write_and_compare(char const* path, int way, int large, MPI_Datatype type, int count, int every, int turn) {
  MPI_Status status;
  int got = -1;
  if (rank == 0) remove(path);
  MPI_File file = opened(path);
  for (int i = 0; i < span; ++i) window[i] = i % every == 0 ? item(rank, turn, i / every) : -3;
  MPI_Offset const place = (MPI_Offset)rank * items;
  if (!is_shared(way)) MPI_File_seek(file, place, MPI_SEEK_SET);
  int const code = (large ? transfer_large : transfer)(way, 1, file, place, memory, count, type, &status);
  if (code != MPI_SUCCESS) say(way, "the code of writing", -1, code);
  MPI_Get_elements(&status, type, &got);
  if (got != items) say(way, "the status of writing", -1, got);
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  read_whole(path);
  for (int of = 0; of < size; ++of) {
    int const owner = owner_at(way, turn, of);
    for (int i = 0; i < items; ++i)
      if (in_file[of * items + i] != item(owner, turn, i)) {
        say(way, "in the file", i, in_file[of * items + i]);
        break;
      }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The last rank's part ends behind the file's end when `cut` is not 0: so many items less come. Other calls do not tell
 * so of buffers of the host, too: Open MPI 4.1 never ends such a request, and collective calls say that all has
 * come. */
static void read_and_compare(char const* path, int way, int large, MPI_Datatype type, int count, int every, int turn,
                             int cut) {
  MPI_Status status;
  int got = -1;
  if (rank == 0) write_whole(path, turn);
  MPI_File file = opened(path);
  for (int i = 0; i < span; ++i) window[i] = -3;
  MPI_Offset const place = (MPI_Offset)rank * items + cut;
  if (!is_shared(way)) MPI_File_seek(file, place, MPI_SEEK_SET);
  if (is_shared(way)) MPI_File_seek_shared(file, cut, MPI_SEEK_SET);
  int const code = (large ? transfer_large : transfer)(way, 0, file, place, memory, count, type, &status);
  if (code != MPI_SUCCESS) say(way, "the code of reading", -1, code);
  MPI_Get_elements(&status, type, &got);
  /* A read by the shared pointer may get any rank's part: what has come says whose it is. */
  int of = rank;
  for (int other = 0; is_shared(way) && other < size; ++other)
    if (window[0] == item(other, turn, cut)) of = other;
  int const wanted = of == size - 1 ? items - cut : items;
  if (got != wanted) say(way, "the status of reading", -1, got);
  for (int i = 0; i < span; ++i) {
    int const index = of * items + cut + i / every, is_item = i % every == 0 && i / every < wanted;
    int const want = is_item ? item(index / items, turn, index % items) : -3;
    if (window[i] == want) continue;
    say(way, "in memory", i, window[i]);
    break;
  }
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank sees every item that is its own, one of `size`. */
static void interleaved(char const* path, MPI_Datatype type, int turn) {
  MPI_Datatype view;
  MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &view);
  MPI_Type_commit(&view);
  if (rank == 0) remove(path);
  MPI_File file = opened(path);
  MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, view, "native", MPI_INFO_NULL);
  for (int i = 0; i < span; ++i) window[i] = i % stride == 0 ? item(rank, turn, i / stride) : -3;
  MPI_File_write_all(file, memory, 1, type, MPI_STATUS_IGNORE);
  for (int i = 0; i < span; ++i) window[i] = -3;
  MPI_File_read_at_all(file, 0, memory, 1, type, MPI_STATUS_IGNORE);
  for (int i = 0; i < span; ++i)
    if (window[i] != (i % stride == 0 ? item(rank, turn, i / stride) : -3)) {
      say(own_all, "interleaved, in memory", i, window[i]);
      break;
    }
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  read_whole(path);
  for (int i = 0; i < items * size; ++i)
    if (in_file[i] != item(i % size, turn, i / size)) {
      say(own_all, "interleaved, in the file", i, in_file[i]);
      break;
    }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&view);
  calls += 2;
}

/* Requests that nobody waits for, of a file that is closed at once. */
static void freed(char const* path, MPI_Datatype type, int turn) {
  MPI_Request request;
  MPI_Offset const place = (MPI_Offset)rank * items;
  MPI_File file = opened(path);
  for (int i = 0; i < span; ++i) window[i] = i % stride == 0 ? item(rank, turn, i / stride) : -3;
  MPI_File_iwrite_at(file, place, memory, 1, type, &request);
  MPI_Request_free(&request);
  for (int i = 0; i < span; ++i) window[i] = -3;
  MPI_File_iread_at(file, place, memory, 1, type, &request);
  MPI_Request_free(&request);
  MPI_File_close(&file);
  for (int i = 0; i < span; ++i)
    if (window[i] != (i % stride == 0 ? item(rank, turn, i / stride) : -3)) {
      say(at_later, "freed, in memory", i, window[i]);
      break;
    }
  MPI_Barrier(MPI_COMM_WORLD);
  calls += 2;
}

static int heard;
static void hear(MPI_File* file, int* code, ...) {
  (void)file, (void)code;
  ++heard;
}
static void errors(char const* path, MPI_Datatype type) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_File file = opened(path);
  MPI_Errhandler handler;
  MPI_Status status;
  int const first = MPI_File_write(file, memory, 1, type, &status);
  MPI_File_create_errhandler(hear, &handler);
  MPI_File_set_errhandler(file, handler);
  int const second = MPI_File_read_all(file, memory, 1, type, &status);
  MPI_Error_string(second, text, &length);
  if (rank == 0) printf("codes %d %d heard %d: %s\n", first != MPI_SUCCESS, second != MPI_SUCCESS, heard, text);
  MPI_File_close(&file);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  unsigned char* seen;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  memory = (int*)(void*)device_alloc(span * sizeof(int), &seen), window = (int*)(void*)seen;
  in_file = malloc(sizeof(int) * items * (size_t)size);
  MPI_Datatype apart;
  MPI_Type_vector(items, 1, stride, MPI_INT, &apart);
  MPI_Type_commit(&apart);
  if (argc > 2) {
    errors(argv[1], apart);
  } else {
    int turn = 0;
    for (int large = 0; large < 2; ++large)
      for (int has_gaps = 0; has_gaps < 2; ++has_gaps)
        for (int way = 0; way < ways; ++way) {
          MPI_Datatype const type = has_gaps ? apart : MPI_INT;
          int const count = has_gaps ? 1 : items, every = has_gaps ? stride : 1;
          write_and_compare(argv[1], way, large, type, count, every, turn++);
          read_and_compare(argv[1], way, large, type, count, every, turn++, 0);
          calls += 2;
          if (way != own && way != at) continue;
          read_and_compare(argv[1], way, large, type, count, every, turn++, 7);
          ++calls;
        }
    interleaved(argv[1], apart, turn++);
    freed(argv[1], apart, turn);
    int any = 0;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("calls %d wrong %d\n", calls, any);
    wrong = any;
  }
  if (rank == 0) remove(argv[1]);
  MPI_Type_free(&apart);
  device_free((unsigned char*)memory, (unsigned char*)window);
  free(in_file);
  MPI_Finalize();
  return wrong != 0;
}
