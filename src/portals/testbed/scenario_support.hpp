// Scenario support - parts of scenarios: hosts, guarded buffers, traces.
//
// Contract: a failure is an Error that says where; nothing here depends on a test framework.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

// Bytes between two guard zones. A pattern fills all of them at first, so that check() finds a stray or missing
// write.
class GuardedBuffer {
 public:
  static constexpr size_t guard_bytes = 64;
  static constexpr uint8_t fill = 0xa5;
  explicit GuardedBuffer(uint64_t length) : bytes_(length + 2 * guard_bytes, fill) {}

  [[nodiscard]] uint8_t* data() { return bytes_.data() + guard_bytes; }
  [[nodiscard]] uint64_t size() const { return bytes_.size() - 2 * guard_bytes; }
  // Returns an Error unless the buffer holds the expected bytes (untouched bytes hold `fill`) and the guards are
  // unchanged.
  [[nodiscard]] Status check(const std::vector<uint8_t>& expected, const std::string& what) const;

 private:
  std::vector<uint8_t> bytes_;
};

// Returns an Error that says `what` unless the condition holds.
[[nodiscard]] Status expect(bool condition, const std::string& what);

// The name of a message's random stream.
[[nodiscard]] std::string stream_name(uint32_t rank, uint64_t message);
[[nodiscard]] std::vector<uint8_t> random_bytes(uint64_t seed, const std::string& stream, uint64_t length);

// Records the events of each message in their order.
class Trace {
 public:
  void add(uint32_t rank, const nic::Event& event);
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, std::string> lines_;
};

// One rank with a queue for arrivals and a queue for its own operations.
struct Host {
  portals::Interface* interface = nullptr;
  uint32_t rank = 0;
  nic::QueueId arrivals;  // events of messages that come
  nic::QueueId departures;  // events of this rank's own operations
  nic::PortalIndex portal;

  static Result<Host> make(Testbed& bed, uint32_t rank);
  [[nodiscard]] nic::Entry entry(uint8_t* start, uint64_t length, uint64_t match_bits) const;
  [[nodiscard]] portals::PutArguments put(const std::vector<uint8_t>& bytes, const Host& target,
                                          uint64_t match_bits) const;
  // Makes a context of the named scenario handlers; `is_blocked`: under blocked round-robin.
  [[nodiscard]] Result<nic::ContextId> context(Testbed& bed, const char* handlers, uint32_t block, uint32_t stride,
                                               bool is_blocked) const;
  // Waits for `count` events of a queue and returns them in order.
  [[nodiscard]] Result<std::vector<nic::Event>> wait(nic::QueueId queue, size_t count, Trace& trace) const;
};

[[nodiscard]] Result<std::vector<Host>> make_hosts(Testbed& bed);
// Lets the testbed settle. Returns an Error if anything is still under way on any rank, if a NIC has refused a packet
// or failed a command, or if a queue of a Host holds an event that nobody waited for.
[[nodiscard]] Status check_quiet(Testbed& bed, std::vector<Host>& hosts);

// The entry's memory after the scatter handler: the bytes of `packed` at their places, `fill` elsewhere.
[[nodiscard]] std::vector<uint8_t> scattered(const std::vector<uint8_t>& packed, uint32_t block, uint32_t stride,
                                             uint64_t length);

}  // namespace spinloom::testbed
