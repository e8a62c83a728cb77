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
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
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
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PEERS = 64, REGIONS = 1024, SENDS = 8, RECEIVES = 16, READS = 6, MESSAGE = 6000, CHUNK = 4000, NAME = 40 };

#define RULE(holds, text)                              \
  do {                                                 \
    if (!(holds)) {                                    \
      fprintf(stderr, "strict fabric: %s\n", text);    \
      abort();                                         \
    }                                                  \
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

static struct {
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
  } asked[64]; /* what peers want to read */
  size_t asked_count;
} all;

static void enter(void) { RULE(atomic_exchange(&all.inside, 1) == 0, "two threads are inside the domain"); }
static void leave(void) { atomic_store(&all.inside, 0); }

static int wants(const char* what) {
  const char* list = getenv("STRICT_FABRIC");
  return list && strstr(list, what) != NULL;
}

static uint64_t sum_of(const uint8_t* bytes, size_t length) {
  uint64_t sum = length;
  for (size_t i = 0; i < length; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

/* ---- info ---- */

static struct fi_info* new_info(void) {
  struct fi_info* info = calloc(1, sizeof *info);
  info->tx_attr = calloc(1, sizeof *info->tx_attr);
  info->rx_attr = calloc(1, sizeof *info->rx_attr);
  info->ep_attr = calloc(1, sizeof *info->ep_attr);
  info->domain_attr = calloc(1, sizeof *info->domain_attr);
  info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
  return info;
}

static char* copy_of(const char* text) { return text ? strdup(text) : NULL; }

struct fi_info* dup_info(const struct fi_info* from) {
  struct fi_info* info = new_info();
  if (!from) return info;
  struct fi_info parts = *info;
  *info = *from;
  info->tx_attr = parts.tx_attr;
  info->rx_attr = parts.rx_attr;
  info->ep_attr = parts.ep_attr;
  info->domain_attr = parts.domain_attr;
  info->fabric_attr = parts.fabric_attr;
  *info->tx_attr = *from->tx_attr;
  *info->rx_attr = *from->rx_attr;
  *info->ep_attr = *from->ep_attr;
  *info->domain_attr = *from->domain_attr;
  *info->fabric_attr = *from->fabric_attr;
  info->domain_attr->name = copy_of(from->domain_attr->name);
  info->fabric_attr->name = copy_of(from->fabric_attr->name);
  info->fabric_attr->prov_name = copy_of(from->fabric_attr->prov_name);
  info->next = NULL;
  return info;
}

void free_info(struct fi_info* info) {
  while (info) {
    struct fi_info* next = info->next;
    free(info->domain_attr->name);
    free(info->fabric_attr->name);
    free(info->fabric_attr->prov_name);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info);
    info = next;
  }
}

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags,
                    const struct fi_info* hints, struct fi_info** out) {
  (void)version, (void)node, (void)service, (void)flags;
  all.mode = (wants("local") ? FI_MR_LOCAL : 0) | (wants("virtual") ? FI_MR_VIRT_ADDR : 0) |
             (wants("provkey") ? FI_MR_PROV_KEY : 0) | (wants("endpoint") ? FI_MR_ENDPOINT : 0);
  all.noreads = wants("noreads");
  all.nofd = wants("nofd");
  RULE(hints->ep_attr->type == FI_EP_RDM, "only reliable endpoints are here");
  RULE((hints->domain_attr->mr_mode & all.mode) == all.mode, "the caller lacks a mode of registration");
  RULE((hints->mode & FI_CONTEXT2) != 0, "contexts are the provider's");
  RULE((hints->tx_attr->msg_order & FI_ORDER_SAS) != 0, "order is only kept where it is asked for");
  *out = NULL;
  const char* named = hints->fabric_attr->prov_name;
  if ((named && strcmp(named, "strict")) || (all.noreads && (hints->caps & FI_RMA))) return -FI_ENODATA;
  struct fi_info* info = new_info();
  info->caps = hints->caps;
  info->mode = FI_CONTEXT2;
  info->addr_format = FI_ADDR_STR;
  info->tx_attr->size = SENDS;
  info->rx_attr->size = RECEIVES;
  info->ep_attr->type = FI_EP_RDM;
  info->ep_attr->max_msg_size = MESSAGE;
  info->domain_attr->name = strdup("strict0");
  info->domain_attr->mr_mode = all.mode;
  info->domain_attr->mr_key_size = 4;
  info->domain_attr->av_type = FI_AV_TABLE;
  info->fabric_attr->name = strdup("strict");
  info->fabric_attr->prov_name = strdup("strict");
  *out = info;
  return 0;
}

/* ---- registered memory ---- */

static void check_local(const void* bytes, size_t length, void* description, uint64_t access) {
  if ((all.mode & FI_MR_LOCAL) == 0) return;
  const struct region* region = description;
  RULE(region && region->live && region->enabled, "an operation without registered memory");
  RULE((region->access & access) == access, "memory is registered for something else");
  RULE((const uint8_t*)bytes >= region->bytes && (const uint8_t*)bytes + length <= region->bytes + region->length,
       "an operation outside of its registered memory");
}

static int close_region(struct fid* fid) {
  enter();
  struct region* region = (struct region*)fid;
  RULE(region->live, "memory is closed twice");
  region->live = 0;
  --all.objects;
  leave();
  return 0;
}
static int bind_region(struct fid* fid, struct fid* other, uint64_t flags) {
  (void)flags;
  RULE(((struct region*)fid)->live && other == &all.ep.fid && all.endpoint_open, "memory is bound to an endpoint");
  return 0;
}
static int control_region(struct fid* fid, int command, void* argument) {
  (void)argument;
  RULE(command == FI_ENABLE, "memory is enabled, and nothing else");
  ((struct region*)fid)->enabled = 1;
  return 0;
}
static struct fi_ops region_ops = {
    .size = sizeof region_ops, .close = close_region, .bind = bind_region, .control = control_region};

static int reg(struct fid* fid, const void* bytes, size_t length, uint64_t access, uint64_t offset, uint64_t key,
               uint64_t flags, struct fid_mr** out, void* context) {
  (void)fid, (void)flags, (void)context;
  enter();
  RULE(offset == 0, "an offset is not for callers");
  size_t at = 0;
  while (at < REGIONS && all.regions[at].live) ++at;
  if (at == REGIONS) {
    leave();
    return -FI_ENOSPC;
  }
  struct region* region = &all.regions[at];
  if (all.mode & FI_MR_PROV_KEY) key = 0x5000000 + (uint64_t)rand();
  RULE(key <= UINT32_MAX, "a key is longer than mr_key_size");
  for (size_t i = 0; i < REGIONS; ++i) RULE(!all.regions[i].live || all.regions[i].mr.key != key, "a key is used twice");
  memset(region, 0, sizeof *region);
  region->mr.fid.ops = &region_ops;
  region->mr.mem_desc = region;
  region->mr.key = key;
  region->bytes = bytes;
  region->length = length;
  region->access = access;
  region->live = 1;
  region->enabled = (all.mode & FI_MR_ENDPOINT) == 0;
  ++all.objects;
  *out = &region->mr;
  leave();
  return 0;
}
static struct fi_ops_mr mr_ops = {sizeof mr_ops, reg, NULL, NULL};

/* ---- what moves ---- */

static int say(const char* to, const struct header* header, const void* bytes, size_t length) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path + 1, to, NAME - 1);
  struct iovec parts[2] = {{(void*)header, sizeof *header}, {(void*)bytes, length}};
  struct msghdr message = {&address, sizeof address.sun_family + NAME, parts, 2, NULL, 0, 0};
  if (sendmsg(all.file, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
  return errno == EAGAIN || errno == ENOBUFS ? -FI_EAGAIN : -FI_ECONNREFUSED;
}

static void end(struct operation* operation, uint64_t flags, size_t length, int error) {
  RULE(all.ended_count < all.queue_size, "the completion queue runs over");
  all.ended[all.ended_count].entry =
      (struct fi_cq_msg_entry){.op_context = operation->context, .flags = flags, .len = length};
  all.ended[all.ended_count++].error = error;
  operation->context = NULL;
}

static struct operation* begin(struct operation* list, size_t count, void* context) {
  RULE(all.enabled, "the endpoint is not enabled");
  RULE(context, "an operation has a context");
  struct operation* found = NULL;
  for (size_t i = 0; i < SENDS; ++i) RULE(all.sends[i].context != context, "a context is used twice");
  for (size_t i = 0; i < RECEIVES; ++i) RULE(all.receives[i].context != context, "a context is used twice");
  for (size_t i = 0; i < READS; ++i) RULE(all.reads[i].context != context, "a context is used twice");
  for (size_t i = count; i-- > 0;) found = list[i].context ? found : &list[i];
  if (!found) return NULL;
  memset(found, 0, sizeof *found);
  found->context = context;
  memset(context, 0xc0, sizeof(struct fi_context2));
  return found;
}

/* Messages leave in the order of fi_send: the list is a ring of which the oldest goes first. */
static uint64_t next_send, first_send;
static struct operation* ring[SENDS];

static void move_sends(void) {
  while (first_send < next_send) {
    struct operation* one = ring[first_send % SENDS];
    RULE(sum_of(one->bytes, one->length) == one->sum, "a buffer was changed before its message had left");
    const struct header header = {.kind = SAY_MESSAGE, .length = one->length};
    const int code = say(all.peers[one->peer], &header, one->bytes, one->length);
    if (code == -FI_EAGAIN) return;
    ++first_send;
    end(one, FI_MSG | FI_SEND, 0, code ? FI_ECONNREFUSED : 0);
  }
}

static void move_reads(void) {
  for (size_t i = 0; i < READS; ++i) {
    struct operation* one = &all.reads[i];
    if (!one->context || one->begun) continue;
    const struct header ask = {SAY_ASK, (uint32_t)i, one->key, one->address, one->length};
    const int code = say(all.peers[one->peer], &ask, NULL, 0);
    if (code == -FI_EAGAIN) continue;
    one->begun = 1;
    if (code) end(one, FI_RMA | FI_READ, 0, FI_ECONNREFUSED);
  }
}

/* Gives what peers have asked for, as far as the socket takes it. */
static void serve(void) {
  while (all.asked_count > 0) {
    struct header* ask = &all.asked[0].header;
    const struct region* region = NULL;
    for (size_t i = 0; i < REGIONS; ++i) {
      const struct region* one = &all.regions[i];
      if (one->live && one->enabled && one->mr.key == ask->key && (one->access & FI_REMOTE_READ)) region = one;
    }
    const uint64_t base = region && (all.mode & FI_MR_VIRT_ADDR) ? (uint64_t)region->bytes : 0;
    const int good = region && ask->address >= base && ask->address - base + ask->length <= region->length;
    struct header give = {good ? SAY_GIVE : SAY_REFUSE, ask->id, 0, 0, ask->length < CHUNK ? ask->length : CHUNK};
    const uint8_t* bytes = good ? region->bytes + (ask->address - base) : NULL;
    const int code = say(all.asked[0].to, &give, bytes, good ? give.length : 0);
    if (code == -FI_EAGAIN) return;
    ask->address += give.length;
    ask->length -= give.length;
    if (good && !code && ask->length > 0) continue;
    memmove(all.asked, all.asked + 1, --all.asked_count * sizeof all.asked[0]);
  }
}

static void take(void) {
  static uint8_t room[sizeof(struct header) + MESSAGE];
  for (;;) {
    struct operation* free = NULL;
    for (size_t i = RECEIVES; i-- > 0;) free = all.receives[i].context ? &all.receives[i] : free;
    struct sockaddr_un from;
    socklen_t from_length = sizeof from;
    if (all.ended_count + 1 >= all.queue_size || all.asked_count == 64) return;
    struct header peeked;
    if (recv(all.file, &peeked, sizeof peeked, MSG_DONTWAIT | MSG_PEEK) < (ssize_t)sizeof peeked) return;
    if (peeked.kind == SAY_MESSAGE && !free) return; /* it waits for a buffer, and what is behind it as well */
    const ssize_t got = recvfrom(all.file, room, sizeof room, MSG_DONTWAIT, (struct sockaddr*)&from, &from_length);
    const struct header header = peeked;
    const uint8_t* bytes = room + sizeof header;
    const size_t length = (size_t)got - sizeof header;
    if (header.kind == SAY_MESSAGE) {
      RULE(length <= free->length, "a message is longer than the buffer");
      for (size_t i = 0; i < free->length; ++i) RULE(free->bytes[i] == 0xcc, "a posted buffer was changed");
      memcpy(free->bytes, bytes, length);
      end(free, FI_MSG | FI_RECV, length, 0);
    } else if (header.kind == SAY_ASK) {
      all.asked[all.asked_count].header = header;
      memcpy(all.asked[all.asked_count++].to, from.sun_path + 1, NAME);
    } else if (header.id < READS && all.reads[header.id].context) {
      struct operation* read = &all.reads[header.id];
      if (header.kind == SAY_REFUSE) {
        end(read, FI_RMA | FI_READ, 0, FI_EACCES);
        continue;
      }
      memcpy(read->bytes + read->landed, bytes, length);
      read->landed += length;
      if (read->landed == read->length) end(read, FI_RMA | FI_READ, 0, 0);
    }
  }
}

static ssize_t cq_read(struct fid_cq* cq, void* to, size_t count) {
  (void)cq;
  enter();
  move_sends();
  move_reads();
  serve();
  take();
  size_t given = 0;
  while (given < count && given < all.ended_count && !all.ended[given].error) {
    ((struct fi_cq_msg_entry*)to)[given] = all.ended[given].entry;
    ++given;
  }
  const int error = given == 0 && all.ended_count > 0;
  all.ended_count -= given;
  memmove(all.ended, all.ended + given, all.ended_count * sizeof all.ended[0]);
  leave();
  return given ? (ssize_t)given : error ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t cq_readerr(struct fid_cq* cq, struct fi_cq_err_entry* to, uint64_t flags) {
  (void)cq, (void)flags;
  enter();
  ssize_t given = 0;
  if (all.ended_count > 0 && all.ended[0].error) {
    memset(to, 0, sizeof *to);
    to->op_context = all.ended[0].entry.op_context;
    to->flags = all.ended[0].entry.flags;
    to->err = all.ended[0].error;
    memmove(all.ended, all.ended + 1, --all.ended_count * sizeof all.ended[0]);
    given = 1;
  }
  leave();
  return given ? given : -FI_EAGAIN;
}
static struct fi_ops_cq cq_ops = {.size = sizeof cq_ops, .read = cq_read, .readerr = cq_readerr};

static ssize_t ep_send(struct fid_ep* ep, const void* bytes, size_t length, void* description, fi_addr_t to,
                       void* context) {
  (void)ep;
  enter();
  ssize_t code = -FI_EAGAIN;
  RULE(to < all.peers_count && all.peers[to][0], "a message to nobody");
  RULE(length <= MESSAGE, "a message is longer than max_msg_size");
  check_local(bytes, length, description, FI_SEND);
  struct operation* one = begin(all.sends, SENDS, context);
  if (one) {
    one->bytes = (uint8_t*)bytes;
    one->length = length;
    one->sum = sum_of(bytes, length);
    one->peer = to;
    ring[next_send++ % SENDS] = one;
    code = 0;
  }
  leave();
  return code;
}

static ssize_t ep_recv(struct fid_ep* ep, void* bytes, size_t length, void* description, fi_addr_t from,
                       void* context) {
  (void)ep, (void)from;
  enter();
  check_local(bytes, length, description, FI_RECV);
  struct operation* one = begin(all.receives, RECEIVES, context);
  if (one) {
    one->bytes = bytes;
    one->length = length;
    memset(bytes, 0xcc, length);
  }
  leave();
  return one ? 0 : -FI_EAGAIN;
}
static struct fi_ops_msg msg_ops = {.size = sizeof msg_ops, .recv = ep_recv, .send = ep_send};

static ssize_t ep_read(struct fid_ep* ep, void* to, size_t length, void* description, fi_addr_t from, uint64_t address,
                       uint64_t key, void* context) {
  (void)ep;
  enter();
  RULE(!all.noreads, "this provider cannot read");
  check_local(to, length, description, FI_READ);
  struct operation* one = begin(all.reads, READS, context);
  if (one) {
    one->bytes = to;
    one->length = length;
    one->peer = from;
    one->address = address;
    one->key = key;
  }
  leave();
  return one ? 0 : -FI_EAGAIN;
}
static struct fi_ops_rma rma_ops = {.size = sizeof rma_ops, .read = ep_read};

static int get_name(fid_t fid, void* to, size_t* length) {
  (void)fid;
  RULE(all.enabled && *length >= NAME, "a name is there once the endpoint is enabled");
  memcpy(to, all.own, NAME);
  *length = NAME;
  return 0;
}
static struct fi_ops_cm cm_ops = {.size = sizeof cm_ops, .getname = get_name};

static int av_insert(struct fid_av* av, const void* address, size_t count, fi_addr_t* out, uint64_t flags,
                     void* context) {
  (void)av, (void)flags, (void)context;
  RULE(count == 1 && all.peers_count < PEERS, "one address at a time");
  memcpy(all.peers[all.peers_count], address, NAME);
  *out = all.peers_count++;
  return 1;
}
static const char* av_straddr(struct fid_av* av, const void* address, char* to, size_t* length) {
  (void)av;
  snprintf(to, *length, "strict://%s", (const char*)address);
  return to;
}
static struct fi_ops_av av_ops = {.size = sizeof av_ops, .insert = av_insert, .straddr = av_straddr};

/* ---- objects ---- */

static int close_part(struct fid* fid) {
  if (fid == &all.ep.fid) {
    RULE(all.endpoint_open, "the endpoint is closed twice");
    all.endpoint_open = all.enabled = 0;
    memset(all.sends, 0, sizeof all.sends);
    memset(all.receives, 0, sizeof all.receives);
    memset(all.reads, 0, sizeof all.reads);
    first_send = next_send = all.ended_count = all.asked_count = all.peers_count = 0;
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
static struct fi_ops ep_fid_ops = {.size = sizeof ep_fid_ops, .close = close_part, .bind = bind_ep, .control = control_ep};
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
  int busy = all.ended_count > 0 || first_send < next_send || all.asked_count > 0 || poll(&one, 1, 0) > 0;
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
const char* error_text(int error) { return strerror(error); }
uint32_t version(void) { return FI_VERSION(1, 99); }

__asm__(".symver get_info, fi_getinfo@@FABRIC_1.3");
__asm__(".symver free_info, fi_freeinfo@@FABRIC_1.3");
__asm__(".symver dup_info, fi_dupinfo@@FABRIC_1.3");
__asm__(".symver fabric_open, fi_fabric@@FABRIC_1.1");
__asm__(".symver error_text, fi_strerror@@FABRIC_1.0");
__asm__(".symver version, fi_version@@FABRIC_1.0");
