// Receiver - puts messages of SLMP together in memory, and says what to acknowledge. It does no input or output itself.
//
// Contract: the driver hands it each datagram with a number for the peer's address and port, and sends the
//   acknowledgement that comes back to that peer. A message is whole when its packet with EOM is there and all bytes
//   before its end are; it is given out once. A packet whose bytes are there already changes nothing, but is
//   acknowledged: its acknowledgement may have been lost. Packets of a message that was given out are such repeats for
//   the time `linger`, or until remembered_max later messages have been given out; after that its ID may be used again.
//   The acknowledgement of a packet that asks for a report says how many packets of the same size fit into what is left
//   of bytes_max; an empty packet counts as one byte.
// Invariants: (1) what is malformed, and what finds no room, is counted and not acknowledged, and changes no message;
//   but messages that have not grown for idle_max may have been given up for a packet that finds no room even so; (2)
//   no more than bytes_max bytes, messages_max messages and ranges_max pieces of each are held; (3) a packet without
//   SYN is never acknowledged.
// Threads: one owner. Time: an argument, never read.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "ethernet/slmp/byte_ranges.hpp"
#include "ethernet/slmp/header.hpp"

namespace spinloom::slmp {

struct ReceiverConfig {
  uint64_t bytes_max = uint64_t{1} << 30;  // a limit for all messages that are not whole yet
  size_t messages_max = 256;
  size_t ranges_max = 1 << 16;
  size_t remembered_max = 1024;  // messages given out whose repeats are known
  Time linger{10'000'000'000'000};
  Time idle_max{60'000'000'000'000};  // a message that has grown no longer ago than this keeps its room
};

struct ReceiverCounts {
  uint64_t packets = 0;  // packets that brought bytes or an end
  uint64_t repeated = 0;
  uint64_t malformed = 0;
  uint64_t refused = 0;  // packets that found no room
  uint64_t abandoned = 0;  // messages that made room for others
  uint64_t messages = 0;  // messages given out
};

class Receiver {
 public:
  struct Message {
    uint64_t peer = 0;
    uint32_t id = 0;
    std::vector<uint8_t> bytes;
    Time began;
    Time ended;
  };
  struct Outcome {
    std::optional<Header> acknowledgement;
    std::optional<Message> message;
  };

  explicit Receiver(const ReceiverConfig& config) : config_(config) {}

  // An Error says why the datagram was refused; the counts record that, too.
  [[nodiscard]] Result<Outcome> on_datagram(Time now, uint64_t peer, std::span<const uint8_t> datagram);

  [[nodiscard]] const ReceiverCounts& counts() const { return counts_; }
  [[nodiscard]] uint64_t bytes_held() const { return bytes_held_; }
  [[nodiscard]] size_t messages_held() const { return messages_.size(); }

 private:
  using Key = std::pair<uint64_t, uint32_t>;  // peer and message ID
  struct Partial {
    std::vector<uint8_t> bytes;
    ByteRanges ranges;
    std::optional<uint64_t> end;  // known when the packet with EOM has come
    Time began;
    Time last_growth;
  };

  [[nodiscard]] Result<Outcome> add_packet(Time now, const Key& key, const Header& header,
                                           std::span<const uint8_t> payload);
  [[nodiscard]] Status check_ends(const Partial* partial, const Header& header, uint64_t end) const;
  [[nodiscard]] Status make_room(Time now, const Key& key, const Partial* partial, uint64_t begin, uint64_t end);
  [[nodiscard]] bool expire_then_was_given_out(Time now, const Key& key);
  void give_out(Time now, const Key& key, Partial& partial, Outcome& outcome);

  ReceiverConfig config_;
  std::map<Key, Partial> messages_;
  std::set<Key> given_out_;
  std::deque<std::pair<Time, Key>> given_out_order_;
  uint64_t bytes_held_ = 0;
  ReceiverCounts counts_;
};

}  // namespace spinloom::slmp
