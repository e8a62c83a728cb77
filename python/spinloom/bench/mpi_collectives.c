/* MPI collectives - what a collective call with datatypes takes between the ranks of one MPI, and the same by hand.
 *
 * Contract: mpi_job.h. "load FILE" reads FILE.RANK, which collective_rows.py writes: what this rank sends and receives, each
 *   part by a datatype and by the loops that a program would write in its place. KIND is
 *     types                  the call, with datatypes
 *     hand                   a loop that packs, contiguous bytes by the plain call, a loop that unpacks
 *     fresh-types, fresh-hand    the same; what is sent is written anew before each call, outside of the time
 *   "check" answers the hash of this rank's whole receive memory; 0 where this MPI has no such call, 1 where the call has
 *   changed what is sent. "time" answers ns a call, REPETITIONS numbers: the time of the slower rank.
 * Memory: a rank's send memory and its receive memory have margin_bytes before and behind; the words of all send memories
 *   are numbered one after the other and filled by that number. The first and the last of them stand at both ends of each
 *   receive memory too, so that the oracle's copy covers all of it.
 * Threads: one. Time: now_ns() is the host's clock.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_job.h"

enum { parts_max = 8, loops_max = 4, dims_max = 3, margin_bytes = 64 };
/* The layer's ranks agree on its way in the first calls. The one that is compared must go the way of those that are timed. */
enum { calls_first = 10 };

typedef struct {
  int64_t count, memory, packed; /* steps in bytes */
} loop;

/* What goes to one rank, or comes from it. */
typedef struct {
  int64_t start, block, loop_count; /* hand loops: runs of block bytes from start on */
  loop loops[loops_max];
} part;

typedef struct {
  int count; /* the number of parts */
  part parts[parts_max];
  int peers[parts_max], tags[parts_max]; /* -1: nobody */
  int counts[parts_max], bytes_at[parts_max], extents_at[parts_max];
  MPI_Datatype types[parts_max];
  int named[parts_max]; /* a type of the MPI's own, as programs use it */
  int sizes[parts_max], packed_at[parts_max]; /* packed bytes */
  char *memory, *data, *packed;
  char* direct; /* all parts lie in packed order already, from here on, unless NULL */
  int64_t bytes, packed_bytes;
} half;

typedef struct {
  char name[32];
  void (*call)(void);
  void (*exchange)(void); /* the exchange of packed bytes */
} known;

static half out, in;
static const known* row;
static int root;
static int64_t first_word, words_of_all;
static MPI_Comm grid = MPI_COMM_NULL;
static MPI_Request persistent = MPI_REQUEST_NULL;

static void finish(MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

/* The calls with datatypes. */

static void alltoallw(void) {
  MPI_Alltoallw(out.data, out.counts, out.bytes_at, out.types, in.data, in.counts, in.bytes_at, in.types,
                MPI_COMM_WORLD);
}

static void ialltoallw(void) {
  MPI_Request request;
  MPI_Ialltoallw(out.data, out.counts, out.bytes_at, out.types, in.data, in.counts, in.bytes_at, in.types,
                 MPI_COMM_WORLD, &request);
  finish(&request);
}

#if MPI_VERSION >= 4
static void alltoallw_init(void) {
  if (persistent == MPI_REQUEST_NULL)
    MPI_Alltoallw_init(out.data, out.counts, out.bytes_at, out.types, in.data, in.counts, in.bytes_at, in.types,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
  MPI_Start(&persistent);
  finish(&persistent);
}
#else
#define alltoallw_init NULL
#endif

static void alltoall(void) {
  MPI_Alltoall(out.data, out.counts[0], out.types[0], in.data, in.counts[0], in.types[0], MPI_COMM_WORLD);
}

/* Neighbours want addresses where other calls want ints. */
static void addresses_of(const half* h, MPI_Aint* at) {
  for (int i = 0; i < h->count; ++i) at[i] = h->bytes_at[i];
}

static void neighbor_alltoallw(void) {
  MPI_Aint from[parts_max], to[parts_max];
  addresses_of(&out, from), addresses_of(&in, to);
  MPI_Neighbor_alltoallw(out.data, out.counts, from, out.types, in.data, in.counts, to, in.types, grid);
}

static void ineighbor_alltoallw(void) {
  MPI_Aint from[parts_max], to[parts_max];
  MPI_Request request;
  addresses_of(&out, from), addresses_of(&in, to);
  MPI_Ineighbor_alltoallw(out.data, out.counts, from, out.types, in.data, in.counts, to, in.types, grid, &request);
  finish(&request);
}

static void neighbor_alltoall(void) {
  MPI_Neighbor_alltoall(out.data, out.counts[0], out.types[0], in.data, in.counts[0], in.types[0], grid);
}

static void gather(void) {
  MPI_Gather(out.data, out.counts[0], out.types[0], in.data, in.counts[0], in.types[0], root, MPI_COMM_WORLD);
}

static void gatherv(void) {
  MPI_Gatherv(out.data, out.counts[0], out.types[0], in.data, in.counts, in.extents_at, in.types[0], root,
              MPI_COMM_WORLD);
}

static void scatter(void) {
  MPI_Scatter(out.data, out.counts[0], out.types[0], in.data, in.counts[0], in.types[0], root, MPI_COMM_WORLD);
}

static void scatterv(void) {
  MPI_Scatterv(out.data, out.counts, out.extents_at, out.types[0], in.data, in.counts[0], in.types[0], root,
               MPI_COMM_WORLD);
}

static void allgather(void) {
  MPI_Allgather(out.data, out.counts[0], out.types[0], in.data, in.counts[0], in.types[0], MPI_COMM_WORLD);
}

static void allgatherv(void) {
  MPI_Allgatherv(out.data, out.counts[0], out.types[0], in.data, in.counts, in.extents_at, in.types[0], MPI_COMM_WORLD);
}

static void bcast(void) {
  const half* h = rank == root ? &out : &in;
  MPI_Bcast(h->data, h->counts[0], h->types[0], root, MPI_COMM_WORLD);
}

/* The same calls for packed bytes. */

static char* wire(const half* h) { return h->direct ? h->direct : h->packed; }

static int all_equal(const half* h) {
  for (int i = 1; i < h->count; ++i)
    if (h->sizes[i] != h->sizes[0]) return 0;
  return 1;
}

static void exchange_all(void) {
  if (all_equal(&out) && all_equal(&in))
    MPI_Alltoall(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes[0], MPI_BYTE, MPI_COMM_WORLD);
  else
    MPI_Alltoallv(wire(&out), out.sizes, out.packed_at, MPI_BYTE, wire(&in), in.sizes, in.packed_at, MPI_BYTE,
                  MPI_COMM_WORLD);
}

static void begin_exchange_all(void) {
  MPI_Request request;
  MPI_Ialltoallv(wire(&out), out.sizes, out.packed_at, MPI_BYTE, wire(&in), in.sizes, in.packed_at, MPI_BYTE,
                 MPI_COMM_WORLD, &request);
  finish(&request);
}

static void exchange_neighbours(void) {
  MPI_Request requests[2 * parts_max];
  int count = 0;
  for (int i = 0; i < in.count; ++i)
    if (in.peers[i] >= 0)
      MPI_Irecv(wire(&in) + in.packed_at[i], in.sizes[i], MPI_BYTE, in.peers[i], in.tags[i], grid, &requests[count++]);
  for (int i = 0; i < out.count; ++i)
    if (out.peers[i] >= 0)
      MPI_Isend(wire(&out) + out.packed_at[i], out.sizes[i], MPI_BYTE, out.peers[i], out.tags[i], grid,
                &requests[count++]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void exchange_gather(void) {
  MPI_Gather(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes[0], MPI_BYTE, root, MPI_COMM_WORLD);
}

static void exchange_gatherv(void) {
  MPI_Gatherv(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes, in.packed_at, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void exchange_scatter(void) {
  MPI_Scatter(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes[0], MPI_BYTE, root, MPI_COMM_WORLD);
}

static void exchange_scatterv(void) {
  MPI_Scatterv(wire(&out), out.sizes, out.packed_at, MPI_BYTE, wire(&in), in.sizes[0], MPI_BYTE, root, MPI_COMM_WORLD);
}

static void exchange_allgather(void) {
  MPI_Allgather(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes[0], MPI_BYTE, MPI_COMM_WORLD);
}

static void exchange_allgatherv(void) {
  MPI_Allgatherv(wire(&out), out.sizes[0], MPI_BYTE, wire(&in), in.sizes, in.packed_at, MPI_BYTE, MPI_COMM_WORLD);
}

static void exchange_bcast(void) {
  const half* h = rank == root ? &out : &in;
  MPI_Bcast(wire(h), h->sizes[0], MPI_BYTE, root, MPI_COMM_WORLD);
}

static const known calls_known[] = {
    {"alltoallw", alltoallw, exchange_all},
    {"ialltoallw", ialltoallw, begin_exchange_all},
    {"alltoallw_init", alltoallw_init, exchange_all},
    {"alltoall", alltoall, exchange_all},
    {"neighbor_alltoallw", neighbor_alltoallw, exchange_neighbours},
    {"ineighbor_alltoallw", ineighbor_alltoallw, exchange_neighbours},
    {"neighbor_alltoall", neighbor_alltoall, exchange_neighbours},
    {"gather", gather, exchange_gather},
    {"gatherv", gatherv, exchange_gatherv},
    {"scatter", scatter, exchange_scatter},
    {"scatterv", scatterv, exchange_scatterv},
    {"allgather", allgather, exchange_allgather},
    {"allgatherv", allgatherv, exchange_allgatherv},
    {"bcast", bcast, exchange_bcast},
};

/* The loops by hand. A block of a number's size is a number, as it would be in a program. */

static inline void runs(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count, size_t block) {
  for (int64_t i = 0; i < count; ++i, to += to_step, from += from_step) memcpy(to, from, block);
}

static void run_loop(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count, int64_t block) {
  if (block == 8)
    runs(to, to_step, from, from_step, count, 8);
  else if (block == 16)
    runs(to, to_step, from, from_step, count, 16);
  else
    runs(to, to_step, from, from_step, count, (size_t)block);
}

static void walk(const part* p, int64_t depth, char* memory, char* packed, int packs) {
  if (p->loop_count == 0) {
    memcpy(packs ? packed : memory, packs ? memory : packed, (size_t)p->block);
    return;
  }
  const loop* l = &p->loops[depth];
  if (depth + 1 < p->loop_count) {
    for (int64_t i = 0; i < l->count; ++i) walk(p, depth + 1, memory + i * l->memory, packed + i * l->packed, packs);
  } else if (packs) {
    run_loop(packed, l->packed, memory, l->memory, l->count, p->block);
  } else {
    run_loop(memory, l->memory, packed, l->packed, l->count, p->block);
  }
}

static void walk_all(half* h, int packs) {
  if (h->direct) return;
  for (int i = 0; i < h->count; ++i)
    if (h->sizes[i] > 0) walk(&h->parts[i], 0, h->data + h->parts[i].start, h->packed + h->packed_at[i], packs);
}

static void by_hand(void) {
  walk_all(&out, 1);
  row->exchange();
  walk_all(&in, 0);
}

/* Only a job that works by hand has memory for packed bytes. */
static void need_packed(half* h) {
  if (h->direct || h->packed) return;
  h->packed = must_allocate(h->packed_bytes);
  memset(h->packed, 0xa5, (size_t)h->packed_bytes);
}

/* A row's file. */

static int64_t next(FILE* file) {
  int64_t word = 0;
  if (fread(&word, sizeof word, 1, file) != 1) abort();
  return word;
}

static void release(half* h) {
  for (int i = 0; i < h->count; ++i)
    if (!h->named[i]) MPI_Type_free(&h->types[i]);
  free(h->memory);
  free(h->packed);
  memset(h, 0, sizeof *h);
  for (int i = 0; i < parts_max; ++i) h->types[i] = MPI_DOUBLE;
}

static MPI_Datatype read_type(FILE* file, int* named) {
  const int64_t count = next(file);
  int64_t* words = must_allocate(count * 8);
  if (fread(words, 8, (size_t)count, file) != (size_t)count) abort();
  *named = count == 2; /* a primitive and no constructor */
  MPI_Datatype type = *named ? primitive(words[1]) : build(words, words + count);
  free(words);
  return type;
}

static void read_part(FILE* file, half* h, int i) {
  part* p = &h->parts[i];
  h->peers[i] = (int)next(file);
  h->tags[i] = (int)next(file);
  h->counts[i] = (int)next(file);
  h->bytes_at[i] = (int)next(file);
  h->types[i] = read_type(file, &h->named[i]);
  p->start = next(file);
  p->block = next(file);
  p->loop_count = next(file);
  if (p->loop_count > loops_max) abort();
  for (int64_t l = 0; l < p->loop_count; ++l) {
    p->loops[l].count = next(file);
    p->loops[l].memory = next(file);
    p->loops[l].packed = next(file);
  }
  MPI_Aint lb, extent;
  int size;
  MPI_Type_get_extent(h->types[i], &lb, &extent);
  MPI_Type_size(h->types[i], &size);
  h->extents_at[i] = (int)(h->bytes_at[i] / (extent > 0 ? extent : 1));
  h->sizes[i] = size * h->counts[i];
  h->packed_at[i] = (int)h->packed_bytes;
  h->packed_bytes += h->sizes[i];
}

static void read_half(FILE* file, half* h) {
  h->bytes = next(file);
  h->count = (int)next(file);
  if (h->count > parts_max) abort();
  for (int i = 0; i < h->count; ++i) read_part(file, h, i);
  h->memory = must_allocate(h->bytes);
  h->data = h->memory + margin_bytes;
  h->direct = h->data + (h->count > 0 ? h->parts[0].start : 0);
  for (int i = 0; i < h->count; ++i)
    if (h->parts[i].loop_count > 0 || h->parts[i].start != h->parts[0].start + h->packed_at[i]) h->direct = NULL;
}

static void read_grid(FILE* file) {
  int dims[dims_max], periods[dims_max];
  const int64_t count = next(file);
  if (count > dims_max) abort();
  for (int64_t i = 0; i < count; ++i) {
    dims[i] = (int)next(file);
    periods[i] = (int)next(file);
  }
  if (grid != MPI_COMM_NULL) MPI_Comm_free(&grid);
  if (count > 0) MPI_Cart_create(MPI_COMM_WORLD, (int)count, dims, periods, 0, &grid);
}

static int load(const char* path) {
  static char name[4100];
  char call[32];
  snprintf(name, sizeof name, "%s.%d", path, rank);
  FILE* file = fopen(name, "rb");
  if (!file) return 0;
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  release(&out);
  release(&in);
  row = NULL;
  if (fread(call, sizeof call, 1, file) != 1) abort();
  for (size_t i = 0; i < sizeof calls_known / sizeof *calls_known; ++i)
    if (strcmp(calls_known[i].name, call) == 0) row = &calls_known[i];
  root = (int)next(file);
  read_grid(file);
  first_word = next(file);
  words_of_all = next(file);
  read_half(file, &out);
  read_half(file, &in);
  fclose(file);
  return row != NULL;
}

static void refill(void) {
  fill(out.memory, out.bytes, (uint64_t)first_word);
  fill(in.memory, in.bytes, (uint64_t)1 << 40);
  const uint64_t first = pattern(0), last = pattern((uint64_t)words_of_all - 1);
  memcpy(in.memory, &first, sizeof first);
  memcpy(in.memory + in.bytes - sizeof last, &last, sizeof last);
}

static int sent_is_changed(void) {
  for (int64_t at = 0; at < out.bytes; at += 8) {
    uint64_t word;
    memcpy(&word, out.memory + at, sizeof word);
    if (word != pattern((uint64_t)(first_word + at / 8))) return 1;
  }
  return 0;
}

static void rewrite(void) {
  uint64_t* word = (uint64_t*)out.memory;
  for (int64_t i = 0; i < out.bytes / 8; ++i) word[i] += 1;
}

/* What a kind does; NULL: this MPI has no such call. */
static void (*doer_of(const char* kind))(void) {
  if (!strstr(kind, "hand")) return row->call;
  need_packed(&out);
  need_packed(&in);
  return by_hand;
}

static unsigned long long check(const char* kind) {
  void (*const call)(void) = doer_of(kind);
  if (!call) return 0;
  for (int i = 0; i < calls_first; ++i) call();
  refill();
  MPI_Barrier(MPI_COMM_WORLD);
  call();
  return sent_is_changed() ? 1 : hash_of(in.memory, in.bytes);
}

static double of_slower(double ns) {
  double most = ns;
  MPI_Allreduce(&ns, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static double one_fresh(void (*call)(void)) {
  rewrite();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_ns();
  call();
  return of_slower(now_ns() - begin);
}

static void measure(FILE* out_file, const char* kind, int repetitions, long calls) {
  void (*const call)(void) = doer_of(kind);
  const int is_fresh = strncmp(kind, "fresh", 5) == 0;
  if (!call) return;
  call();
  for (int i = 0; i < repetitions; ++i) {
    double spent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now_ns();
    for (long done = 0; done < calls; ++done) {
      if (is_fresh)
        spent += one_fresh(call);
      else
        call();
    }
    if (!is_fresh) spent = of_slower(now_ns() - begin);
    fprintf(out_file, "%.2f ", spent / (double)calls);
  }
}

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
