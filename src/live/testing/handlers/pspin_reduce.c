/* In PsPIN's style, with the packets of its test bench: adds up the words of packets in the scratchpad of the cluster;
 * the last handler writes the sum over clusters and words to the host. */
#define SPL_PSPIN_PACKETS
#include <handler.h>
#include <packets.h>

__handler__ void reduce_ph(handler_args_t* args) {
  int32_t* sums = (int32_t*)args->task->scratchpad[args->cluster_id];
  uint8_t* payload;
  uint32_t bytes;
  GET_IP_UDP_PLD(args->task->pkt_mem, payload, bytes);
  const uint32_t* words = (const uint32_t*)payload;
  for (uint32_t i = 0; i < bytes / 4; i++) amo_add(&sums[i % 16], words[i]);
}

__handler__ void reduce_th(handler_args_t* args) {
  uint64_t sum = 0;
  for (int cluster = 0; cluster < NB_CLUSTERS; cluster++)
    for (int i = 0; i < 16; i++) sum += ((uint32_t*)args->task->scratchpad[cluster])[i];
  const uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
  spin_host_write(host, sum, false);
}
