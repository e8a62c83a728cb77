/* The phases of the handlers that own a segment for longer or shorter than a packet (HPU-local, RO-CP).
 *
 * Contract: T_PH = T_init + T_setup + gamma * T_block (SC'19 datatypes paper, section 3.2.4). Each phase is a
 *   function of its own, so that cycles can be counted by symbol: the handler itself and what it copies is init,
 *   set_up() finds the packet's first byte (reset and catch-up), process() emits the packet's blocks.
 */
#ifndef SPINLOOM_HANDLERS_SEGMENTS_H
#define SPINLOOM_HANDLERS_SEGMENTS_H

#include "ddt.h"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

static __attribute__((noinline)) void set_up(spl_segment_narrow *segment, const void *blob, uint32_t first) {
  if (spl_segment_beyond_narrow(segment, first)) spl_segment_init_narrow(segment, blob);
  if (segment->position != first) spl_segment_catch_up_narrow(segment, blob, first - segment->position);
}

static __attribute__((noinline)) void process(spl_segment_narrow *segment, const void *blob, uint32_t first,
                                              uint32_t bytes, const uint8_t *payload) {
  spl_segment_manipulate_narrow(segment, blob, first, first + bytes, ddt_emit_narrow, (void *)payload);
}

#endif
