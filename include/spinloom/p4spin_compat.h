/* Compiles handlers as the SC'17 sPIN paper prints them (appendix C), one role a file.
 *
 * Contract: before this header is included, any of these macros name the functions that are pasted below it:
 *     #define SPL_HEADER_HANDLER pingpong_header_handler
 *     #define SPL_PAYLOAD_HANDLER pingpong_payload_handler
 *     #define SPL_COMPLETION_HANDLER pingpong_completion_handler
 *     #define SPL_USER_HEADER int length; int client;      // members of h.user_hdr
 *     #define SPL_ARENA_BYTES 4096                         // the largest malloc
 * Differences from handler.h, which the printed code needs: ptl_process_t is an integer, a rank; h.user_hdr
 * is a struct, padded with zeros if the message is shorter; malloc takes SPL_ARENA_BYTES of the stack at each call,
 * however few bytes are asked for (the printed code asks for too few), its memory lasts until the handler ends, and it
 * returns NULL for more bytes; a non-zero ct counts on the entry's counter. Puts take integers for ranks; other calls
 * are those of handler.h, whose spl_process_t spl_process(rank) makes.
 * Invariants: only for the simulated or sandboxed HPU: the printed code's mistakes stay there. docs/p4spin-listings.md
 * names them. Threads: as handler.h. Time: a wrapper costs what its instructions cost.
 */
#ifndef SPINLOOM_P4SPIN_COMPAT_H
#define SPINLOOM_P4SPIN_COMPAT_H

#if !defined(__riscv)
#error "p4spin_compat.h is for handler images only: build with `spinloom handler build`"
#endif

#include "spinloom/divide.h"
#include "spinloom/handler.h"

#ifndef SPL_USER_HEADER
#define SPL_USER_HEADER uint8_t none;
#endif
#ifndef SPL_ARENA_BYTES
#define SPL_ARENA_BYTES 4096u
#endif

/* Printed code compares signed with unsigned numbers, and declares names that it does not use. */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"

/* handler.h's types and calls keep their meaning under these names; from here on its own names mean the printed
 * ones. */
typedef ptl_process_t spl_process_t;
typedef ptl_header_t spl_header_t;
static inline int spl_put_from_host(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                    uint32_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                    void *user_ptr, ptl_hdr_data_t hdr_data) {
  return PtlHandlerPutFromHost(offset, len, ct, ack_req, (spl_process_t){.rank = target_id}, match_bits, remote_offset,
                               user_ptr, hdr_data);
}
static inline int spl_put_from_device(const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                      uint32_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                      void *user_ptr, ptl_hdr_data_t hdr_data) {
  return PtlHandlerPutFromDevice(local, len, ct, ack_req, (spl_process_t){.rank = target_id}, match_bits, remote_offset,
                                 user_ptr, hdr_data);
}
#define ptl_process_t spl_printed_process_t
#define ptl_header_t spl_printed_header_t
#define PtlHandlerPutFromHost spl_put_from_host
#define PtlHandlerPutFromDevice spl_put_from_device

typedef uint32_t ptl_process_t;

typedef struct {
  ptl_request_type_t type;
  ptl_size_t length;
  ptl_process_t target_id;
  ptl_process_t source_id;
  ptl_match_bits_t match_bits;
  ptl_size_t offset;
  ptl_hdr_data_t hdr_data;
  struct {
    SPL_USER_HEADER
  } user_hdr;
} ptl_header_t;

static inline spl_process_t spl_process(ptl_process_t rank) { return (spl_process_t){.rank = rank}; }

static inline void *spl_arena(void *room, ptl_size_t bytes) { return bytes <= SPL_ARENA_BYTES ? room : NULL; }
#define malloc(bytes) spl_arena(__builtin_alloca(SPL_ARENA_BYTES), (bytes))
#define free(room) ((void)(room))

#ifdef SPL_HEADER_HANDLER
int SPL_HEADER_HANDLER(const ptl_header_t h, void *state);
int header_handler(const spl_header_t given, void *state) {
  ptl_header_t h = {.type = given.type,
                    .length = given.length,
                    .target_id = given.target_id.rank,
                    .source_id = given.source_id.rank,
                    .match_bits = given.match_bits,
                    .offset = given.offset,
                    .hdr_data = given.hdr_data};
  const uint32_t bytes = given.user_hdr_length < sizeof h.user_hdr ? given.user_hdr_length : sizeof h.user_hdr;
  for (uint32_t i = 0; i < bytes; ++i) ((uint8_t *)&h.user_hdr)[i] = ((const uint8_t *)given.user_hdr)[i];
  return SPL_HEADER_HANDLER(h, state);
}
#endif
#ifdef SPL_PAYLOAD_HANDLER
int SPL_PAYLOAD_HANDLER(const ptl_payload_t p, void *state);
int payload_handler(const ptl_payload_t p, void *state) { return SPL_PAYLOAD_HANDLER(p, state); }
#endif
#ifdef SPL_COMPLETION_HANDLER
int SPL_COMPLETION_HANDLER(int dropped_bytes, bool flow_control_triggered, void *state);
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  return SPL_COMPLETION_HANDLER(dropped_bytes, flow_control_triggered, state);
}
#endif

#endif
