/* Receives a message of SLMP in host memory, from the NIC alone: checks each packet, writes its bytes to their place,
 * acknowledges it, and tells the program when all of them are there. Packets may come in any order once the first one
 * has been here, and again; each byte counts once.
 *
 * Contract: spinloom/slmp_file.h. A packet that does not fit, is damaged, or belongs to another message, is not
 * acknowledged, so that its sender knows. Source: FPsPIN, deliverable D4.7, sections 4.4.1 and 4.5; the
 * receiver there keeps no state, this one keeps what tells it that a message is whole.
 */
#include "spinloom/slmp_file.h"

#include "answer_ip.h"

typedef struct {
  spl_eth_t eth;
  spl_ipv4_t ip;
  spl_udp_t udp;
  spl_slmp_t slmp;
  uint8_t payload[];
} __attribute__((packed, aligned(2))) slmp_frame_t;

/* True if the datagram's checksum is right, or 0, which says nothing (RFC 768). Frames lie at even addresses. */
static int is_whole(const slmp_frame_t *frame, uint32_t length) {
  if (frame->udp.checksum == 0) return 1;
  uint32_t sum = spl_net16(17) + frame->udp.length;
  sum = spl_checksum_add(sum, (const uint8_t *)&frame->ip + 12, 8);
  const uint16_t *at = (const uint16_t *)(const void *)((const uint8_t *)frame + 34);
  for (uint32_t i = 0; i < length / 2; ++i) sum += at[i];
  if (length & 1) sum += ((const uint8_t *)at)[length - 1];
  return spl_checksum(sum) == 0;
}

/* Sends the packet's header back, with ACK as its only flag; a packet that asks gets a report, too: how many slots for
 * frames of its size are free, while its own is not. */
static int acknowledge(slmp_frame_t *frame, int reports) {
  enum {
    SMALL_SLOT = 128 /* a slot of packet memory; the large ones are the first class */
  };
  uint32_t bytes = sizeof(spl_udp_t) + sizeof(spl_slmp_t);
  frame->slmp.flags = spl_net16(SPL_SLMP_ACK);
  if (reports) {
    const uint32_t slot_class = spl_frame_bytes() <= SMALL_SLOT;
    const uint32_t room = spl_net32(spl_telemetry(SPL_TELEMETRY_FREE_SLOTS + slot_class));
    memcpy(frame->payload, &room, sizeof room);
    frame->slmp.flags = spl_net16(SPL_SLMP_ACK | SPL_SLMP_REPORT);
    bytes += (uint32_t)sizeof room;
  }
  const uint16_t before = frame->ip.length;
  frame->ip.length = spl_net16((uint16_t)(sizeof(spl_ipv4_t) + bytes));
  frame->ip.checksum = spl_checksum_update(frame->ip.checksum, before, frame->ip.length);
  spl_ip_answer(&frame->ip);
  const uint16_t source = frame->udp.source;
  frame->udp.source = frame->udp.destination;
  frame->udp.destination = source;
  frame->udp.length = spl_net16((uint16_t)bytes);
  frame->udp.checksum = 0;
  uint32_t sum = spl_net16(17) + frame->udp.length;
  sum = spl_checksum_add(sum, (const uint8_t *)&frame->ip + 12, 8);
  sum = spl_checksum_add(sum, &frame->udp, bytes);
  const uint16_t checksum = spl_checksum(sum);
  frame->udp.checksum = checksum == 0 ? 0xffff : checksum;
  return spl_send_frame(frame, SPL_ETHERNET_BYTES + SPL_IPV4_BYTES + bytes, NULL);
}

static int count_refused(uint32_t *counter) {
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  return DROP;
}

#define BEGINS 4u /* `armed` while one HPU writes what the message is */

/* True if the packet belongs to the message under way; a first packet begins a message. What comes while it begins is
 * refused, and sent again. */
static int belongs(spl_slmp_file_state *state, const slmp_frame_t *frame, uint32_t bytes) {
  uint32_t armed = __atomic_load_n(&state->armed, __ATOMIC_ACQUIRE);
  if (armed >= 2 && armed != BEGINS) return state->message == frame->slmp.message;
  if (armed != 1 || frame->slmp.offset != 0) return 0;
  if (!__atomic_compare_exchange_n(&state->armed, &armed, BEGINS, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return 0;
  state->message = frame->slmp.message;
  state->segment = bytes;
  __atomic_store_n(&state->armed, 2u, __ATOMIC_RELEASE);
  return 1;
}

int payload_handler(const ptl_payload_t p, void *given) {
  const spl_slmp_file_constants *const constants = (const spl_slmp_file_constants *)spl_constants();
  spl_slmp_file_state *const state = (spl_slmp_file_state *)given;
  spl_ipv4_t *const ip = spl_ip_asked(17, sizeof(spl_udp_t) + sizeof(spl_slmp_t));
  if (ip == NULL) return PROCEED;
  slmp_frame_t *const frame = (slmp_frame_t *)spl_frame();
  const uint32_t udp_bytes = spl_net16(frame->udp.length);
  if (udp_bytes < sizeof(spl_udp_t) + sizeof(spl_slmp_t)) return PROCEED;
  if (udp_bytes > spl_net16(ip->length) - sizeof(spl_ipv4_t)) return PROCEED;
  if (!is_whole(frame, udp_bytes)) return count_refused(&state->wrong);
  const uint32_t bytes = udp_bytes - (uint32_t)sizeof(spl_udp_t) - (uint32_t)sizeof(spl_slmp_t);
  const uint32_t flags = spl_net16(frame->slmp.flags);
  if ((flags & SPL_SLMP_ACK) != 0 || !belongs(state, frame, bytes)) return count_refused(&state->refused);
  const uint32_t offset = spl_net32(frame->slmp.offset);
  const uint64_t capacity = constants->capacity_low | (uint64_t)constants->capacity_high << 32;
  const uint64_t end = (uint64_t)offset + bytes;
  /* Each packet begins at a multiple of the first one's length, and only the last may be shorter. Length 0: a message
   * of one empty packet. */
  const uint32_t segment = state->segment;
  const uint32_t number = segment == 0 ? 0 : offset / segment;
  const int has_room = end <= capacity && number < constants->segments;
  const int fits =
      has_room && offset == number * segment && ((flags & SPL_SLMP_EOM) != 0 ? bytes <= segment : bytes == segment);
  if (!fits) {
    if (!has_room && __atomic_exchange_n(&state->told, 1u, __ATOMIC_ACQ_REL) == 0) {
      (void)spl_host_notify(&state->host, 1, end);
    }
    return count_refused(&state->refused);
  }
  const uint32_t bit = 1u << (number & 31u);
  const int fresh = (__atomic_load_n(&state->seen[number / 32], __ATOMIC_ACQUIRE) & bit) == 0;
  if (fresh) {
    if (PtlHandlerDMAToHostB(frame->payload, SPL_SLMP_FILE_OFFSET + offset, bytes, PTL_HANDLER_HOST_MEM) != SUCCESS) {
      return FAIL;
    }
    if ((flags & SPL_SLMP_EOM) != 0) {
      state->length = end;
      __atomic_store_n(&state->ended, 1u, __ATOMIC_RELEASE);
    }
    const uint32_t before = __atomic_fetch_or(&state->seen[number / 32], bit, __ATOMIC_ACQ_REL);
    if ((before & bit) == 0) {
      uint64_t received = 0;
      (void)PtlHandlerFAdd(&state->received, &received, bytes);
      if (__atomic_load_n(&state->ended, __ATOMIC_ACQUIRE) != 0 && received + bytes == state->length) {
        state->armed = 3;
        if (__atomic_exchange_n(&state->told, 1u, __ATOMIC_ACQ_REL) == 0) {
          (void)spl_host_notify(&state->host, 0, state->length);
        }
      }
    }
  } else {
    __atomic_fetch_add(&state->repeated, 1u, __ATOMIC_RELAXED);
  }
  if ((flags & SPL_SLMP_SYN) == 0) return SUCCESS;
  return acknowledge(frame, (flags & SPL_SLMP_REPORT) != 0) == SUCCESS ? SUCCESS : FAIL;
}
