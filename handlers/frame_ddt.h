/* SLMP messages whose payload is unpacked into host memory as a datatype says: what both ways to find the pieces share.
 *
 * Contract: constants: spl_ddt_frames, then the blob of the whole message. State: spl_host_data, then what the way
 * keeps of each message. A frame that carries SYN is acknowledged when its pieces have been issued; the last frame's
 * completion handler asks the host, with the message as the length, or tells it, when all pieces are in host memory. A
 * frame of another message, or whose payload does not lie in its message, is dropped; what follows UDP's length is
 * padding. UDP's checksum is not looked at. A last frame that comes again tells its message again.
 * Source: FPsPIN's datatypes application, deliverable D4.7, section 4.5.4.
 */
#ifndef SPINLOOM_HANDLERS_FRAME_DDT_H
#define SPINLOOM_HANDLERS_FRAME_DDT_H

#include "spinloom/ddt.h"
#include "spinloom/frame.h"
#include "spinloom/layout_walk.h"

typedef struct {
  spl_eth_t eth;
  spl_ipv4_t ip;
  spl_udp_t udp;
  spl_slmp_t slmp;
} __attribute__((packed, aligned(2))) slmp_frame_t;

typedef struct {
  const uint8_t *payload;
  uint32_t host; /* offset of the message in host memory */
  uint32_t first; /* the payload's place in the message */
  uint32_t bytes;
} frame_ddt_place;

SPL_INLINE void frame_ddt_emit(void *context, int32_t offset, uint32_t packed, uint32_t bytes) {
  const frame_ddt_place *const place = (const frame_ddt_place *)context;
  PtlHandlerDMAToHostNB(place->payload + packed, place->host + (uint32_t)offset, bytes,
                        PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
}

/* Turns the frame into its acknowledgement: headers only. Payload that still moves to the host lies behind them. */
static __attribute__((noinline)) void frame_ddt_acknowledge(slmp_frame_t *frame) {
  uint8_t mac[6];
  const uint32_t address = frame->ip.source;
  const uint16_t port = frame->udp.source;
  for (int i = 0; i < 6; ++i) {
    mac[i] = frame->eth.source[i];
    frame->eth.source[i] = frame->eth.destination[i];
    frame->eth.destination[i] = mac[i];
  }
  frame->ip.source = frame->ip.destination;
  frame->ip.destination = address;
  frame->ip.length = spl_net16(sizeof *frame - sizeof frame->eth);
  frame->ip.checksum = 0;
  frame->ip.checksum = spl_checksum(spl_checksum_add(0, &frame->ip, sizeof frame->ip));
  frame->udp.source = frame->udp.destination;
  frame->udp.destination = port;
  frame->udp.length = spl_net16(sizeof frame->udp + sizeof frame->slmp);
  frame->udp.checksum = 0;
  frame->slmp.flags = spl_net16(SPL_SLMP_ACK);
  (void)spl_send_frame(frame, sizeof *frame, NULL);
}

SPL_INLINE int frame_ddt_knows(const spl_ddt_frames *ddt) { return spl_frame_message() < ddt->messages; }

/* Returns whether the message is one of the context's, and the payload lies in it. */
SPL_INLINE int frame_ddt_find(const spl_ddt_frames *ddt, slmp_frame_t *frame, frame_ddt_place *place) {
  const uint32_t size = (uint32_t)((const spl_layout_header *)((const uint8_t *)ddt + ddt->blob_offset))->size;
  enum {
    BEFORE_UDP = sizeof(spl_eth_t) + sizeof(spl_ipv4_t),
    HEADERS = sizeof(slmp_frame_t) - BEFORE_UDP
  };
  const uint32_t length = spl_frame_bytes();
  if (length < sizeof *frame || !frame_ddt_knows(ddt)) return 0;
  const uint32_t udp_bytes = spl_net16(frame->udp.length);
  if (udp_bytes < HEADERS || udp_bytes > length - BEFORE_UDP) return 0;
  place->payload = (const uint8_t *)(frame + 1);
  place->host = ddt->host_offset + spl_frame_message() * ddt->host_bytes;
  place->first = spl_net32(frame->slmp.offset);
  place->bytes = udp_bytes - HEADERS;
  return place->first <= size && place->bytes <= size - place->first;
}

SPL_INLINE void *frame_ddt_state(const spl_ddt_frames *ddt, void *state) {
  return (uint8_t *)state + sizeof(struct spl_host_data) + spl_frame_message() * ddt->message_bytes;
}

SPL_INLINE int frame_ddt_done(void *state) {
  const spl_ddt_frames *const ddt = spl_constants();
  struct spl_host_data *const host = (struct spl_host_data *)state;
  if (!frame_ddt_knows(ddt)) return DROP;
  if (ddt->notices != 0) return spl_host_notify(host, 0, spl_frame_message());
  (void)spl_host_request(host, spl_frame_message());
  return SUCCESS;
}

#endif
