/* The command window of a native handler, which runs in the process that its message came to, on a thread that stands
 * for an HPU.
 *
 * Contract: the words of a call are those of hpu_map.h, but an address of the handler's memory is a pointer at the same
 * index. The runtime fills in a spl_hpu, hands it to the object by spl_hpu_bind() on the thread that is about to call a
 * handler, and answers issue(). spl_hpu_abi names the version of spl_hpu for which
 * an object was built.
 * Invariants: issue() need not return: the handler has then ended, as after a call that does not exist.
 * Threads: one spl_hpu a thread. Time: the host's.
 */
#ifndef SPINLOOM_HPU_NATIVE_H
#define SPINLOOM_HPU_NATIVE_H

#include <stdint.h>

#include "spinloom/hpu_map.h"

#define SPL_HPU_ABI 2u

struct spl_hpu {
  uint32_t words[SPL_CMD_WORDS];
  const void *pointers[SPL_CMD_WORDS];
  const void *constants;
  uint32_t hpu;
  uint32_t vhpu;
  uint32_t hpu_count;
  uint32_t (*issue)(struct spl_hpu *);
  uint64_t (*cycles)(void);
  uint8_t *frame; /* packet memory */
  uint32_t frame_bytes;
  uint32_t message;
  uint32_t rule_set;
  uint32_t flags;
};

/* Defined once in every object, however many sources it has. */
#if !defined(__cplusplus)
extern __attribute__((weak, visibility("hidden"))) _Thread_local struct spl_hpu *spl_hpu_at_hand;
__attribute__((weak, visibility("hidden"))) _Thread_local struct spl_hpu *spl_hpu_at_hand;
extern __attribute__((visibility("default"))) const uint32_t spl_hpu_abi;
__attribute__((weak, visibility("default"))) const uint32_t spl_hpu_abi = SPL_HPU_ABI;
__attribute__((visibility("default"))) void spl_hpu_bind(struct spl_hpu *hpu);
__attribute__((weak, visibility("default"))) void spl_hpu_bind(struct spl_hpu *hpu) { spl_hpu_at_hand = hpu; }
#endif

#endif
