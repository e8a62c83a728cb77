// Share - sends messages of several datatypes, one after the other, to one NIC whose memory they share.
//
// Contract: create() builds one world with a receive cache (src/portals/strategies/receive_cache.hpp) on the receiver's
//   NIC, and takes the types with their attributes. receive(i) brings one message of type i: acquires a receive from
//   the cache, posts it, receives, gives the receive back, and compares the whole destination with the oracle. Numbers
//   are reported for compared bytes only. Source: SC'19 datatypes paper, section 3.2.6.
// Invariants: (1) the same config and the same order of receives give the same result on every machine; (2) after
//   Code::mismatch receive() may be called again; after any other Error only destruction is allowed.
// Threads: one owner. Time: modelled, in ps; preparing a receive is not in time_ps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "portals/interface/interface.hpp"
#include "portals/strategies/receive_cache.hpp"
#include "portals/strategies/strategy.hpp"

namespace spinloom::app {

struct SharedType {
  std::string type;  // text form
  int64_t count = 1;
  strategies::TypeAttributes attributes;
};

// Returns one message of each type, or an Error for a type that cannot be read, has no bytes, or needs too large a
// destination.
[[nodiscard]] Result<std::vector<strategies::Message>> messages_of(const std::vector<SharedType>& types);

struct ShareConfig : Setup {
  strategies::Strategy strategy = strategies::Strategy::rw_cp;  // one that keeps something in NIC memory
  std::vector<SharedType> types;
};

enum class Served : uint8_t {
  prepared,  // put on the NIC for this message
  hit,  // the NIC had it from an earlier message
  fallback,  // unpacked by the host, because the NIC could not take it
  host,  // unpacked by the host, as the type's attributes say
};

[[nodiscard]] const char* name_of(Served served);

struct SharedMessage {
  Served served = Served::prepared;
  std::string fallback;  // the reason why the receive is a fallback, if it is
  uint64_t evictions = 0;  // receives that left the NIC for this one
  uint64_t nic_memory_bytes = 0;  // NIC memory of this receive
  uint64_t nic_memory_in_use = 0;  // NIC memory of all prepared receives, when the message is done
  uint64_t prepared_blocks = 0;  // blocks that the host walked to prepare this receive
  int64_t size_bytes = 0;
  int64_t time_ps = 0;  // first byte at the NIC until the host can read the event, or has unpacked
  std::vector<uint8_t> destination;
  std::vector<uint8_t> event_log;
};

class Share {
 public:
  static Result<std::unique_ptr<Share>> create(ShareConfig config);
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] Result<SharedMessage> receive(size_t type);
  [[nodiscard]] size_t type_count() const { return messages_.size(); }
  [[nodiscard]] const strategies::ReceiveCache::Statistics& statistics() const { return cache_->statistics(); }

 private:
  explicit Share(ShareConfig config) : config_(std::move(config)) {}

  Status build();
  [[nodiscard]] Result<SharedMessage> run_message(const strategies::ReceiveCache::Lease& lease,
                                                  const strategies::Message& message, Destination& destination,
                                                  std::span<const uint8_t> packed);

  ShareConfig config_;
  LoadedImages loaded_;
  std::vector<strategies::Message> messages_;  // one for each type
  std::unique_ptr<simulated::World> world_;
  std::optional<portals::Interface> sender_;
  std::optional<portals::Interface> receiver_;
  nic::PortalIndex portal_;
  std::optional<strategies::ReceiveCache> cache_;
  uint64_t received_ = 0;  // messages, for seeds
};

}  // namespace spinloom::app
