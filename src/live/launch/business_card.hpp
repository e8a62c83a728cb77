// BusinessCard - the data that a process publishes so that its peers find it (the word is that of MPI libraries).
//
// Contract: write() makes a text of a card, and read_card() makes the same card of that text; any other text is an
//   Error. A process that cannot start publishes the reason instead, and read_card() returns that reason as the
//   Error.
// Invariants: (1) processes with equal `machine` run under the same kernel since the same boot and in the same
//   namespace of process ids: they may be able to share memory.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "live/launch/udp_network.hpp"
#include "live/node/segment.hpp"

namespace spinloom::live {

// When a process wants a fabric: never, only if there are other machines, or in any case.
enum class FabricNeed : uint8_t { never, between_machines, asked };

// The role of a process as a gateway: none, beside its program, or instead of a program.
enum class Gateway : uint8_t { no, beside, alone };

struct BusinessCardNetwork {
  UdpNetwork network;
  uint16_t port = 0;
  bool operator==(const BusinessCardNetwork&) const = default;
};

struct BusinessCard {
  static constexpr size_t networks_max = 8;
  uint64_t machine = 0;
  int64_t pid = 0;
  int file = -1;  // the descriptor of its segment, as a number of its process
  Secret nonce{};  // nonce of its segment; that of rank 0 is the job's secret
  uint32_t user = 0;
  // IPv4, host order; 0: no UDP. The address on the first network; in a job with gateways, on a network that the reader
  // of the card shares (meet_at_shared_networks() in bridge_meeting.hpp).
  uint32_t address = 0;
  uint16_t port = 0;
  uint32_t datagram_bytes = 0;  // the longest that its interface carries; 0: not known
  uint64_t traits = 0;  // equal where nothing is known to keep two processes apart: reach.hpp
  FabricNeed fabric = FabricNeed::never;
  Gateway gateway = Gateway::no;
  std::vector<BusinessCardNetwork> networks;  // all networks of this process, with its address on each

  bool operator==(const BusinessCard&) const = default;
  // True for the card of a process. Until a peer's card has come, a card without a process stands in its place.
  [[nodiscard]] bool exists() const { return pid != 0; }
};

[[nodiscard]] std::string write(const BusinessCard& card);
[[nodiscard]] std::string write(const Error& trouble);
[[nodiscard]] Result<BusinessCard> read_card(const std::string& text);

// True if the ranks must tell each other about their fabrics. The same cards give the same answer on every rank.
[[nodiscard]] bool need_fabrics(const std::vector<BusinessCard>& cards);

// machine_id() is the number of this machine for BusinessCard::machine. Code::unsupported means that there is no /proc,
// and so no way to the memory of peers; another Error says what kept /proc from being read, for example a limit.
// random_secret() makes numbers that nobody can guess.
[[nodiscard]] Result<uint64_t> machine_id();
[[nodiscard]] Secret random_secret();

}  // namespace spinloom::live
