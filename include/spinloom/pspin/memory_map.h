/* The places of PsPIN's memories in the state of a context (spinloom/pspin_compat.h), for handlers and hosts. */
#ifndef SPINLOOM_PSPIN_MEMORY_MAP_H
#define SPINLOOM_PSPIN_MEMORY_MAP_H

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

#ifndef SPL_PSPIN_SCRATCHPAD_BYTES
#define SPL_PSPIN_SCRATCHPAD_BYTES 4096u
#endif
#define SPL_PSPIN_TOLD 688u
#define SPL_PSPIN_LINES 704u
#ifndef SPL_PSPIN_COPY_BYTES
#define SPL_PSPIN_COPY_BYTES 1536u
#endif
#define SPL_PSPIN_COPY(hpu) (4096u + (uint32_t)(hpu) * SPL_PSPIN_COPY_BYTES)
#define SPL_PSPIN_SCRATCHPAD(cluster) (SPL_PSPIN_COPY(CORE_COUNT) + (uint32_t)(cluster) * SPL_PSPIN_SCRATCHPAD_BYTES)
#define SPL_PSPIN_HANDLER_MEM SPL_PSPIN_SCRATCHPAD(NB_CLUSTERS)

struct spl_pspin_told {
  uint64_t host_mem_address; /* address that handlers see for the context's host memory; 0: SPL_PSPIN_HOST_ADDRESS */
  uint32_t host_mem_size;    /* 0: not told, handlers see the largest number */
  uint32_t handler_mem_size; /* 0: not told */
};
#define SPL_PSPIN_HOST_ADDRESS 0x100000000u

struct spl_pspin_line {
  uint32_t used;
  char text[76]; /* the length that spl_debug() takes */
};

#if defined(__cplusplus)
#define SPL_PSPIN_SURE static_assert
#else
#define SPL_PSPIN_SURE _Static_assert
#endif
SPL_PSPIN_SURE(sizeof(struct spl_host_data) <= SPL_PSPIN_TOLD, "the next part begins behind it");
SPL_PSPIN_SURE(SPL_PSPIN_TOLD + sizeof(struct spl_pspin_told) <= SPL_PSPIN_LINES, "lines begin behind it");
SPL_PSPIN_SURE(SPL_PSPIN_LINES + SPL_HOST_HPUS * sizeof(struct spl_pspin_line) <= SPL_PSPIN_COPY(0),
               "lines end before the copies");
SPL_PSPIN_SURE(SPL_PSPIN_COPY_BYTES % 64 == 0 && SPL_PSPIN_SCRATCHPAD_BYTES % 64 == 0, "memories are aligned");
SPL_PSPIN_SURE(CORE_COUNT <= SPL_HOST_HPUS, "each HPU has a page of host memory and a line");

#endif
