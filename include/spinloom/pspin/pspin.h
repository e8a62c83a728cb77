/* PsPIN's atomics, locks, counters and time.
 *
 * Contract: atomics act on words of the state or of the frame. Natively a reservation is kept by value and thread: a
 *   store succeeds if the word is what load_reserved() saw; the simulated core does the same.
 */
#ifndef SPINLOOM_PSPIN_PSPIN_H
#define SPINLOOM_PSPIN_PSPIN_H

#include <assert.h>
#include <stdlib.h>

#include "spinloom/pspin/util.h"

#define MEM_ALIGNMENT 4
#define ALIGN_UP(number, alignment) (((uint32_t)(number) + ((alignment) - 1)) & ~((uint32_t)(alignment) - 1))
#define DMA_MAX_XFER_SIZE 32768
#define DMA_NULL 0

typedef uint32_t dma_t;
typedef volatile uint32_t futex_t;

static inline void asm_mem_fence(void) { __asm__ volatile("" ::: "memory"); }

static inline int32_t amo_add(volatile int32_t *address, int32_t value) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
static inline uint32_t amo_swap(volatile uint32_t *address, uint32_t value) {
  return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
}
static inline void amo_store(volatile uint32_t *address, uint32_t value) { (void)amo_swap(address, value); }
static inline uint32_t amo_and(volatile uint32_t *address, uint32_t value) {
  return __atomic_fetch_and(address, value, __ATOMIC_SEQ_CST);
}
static inline uint32_t amo_or(volatile uint32_t *address, uint32_t value) {
  return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);
}
static inline uint32_t amo_xor(volatile uint32_t *address, uint32_t value) {
  return __atomic_fetch_xor(address, value, __ATOMIC_SEQ_CST);
}
#if defined(__riscv)
#define SPL_PSPIN_CHOOSE(name, type, instruction, compare)                                              \
  static inline type name(volatile type *address, type value) {                                         \
    type before;                                                                                        \
    __asm__ volatile(instruction " %0, %1, (%2)" : "=r"(before) : "r"(value), "r"(address) : "memory"); \
    return before;                                                                                      \
  }
#else
#define SPL_PSPIN_CHOOSE(name, type, instruction, compare)                                              \
  static inline type name(volatile type *address, type value) {                                         \
    type before = *address;                                                                             \
    while (!__atomic_compare_exchange_n(address, &before, before compare value ? before : value, false, \
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {                          \
    }                                                                                                   \
    return before;                                                                                      \
  }
#endif
SPL_PSPIN_CHOOSE(amo_min, int32_t, "amomin.w", <)
SPL_PSPIN_CHOOSE(amo_max, int32_t, "amomax.w", >)
SPL_PSPIN_CHOOSE(amo_minu, uint32_t, "amominu.w", <)
SPL_PSPIN_CHOOSE(amo_maxu, uint32_t, "amomaxu.w", >)

#if defined(__riscv)
static inline uint32_t load_reserved(volatile const uint32_t *address) {
  uint32_t value;
  __asm__ volatile("lr.w %0, (%1)" : "=r"(value) : "r"(address) : "memory");
  return value;
}
static inline unsigned store_conditional(volatile uint32_t *address, uint32_t value) {
  unsigned failed;
  __asm__ volatile("sc.w %0, %1, (%2)" : "=&r"(failed) : "r"(value), "r"(address) : "memory");
  return failed;
}
#else
static __attribute__((unused)) _Thread_local struct {
  volatile const uint32_t *address;
  uint32_t value;
} spl_pspin_reserved;
static inline uint32_t load_reserved(volatile const uint32_t *address) {
  spl_pspin_reserved.address = address;
  spl_pspin_reserved.value = __atomic_load_n(address, __ATOMIC_SEQ_CST);
  return spl_pspin_reserved.value;
}
static inline unsigned store_conditional(volatile uint32_t *address, uint32_t value) {
  uint32_t seen = spl_pspin_reserved.value;
  const bool kept = spl_pspin_reserved.address == address;
  spl_pspin_reserved.address = NULL;
  return kept && __atomic_compare_exchange_n(address, &seen, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 0 : 1;
}
#endif
/* 0: swapped; -1: the word was another. */
static inline int compare_and_swap(volatile uint32_t *address, uint32_t expected, uint32_t wanted) {
  return __atomic_compare_exchange_n(address, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 0 : -1;
}

static inline uint32_t cycles(void) { return (uint32_t)spl_cycles(); }
static inline void rt_time_wait_cycles(unsigned wanted) {
  const uint32_t begin = cycles();
  while (cycles() - begin < wanted) {
  }
}

static inline void futex_init(futex_t *futex) { amo_store(futex, 0); }
static inline int futex_try_lock(futex_t *futex) { return amo_or(futex, 1) == 0; }
static inline int futex_lock(futex_t *futex) {
  while (!futex_try_lock(futex)) {
  }
  return 1;
}
static inline int futex_lock_s(futex_t *futex) {
  while (!futex_try_lock(futex)) rt_time_wait_cycles(32);
  return 1;
}
static inline void futex_unlock(futex_t *futex) { amo_store(futex, 0); }

/* The data that host and handlers share: struct spl_host_data under PsPIN's names. */
#define MAX_COUNTERS SPL_HOST_COUNTERS
struct perf_counter {
  uint32_t sum;
  uint32_t count;
};
struct host_data {
  uint64_t flag[SPL_HOST_HPUS];
  uint64_t request[SPL_HOST_HPUS];
  struct perf_counter counters[MAX_COUNTERS];
};
_Static_assert(offsetof(struct host_data, counters) == offsetof(struct spl_host_data, counter), "they are the same");
#define __host_data (*(volatile struct host_data *)spl_pspin_state())

static inline void push_counter(volatile struct perf_counter *counter, uint32_t value) {
  (void)__atomic_fetch_add(&counter->count, 1, __ATOMIC_SEQ_CST);
  (void)__atomic_fetch_add(&counter->sum, value, __ATOMIC_SEQ_CST);
}

#endif
