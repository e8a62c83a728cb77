/* Shared by the programs of rails: their rails, and OK(), which ends the program with the rails' error text when a call
 * does not return PTL_OK. Threads: one. Time: none. */
#ifndef SPINLOOM_TESTS_RAILS_COMMON_H
#define SPINLOOM_TESTS_RAILS_COMMON_H

#include <spinloom/rails.h>

#include "../live/live_common.h"

static spl_rails* rails;

static void ok(int line, int code) {
  if (code == PTL_OK) return;
  printf("rank %u, line %d: code %d: %s\n", my_rank, line, code, spl_rails_error(rails));
  exit(2);
}
#define OK(call) ok(__LINE__, call)

#endif
