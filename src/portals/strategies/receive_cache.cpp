#include "portals/strategies/receive_cache.hpp"

#include <utility>

namespace spinloom::strategies {
namespace {

// The key of a prepared receive: strategy, epsilon, and the message as its blob's bytes.
std::string key_of(Strategy strategy, const Message& message, const NicFacts& facts) {
  const auto bytes = message.blob.bytes();
  std::string key =
      text(name_of(strategy), '/', facts.epsilon_numerator, '/', facts.epsilon_denominator, '/', message.bytes, '/');
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return key;
}

}  // namespace

Result<ReceiveCache::Lease> ReceiveCache::acquire(const layout::Type& type, int64_t count, Strategy wanted,
                                                  const TypeAttributes& attributes) {
  SPL_ASSIGN(const Message message, make_message(type, count));
  const NicFacts facts = facts_for(attributes);
  const Strategy strategy = attributes.offload ? wanted : Strategy::host_mpitypes;
  ++clock_;
  const std::string key = key_of(strategy, message, facts);
  if (Held* const held = usable(key); held != nullptr) {
    ++statistics_.hits;
    held->priority = attributes.priority;
    held->used_at = clock_;
    ++held->users;
    return Lease{held->receive.get(), held->strategy, {}};
  }
  ++statistics_.misses;
  Held held;
  held.strategy = strategy;
  Result<std::unique_ptr<Receive>> made = prepare(strategy, message, facts, attributes.priority);
  const bool falls_back = !made && (made.error().code == Code::exhausted || made.error().code == Code::unsupported);
  std::string fallback;
  if (falls_back && strategy != Strategy::host_mpitypes) {
    ++statistics_.fallbacks;
    fallback = made.error().message;
    held.strategy = Strategy::host_mpitypes;
    made = prepare(held.strategy, message, facts, attributes.priority);
  }
  if (!made) return made.error();
  held.receive = std::move(*made);
  held.priority = attributes.priority;
  held.used_at = clock_;
  held.users = 1;
  // A fallback has a key of its own, so that the next receive tries the NIC again.
  const std::string kept_as = held.strategy == strategy ? key : text(key, "/fallback/", clock_);
  Lease lease{held.receive.get(), held.strategy, std::move(fallback)};
  held_.emplace(kept_as, std::move(held));
  return lease;
}

NicFacts ReceiveCache::facts_for(const TypeAttributes& attributes) const {
  NicFacts facts = nic_.facts;
  if (attributes.epsilon) {
    facts.epsilon_numerator = attributes.epsilon->numerator;
    facts.epsilon_denominator = attributes.epsilon->denominator;
  }
  return facts;
}

ReceiveCache::Held* ReceiveCache::usable(const std::string& key) {
  Held* best = nullptr;
  const auto [first, last] = held_.equal_range(key);
  for (auto candidate = first; candidate != last; ++candidate) {
    Held& held = candidate->second;
    if (held.users > 0 && !held.receive->is_shareable()) continue;
    if (best == nullptr || held.used_at < best->used_at) best = &held;
  }
  return best;
}

Status ReceiveCache::forget(const layout::Type& type, int64_t count, Strategy wanted,
                            const TypeAttributes& attributes) {
  SPL_ASSIGN(const Message message, make_message(type, count));
  const auto [first, last] = held_.equal_range(key_of(wanted, message, facts_for(attributes)));
  return release_unused(first, last);
}

Status ReceiveCache::release_unused(Table::iterator held, Table::iterator last) {
  while (held != last) {
    if (held->second.users > 0) {
      ++held;
      continue;
    }
    SPL_TRY(held->second.receive->release());
    held = held_.erase(held);
  }
  return {};
}

Result<std::unique_ptr<Receive>> ReceiveCache::prepare(Strategy strategy, const Message& message, const NicFacts& facts,
                                                       int32_t priority) {
  std::optional<Plan> planned;
  if (puts_on_nic(strategy)) {
    // A plan that is too large for an empty NIC fails here, before anybody is evicted.
    SPL_ASSIGN(planned, plan(strategy, message, facts, nic_.cost));
  }
  for (;;) {
    auto made = Receive::prepare(nic_.interface, nic_.portal, nic_.queue, nic_.images, strategy, message, facts,
                                 nic_.cost, planned, nic_.family);
    if (made || made.error().code != Code::exhausted) return made;
    if (planned && staying_bytes(priority) + planned->nic_memory_bytes() > facts.state_bytes) return made;
    SPL_ASSIGN(const bool evicted, evict_one(priority));
    if (!evicted) return made;
  }
}

uint64_t ReceiveCache::staying_bytes(int32_t priority) const {
  uint64_t sum = 0;
  for (const auto& [key, held] : held_) {
    if (!may_leave(held, priority)) sum += held.receive->nic_memory_bytes();
  }
  return sum;
}

Result<bool> ReceiveCache::evict_one(int32_t priority) {
  auto victim = held_.end();
  for (auto candidate = held_.begin(); candidate != held_.end(); ++candidate) {
    const Held& held = candidate->second;
    if (!may_leave(held, priority) || held.receive->nic_memory_bytes() == 0) continue;
    const auto order = std::pair(held.priority, held.used_at);  // used_at is unique
    if (victim == held_.end() || order < std::pair(victim->second.priority, victim->second.used_at)) victim = candidate;
  }
  if (victim == held_.end()) return false;
  SPL_TRY(victim->second.receive->release());
  held_.erase(victim);
  ++statistics_.evictions;
  return true;
}

void ReceiveCache::give_back(const Lease& lease) {
  for (auto held = held_.begin(); held != held_.end(); ++held) {
    if (held->second.receive.get() != lease.receive) continue;
    SPL_ASSERT(held->second.users > 0, "a lease given back twice");
    const bool keeps_nothing = --held->second.users == 0 && lease.strategy == Strategy::host_mpitypes;
    if (keeps_nothing) held_.erase(held);  // a host receive holds only a buffer
    return;
  }
  SPL_ASSERT(false, "a lease of another cache");
}

Status ReceiveCache::clear() { return release_unused(held_.begin(), held_.end()); }

uint64_t ReceiveCache::nic_memory_bytes() const {
  uint64_t sum = 0;
  for (const auto& [key, held] : held_) sum += held.receive->nic_memory_bytes();
  return sum;
}

}  // namespace spinloom::strategies
