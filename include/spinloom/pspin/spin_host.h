/* FPsPIN's requests to the host: a page of host memory for each HPU, a flag at its beginning (spl_host_request). */
#ifndef SPINLOOM_PSPIN_SPIN_HOST_H
#define SPINLOOM_PSPIN_SPIN_HOST_H

#include "spinloom/pspin/handler.h"
#include "spinloom/pspin/headers.h"

_Static_assert(sizeof(fpspin_flag_t) == sizeof(uint64_t), "as SPL_HOST_FLAG");

#define DMA_BUS_WIDTH 512
#define DMA_ALIGN SPL_HOST_PAGE_PAYLOAD
#define HPU_ID(args) ((args)->hpu_gid)
#define HOST_ADDR(args) ((uint64_t)(args)->task->host_mem_high << 32 | (args)->task->host_mem_low)
#define HOST_ADDR_HPU(args) (HOST_ADDR(args) + HPU_ID(args) * SPL_HOST_PAGE_BYTES)
#define HOST_PLD_ADDR(args) (HOST_ADDR_HPU(args) + DMA_ALIGN)

/* Sources that look at DO_HOST send frames by way of the host if it is 1 (-DDO_HOST=1). */
#ifndef DO_HOST
#define DO_HOST 0
#endif

static inline bool fpspin_check_host_mem(const handler_args_t *args) {
  return args->task->host_mem_size >= (size_t)CORE_COUNT * SPL_HOST_PAGE_BYTES;
}

static inline fpspin_flag_t fpspin_host_req(const handler_args_t *args, uint32_t len) {
  struct spl_host_data *const host = (struct spl_host_data *)spl_pspin_state();
  fpspin_flag_t answer = {.data = 0};
  answer.len = spl_host_request(host, len);
  answer.dma_id = SPL_HOST_FLAG_ID(host->request[HPU_ID(args)]);
  answer.hpu_id = (uint16_t)HPU_ID(args);
  return answer;
}

#endif
