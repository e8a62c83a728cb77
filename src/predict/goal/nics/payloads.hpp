// Payloads - the bytes of all messages of a schedule: what each sends, where it lands, and whether the right ones came.
//
// Contract: send `number` of rank `source` has the bytes that begin at place (source, number) of one random text, so
//   that every message has other bytes and none has memory of its own to send from. With `moves` receives and
//   overflow have zeroed memory and check() compares; without, there is no memory: all addresses are one, which
//   nobody reads, and check() finds nothing. What one-sided operations reach are Windows. Only messages that a rank of
//   the sample sends or gets have bytes.
// Invariants: (1) the largest eager message that a receive can match fits in its memory, so that nothing is cut.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "predict/goal/nics/windows.hpp"
#include "predict/schedule/schedule.hpp"
#include "simulated/node/zeroed.hpp"

namespace spinloom::goal {

inline constexpr uint64_t memory_bytes_most = uint64_t{4} << 30;  // where bytes move
inline constexpr uint64_t message_bytes_most = uint64_t{1} << 40;  // so that the time of one message fits into Time

class Payloads {
 public:
  // Returns an error if `moves` needs more memory than memory_bytes_most.
  static Result<Payloads> make(const schedule::Schedule& schedule, uint64_t S_bytes, bool moves,
                               const Sample& sample = {});

  [[nodiscard]] const uint8_t* sent(uint32_t source, uint32_t number) const { return whole() + place(source, number); }
  // The memory of messages that come to `rank` before their receives.
  [[nodiscard]] uint8_t* overflow(uint32_t rank) { return moves_ ? overflow_[rank].data() : &nowhere_; }
  [[nodiscard]] uint64_t overflow_bytes(uint32_t rank) const {
    return moves_ ? overflow_[rank].size() : unlimited_bytes;
  }
  // Returns how many bytes a receive needs for any eager message that it may match.
  [[nodiscard]] uint64_t receive_bytes(uint32_t rank, uint32_t tag) const;
  [[nodiscard]] simulated::ZeroedBytes memory(uint64_t bytes) const {
    return simulated::ZeroedBytes(moves_ ? bytes : 0);
  }
  [[nodiscard]] uint8_t* address(simulated::ZeroedBytes& memory) { return moves_ ? memory.data() : &nowhere_; }
  void copy(simulated::ZeroedBytes& to, uint64_t from, uint64_t bytes) const;
  // Returns an Error unless these are the bytes of a send, each xored with the mask.
  [[nodiscard]] Status check(const uint8_t* memory, uint64_t bytes, uint32_t rank, uint32_t source, uint32_t number,
                             uint8_t mask = 0) const;
  // All bytes that are sent, which gets read, and the place in them where an operation's bytes begin.
  [[nodiscard]] const uint8_t* whole() const { return moves_ ? text_.data() : &nowhere_; }
  [[nodiscard]] uint64_t whole_bytes() const { return moves_ ? text_.size() : unlimited_bytes; }
  [[nodiscard]] uint64_t place(uint32_t source, uint32_t number) const { return moves_ ? first_[source] + number : 0; }
  [[nodiscard]] Windows& windows() { return windows_; }
  [[nodiscard]] const Windows& windows() const { return windows_; }
  // The memory of all windows, and of one.
  [[nodiscard]] uint8_t* windows_memory() { return moves_ ? windows_.memory() : &nowhere_; }
  [[nodiscard]] uint64_t windows_bytes() const { return moves_ ? windows_.bytes() : unlimited_bytes; }
  [[nodiscard]] uint8_t* address(const Windows::Window& window) { return windows_memory() + window.begin; }
  [[nodiscard]] uint64_t bytes_of(const Windows::Window& window) const {
    return moves_ ? window.bytes : unlimited_bytes;
  }

  [[nodiscard]] bool moves() const { return moves_; }

  static constexpr uint64_t unlimited_bytes = uint64_t{1} << 62;  // no schedule sends as many bytes

 private:
  Payloads(bool moves, Sample sample) : moves_(moves), sample_(std::move(sample)) {}
  // Sizes all memory (first_, overflow_sizes_, largest_, largest_by_tag_, text_bytes_). Returns an upper bound of its
  // bytes.
  uint64_t size_memory(const schedule::Schedule& schedule, uint64_t S_bytes);

  bool moves_;
  Sample sample_;
  uint8_t nowhere_ = 0;
  std::vector<uint64_t> first_;  // of each rank, in the text
  std::vector<uint8_t> text_;
  std::vector<simulated::ZeroedBytes> overflow_;
  Windows windows_;
  std::vector<uint64_t> overflow_sizes_;
  std::vector<uint64_t> largest_;  // eager, that come to each rank
  std::unordered_map<uint64_t, uint64_t> largest_by_tag_;  // the same by rank and tag
  uint64_t text_bytes_ = 0;
};

}  // namespace spinloom::goal
