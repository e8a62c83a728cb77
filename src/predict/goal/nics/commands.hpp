// Commands - a schedule's operations as commands to a NIC: portals, match bits, and the puts, gets and atomics.
//
// Contract: a rank's commands are the same whether its host (host.hpp) gives them to the NIC, or the seam (seam.hpp)
//   for a rank that has no NIC. Match bits are the tag, above it the number of the operation, which entries ignore, and
//   above that what is asked of a window. The get of a rendezvous has only the number of the send.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/portals/command.hpp"
#include "predict/goal/nics/payloads.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

inline constexpr nic::QueueId event_queue{0, 0};
inline constexpr nic::PortalIndex messages_portal{0};
inline constexpr nic::PortalIndex bytes_portal{1};  // the portal where receivers get the bytes of a rendezvous
inline constexpr nic::PortalIndex windows_portal{2};

inline constexpr uint64_t tag_mask = UINT32_MAX;
inline constexpr uint32_t number_shift = 32;
inline constexpr uint64_t get_bit = uint64_t{1} << 62;  // it is a get, which reads the random data of Payloads
// The bit of a part of an atomic that is not the last one. Only the last one counts.
inline constexpr uint64_t partial_atomic_bit = uint64_t{1} << 63;
inline constexpr uint64_t number_mask = get_bit - 1 - tag_mask;

[[nodiscard]] inline uint32_t operation_number(uint64_t match_bits) {
  return static_cast<uint32_t>((match_bits & number_mask) >> number_shift);
}

// An operation of a rank, by its number.
struct OperationRef {
  const schedule::Schedule& schedule;
  Payloads& payloads;
  uint32_t rank = 0;
  uint32_t number = 0;

  [[nodiscard]] const schedule::Operation& operation() const { return schedule.program(rank).operations[number]; }
  [[nodiscard]] const schedule::Shape& shape() const { return schedule.shape(operation()); }
};

// Returns the put of a message, or of the request of a rendezvous.
[[nodiscard]] nic::Put message_put(const OperationRef& ref, bool is_request);
// Returns the get that fetches the bytes of a rendezvous' send.
[[nodiscard]] nic::Get bytes_get(nic::Rank source, uint32_t send, uint64_t bytes, const nic::ReplyTo& reply);
// Returns the commands of a one-sided operation: one, or several for an atomic that is longer than `atomic_bytes_max`;
// the last one reports. `report`: for a get or a fetching atomic, also where the reply goes.
[[nodiscard]] std::vector<nic::CommandBody> one_sided_commands(const OperationRef& ref, const nic::ReplyTo& report,
                                                               uint64_t atomic_bytes_max);

}  // namespace spinloom::goal
