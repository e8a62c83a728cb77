/* The constants at the start of a context's read-only NIC memory, shared by host and handlers of the datatype
 * strategies. Fixed-width, pointer-free, little-endian; freestanding C11, also C++.
 */
#ifndef SPINLOOM_DDT_H
#define SPINLOOM_DDT_H

#include <stdint.h>

/* handlers/vector.c: runs of block_bytes, stride_bytes apart, the first run at origin. */
typedef struct {
  uint32_t block_bytes;
  uint32_t reciprocal; /* the reciprocal of block_bytes, as in spinloom/layout_walk.h */
  uint32_t shift;
  int32_t stride_bytes;
  int32_t origin;
} spl_ddt_vector;

/* handlers/hpu_local.c: the blob follows at blob_offset; the context's state holds one segment for each virtual
 * HPU, one every segment_bytes. */
typedef struct {
  uint32_t segment_bytes;
  uint32_t blob_offset;
} spl_ddt_local;

/* handlers/rw_cp.c, ro_cp.c: packets [i * interval, (i + 1) * interval) share checkpoint i. The blob follows at
 * blob_offset, the master copies of the checkpoints at masters_offset, one every checkpoint_bytes. rw_cp: the
 * copies that handlers progress lie in the context's state, in the same order. */
typedef struct {
  uint32_t interval_bytes;
  uint32_t reciprocal;
  uint32_t shift;
  uint32_t checkpoint_bytes;
  uint32_t blob_offset;
  uint32_t masters_offset;
} spl_ddt_checkpoints;

/* handlers/frame_ddt_segment.c, frame_ddt_seek.c: messages in frames. The blob follows at blob_offset; message m has
 * message_bytes of the context's state behind spl_host_data, and of its host memory host_bytes from host_offset on, one
 * message after the other. Message m's number is m; there are `messages` of them. notices: 0 if the host is asked when
 * a message is there, and answers (spl_host_request); 1 if it is told (spl_host_notify, value 0, argument m). */
typedef struct {
  uint32_t blob_offset;
  uint32_t message_bytes;
  uint32_t host_offset;
  uint32_t host_bytes;
  uint32_t messages;
  uint32_t notices;
} spl_ddt_frames;

#endif
