/* A process of Portals 4, as host programs (portals4.h) and handlers (handler.h) name it. */
#ifndef SPINLOOM_PROCESS_H
#define SPINLOOM_PROCESS_H

#include <stdint.h>

typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_rank_t;

/* Node and process on a physical network interface, its rank on a logical one. */
typedef union {
  struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
  } phys;
  ptl_rank_t rank;
} ptl_process_t;

#endif
