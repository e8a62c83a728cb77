/* A key-value store in NIC memory: insert, get, delete, conditional read, and a log of what transactions have touched.
 *
 * Contract: kv_serve() performs one request and writes the answer; the faces (UDP frames, Portals puts) carry both. An
 *   answer is never longer than `room`. Numbers are in the order of the handler's processor.
 * Invariants: (1) a key has one slot, found from its hash on by linear probing, and keeps it when its value is deleted;
 *   (2) a slot is taken by compare-and-swap of its version, from 0 to 1, and changed while its version is odd, so a
 *   reader that saw the same even version before and after has read one value; (3) each access of a transaction is
 *   logged with the version that it left or saw, and the log wraps around.
 * Threads: any number of handlers. Source: SC'17 sPIN paper, section 5.4 (key-value stores, conditional read, logging).
 */
#ifndef SPINLOOM_HANDLERS_KEY_VALUE_H
#define SPINLOOM_HANDLERS_KEY_VALUE_H

#include <string.h>

#include "spinloom/handler.h"

#define KV_VALUE_BYTES 32u
#define KV_PROBES 16u

enum {
  KV_INSERT = 1, /* key, value of `length` bytes: inserts or replaces */
  KV_GET = 2,
  KV_DELETE = 3,
  KV_SELECT = 4 /* kv_condition in place of the value: the pairs of a range of slots for which it holds */
};
enum {
  KV_DONE = 0,
  KV_ABSENT = 1,
  KV_FULL = 2,  /* no slot near the key's hash */
  KV_WRONG = 3, /* no such request, or too long a value */
  KV_MORE = 4   /* the answer to a select is full; `version` is the slot to go on with */
};

typedef struct {
  uint32_t slots; /* a power of two */
  uint32_t log_entries;
  uint32_t answer_bits; /* match bits of the client's entry, for the face for puts */
} kv_constants;

typedef struct {
  uint8_t operation; /* the same in the answer */
  uint8_t status;
  uint16_t length; /* the bytes of the value, or of all selected pairs */
  uint32_t transaction; /* 0: none */
  uint32_t version; /* the pair's, in the answer; odd versions are never told */
  uint32_t key[2];
} kv_message; /* the value follows */

typedef struct {
  uint32_t first_slot, slot_count;
  uint32_t word, mask, wanted; /* holds if (the value's word & mask) == wanted */
} kv_condition;

typedef struct {
  uint32_t key[2];
  uint8_t value[KV_VALUE_BYTES];
} kv_pair; /* a pair in the answer to a select */

typedef struct {
  uint32_t version; /* 0: free; odd: being written */
  uint32_t length;  /* the value's; UINT32_MAX: deleted */
  uint32_t key[2];
  uint8_t value[KV_VALUE_BYTES];
} kv_slot;
typedef struct {
  uint32_t transaction, operation, version, key[2];
} kv_log_entry;
typedef struct {
  uint32_t logged; /* the log's entries follow the slots */
  uint32_t unused;
  kv_slot slot[];
} kv_state;

static uint32_t kv_hash(const uint32_t *key) {
  uint32_t mixed = (key[0] ^ key[1] * 0x85ebca6bu) * 0x9e3779b1u;
  mixed ^= mixed >> 16;
  return mixed * 0x85ebca6bu >> 3;
}

static void kv_log(kv_state *state, const kv_constants *given, const kv_message *message) {
  if (message->transaction == 0 || given->log_entries == 0) return;
  kv_log_entry *const log = (kv_log_entry *)&state->slot[given->slots];
  const uint32_t at = __atomic_fetch_add(&state->logged, 1u, __ATOMIC_RELAXED) % given->log_entries;
  const kv_log_entry entry = {
      message->transaction, message->operation, message->version, {message->key[0], message->key[1]}};
  log[at] = entry;
}

/* An even version of the slot, when nobody writes it. */
static uint32_t kv_settled(const kv_slot *slot) {
  for (;;) {
    const uint32_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
    if (version % 2 == 0) return version;
    PtlHandlerYield();
  }
}

/* The key's slot; with `take` a free one becomes its slot, with a version of 1: the caller writes it. */
static kv_slot *kv_find(kv_state *state, uint32_t slots, const uint32_t *key, bool take, bool *taken) {
  const uint32_t first = kv_hash(key);
  *taken = false;
  for (uint32_t probe = 0; probe < KV_PROBES && probe < slots; ++probe) {
    kv_slot *const slot = &state->slot[(first + probe) & (slots - 1)];
    uint32_t version = kv_settled(slot);
    if (version == 0) {
      if (!take) return NULL;
      if (__atomic_compare_exchange_n(&slot->version, &version, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        slot->key[0] = key[0];
        slot->key[1] = key[1];
        *taken = true;
        return slot;
      }
      (void)kv_settled(slot); /* another handler has been faster, perhaps with this key */
    }
    if (slot->key[0] == key[0] && slot->key[1] == key[1]) return slot;
  }
  return NULL;
}

/* Replaces the value if the slot's version is still this one; `taken`: it is odd, by kv_find(). */
static bool kv_write(kv_slot *slot, bool taken, uint32_t version, const uint8_t *value, uint32_t length) {
  if (!taken &&
      !__atomic_compare_exchange_n(&slot->version, &version, version + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    return false;
  }
  if (length <= KV_VALUE_BYTES) memcpy(slot->value, value, length);
  slot->length = length;
  __atomic_store_n(&slot->version, version + 2, __ATOMIC_RELEASE);
  return true;
}

/* Copies the value to `to` (KV_VALUE_BYTES); *length is UINT32_MAX if it is deleted. Returns the version read. */
static uint32_t kv_read(const kv_slot *slot, uint8_t *to, uint32_t *length) {
  for (;;) {
    const uint32_t version = kv_settled(slot);
    *length = slot->length;
    memcpy(to, slot->value, KV_VALUE_BYTES);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&slot->version, __ATOMIC_RELAXED) == version) return version;
  }
}

static uint32_t kv_select(kv_state *state, const kv_constants *given, const kv_condition *condition, kv_message *answer,
                          uint8_t *to, uint32_t room) {
  uint32_t used = 0;
  answer->status = KV_DONE;
  for (uint32_t i = 0; i < condition->slot_count && i < given->slots; ++i) {
    const uint32_t index = (condition->first_slot + i) & (given->slots - 1);
    const kv_slot *const slot = &state->slot[index];
    kv_pair pair;
    uint32_t length, word;
    if (kv_settled(slot) == 0) continue;
    (void)kv_read(slot, pair.value, &length);
    if (length == UINT32_MAX || condition->word >= KV_VALUE_BYTES / 4) continue;
    if (length < KV_VALUE_BYTES) memset(pair.value + length, 0, KV_VALUE_BYTES - length);
    memcpy(&word, pair.value + 4 * condition->word, sizeof word);
    if ((word & condition->mask) != condition->wanted) continue;
    if (room - used < sizeof pair) {
      answer->status = KV_MORE;
      answer->version = index;
      break;
    }
    pair.key[0] = slot->key[0];
    pair.key[1] = slot->key[1];
    memcpy(to + used, &pair, sizeof pair);
    used += sizeof pair;
  }
  return used;
}

/* Performs the request of `bytes` bytes; the answer may take its place. Returns the answer's bytes; 0: no request. */
static uint32_t kv_serve(const uint8_t *request, uint32_t bytes, kv_state *state, uint8_t *answer, uint32_t room) {
  const kv_constants *const given = spl_constants();
  kv_message message;
  uint8_t value[KV_VALUE_BYTES];
  uint32_t length = 0;
  if (bytes < sizeof message || room < sizeof message) return 0;
  memcpy(&message, request, sizeof message);
  message.status = KV_DONE;
  message.version = 0;
  const bool fits = message.length <= bytes - sizeof message;
  if (message.operation == KV_INSERT && fits && message.length <= KV_VALUE_BYTES) {
    bool taken;
    kv_slot *const slot = kv_find(state, given->slots, message.key, true, &taken);
    if (slot == NULL) {
      message.status = KV_FULL;
    } else {
      memcpy(value, request + sizeof message, message.length);
      uint32_t version;
      do {
        version = taken ? 0 : kv_settled(slot);
      } while (!kv_write(slot, taken, version, value, message.length));
      message.version = version + 2;
    }
  } else if (message.operation == KV_GET || message.operation == KV_DELETE) {
    bool taken;
    kv_slot *const slot = kv_find(state, given->slots, message.key, false, &taken);
    const bool deletes = message.operation == KV_DELETE;
    uint32_t found = UINT32_MAX;
    do {
      if (slot != NULL) message.version = kv_read(slot, value, &found);
    } while (deletes && found != UINT32_MAX && !kv_write(slot, false, message.version, NULL, UINT32_MAX));
    if (found == UINT32_MAX) {
      message.status = KV_ABSENT;
    } else if (deletes) {
      message.version += 2;
    } else {
      length = found < room - sizeof message ? found : (uint32_t)(room - sizeof message);
      memcpy(answer + sizeof message, value, length);
    }
  } else if (message.operation == KV_SELECT && bytes - sizeof message >= sizeof(kv_condition)) {
    kv_condition condition;
    memcpy(&condition, request + sizeof message, sizeof condition);
    length = kv_select(state, given, &condition, &message, answer + sizeof message, (uint32_t)(room - sizeof message));
  } else {
    message.status = KV_WRONG;
  }
  message.length = (uint16_t)length;
  kv_log(state, given, &message);
  memcpy(answer, &message, sizeof message);
  return (uint32_t)sizeof message + length;
}

#endif
