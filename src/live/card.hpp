// Card - what a process of a job publishes so that its peers find it.
//
// Contract: write() and read() are each other's inverse; read() of anything else is an Error. A process that cannot
//   start publishes why instead: that is the Error then.
// Invariants: (1) two processes can share memory when their `machine`s are equal: the same kernel since the same boot,
//   and the same namespace of process ids.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "live/segment.hpp"

namespace spinloom::live {

struct Card {
  uint64_t machine = 0;
  int64_t pid = 0;
  int file = -1;  // of its segment
  Secret nonce{};  // of its segment; rank 0's is the job's secret
  uint32_t user = 0;
  uint32_t address = 0;  // IPv4, host order; 0: no UDP
  uint16_t port = 0;
  uint64_t traits = 0;  // of who may reach whom: reach.hpp

  bool operator==(const Card&) const = default;
};

[[nodiscard]] std::string write(const Card& card);
[[nodiscard]] std::string write(const Error& trouble);
[[nodiscard]] Result<Card> read_card(const std::string& text);

// This machine, for Card::machine. Code::unsupported: there is no /proc, so that this process has no way to its peers'
// memory; another Error: what kept it from being read, a limit for example. And numbers that nobody can guess.
[[nodiscard]] Result<uint64_t> machine_id();
[[nodiscard]] Secret random_secret();

}  // namespace spinloom::live
