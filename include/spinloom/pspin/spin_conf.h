/* The numbers of PsPIN's clusters, and where its memories lie in the state of a context (spinloom/pspin_compat.h). */
#ifndef SPINLOOM_PSPIN_SPIN_CONF_H
#define SPINLOOM_PSPIN_SPIN_CONF_H

#include "spinloom/frame.h"

#ifndef NB_CORES
#define NB_CORES 8
#endif
#ifndef NB_CLUSTERS
#if defined(SPL_PSPIN_PACKETS)
#define NB_CLUSTERS 4
#else
#define NB_CLUSTERS 2
#endif
#endif
#define CORE_COUNT (NB_CORES * NB_CLUSTERS)
#define NUM_CLUSTER_HPUS NB_CORES
#ifndef PKT_SIZE
#define PKT_SIZE 1024
#endif
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

#ifndef SPL_PSPIN_SCRATCHPAD_BYTES
#define SPL_PSPIN_SCRATCHPAD_BYTES 4096u
#endif
#define SPL_PSPIN_TOLD 640u
#define SPL_PSPIN_LINES 704u
#ifndef SPL_PSPIN_COPY_BYTES
#define SPL_PSPIN_COPY_BYTES 1536u
#endif
#define SPL_PSPIN_COPY(hpu) (4096u + (uint32_t)(hpu) * SPL_PSPIN_COPY_BYTES)
#define SPL_PSPIN_SCRATCHPAD(cluster) (SPL_PSPIN_COPY(CORE_COUNT) + (uint32_t)(cluster) * SPL_PSPIN_SCRATCHPAD_BYTES)
#define SPL_PSPIN_HANDLER_MEM SPL_PSPIN_SCRATCHPAD(NB_CLUSTERS)

struct spl_pspin_told {
  uint64_t host_mem_address; /* which address handlers see for the context's host memory; 0: SPL_PSPIN_HOST_ADDRESS */
  uint32_t host_mem_size;    /* 0: not told, handlers see the largest number */
  uint32_t handler_mem_size; /* 0: not told */
};
#define SPL_PSPIN_HOST_ADDRESS 0x100000000u

struct spl_pspin_line {
  uint32_t used;
  char text[76]; /* as much as spl_debug() takes */
};

_Static_assert(sizeof(struct spl_host_data) == SPL_PSPIN_TOLD, "the next part begins behind it");
_Static_assert(SPL_PSPIN_LINES + SPL_HOST_HPUS * sizeof(struct spl_pspin_line) <= SPL_PSPIN_COPY(0),
               "lines end before the copies");
_Static_assert(SPL_PSPIN_COPY_BYTES % 64 == 0 && SPL_PSPIN_SCRATCHPAD_BYTES % 64 == 0, "memories are aligned");
_Static_assert(CORE_COUNT <= SPL_HOST_HPUS, "each HPU has a page of host memory and a line");

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
