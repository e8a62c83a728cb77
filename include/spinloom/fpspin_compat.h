/* Host programs for FPsPIN over spinloom/ethernet.h: the names, types and life cycle of its library, libfpspin.
 *
 * Contract: fpspin_init installs the image, writes the rule set and activates the context; then fpspin_pop_req and
 *   fpspin_push_resp exchange requests with the HPUs until fpspin_exit. The NIC is `spinloom nic run`: by the name in
 *   the environment variable SPINLOOM_NIC_NAME, or spinloomN for /dev/pspinN.
 * Differences: rule sets of other contexts stay as they are; rules are in the order of the wire, as with the original;
 *   fpspin_write_memory takes addresses from ctx.handler_mem.addr on, which are those that sandboxed handlers have;
 *   registers are reached by `spinloom nic`, so fpspin_set_regs_base does nothing; there are no ioctls.
 * Source: FPsPIN, deliverable D4.7, section 4.3.2, and its public interface.
 * Threads: as spinloom/ethernet.h. Time: host time.
 */
#ifndef SPINLOOM_FPSPIN_COMPAT_H
#define SPINLOOM_FPSPIN_COMPAT_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spinloom/ethernet.h"
#include "spinloom/frame.h"
#include "spinloom/pspin/headers.h"
#include "spinloom/pspin/memory_map.h"

#define NUM_HPUS 16
#define MAX_COUNTERS 16
#define NUM_RULES_PER_RULESET 4
#define NUM_RULESETS 4
#define FPSPIN_HOSTDMA_PAGES_DEFAULT 16
#define DMA_ALIGN 64
#ifndef PAGE_SIZE
#define PAGE_SIZE 4096
#endif

#define SLMP_PAYLOAD_SIZE 1462
#ifndef SLMP_PORT /* spinloom/slmp.h has it, too */
#define SLMP_PORT 9330
#endif

/* ---- rule sets ---- */

struct fpspin_rule {
  int idx;
  uint32_t mask, start, end;
};
enum fpspin_mode {
  FPSPIN_MODE_AND,
  FPSPIN_MODE_OR
};
typedef struct {
  struct fpspin_rule r[NUM_RULES_PER_RULESET]; /* the last one finds the last frame of a message */
  enum fpspin_mode mode;
} fpspin_ruleset_t;

#define SPL_FPSPIN_RULE(i, m, s, e) ((struct fpspin_rule){(i), (m), (s), (e)})
#define FPSPIN_RULE_FALSE SPL_FPSPIN_RULE(0, 0, 1, 0)
#define FPSPIN_RULE_EMPTY SPL_FPSPIN_RULE(0, 0, 0, 0)
#define FPSPIN_RULE_IP SPL_FPSPIN_RULE(3, 0xffff0000u, 0x08000000u, 0x08000000u)
#define FPSPIN_RULE_IP_PROTO(num) SPL_FPSPIN_RULE(5, 0xffu, (uint32_t)(num), (uint32_t)(num))
#define FPSPIN_RULE_UDP_SPORT(num) SPL_FPSPIN_RULE(8, 0xffffu, (uint32_t)(num), (uint32_t)(num))
#define FPSPIN_RULE_UDP_DPORT(num) SPL_FPSPIN_RULE(9, 0xffff0000u, (uint32_t)(num) << 16, (uint32_t)(num) << 16)

static inline void spl_fpspin_rules(fpspin_ruleset_t *rs, struct fpspin_rule first, struct fpspin_rule second,
                                    struct fpspin_rule third, struct fpspin_rule last) {
  rs->r[0] = first;
  rs->r[1] = second;
  rs->r[2] = third;
  rs->r[3] = last;
  rs->mode = FPSPIN_MODE_AND;
}
static inline void fpspin_ruleset_bypass(fpspin_ruleset_t *rs) {
  spl_fpspin_rules(rs, FPSPIN_RULE_FALSE, FPSPIN_RULE_EMPTY, FPSPIN_RULE_EMPTY, FPSPIN_RULE_FALSE);
}
static inline void fpspin_ruleset_match(fpspin_ruleset_t *rs) {
  spl_fpspin_rules(rs, FPSPIN_RULE_EMPTY, FPSPIN_RULE_EMPTY, FPSPIN_RULE_EMPTY, FPSPIN_RULE_EMPTY);
}
static inline void fpspin_ruleset_udp(fpspin_ruleset_t *rs) {
  spl_fpspin_rules(rs, FPSPIN_RULE_IP, FPSPIN_RULE_IP_PROTO(17), FPSPIN_RULE_EMPTY, FPSPIN_RULE_FALSE);
}
static inline void fpspin_ruleset_slmp(fpspin_ruleset_t *rs) {
  spl_fpspin_rules(rs, FPSPIN_RULE_IP, FPSPIN_RULE_IP_PROTO(17), FPSPIN_RULE_UDP_DPORT(SLMP_PORT),
                   SPL_FPSPIN_RULE(10, 0x8000u, 0x8000u, 0x8000u));
}

/* ---- the context ---- */

typedef uint32_t fpspin_addr_t;
struct mem_area {
  fpspin_addr_t addr;
  uint32_t size;
};
typedef struct perf_counter {
  uint32_t sum, count;
} fpspin_counter_t;
typedef struct {
  int ctx_id;
  void *cpu_addr; /* host memory: a page for each HPU, then what the program asked for */
  size_t mmap_len;
  uint8_t dma_idx[NUM_HPUS];
  struct mem_area handler_mem;
  void *app_data;
  spl_eth *eth;
} fpspin_ctx_t;

static inline void fpspin_set_regs_base(const char *base) { (void)base; }
static inline const char *fpspin_get_regs_base(void) { return ""; }

static inline const char *spl_fpspin_nic(const char *dev, char *name, size_t length) {
  const char *given = getenv("SPINLOOM_NIC_NAME");
  if (given != NULL && *given != '\0') return given;
  const char *number = strstr(dev == NULL ? "" : dev, "pspin");
  snprintf(name, length, "spinloom%s", number == NULL || number[5] == '\0' ? "0" : number + 5);
  return name;
}

static inline void fpspin_exit(fpspin_ctx_t *ctx) {
  spl_eth_close(ctx->eth);
  ctx->eth = NULL;
}

/* False, with the reason on the standard error output, if there is no NIC or it refuses. fpspin_exit may follow. */
static inline bool fpspin_init(fpspin_ctx_t *ctx, const char *dev, const char *img, int dest_ctx,
                               const fpspin_ruleset_t *rs, int num_rs, int hostdma_pages) {
  char name[64];
  memset(ctx, 0, sizeof *ctx);
  spl_eth_options options;
  memset(&options, 0, sizeof options);
  options.nic = spl_fpspin_nic(dev, name, sizeof name);
  options.handlers = img;
  options.context = (uint32_t)dest_ctx;
  options.host_bytes = (size_t)hostdma_pages * SPL_HOST_PAGE_BYTES;
  spl_eth_rules rules = spl_eth_rules_never();
  if (num_rs > 0) {
    const fpspin_ruleset_t *own = &rs[dest_ctx < num_rs ? dest_ctx : num_rs - 1];
    rules.any = own->mode == FPSPIN_MODE_OR ? 1u : 0u;
    rules.count = NUM_RULES_PER_RULESET - 1;
    for (int rule = 0; rule < NUM_RULES_PER_RULESET; ++rule) {
      const spl_eth_rule one = {(uint32_t)own->r[rule].idx, own->r[rule].mask, own->r[rule].start, own->r[rule].end};
      if (rule < NUM_RULES_PER_RULESET - 1) {
        rules.rule[rule] = one;
      } else {
        rules.last_frame = one;
      }
    }
  }
  if (spl_eth_open(&ctx->eth, &options) != SPL_ETH_OK || spl_eth_activate(ctx->eth, &rules) != SPL_ETH_OK) {
    fprintf(stderr, "fpspin_init: %s\n", spl_eth_error());
    fpspin_exit(ctx);
    return false;
  }
  size_t state = 0;
  ctx->ctx_id = dest_ctx;
  ctx->cpu_addr = spl_eth_host_memory(ctx->eth, &ctx->mmap_len);
  (void)spl_eth_state(ctx->eth, &state);
  ctx->handler_mem.addr = SPL_HPU_STATE_BASE + SPL_PSPIN_HANDLER_MEM; /* task->handler_mem */
  ctx->handler_mem.size = state > SPL_PSPIN_HANDLER_MEM ? (uint32_t)(state - SPL_PSPIN_HANDLER_MEM) : 0;
  return true;
}

/* ---- requests ---- */

static inline volatile void *fpspin_pop_req(fpspin_ctx_t *ctx, int hpu_id, fpspin_flag_t *f) {
  uint64_t flag = 0;
  volatile void *payload = spl_eth_pop_request(ctx->eth, (uint32_t)hpu_id, &flag);
  if (payload == NULL) return NULL;
  f->data = flag;
  ctx->dma_idx[hpu_id] = f->dma_id;
  return payload;
}
static inline void fpspin_push_resp(fpspin_ctx_t *ctx, int hpu_id, fpspin_flag_t flag) {
  (void)spl_eth_push_response(ctx->eth, SPL_HOST_FLAG(ctx->dma_idx[hpu_id], 0, hpu_id), flag.len);
}

/* ---- counters and memory ---- */

static inline fpspin_counter_t fpspin_get_counter(fpspin_ctx_t *ctx, int id) {
  fpspin_counter_t counter = {0, 0};
  (void)spl_eth_counter(ctx->eth, (unsigned)id, &counter.sum, &counter.count);
  return counter;
}
static inline double fpspin_get_cycles(fpspin_ctx_t *ctx, int id) {
  const fpspin_counter_t counter = fpspin_get_counter(ctx, id);
  return (double)counter.sum / (double)counter.count; /* nothing was counted: not a number, as with the original */
}
static inline void fpspin_clear_counter(fpspin_ctx_t *ctx, int id) {
  (void)spl_eth_clear_counter(ctx->eth, (unsigned)id);
}
static inline uint32_t fpspin_get_avg_cycles(fpspin_ctx_t *ctx) {
  const fpspin_counter_t counter = fpspin_get_counter(ctx, 0);
  return counter.count == 0 ? 0 : counter.sum / counter.count;
}
/* Bytes outside of the handlers' memory are not written; the original's device refuses them, too. */
static inline void fpspin_write_memory(fpspin_ctx_t *ctx, fpspin_addr_t pspin_addr, void *host_addr, size_t len) {
  size_t bytes = 0;
  uint8_t *state = (uint8_t *)spl_eth_state(ctx->eth, &bytes);
  const uint64_t at = (uint64_t)pspin_addr - SPL_HPU_STATE_BASE;
  if (pspin_addr < SPL_HPU_STATE_BASE || at > bytes || len > bytes - at) {
    fprintf(stderr, "fpspin_write_memory: %zu B at 0x%x lie outside of the handlers' memory\n", len, pspin_addr);
    return;
  }
  memcpy(state + at, host_addr, len);
}

#endif
