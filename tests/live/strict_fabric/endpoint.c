/* The operations that callers start (messages and reads), and the names of peers. */
#include "strict_fabric.h"

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
    all.ring[all.next_send++ % SENDS] = one;
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
struct fi_ops_msg msg_ops = {.size = sizeof msg_ops, .recv = ep_recv, .send = ep_send};

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
struct fi_ops_rma rma_ops = {.size = sizeof rma_ops, .read = ep_read};

static int get_name(fid_t fid, void* to, size_t* length) {
  (void)fid;
  RULE(all.enabled && *length >= NAME, "a name is there once the endpoint is enabled");
  memcpy(to, all.own, NAME);
  *length = NAME;
  return 0;
}
struct fi_ops_cm cm_ops = {.size = sizeof cm_ops, .getname = get_name};

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
struct fi_ops_av av_ops = {.size = sizeof av_ops, .insert = av_insert, .straddr = av_straddr};
