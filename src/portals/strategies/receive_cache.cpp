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
  ++acquires_;
  const std::string key = key_of(strategy, message, facts);
  if (CachedReceive* const cached = find_usable(key); cached != nullptr) {
    ++statistics_.hits;
    cached->priority = attributes.priority;
    cached->last_use = acquires_;
    ++cached->users;
    return Lease{cached->receive.get(), cached->strategy, {}};
  }
  ++statistics_.misses;
  CachedReceive cached;
  cached.strategy = strategy;
  Result<std::unique_ptr<Receive>> prepared = prepare(strategy, message, facts, attributes.priority);
  const bool falls_back =
      !prepared && (prepared.error().code == Code::exhausted || prepared.error().code == Code::unsupported);
  std::string fallback;
  if (falls_back && strategy != Strategy::host_mpitypes) {
    ++statistics_.fallbacks;
    fallback = prepared.error().message;
    cached.strategy = Strategy::host_mpitypes;
    prepared = prepare(cached.strategy, message, facts, attributes.priority);
  }
  if (!prepared) return prepared.error();
  cached.receive = std::move(*prepared);
  cached.priority = attributes.priority;
  cached.last_use = acquires_;
  cached.users = 1;
  // A fallback has a key of its own, so that the next receive tries the NIC again.
  const std::string cache_key = cached.strategy == strategy ? key : text(key, "/fallback/", acquires_);
  Lease lease{cached.receive.get(), cached.strategy, std::move(fallback)};
  receives_.emplace(cache_key, std::move(cached));
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

ReceiveCache::CachedReceive* ReceiveCache::find_usable(const std::string& key) {
  CachedReceive* best = nullptr;
  const auto [first, last] = receives_.equal_range(key);
  for (auto candidate = first; candidate != last; ++candidate) {
    CachedReceive& cached = candidate->second;
    if (cached.users > 0 && !cached.receive->is_shareable()) continue;
    if (best == nullptr || cached.last_use < best->last_use) best = &cached;
  }
  return best;
}

Status ReceiveCache::forget(const layout::Type& type, int64_t count, Strategy wanted,
                            const TypeAttributes& attributes) {
  SPL_ASSIGN(const Message message, make_message(type, count));
  const auto [first, last] = receives_.equal_range(key_of(wanted, message, facts_for(attributes)));
  return release_unused(first, last);
}

Status ReceiveCache::release_unused(Table::iterator cached, Table::iterator last) {
  while (cached != last) {
    if (cached->second.users > 0) {
      ++cached;
      continue;
    }
    SPL_TRY(cached->second.receive->release());
    cached = receives_.erase(cached);
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
    auto prepared = Receive::prepare(nic_.interface, nic_.portal, nic_.queue, nic_.images, strategy, message, facts,
                                     nic_.cost, planned, nic_.family);
    if (prepared || prepared.error().code != Code::exhausted) return prepared;
    if (planned && unevictable_bytes(priority) + planned->nic_memory_bytes() > facts.state_bytes) return prepared;
    SPL_ASSIGN(const bool evicted, evict_one(priority));
    if (!evicted) return prepared;
  }
}

uint64_t ReceiveCache::unevictable_bytes(int32_t priority) const {
  uint64_t sum = 0;
  for (const auto& [key, cached] : receives_) {
    if (!is_evictable(cached, priority)) sum += cached.receive->nic_memory_bytes();
  }
  return sum;
}

Result<bool> ReceiveCache::evict_one(int32_t priority) {
  auto victim = receives_.end();
  for (auto candidate = receives_.begin(); candidate != receives_.end(); ++candidate) {
    const CachedReceive& cached = candidate->second;
    if (!is_evictable(cached, priority) || cached.receive->nic_memory_bytes() == 0) continue;
    const auto order = std::pair(cached.priority, cached.last_use);  // last_use is unique
    if (victim == receives_.end() || order < std::pair(victim->second.priority, victim->second.last_use))
      victim = candidate;
  }
  if (victim == receives_.end()) return false;
  SPL_TRY(victim->second.receive->release());
  receives_.erase(victim);
  ++statistics_.evictions;
  return true;
}

void ReceiveCache::give_back(const Lease& lease) {
  for (auto cached = receives_.begin(); cached != receives_.end(); ++cached) {
    if (cached->second.receive.get() != lease.receive) continue;
    SPL_ASSERT(cached->second.users > 0, "a lease given back twice");
    const bool keeps_nothing = --cached->second.users == 0 && lease.strategy == Strategy::host_mpitypes;
    if (keeps_nothing) receives_.erase(cached);  // a host receive holds only a buffer
    return;
  }
  SPL_ASSERT(false, "a lease of another cache");
}

Status ReceiveCache::clear() { return release_unused(receives_.begin(), receives_.end()); }

uint64_t ReceiveCache::nic_memory_bytes() const {
  uint64_t sum = 0;
  for (const auto& [key, cached] : receives_) sum += cached.receive->nic_memory_bytes();
  return sum;
}

}  // namespace spinloom::strategies
