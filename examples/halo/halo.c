/* The halo exchange of a 3-D grid with itself (periodic borders), three times: by hand-written loops, by layouts
 * through a packed buffer, and by layouts from face to halo at once. The grids are compared byte by byte before a time
 * is printed.
 *
 *   halo [side [repetitions]]      side of the cube without its halo, 128 unless given
 */
#include <spinloom/layout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hand.h"

enum { axes = 3, halo = 2, directions = 2 * axes, ways = 3 };
static const char* const way_names[ways] = {"hand loop", "layout pack", "layout copy"};

struct exchange {
  struct box from, to;       /* the face that is sent, the halo where it lands */
  spl_layout *source, *target;
  size_t values;
};

static void good(spl_layout_status status) {
  if (status == SPL_LAYOUT_OK) return;
  fprintf(stderr, "halo: %s\n", spl_layout_last_error());
  exit(2);
}

static spl_layout* layout_of(const int sizes[3], const struct box* box) {
  int64_t all[axes], part[axes], start[axes];
  for (int d = 0; d < axes; ++d) {
    all[d] = sizes[d];
    part[d] = box->length[d];
    start[d] = box->start[d];
  }
  spl_layout *value = NULL, *layout = NULL;
  good(spl_layout_primitive("double", &value));
  good(spl_layout_subarray(axes, all, part, start, SPL_LAYOUT_ORDER_C, value, &layout));
  good(spl_layout_commit(layout));
  spl_layout_free(value);
  return layout;
}

/* Along `axis`, upwards or downwards: the last inner planes land in the halo before the first ones, and so on. */
static struct exchange exchange_of(const int sizes[3], int axis, int up) {
  struct exchange made = {0};
  made.values = 1;
  for (int d = 0; d < axes; ++d) {
    const int inner = sizes[d] - 2 * halo;
    made.from.start[d] = made.to.start[d] = halo;
    made.from.length[d] = made.to.length[d] = d == axis ? halo : inner;
    made.values *= (size_t)made.from.length[d];
  }
  made.from.start[axis] = up ? sizes[axis] - 2 * halo : halo;
  made.to.start[axis] = up ? 0 : sizes[axis] - halo;
  made.source = layout_of(sizes, &made.from);
  made.target = layout_of(sizes, &made.to);
  return made;
}

static void run(int way, const struct exchange* exchange, const int sizes[3], double* grid, double* packed) {
  switch (way) {
    case 0:
      hand_pack(grid, sizes, &exchange->from, packed);
      hand_unpack(grid, sizes, &exchange->to, packed);
      break;
    case 1:
      good(spl_layout_pack(exchange->source, 1, grid, packed));
      good(spl_layout_unpack(exchange->target, 1, grid, packed));
      break;
    default: good(spl_layout_copy(exchange->source, 1, grid, exchange->target, 1, grid)); break;
  }
}

static double now_us(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Median of interleaved repetitions, so that a slow phase of the machine hits all ways alike. */
static void measure(const struct exchange* exchange, const int sizes[3], double* grid, double* packed, int repetitions,
                    double medians[ways]) {
  double* times = malloc((size_t)(ways * repetitions) * sizeof *times);
  if (times == NULL) exit(2);
  for (int i = 0; i < repetitions; ++i) {
    for (int way = 0; way < ways; ++way) {
      const double begin = now_us();
      run(way, exchange, sizes, grid, packed);
      times[way * repetitions + i] = now_us() - begin;
    }
  }
  for (int way = 0; way < ways; ++way) {
    qsort(times + way * repetitions, (size_t)repetitions, sizeof *times, ascending);
    medians[way] = times[way * repetitions + repetitions / 2];
  }
  free(times);
}

int main(int argc, char** argv) {
  const int side = argc > 1 ? atoi(argv[1]) : 128;
  const int repetitions = argc > 2 ? atoi(argv[2]) : 51;
  if (side < halo || side > 1000 || repetitions < 1) {
    fprintf(stderr, "usage: halo [side [repetitions]]\n");
    return 2;
  }
  const int sizes[axes] = {side + 2 * halo, side + 2 * halo, side + 2 * halo};
  const size_t values = (size_t)sizes[0] * (size_t)sizes[1] * (size_t)sizes[2];
  double* grids[ways];
  for (int way = 0; way < ways; ++way) {
    grids[way] = malloc(values * sizeof(double));
    if (grids[way] == NULL) return 2;
    for (size_t i = 0; i < values; ++i) grids[way][i] = (double)i;
  }
  double* packed = malloc((size_t)halo * (size_t)side * (size_t)side * sizeof(double));
  if (packed == NULL) return 2;

  printf("%-9s %8s", "direction", "KiB");
  for (int way = 0; way < ways; ++way) printf(" %14s", way_names[way]);
  printf("   (us, medians of %d)\n", repetitions);
  for (int direction = 0; direction < directions; ++direction) {
    struct exchange exchange = exchange_of(sizes, direction / 2, direction % 2);
    for (int way = 0; way < ways; ++way) run(way, &exchange, sizes, grids[way], packed);
    for (int way = 1; way < ways; ++way) {
      if (memcmp(grids[0], grids[way], values * sizeof(double)) != 0) {
        fprintf(stderr, "halo: %s differs from the hand-written loop\n", way_names[way]);
        return 1;
      }
    }
    double medians[ways];
    measure(&exchange, sizes, grids[0], packed, repetitions, medians);
    printf("%c %-7s %8.0f", "zyx"[direction / 2], direction % 2 ? "up" : "down",
           (double)(exchange.values * sizeof(double)) / 1024);
    for (int way = 0; way < ways; ++way) printf(" %14.2f", medians[way]);
    printf("\n");
    spl_layout_free(exchange.source);
    spl_layout_free(exchange.target);
  }
  printf("all grids are equal\n");
  for (int way = 0; way < ways; ++way) free(grids[way]);
  free(packed);
  return 0;
}
