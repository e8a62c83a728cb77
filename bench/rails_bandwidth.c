/* rails_bandwidth.c - what several NICs of a process give: bandwidth of single messages and of many in flight, and
 * latency.
 *
 * Usage: rails_bandwidth RAILS MODE WINDOW ROUNDS BYTES...
 * MODE is tag or word, or tag-put or word-put (long messages are put, not read); WINDOW messages are in flight. Rank 0
 * sends to rank 1. For every length, a line of CSV: rails, mode, window, bytes, microseconds of a round (its median,
 * from the first send to the word that all has landed), GB/s. Every byte of every round is compared; a wrong one ends
 * the program. Time is modelled under `spinloom sim`, otherwise the host's.
 */
#include <portals4.h>
#include <spinloom/rails.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { window_max = 256, rounds_max = 1000 };

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void check(int code, spl_rails* rails, const char* what) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s: code %d: %s\n", what, code, spl_rails_error(rails));
  exit(1);
}

static unsigned char byte_of(int round, int message, size_t i) {
  return (unsigned char)(i * 7 + i / 255 + (size_t)(13 * round) + (size_t)message);
}

static int by_value(const void* a, const void* b) {
  const long long x = *(const long long*)a, y = *(const long long*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: rails_bandwidth RAILS tag|word|tag-put|word-put WINDOW ROUNDS BYTES...\n");
    return 2;
  }
  const int window = atoi(argv[3]), rounds = atoi(argv[4]);
  if (window < 1 || window > window_max || rounds < 1 || rounds > rounds_max) return 2;
  ptl_handle_ni_t ni;
  ptl_process_t me;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
    return 1;
  }
  PtlGetId(ni, &me);
  spl_rails* rails = NULL;
  spl_rails_options options = {.rails = (uint32_t)atoi(argv[1]),
                               .matching = strncmp(argv[2], "word", 4) == 0 ? SPL_RAILS_BY_WORD : SPL_RAILS_BY_TAG,
                               .rendezvous = strstr(argv[2], "-put") != NULL ? SPL_RAILS_PUT : SPL_RAILS_GET,
                               .window = window_max};
  check(spl_rails_open(ni, &options, &rails), NULL, "open");
  for (int argument = 5; argument < argc; ++argument) {
    const size_t bytes = strtoull(argv[argument], NULL, 10);
    unsigned char* memory = malloc(bytes * (size_t)window + 1);
    memset(memory, 0, bytes * (size_t)window + 1);
    static long long times[rounds_max];
    for (int round = 0; round <= rounds; ++round) { /* the first is not counted */
      spl_rails_request requests[window_max], word;
      unsigned char byte = 0;
      if (me.rank == 0) {
        for (int m = 0; m < window; ++m) {
          for (size_t i = 0; i < bytes; ++i) memory[(size_t)m * bytes + i] = byte_of(round, m, i);
        }
        check(spl_rails_receive(rails, &byte, 1, 1, 1000, 0, &word), rails, "receive");
        check(spl_rails_wait(rails, word, NULL), rails, "ready");
        check(spl_rails_receive(rails, &byte, 1, 1, 1001, 0, &word), rails, "receive");
        const long long start = now_ns();
        for (int m = 0; m < window; ++m) {
          check(spl_rails_send(rails, memory + (size_t)m * bytes, bytes, 1, (uint64_t)m, &requests[m]), rails, "send");
        }
        for (int m = 0; m < window; ++m) check(spl_rails_wait(rails, requests[m], NULL), rails, "wait");
        check(spl_rails_wait(rails, word, NULL), rails, "landed");
        if (round > 0) times[round - 1] = now_ns() - start;
      } else {
        for (int m = 0; m < window; ++m) {
          check(spl_rails_receive(rails, memory + (size_t)m * bytes, bytes, 0, (uint64_t)m, 0, &requests[m]), rails,
                "receive");
        }
        check(spl_rails_send(rails, &byte, 1, 0, 1000, &word), rails, "send");
        check(spl_rails_wait(rails, word, NULL), rails, "wait");
        for (int m = 0; m < window; ++m) check(spl_rails_wait(rails, requests[m], NULL), rails, "wait");
        check(spl_rails_send(rails, &byte, 1, 0, 1001, &word), rails, "send");
        check(spl_rails_wait(rails, word, NULL), rails, "wait");
        for (int m = 0; m < window; ++m) {
          for (size_t i = 0; i < bytes; ++i) {
            if (memory[(size_t)m * bytes + i] == byte_of(round, m, i)) continue;
            fprintf(stderr, "round %d, message %d: byte %zu is wrong\n", round, m, i);
            return 1;
          }
        }
      }
    }
    if (me.rank == 0) {
      qsort(times, (size_t)rounds, sizeof *times, by_value);
      const double us = (double)times[rounds / 2] / 1e3;
      printf("%s,%s,%d,%zu,%.3f,%.3f\n", argv[1], argv[2], window, bytes, us, (double)bytes * window / us / 1e3);
    }
    free(memory);
  }
  check(spl_rails_close(rails), rails, "close");
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
