/* Forwards datagrams to another station, whose Ethernet address the protocol unit of ARP finds.
 *
 * Contract: spinloom/udp_forward.h.
 */
#include "spinloom/udp_forward.h"

#include "udp_service.h"

int mail_handler(const spl_mail_t mail, void *given) {
  spl_forward_state *const state = (spl_forward_state *)given;
  const spl_forward *const forward = spl_constants();
  if (mail.context != forward->unit) return FAIL;
  if (__atomic_load_n(&state->known, __ATOMIC_ACQUIRE)) return SUCCESS;
  for (int i = 0; i < 6; ++i) state->mac[i] = (uint8_t)(mail.argument >> 8 * i);
  __atomic_store_n(&state->known, 1u, __ATOMIC_RELEASE);
  return SUCCESS;
}

static int dropped(spl_forward_state *state) {
  __atomic_fetch_add(&state->dropped, 1u, __ATOMIC_RELAXED);
  return DROP;
}

int payload_handler(const ptl_payload_t p, void *given) {
  spl_forward_state *const state = (spl_forward_state *)given;
  const spl_forward *const forward = spl_constants();
  uint32_t bytes;
  if (udp_payload(0, &bytes) == NULL) return PROCEED;
  udp_headers *const headers = (udp_headers *)spl_frame();
  if (headers->ip.destination != forward->ip) return PROCEED;
  if (!__atomic_load_n(&state->known, __ATOMIC_ACQUIRE)) {
    (void)spl_mail(forward->unit, 0, forward->to_ip);
    return dropped(state);
  }
  if (headers->ip.time_to_live <= 1) return dropped(state);
  memcpy(headers->ethernet.source, headers->ethernet.destination, 6);
  memcpy(headers->ethernet.destination, state->mac, 6);
  headers->ip.source = forward->ip;
  headers->ip.destination = forward->to_ip;
  headers->ip.time_to_live = (uint8_t)(headers->ip.time_to_live - 1);
  headers->ip.checksum = 0;
  headers->ip.checksum = spl_checksum(spl_checksum_add(0, &headers->ip, sizeof headers->ip));
  headers->udp.destination = forward->to_port;
  headers->udp.checksum = 0;
  if (spl_send_frame(spl_frame(), spl_frame_bytes(), NULL) != SUCCESS) return dropped(state);
  __atomic_fetch_add(&state->forwarded, 1u, __ATOMIC_RELAXED);
  return SUCCESS;
}
