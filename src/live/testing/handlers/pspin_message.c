/* In FPsPIN's style: stores SLMP messages in host memory, each in its place behind the pages; acknowledges what asks.
 *
 * Contract: handler memory: uint32_t began, frames, ended; the header handler says so if a message begins without
 *   SYN. */
#include <handler.h>
#include <packets.h>
#include <spin_host.h>

typedef struct {
  volatile int32_t began, frames, ended;
} tally_t;

__handler__ void message_hh(handler_args_t* args) {
  const slmp_pkt_hdr_t* headers = args->task->pkt_mem;
  tally_t* tally = args->task->handler_mem;
  amo_add(&tally->began, 1);
  if (!SYN(ntohs(headers->slmp_hdr.flags))) printf("message %#x: no SYN\n", (int)args->task->flow_id);
}

__handler__ void message_ph(handler_args_t* args) {
  slmp_pkt_hdr_t* headers = args->task->pkt_mem;
  tally_t* tally = args->task->handler_mem;
  const uint32_t offset = ntohl(headers->slmp_hdr.pkt_off);
  spin_cmd_t stored;
  amo_add(&tally->frames, 1);
  spin_dma_to_host(HOST_ADDR(args) + CORE_COUNT * PAGE_SIZE + offset, (uint32_t)(headers + 1),
                   SLMP_PAYLOAD_LEN(headers), 0, &stored);
  spin_cmd_wait(stored);
  if (SYN(ntohs(headers->slmp_hdr.flags))) {
    const mac_addr_t mac = headers->eth_hdr.src;
    headers->eth_hdr.src = headers->eth_hdr.dest;
    headers->eth_hdr.dest = mac;
    headers->ip_hdr.length = htons(sizeof *headers - sizeof(eth_hdr_t));
    headers->ip_hdr.checksum = 0;
    headers->ip_hdr.checksum = ip_checksum(&headers->ip_hdr, sizeof(ip_hdr_t));
    headers->udp_hdr.length = htons(sizeof(udp_hdr_t) + sizeof(slmp_hdr_t));
    headers->slmp_hdr.flags = htons(MKACK);
    spin_send_packet(headers, sizeof *headers, &stored);
  }
}

__handler__ void message_th(handler_args_t* args) {
  const slmp_pkt_hdr_t* headers = args->task->pkt_mem;
  tally_t* tally = args->task->handler_mem;
  amo_add(&tally->ended, 1);
  if (EOM(ntohs(headers->slmp_hdr.flags))) fpspin_host_req(args, args->task->flow_id);
}
