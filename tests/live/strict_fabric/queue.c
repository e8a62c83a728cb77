/* All data movement, which happens only in fi_cq_read, and the completions of operations that have ended. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "strict_fabric.h"

uint64_t sum_of(const uint8_t* bytes, size_t length) {
  uint64_t sum = length;
  for (size_t i = 0; i < length; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

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

struct operation* begin(struct operation* list, size_t count, void* context) {
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

static void move_sends(void) {
  while (all.first_send < all.next_send) {
    struct operation* one = all.ring[all.first_send % SENDS];
    RULE(sum_of(one->bytes, one->length) == one->sum, "a buffer was changed before its message had left");
    const struct header header = {.kind = SAY_MESSAGE, .length = one->length};
    const int code = say(all.peers[one->peer], &header, one->bytes, one->length);
    if (code == -FI_EAGAIN) return;
    ++all.first_send;
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
struct fi_ops_cq cq_ops = {.size = sizeof cq_ops, .read = cq_read, .readerr = cq_readerr};
