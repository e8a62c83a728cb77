// A peer that is gone: what waits for it ends as undeliverable, so that nobody waits for ever.
//
// What has not been read from its buffer yet goes on as if the peer were there: the driver reads it to nowhere and says
// so, and finish_send() finds that the target is lost. So there is one end for what was sent before and after.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

bool Nic::Impl::is_lost(Rank peer) const {
  return !lost.empty() && std::find(lost.begin(), lost.end(), peer) != lost.end();
}

// Nothing reaches it any more, nor does it answer.
void Nic::Impl::part_from(Rank peer, Actions& out) {
  if (is_lost(peer)) return;
  lost.push_back(peer);
  lose_unacknowledged(peer, out);
  std::vector<uint64_t> names;
  fetches.for_each([&](uint32_t slot, const Fetch& fetch) {
    if (fetch.target == peer) names.push_back(uint64_t{fetch.sequence} << 32 | slot);
  });
  for (const uint64_t name : names) lose_fetch(name, out);
}

void Nic::Impl::lose_peer(Rank peer, Actions& out) {
  part_from(peer, out);
  std::vector<uint32_t> begun;
  messages.for_each([&](uint32_t slot, const Message& message) {
    if (message.outgoing == no_slot && message.source == peer && message.bytes_in < message.length) {
      begun.push_back(slot);
    }
  });
  for (const uint32_t slot : begun) lose_message(slot, out);
}

// The buffers are the host's already; the acknowledgements never come.
void Nic::Impl::lose_unacknowledged(Rank peer, Actions& out) {
  std::vector<uint32_t> waiting;
  outgoing.for_each([&](uint32_t slot, const Outgoing& message) {
    if (message.put.target == peer && message.sent && message.ack_wanted && !message.acked) waiting.push_back(slot);
  });
  for (const uint32_t slot : waiting) {
    outgoing[slot].acked = true;
    outgoing[slot].ack = {};
    outgoing[slot].ack.fail = static_cast<uint8_t>(Fail::undeliverable);
    finish_ack(slot, out);
  }
}

// A request whose reply never comes, or not to its end. DMAs of what has come are waited for.
void Nic::Impl::lose_fetch(uint64_t name, Actions& out) {
  const uint32_t slot = static_cast<uint32_t>(name);
  if (!fetches.taken(slot) || fetches[slot].sequence != name >> 32) return;
  Fetch& fetch = fetches[slot];
  if (fetch.header_in && fetch.bytes_in == fetch.reply_bytes) return;
  fetch.header_in = true;
  fetch.reply_bytes = fetch.bytes_in;
  fetch.result = {};
  fetch.result.fail = static_cast<uint8_t>(Fail::undeliverable);
  finish_fetch(slot, out);
}

// The rest of a message never comes.
void Nic::Impl::lose_message(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.bytes_in < message.length, message.bytes_in, " of ", message.length);
  SPL_ASSERT(message.early.size() <= early_packets, message.early.size(), " of ", early_packets);
  if (message.path == Path::waiting) {  // nor its header
    for (const Packet& packet : message.early) buffer_release(packet.payload.length);
    early_packets -= static_cast<uint32_t>(message.early.size());
    message_slots.remove(message.source, message.id);
    messages.give_back(slot);
    return;
  }
  message.missing = message.length - message.bytes_in;
  message.bytes_in = message.length;
  record_failure(message, Fail::undeliverable);
  advance(slot, out);
}

}  // namespace spinloom::nic
