// Payloads - the bytes of all messages of a schedule: what each sends, where it lands, and whether the right ones came.
//
// Contract: the data of operation `number` of rank `source` begin at data_offset(source, number) of one block of random
//   data, so that every message has other bytes and none has memory of its own to send from. With `has_memory`
//   receives and overflow have zeroed memory and check() compares; without, there is no memory: all addresses are one,
//   which nobody reads, and check() finds nothing. What one-sided operations reach are Windows. Only messages that a
//   rank of the sample sends or gets have bytes.
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

inline constexpr uint64_t memory_bytes_max = uint64_t{4} << 30;  // limit for all payloads of a run in which bytes move
inline constexpr uint64_t message_bytes_max = uint64_t{1} << 40;  // the time of one message fits into Time then

class Payloads {
 public:
  // Returns an error if the payloads need more memory than memory_bytes_max.
  static Result<Payloads> make(const schedule::Schedule& schedule, uint64_t S_bytes, bool has_memory,
                               const Sample& sample = {});

  // The data that an operation sends.
  [[nodiscard]] const uint8_t* send_data(uint32_t source, uint32_t number) const {
    return random_data() + data_offset(source, number);
  }
  // The memory for messages that come to `rank` before their receives.
  [[nodiscard]] uint8_t* overflow_memory(uint32_t rank) {
    return has_memory_ ? overflow_memories_[rank].data() : &unread_byte_;
  }
  [[nodiscard]] uint64_t overflow_bytes(uint32_t rank) const {
    return has_memory_ ? overflow_memories_[rank].size() : unlimited_bytes;
  }
  // Returns how many bytes a receive needs for any eager message that it may match.
  [[nodiscard]] uint64_t receive_bytes(uint32_t rank, uint32_t tag) const;
  [[nodiscard]] simulated::ZeroedBytes allocate(uint64_t bytes) const {
    return simulated::ZeroedBytes(has_memory_ ? bytes : 0);
  }
  [[nodiscard]] uint8_t* address(simulated::ZeroedBytes& memory) { return has_memory_ ? memory.data() : &unread_byte_; }
  // Copies from the address `from`.
  void copy(simulated::ZeroedBytes& to, uint64_t from, uint64_t bytes) const;
  // Returns an Error unless these are the bytes of a send, each xored with the mask.
  [[nodiscard]] Status check(const uint8_t* memory, uint64_t bytes, uint32_t rank, uint32_t source, uint32_t number,
                             uint8_t mask = 0) const;
  // All data that are sent, which gets read, and the offset in them at which those of an operation begin.
  [[nodiscard]] const uint8_t* random_data() const { return has_memory_ ? random_data_.data() : &unread_byte_; }
  [[nodiscard]] uint64_t random_data_bytes() const { return has_memory_ ? random_data_.size() : unlimited_bytes; }
  [[nodiscard]] uint64_t data_offset(uint32_t source, uint32_t number) const {
    return has_memory_ ? first_offsets_[source] + number : 0;
  }
  [[nodiscard]] Windows& windows() { return windows_; }
  [[nodiscard]] const Windows& windows() const { return windows_; }
  // The memory of all windows, and of one.
  [[nodiscard]] uint8_t* windows_memory() { return has_memory_ ? windows_.memory() : &unread_byte_; }
  [[nodiscard]] uint64_t windows_bytes() const { return has_memory_ ? windows_.bytes() : unlimited_bytes; }
  [[nodiscard]] uint8_t* address(const Windows::Window& window) { return windows_memory() + window.begin; }
  [[nodiscard]] uint64_t window_bytes(const Windows::Window& window) const {
    return has_memory_ ? window.bytes : unlimited_bytes;
  }

  [[nodiscard]] bool has_memory() const { return has_memory_; }

  static constexpr uint64_t unlimited_bytes = uint64_t{1} << 62;  // no schedule sends as many bytes

 private:
  Payloads(bool has_memory, Sample sample) : has_memory_(has_memory), sample_(std::move(sample)) {}
  // Fills in the sizes of all memory: first_offsets_, overflow_bytes_, largest_eager_bytes_ and the same by tag,
  // random_data_bytes_. Returns an upper bound of their sum.
  uint64_t size_memory(const schedule::Schedule& schedule, uint64_t S_bytes);

  bool has_memory_;
  Sample sample_;
  uint8_t unread_byte_ = 0;  // all addresses are its address where there is no memory
  std::vector<uint64_t> first_offsets_;  // one for each rank: the offset of its first operation's data
  std::vector<uint8_t> random_data_;
  std::vector<simulated::ZeroedBytes> overflow_memories_;  // one for each rank
  Windows windows_;
  std::vector<uint64_t> overflow_bytes_;  // the bytes of all eager messages to each rank
  std::vector<uint64_t> largest_eager_bytes_;  // the bytes of the largest eager message to each rank
  std::unordered_map<uint64_t, uint64_t> largest_eager_bytes_by_tag_;  // the same by rank and tag
  uint64_t random_data_bytes_ = 0;
};

}  // namespace spinloom::goal
