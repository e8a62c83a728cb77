/* In FPsPIN's style: sends each UDP frame back, by way of the host if it has told memory for the pages.
 *
 * Contract: counter 0: handlers, counter 1: bytes. */
#include <handler.h>
#include <packets.h>
#include <pspin.h>
#include <spin_dma.h>
#include <spin_host.h>
#include <stdio.h>
#include <string.h>

static void turn(pkt_hdr_t* headers) {
  const mac_addr_t mac = headers->eth_hdr.src;
  const uint32_t address = headers->ip_hdr.source_id;
  const uint16_t port = headers->udp_hdr.src_port;
  headers->eth_hdr.src = headers->eth_hdr.dest;
  headers->eth_hdr.dest = mac;
  headers->ip_hdr.source_id = headers->ip_hdr.dest_id;
  headers->ip_hdr.dest_id = address;
  headers->udp_hdr.src_port = headers->udp_hdr.dst_port;
  headers->udp_hdr.dst_port = port;
}

__handler__ void echo_ph(handler_args_t* args) {
  const uint32_t begin = cycles();
  uint8_t* frame = (uint8_t*)args->task->l2_pkt_mem;
  uint32_t bytes = args->task->pkt_mem_size;
  spin_cmd_t command;
  turn((pkt_hdr_t*)frame);
  if (args->task->host_mem_size != UINT32_MAX && fpspin_check_host_mem(args)) {
    spin_dma_to_host(HOST_PLD_ADDR(args), (uint32_t)frame, bytes, 1, &command);
    spin_cmd_wait(command);
    const fpspin_flag_t answer = fpspin_host_req(args, bytes);
    bytes = answer.len;
    spin_dma_from_host(HOST_PLD_ADDR(args), (uint32_t)frame, bytes, 1, &command);
    spin_cmd_wait(command);
    if (answer.hpu_id != HPU_ID(args)) printf("the answer is for HPU %d, not %d\n", answer.hpu_id, HPU_ID(args));
  }
  spin_send_packet(frame, bytes, &command);
  spin_cmd_wait(command);
  push_counter(&__host_data.counters[0], 1);
  push_counter(&__host_data.counters[1], bytes);
  push_counter(&__host_data.counters[2], cycles() - begin);
}

void init_handlers(handler_fn* hh, handler_fn* ph, handler_fn* th, void** handler_mem_ptr) {
  volatile handler_fn all[] = {NULL, echo_ph, NULL};
  *hh = all[0], *ph = all[1], *th = all[2];
}
