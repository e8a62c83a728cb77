/* The numbers of PsPIN's clusters, and the state of the context at hand. */
#ifndef SPINLOOM_PSPIN_SPIN_CONF_H
#define SPINLOOM_PSPIN_SPIN_CONF_H

#include "spinloom/pspin/memory_map.h"

#define NUM_CLUSTER_HPUS NB_CORES
#ifndef PKT_SIZE
#define PKT_SIZE 1024
#endif
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

/* The state at hand. */
#if defined(__riscv)
static inline uint8_t *spl_pspin_state(void) { return (uint8_t *)SPL_HPU_STATE_BASE; }
static inline void spl_pspin_bind(void *state) { (void)state; }
#else
static _Thread_local uint8_t *spl_pspin_state_at_hand;
static inline uint8_t *spl_pspin_state(void) { return spl_pspin_state_at_hand; }
static inline void spl_pspin_bind(void *state) { spl_pspin_state_at_hand = (uint8_t *)state; }
#endif
static inline const struct spl_pspin_told *spl_pspin_told(void) {
  return (const struct spl_pspin_told *)(spl_pspin_state() + SPL_PSPIN_TOLD);
}

#endif
