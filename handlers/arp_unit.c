/* The protocol unit of ARP: answers for its station, learns neighbours, and looks for those that other handlers ask
 * for.
 *
 * Contract: spinloom/arp_unit.h. Frames that are neither for the station nor an answer to it are for the host's stack,
 * which also gets the answers to what it has asked itself.
 */
#include "spinloom/arp_unit.h"

#include "arp.h"

static void lock(spl_arp_state *unit) {
  while (__atomic_exchange_n(&unit->lock, 1u, __ATOMIC_ACQUIRE) != 0) PtlHandlerYield();
}
static void unlock(spl_arp_state *unit) { __atomic_store_n(&unit->lock, 0u, __ATOMIC_RELEASE); }

static spl_arp_neighbour *neighbour_of(spl_arp_state *unit, uint32_t ip) {
  for (uint32_t i = 0; i < SPL_ARP_NEIGHBOURS; ++i) {
    if (unit->neighbours[i].ip == ip) return &unit->neighbours[i];
  }
  return NULL;
}

static uint64_t address_of(const spl_arp_neighbour *neighbour) {
  uint64_t address = 0;
  for (int i = 0; i < 6; ++i) address |= (uint64_t)neighbour->mac[i] << 8 * i;
  return address;
}

/* Returns when the frame has left, because it may be written anew. */
static void ask_wire(spl_arp_neighbour *neighbour, const spl_station_t *station) {
  spl_eth_t *const ethernet = (spl_eth_t *)neighbour->query;
  spl_arp_t *const arp = (spl_arp_t *)(ethernet + 1);
  memset(neighbour->query, 0, sizeof neighbour->query);
  memset(ethernet->destination, 0xff, 6);
  memcpy(ethernet->source, station->mac, 6);
  ethernet->type = spl_net16(ARP_TYPE);
  arp->hardware = spl_net16(1);
  arp->protocol = spl_net16(0x0800);
  arp->hardware_bytes = 6;
  arp->protocol_bytes = 4;
  arp->operation = spl_net16(ARP_ASKS);
  memcpy(arp->sender, station->mac, 6);
  arp->sender_ip = station->ip;
  arp->target_ip = neighbour->ip;
  ptl_dma_h sent;
  if (spl_send_frame(neighbour->query, sizeof neighbour->query, &sent) == SUCCESS) PtlHandlerDMAWait(sent);
}

int mail_handler(const spl_mail_t mail, void *state) {
  spl_arp_state *const unit = (spl_arp_state *)state;
  const uint32_t ip = (uint32_t)mail.argument;
  if (ip == 0) return FAIL;
  lock(unit);
  spl_arp_neighbour *neighbour = neighbour_of(unit, ip);
  if (neighbour == NULL) {
    neighbour = &unit->neighbours[unit->next++ % SPL_ARP_NEIGHBOURS];
    neighbour->ip = ip;
    neighbour->known = 0;
  }
  const int known = neighbour->known;
  const uint64_t address = address_of(neighbour);
  if (!known) {
    neighbour->waits = 1;
    neighbour->context = mail.context;
    neighbour->value = mail.value;
    ask_wire(neighbour, spl_constants());
  }
  unlock(unit);
  return known ? spl_mail(mail.context, mail.value, address) : SUCCESS;
}

/* Takes an answer to the station: a neighbour in the unit's list is known from then on, and who waits for it is told.
 * True if somebody has waited; other answers are for the host's stack. */
static int learn(spl_arp_state *unit, const spl_arp_t *arp, const spl_station_t *station) {
  if (arp->operation != spl_net16(ARP_ANSWERS) || arp->target_ip != station->ip || arp->sender_ip == 0) return 0;
  lock(unit);
  spl_arp_neighbour *const neighbour = neighbour_of(unit, arp->sender_ip);
  const int asked = neighbour != NULL && neighbour->waits;
  if (neighbour != NULL) {
    memcpy(neighbour->mac, arp->sender, 6);
    neighbour->known = 1;
    neighbour->waits = 0;
    if (asked) (void)spl_mail(neighbour->context, neighbour->value, address_of(neighbour));
  }
  unlock(unit);
  return asked;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_station_t *const station = spl_constants();
  spl_arp_t *const arp = arp_of(spl_frame(), spl_frame_bytes());
  if (arp == NULL) return PROCEED;
  if (arp_answer(spl_frame(), arp, station)) return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
  return learn((spl_arp_state *)state, arp, station) ? SUCCESS : PROCEED;
}
