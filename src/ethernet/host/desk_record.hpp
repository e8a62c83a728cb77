// DeskRecord - the messages between a program and the NIC's process over a socket, one record a message.
//
// Contract: records have a fixed size, and the machine's byte order: both ends run on one machine. read_request()
//   refuses, with the reason, anything but a request of this version. The answer to an installation that succeeded
//   carries two file descriptors: NIC memory and the context's host memory.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "nic/frames/counts.hpp"
#include "nic/frames/rule_set.hpp"
#include "spinloom/ethernet.h"

namespace spinloom::host {

inline constexpr uint32_t desk_version = 0x53504c32;

// frames_read: the program has read `message` entries of the ring of frames.
enum class RequestKind : uint32_t { install, activate, deactivate, remove, invoke, frames_read, counts };

struct Request {
  uint32_t version = desk_version;
  RequestKind kind = RequestKind::counts;
  uint32_t context = 0;  // an installation may also have SPL_ETH_ANY_CONTEXT
  uint32_t message = 0;
  uint64_t host_bytes = 0;
  uint64_t state_bytes = 0;
  uint64_t constants_bytes = 0;
  spl_eth_rules rules{};
  std::array<char, 1024> handlers{};  // a path; empty: frames go to host memory
};

struct Answer {
  uint32_t version = desk_version;
  int32_t status = SPL_ETH_OK;
  uint64_t context = 0;  // the context that was installed
  uint64_t nic_bytes = 0;
  uint64_t state_offset = 0;
  uint64_t constants_offset = 0;
  uint64_t host_bytes = 0;
  frames::Counts counts{};
  std::array<char, 512> sentence{};  // the reason of a refusal
};

[[nodiscard]] Result<Request> read_request(std::span<const uint8_t> bytes);
[[nodiscard]] Answer refusal(const Error& error);
// Returns the rules in the form of the matching unit: words are little-endian slices of the frame. A range over more
// than one byte of a word is an Error.
[[nodiscard]] Result<frames::RuleSet> rule_set_of(const spl_eth_rules& rules);

// Returns the path at which a NIC of this name listens for programs: in the folder for sockets
// (base/private_folder.hpp), which is created if `create` is set.
[[nodiscard]] Result<std::string> desk_path(const std::string& nic, bool create);

}  // namespace spinloom::host
