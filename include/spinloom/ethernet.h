/* ethernet.h - a program's side of Spinloom's Ethernet NIC, which runs as a process of its own (`spinloom nic run`).
 *
 * The program gives the NIC handlers and rule sets for one context. It shares memory with it: the context's NIC memory
 * (state and constants of its handlers), and its host memory, which the handlers reach by DMA. Handlers ask the program
 * by requests, each HPU through its page of host memory, and wait for the answer (spl_host_request of
 * spinloom/frame.h); or tell it something without waiting, through a ring (spl_host_notify). Source: FPsPIN,
 * deliverable D4.7, sections 4.3.2, 4.4.6 to 4.4.8.
 *
 * Contract: functions return SPL_ETH_OK or a negative code, or NULL; spl_eth_error() then has a sentence. No function
 *   aborts, prints, or waits longer than its time-out says. If the program ends or is killed, its contexts become
 *   inactive: their frames go to the host's stack, and the NIC goes on.
 * Threads: a spl_eth is for one thread at a time, except that requests of different HPUs may be answered by different
 *   threads. Time: host time.
 */
#ifndef SPINLOOM_ETHERNET_H
#define SPINLOOM_ETHERNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPL_ETH_API __attribute__((visibility("default")))
#else
#define SPL_ETH_API
#endif

enum {
  SPL_ETH_OK = 0,
  SPL_ETH_INVALID = -1,     /* an argument is wrong, or the NIC refused it */
  SPL_ETH_NO_NIC = -2,      /* no NIC of this name runs, or it has gone */
  SPL_ETH_EXHAUSTED = -3,   /* the NIC, or this process, has no room */
  SPL_ETH_TIMEOUT = -4,
  SPL_ETH_INTERNAL = -5     /* our own bug */
};

typedef struct spl_eth spl_eth;

/* A rule holds if start <= (word & mask) <= end. The word is number `index` of the frame, its 4 bytes in the order of
 * the wire, so that 0x08000000 with mask 0xffff0000 at word 3 means the type IPv4. */
typedef struct {
  uint32_t index, mask, start, end;
} spl_eth_rule;
#define SPL_ETH_RULES_MAX 16
typedef struct {
  uint32_t any;   /* 0: all rules must hold; 1: one suffices */
  uint32_t count;
  spl_eth_rule rule[SPL_ETH_RULES_MAX];
  spl_eth_rule last_frame; /* it holds for the last frame of a message */
} spl_eth_rules;

/* Rule sets for well-known traffic. */
SPL_ETH_API spl_eth_rules spl_eth_rules_never(void);
SPL_ETH_API spl_eth_rules spl_eth_rules_all(void);
SPL_ETH_API spl_eth_rules spl_eth_rules_udp(uint16_t port);
SPL_ETH_API spl_eth_rules spl_eth_rules_slmp(uint16_t port); /* UDP whose last frame has the flag EOM of SLMP */
SPL_ETH_API spl_eth_rules spl_eth_rules_icmp(void);
SPL_ETH_API spl_eth_rules spl_eth_rules_arp(void);

/* The first context that is free; SPL_ETH_EXHAUSTED if none is. */
#define SPL_ETH_ANY_CONTEXT 0xffffffffu

typedef struct {
  const char *nic;      /* its name; NULL: spinloom0 */
  const char
      *handlers; /* FILE.so (trusted) or FILE.elf (sandboxed) of `spinloom handler build`; NULL: frames go to a ring
                           in host memory (spl_eth_next_frame) */
  uint32_t context;     /* number of the context and of its rule set; or SPL_ETH_ANY_CONTEXT */
  size_t host_bytes;    /* 0: room for requests, notices and 64 frames */
  size_t state_bytes;   /* 0: 64 KiB */
  size_t constants_bytes;
} spl_eth_options;

/* Installs the context, inactive. Its rule set never holds until spl_eth_activate. */
SPL_ETH_API int spl_eth_open(spl_eth **out, const spl_eth_options *options);
/* The number of its context. */
SPL_ETH_API uint32_t spl_eth_context(const spl_eth *eth);
/* Writes the rules; runs the handlers' initialise_handler if there is one; lets frames in. What the handlers need in
 * NIC memory has been written before. */
SPL_ETH_API int spl_eth_activate(spl_eth *eth, const spl_eth_rules *rules);
SPL_ETH_API int spl_eth_deactivate(spl_eth *eth);
/* Deactivates and removes the context. */
SPL_ETH_API void spl_eth_close(spl_eth *eth);
/* Runs the payload handler without a frame; spl_frame_message() gives it `message`. */
SPL_ETH_API int spl_eth_invoke(spl_eth *eth, uint32_t message);

SPL_ETH_API void *spl_eth_host_memory(spl_eth *eth, size_t *bytes);
SPL_ETH_API void *spl_eth_state(spl_eth *eth, size_t *bytes);
SPL_ETH_API void *spl_eth_constants(spl_eth *eth, size_t *bytes);

/* ---- requests: the state begins with a struct spl_host_data ---- */

/* The payload of a new request of this HPU, in host memory, where the program may change it; NULL: there is none. */
SPL_ETH_API void *spl_eth_pop_request(spl_eth *eth, uint32_t hpu, uint64_t *flag);
/* Returns the payload of a new request of any HPU. Waits for `timeout_us` at most (0: looks once). */
SPL_ETH_API void *spl_eth_next_request(spl_eth *eth, uint64_t timeout_us, uint64_t *flag);
/* Answers a request: spl_host_request returns `value` to the handler. */
SPL_ETH_API int spl_eth_push_response(spl_eth *eth, uint64_t flag, uint32_t value);

/* ---- notices: spl_host_notify ---- */

typedef struct {
  uint32_t value;
  uint64_t argument;
} spl_eth_notice;
/* 1: a notice; 0: there was none in time. */
SPL_ETH_API int spl_eth_next_notice(spl_eth *eth, uint64_t timeout_us, spl_eth_notice *out);

/* ---- frames without handlers ---- */

/* The next frame; valid until the next call. NULL: there was none in time. */
SPL_ETH_API const void *spl_eth_next_frame(spl_eth *eth, uint64_t timeout_us, size_t *bytes, uint32_t *message);

/* ---- counters ---- */

/* A counter of the handlers (spl_count), 0 to 15. */
SPL_ETH_API int spl_eth_counter(spl_eth *eth, unsigned counter, uint32_t *sum, uint32_t *count);
SPL_ETH_API int spl_eth_clear_counter(spl_eth *eth, unsigned counter);
/* Reads the NIC's counts, at most `count` values. Returns how many the NIC has; spl_eth_count_name() names them. */
SPL_ETH_API int spl_eth_counts(spl_eth *eth, uint64_t *values, unsigned count);
SPL_ETH_API const char *spl_eth_count_name(unsigned which);

/* The sentence of this thread's last failed call. */
SPL_ETH_API const char *spl_eth_error(void);

#ifdef __cplusplus
}
#endif
#endif
