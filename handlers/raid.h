/* Shared by both kinds of RAID nodes, data and parity.
 *
 * Contract: raid_xor() changes `bytes` bytes at `to` (8-byte aligned) to their exclusive or with those at `from`, a
 * word at a time. A packet carries at most RAID_PACKET_BYTES.
 */
#ifndef SPINLOOM_HANDLERS_RAID_H
#define SPINLOOM_HANDLERS_RAID_H

#include "spinloom/handler.h"

#define RAID_PACKET_BYTES 4096u

static inline void raid_xor(uint32_t *to, const uint8_t *from, uint32_t bytes) {
  const uint32_t *words = (const uint32_t *)from; /* packets begin on a word */
  uint32_t left = bytes / sizeof(uint32_t);
  for (; left >= 4; left -= 4, to += 4, words += 4) {
    to[0] ^= words[0];
    to[1] ^= words[1];
    to[2] ^= words[2];
    to[3] ^= words[3];
  }
  for (; left != 0; --left) *to++ ^= *words++;
  for (uint32_t i = 0; i < bytes % sizeof(uint32_t); ++i) ((uint8_t *)to)[i] ^= ((const uint8_t *)words)[i];
}

static inline ptl_process_t raid_rank(uint32_t rank) {
  ptl_process_t process = {{0, 0}};
  process.rank = rank;
  return process;
}

#endif
