/* The data that handlers/slmp_file.c and its program share: a message of SLMP that lands in host memory.
 *
 * Contract: the program writes the constants, sets `armed` to 1 in the state, which is zero otherwise, and waits for a
 * notice: value 0 and the message's length, or value 1 and the length of a message that is too long. Then the message
 * lies in host memory from SPL_SLMP_FILE_OFFSET on. A sender that asks is told how many slots of packet memory
 * are free.
 */
#ifndef SPINLOOM_SLMP_FILE_H
#define SPINLOOM_SLMP_FILE_H

#include "spinloom/frame.h"

#define SPL_SLMP_FILE_OFFSET ((SPL_HOST_BYTES + 4095u) & ~4095u)

typedef struct {
  spl_station_t station;
  uint32_t capacity_low; /* bytes of host memory for the message */
  uint32_t capacity_high;
  uint32_t segments; /* the bits of `seen`; a message of more is too long */
} spl_slmp_file_constants;

typedef struct {
  struct spl_host_data host;
  uint32_t armed;      /* 1: a message may begin; 2: `message` is under way; 3: it is whole; 4: it begins */
  uint32_t message;    /* the number, as it lies in the frame */
  uint32_t segment;    /* bytes of a packet's payload, all but the last */
  uint32_t ended;      /* the last packet has been here: `length` is known */
  uint64_t length;
  uint64_t received;   /* bytes, each counted once */
  uint32_t told;
  uint32_t refused;    /* packets of other messages, which are not acknowledged */
  uint32_t wrong;      /* packets with a wrong checksum */
  uint32_t repeated;
  uint32_t seen[];     /* a bit for each segment */
} spl_slmp_file_state;

#endif
