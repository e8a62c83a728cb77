// Exchange - messages of many peers at once into one NIC, each with a datatype of its own, checked.
//
// Contract: run_exchange() builds a world of one sender for each peer and a receiver, prepares and posts all receives,
//   lets all peers put at the same time, and waits until every message is in its place: the packets of all peers
//   interleave on the receiver's link. A message whose receive finds no room on the NIC, or that no handler takes, is
//   unpacked by the host, one after the other in the order of peers. Every destination is compared with the oracle
//   before numbers are reported. Preparing receives is not in time_ps.
// Invariants: (1) the same config gives the same result on every machine; (2) the kinds of NIC memory add up to what
//   the receives hold; (3) at most peers_max peers: each needs a portal of its own.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "base/limits.hpp"
#include "portals/strategies/strategy.hpp"
#include "simulated/node/depth_series.hpp"

namespace spinloom::app {

struct PeerType {
  std::string type;  // text form
  int64_t count = 1;
};

struct ExchangeConfig : Setup {
  strategies::Strategy strategy = strategies::Strategy::specialised;
  std::vector<PeerType> peers;
  static constexpr size_t peers_max = limits::portal_table_max;
};

struct PeerResult {
  int64_t size_bytes = 0;
  int64_t blocks = 0;
  std::string fallback;  // the reason why the host unpacked the message, if the NIC was to do it
  uint64_t program_bytes = 0;  // NIC memory that handlers only read: lists, compact programs
  uint64_t state_bytes = 0;  // NIC memory that handlers write: checkpoints and segments
  std::vector<uint8_t> destination;
};

struct ExchangeResult {
  int64_t time_ps = 0;  // first byte at the NIC until every message is in its place
  int64_t bytes = 0;  // the sum over all messages
  int64_t packets = 0;
  uint64_t code_bytes = 0;  // sum of the handler images in use
  uint64_t packet_buffer_peak_bytes = 0;
  simulated::DepthSeries packet_buffer;  // bytes of packets on the NIC; times count from the world's beginning
  int64_t first_byte_ps = 0;
  std::vector<PeerResult> peers;
};

[[nodiscard]] Result<ExchangeResult> run_exchange(const ExchangeConfig& config);

}  // namespace spinloom::app
