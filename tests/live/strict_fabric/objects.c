/* The fabric and its parts, opened, bound, closed in order. */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "strict_fabric.h"

struct state all;

static int close_part(struct fid* fid) {
  if (fid == &all.ep.fid) {
    RULE(all.endpoint_open, "the endpoint is closed twice");
    all.endpoint_open = all.enabled = 0;
    memset(all.sends, 0, sizeof all.sends);
    memset(all.receives, 0, sizeof all.receives);
    memset(all.reads, 0, sizeof all.reads);
    all.first_send = all.next_send = all.ended_count = all.asked_count = all.peers_count = 0;
  } else {
    RULE(!all.endpoint_open, "a queue is closed before its endpoint");
  }
  --all.objects;
  return 0;
}
static int close_domain(struct fid* fid) {
  (void)fid;
  RULE(all.objects == 0, "the domain is closed before its parts");
  all.domain_open = 0;
  close(all.file);
  return 0;
}
static int close_fabric(struct fid* fid) {
  (void)fid;
  RULE(!all.domain_open, "the fabric is closed before its domain");
  all.fabric_open = 0;
  return 0;
}
static int bind_ep(struct fid* fid, struct fid* other, uint64_t flags) {
  (void)fid;
  if (other == &all.cq.fid) {
    RULE(flags == (FI_TRANSMIT | FI_RECV), "the queue is for both directions");
    all.bound_queue = 1;
  }
  if (other == &all.av.fid) all.bound_peers = 1;
  return 0;
}
static int control_ep(struct fid* fid, int command, void* argument) {
  (void)fid, (void)argument;
  RULE(command == FI_ENABLE && all.bound_queue && all.bound_peers, "an endpoint is bound before it is enabled");
  all.enabled = 1;
  return 0;
}
static int control_cq(struct fid* fid, int command, void* argument) {
  (void)fid;
  RULE(command == FI_GETWAIT && !all.nofd, "a queue is asked for its descriptor");
  *(int*)argument = all.file;
  return 0;
}
static struct fi_ops part_ops = {.size = sizeof part_ops, .close = close_part};
static struct fi_ops ep_fid_ops = {
    .size = sizeof ep_fid_ops, .close = close_part, .bind = bind_ep, .control = control_ep};
static struct fi_ops cq_fid_ops = {.size = sizeof cq_fid_ops, .close = close_part, .control = control_cq};
static struct fi_ops domain_fid_ops = {.size = sizeof domain_fid_ops, .close = close_domain};
static struct fi_ops fabric_fid_ops = {.size = sizeof fabric_fid_ops, .close = close_fabric};

static int av_open(struct fid_domain* domain, struct fi_av_attr* attributes, struct fid_av** out, void* context) {
  (void)domain, (void)attributes, (void)context;
  all.av.fid.ops = &part_ops;
  all.av.ops = &av_ops;
  ++all.objects;
  *out = &all.av;
  return 0;
}
static int cq_open(struct fid_domain* domain, struct fi_cq_attr* attributes, struct fid_cq** out, void* context) {
  (void)domain, (void)context;
  if (all.nofd && attributes->wait_obj == FI_WAIT_FD) return -FI_ENOSYS;
  RULE(attributes->format == FI_CQ_FORMAT_MSG, "completions have lengths");
  all.queue_size = attributes->size;
  const size_t most = sizeof all.ended / sizeof all.ended[0];
  if (all.queue_size > most) all.queue_size = most;
  all.cq.fid.ops = &cq_fid_ops;
  all.cq.ops = &cq_ops;
  ++all.objects;
  *out = &all.cq;
  return 0;
}
static int endpoint(struct fid_domain* domain, struct fi_info* info, struct fid_ep** out, void* context) {
  (void)domain, (void)info, (void)context;
  all.ep.fid.ops = &ep_fid_ops;
  all.ep.msg = &msg_ops;
  all.ep.rma = &rma_ops;
  all.ep.cm = &cm_ops;
  all.endpoint_open = 1;
  ++all.objects;
  *out = &all.ep;
  return 0;
}
static struct fi_ops_domain domain_ops = {
    .size = sizeof domain_ops, .av_open = av_open, .cq_open = cq_open, .endpoint = endpoint};

static int domain_open(struct fid_fabric* fabric, struct fi_info* info, struct fid_domain** out, void* context) {
  (void)fabric, (void)info, (void)context;
  if (all.domain_open) return -FI_EBUSY;
  all.domain.fid.ops = &domain_fid_ops;
  all.domain.ops = &domain_ops;
  all.domain.mr = &mr_ops;
  all.domain_open = 1;
  static int made;
  snprintf(all.own, sizeof all.own, "strict-fabric-%d-%d", (int)getpid(), made++);
  all.file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, all.own, NAME - 1);
  RULE(bind(all.file, (struct sockaddr*)&address, sizeof address.sun_family + NAME) == 0, "bind");
  *out = &all.domain;
  return 0;
}
/* The caller must not sleep while a completion is ready or an operation could go on. */
static int trywait(struct fid_fabric* fabric, struct fid** fids, int count) {
  (void)fabric;
  RULE(count == 1 && fids[0] == &all.cq.fid && !all.nofd, "there is one queue to wait for");
  struct pollfd one = {all.file, POLLIN, 0};
  int busy = all.ended_count > 0 || all.first_send < all.next_send || all.asked_count > 0 || poll(&one, 1, 0) > 0;
  for (size_t i = 0; i < READS; ++i) busy = busy || (all.reads[i].context && !all.reads[i].begun);
  return busy ? -FI_EAGAIN : 0;
}
static struct fi_ops_fabric fabric_ops = {.size = sizeof fabric_ops, .domain = domain_open, .trywait = trywait};

int fabric_open(struct fi_fabric_attr* attributes, struct fid_fabric** out, void* context) {
  (void)attributes, (void)context;
  all.fabric.fid.ops = &fabric_fid_ops;
  all.fabric.ops = &fabric_ops;
  all.fabric_open = 1;
  *out = &all.fabric;
  return 0;
}

__asm__(".symver fabric_open, fi_fabric@@FABRIC_1.1");
