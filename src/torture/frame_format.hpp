// Frames of a run - the format of the frames that stations, hosts and handlers of a run send.
//
// Contract: a frame is an Ethernet header (its last address bytes are station numbers, the NIC's is 0), a Head from
//   byte 12 on, and a payload. frame_of() makes a frame; head_of() reads its Head, or returns nothing if it has none.
//   answer_to() returns a frame as a handler sends it back.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace spinloom::torture {

// The behaviour of the handlers for a frame, which the frame itself chooses.
enum class Conduct : uint8_t {
  good,      // answer it; for a message: its header handler lets its frames be processed
  drop,      // DROP
  proceed,   // PROCEED: the frame is for the host's stack
  fail,      // FAIL
  unknown,   // a code that does not exist
  fault,     // this and the next two do not return
  outside,
  budget,
  bad_call,  // makes a call that this NIC does not have, and faults
  bad_send,  // an echo handler also sends frames that must be refused; otherwise like `good`
};
inline constexpr uint8_t conduct_count = 10;
[[nodiscard]] constexpr bool is_good(Conduct conduct) {
  return conduct == Conduct::good || conduct == Conduct::bad_send;
}

struct Head {
  uint8_t type[2] = {0x88, 0xb5};  // the type for experiments (IEEE 802)
  uint8_t context = 0;
  uint8_t flags = 0;
  uint32_t id = 0;
  uint32_t offset = 0;  // the payload's offset in the message
  Conduct conduct = Conduct::good;
  uint8_t write_options = 0;  // bits of FrameRun::write() for a message's payload; for an echo, bit 1: send a mail
  uint8_t unused[6] = {};
  uint32_t message = 0;

  static constexpr uint8_t last = 1;
  static constexpr uint8_t answer = 2;
};
inline constexpr size_t head_offset = 12;
inline constexpr size_t payload_offset = head_offset + sizeof(Head);
inline constexpr size_t message_offset = head_offset + offsetof(Head, message);
static_assert(payload_offset == 36 && message_offset == 32 && message_offset % 4 == 0);

inline std::vector<uint8_t> frame_of(uint32_t station, const Head& head, std::span<const uint8_t> payload) {
  std::vector<uint8_t> frame(payload_offset + payload.size());
  frame[0] = frame[6] = 2;
  frame[11] = static_cast<uint8_t>(station);
  std::memcpy(frame.data() + head_offset, &head, sizeof head);
  std::copy(payload.begin(), payload.end(), frame.begin() + payload_offset);
  return frame;
}

inline std::optional<Head> head_of(std::span<const uint8_t> frame) {
  if (frame.size() < payload_offset) return std::nullopt;
  Head head;
  std::memcpy(&head, frame.data() + head_offset, sizeof head);
  if (head.type[0] != 0x88 || head.type[1] != 0xb5) return std::nullopt;
  return head;
}

inline std::vector<uint8_t> answer_to(std::vector<uint8_t> frame) {
  std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
  frame[head_offset + offsetof(Head, flags)] |= Head::answer;
  return frame;
}

}  // namespace spinloom::torture
