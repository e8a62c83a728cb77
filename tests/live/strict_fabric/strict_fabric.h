/* A libfabric of one provider that keeps to the letter of the API, for tests: SPINLOOM_LIBFABRIC names it. Messages
 * between processes are datagrams of abstract Unix sockets. Whoever breaks a rule is told by a line that begins with
 * "strict fabric:" and aborted. STRICT_FABRIC lists what the provider asks for, as real ones do:
 *
 *   local     FI_MR_LOCAL: buffers of all operations are registered, and their descriptors given
 *   virtual   FI_MR_VIRT_ADDR: remote addresses are virtual ones; else offsets
 *   provkey   FI_MR_PROV_KEY: the provider chooses keys; else they are unique
 *   endpoint  FI_MR_ENDPOINT: registered memory is bound to the endpoint and enabled
 *   noreads   no RMA
 *   nofd      completion queues have no descriptor
 *
 * Its queues are short, contexts are overwritten, buffers are watched until their operations end, and nothing moves
 * but in fi_cq_read.
 */
#pragma once
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS = 64, REGIONS = 1024, SENDS = 8, RECEIVES = 16, READS = 6, MESSAGE = 6000, CHUNK = 4000, NAME = 40 };

#define RULE(holds, text)                           \
  do {                                              \
    if (!(holds)) {                                 \
      fprintf(stderr, "strict fabric: %s\n", text); \
      abort();                                      \
    }                                               \
  } while (0)

struct region {
  struct fid_mr mr; /* first */
  const uint8_t* bytes;
  size_t length;
  uint64_t access;
  int live, enabled;
};

struct operation {
  void* context;
  uint8_t* bytes;
  size_t length;
  uint64_t sum;
  fi_addr_t peer;
  uint64_t address, key, asked, landed;
  int begun;
};

enum { SAY_MESSAGE, SAY_ASK, SAY_GIVE, SAY_REFUSE };
struct header {
  uint32_t kind, id;
  uint64_t key, address, length;
};

struct state {
  int mode, noreads, nofd, file;
  atomic_int inside;
  char own[NAME];
  char peers[PEERS][NAME];
  size_t peers_count;
  struct region regions[REGIONS];
  struct operation sends[SENDS], receives[RECEIVES], reads[READS];
  int objects;     /* open ones that belong to the domain */
  int domain_open, fabric_open, enabled, bound_queue, bound_peers, endpoint_open;
  struct fid_fabric fabric;
  struct fid_domain domain;
  struct fid_av av;
  struct fid_cq cq;
  struct fid_ep ep;
  struct {
    struct fi_cq_msg_entry entry;
    int error;
  } ended[RECEIVES + SENDS + READS];
  size_t ended_count, queue_size;
  struct {
    struct header header;
    char to[NAME];
  } asked[64]; /* reads that peers want */
  size_t asked_count;
  uint64_t next_send, first_send; /* messages leave in the order of fi_send */
  struct operation* ring[SENDS];  /* a ring, therefore, of which the oldest goes first */
};
extern struct state all;

static inline void enter(void) { RULE(atomic_exchange(&all.inside, 1) == 0, "two threads are inside the domain"); }
static inline void leave(void) { atomic_store(&all.inside, 0); }

/* memory.c */
extern struct fi_ops_mr mr_ops;
void check_local(const void* bytes, size_t length, void* description, uint64_t access);

/* queue.c: a place in `list` for what begins, which ends in the completion queue; null where there is none */
extern struct fi_ops_cq cq_ops;
struct operation* begin(struct operation* list, size_t count, void* context);
uint64_t sum_of(const uint8_t* bytes, size_t length);

/* endpoint.c */
extern struct fi_ops_msg msg_ops;
extern struct fi_ops_rma rma_ops;
extern struct fi_ops_cm cm_ops;
extern struct fi_ops_av av_ops;
