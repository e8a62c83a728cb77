/* PsPIN's small macros, and the numbers of the core at hand. */
#ifndef SPINLOOM_PSPIN_UTIL_H
#define SPINLOOM_PSPIN_UTIL_H

#include "spinloom/pspin/stdio.h"

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#define DIV_CEIL(a, b) (((a) + (b) - 1) / (b))
#define FAST_DIV(a, log2_b) ((a) >> (log2_b))
#define FAST_MOD(a, b) ((a) & ((b) - 1)) /* b is a power of two */
#define AND(a, b) ((a) & (b))
#define STRINGIFY(x) #x

#define SPIN_PRINTF(...) ((void)printf("%s:%s:%d: ", __FILE__, __func__, __LINE__), (void)printf(__VA_ARGS__))
#ifdef LOG
#define DEBUG_PRINT(...) SPIN_PRINTF(__VA_ARGS__)
#else
#define DEBUG_PRINT(...)
#endif
#ifdef CHECK_ASSERTS
#include "spinloom/pspin/assert.h"
#define ASSERT(condition) assert(condition)
#else
#define ASSERT(condition)
#endif

static inline unsigned user_core_id(void) { return PTL_MY_HPU % NB_CORES; }
static inline unsigned user_cluster_id(void) { return PTL_MY_HPU / NB_CORES; }
static inline uint32_t rt_core_id(void) { return user_core_id(); }
static inline uint32_t rt_cluster_id(void) { return user_cluster_id(); }

#endif
