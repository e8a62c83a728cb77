// FlowTable - decides which of the packets that come to a switch its handler processors take.
//
// Contract: rules name messages by portal table index and match bits, as an entry of a list does. try_take() is called
//   once for each packet, in the order of their heads: a header that matches a rule is taken, and with it the other
//   packets of its message. Acknowledgements and replies are never taken.
// Invariants: (1) the packets of a message are taken all or none, if its header comes first; (2) a message is forgotten
//   when its last byte has come.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "nic/portals/packet.hpp"

namespace spinloom::simulated {

struct FlowRule {
  uint32_t portal_index = 0;
  uint64_t match_bits = 0;
  uint64_t ignore_bits = 0;
};

class FlowTable {
 public:
  void add(const FlowRule& rule) { rules_.push_back(rule); }

  [[nodiscard]] bool try_take(const nic::Packet& packet) {
    if (packet.is_answer() || rules_.empty()) return false;
    const std::pair<uint32_t, uint64_t> key{packet.source.value, packet.message};
    const uint64_t bytes = packet.payload.length + packet.missing;
    if (!packet.is_header()) {
      const auto found = bytes_to_come_.find(key);
      if (found == bytes_to_come_.end()) return false;
      found->second -= std::min(bytes, found->second);
      if (found->second == 0) bytes_to_come_.erase(found);
      return true;
    }
    if (!matches(packet)) return false;
    if (bytes < packet.message_length) bytes_to_come_[key] = packet.message_length - bytes;
    return true;
  }

  [[nodiscard]] size_t open_messages() const { return bytes_to_come_.size(); }

 private:
  [[nodiscard]] bool matches(const nic::Packet& header) const {
    return std::ranges::any_of(rules_, [&](const FlowRule& rule) {
      return header.fields.portal_index == rule.portal_index &&
             ((header.fields.match_bits ^ rule.match_bits) & ~rule.ignore_bits) == 0;
    });
  }

  std::vector<FlowRule> rules_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> bytes_to_come_;  // bytes to come, by source and message
};

}  // namespace spinloom::simulated
