// RaidArray - a RAID-5 array in a simulated world: a client, four data nodes, their parity node, and what their hosts
// do.
//
// Contract: run() is run_raid(). Rank 0 is the client, rank 1 the parity node, ranks 2 to 5 are the data nodes. Each
//   request has a piece at every data node that it touches; the others do not hear of it.
// Invariants: (1) the nodes' blocks and parity_ change only by what the ways of raid.hpp do; compare() knows the result
//   from the bytes that the client wrote. (2) A host's processor does one thing at a time, in the order in which it
//   hears of it.
// Threads: one owner. Time: modelled, in ps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "app/studies/raid.hpp"
#include "app/studies/study_side.hpp"
#include "simulated/node/resource.hpp"

namespace spinloom::app {

class RaidArray final : simulated::EventTarget {
 public:
  static constexpr uint32_t data_nodes = raid_data_nodes;
  static constexpr uint32_t client_rank = 0;
  static constexpr uint32_t parity_rank = 1;
  static constexpr uint32_t first_data_rank = 2;
  static constexpr uint32_t all_ranks = first_data_rank + data_nodes;

  RaidArray(const StudyConfig& config, const LoadedImages& loaded, simulated::World& world);
  Result<StudyResult> run();

 private:
  // The client's request to a data node's host to read from it. A handler gets the length only, and takes the offset
  // from the message's header.
  struct ReadRequest {
    uint64_t bytes = 0;
    uint64_t offset = 0;
  };
  struct DataNode {
    RaidPiece piece;
    bool is_touched = false;
    Side side;
    nic::CounterId acknowledged;  // rdma, portals4: answers of the parity node
    nic::CounterId delta_landed;  // rdma, portals4: this node's deltas, counted at the parity node
    nic::CounterId asked;  // rdma, portals4: requests and gets that have come
    std::vector<uint8_t> block;
    std::vector<uint8_t> expected;
    std::vector<uint8_t> written;  // the piece that the client writes
    std::vector<uint8_t> landed;  // rdma, portals4: the place where the piece lands
    std::vector<uint8_t> delta;  // rdma, portals4: the bytes for the parity node
    std::vector<uint8_t> delta_at_parity;  // rdma, portals4: the place where those land
    std::vector<uint8_t> read_back;  // the bytes that came back to the client
    std::vector<uint8_t> request_landed;  // rdma: the place where a read's request lands
    ReadRequest request;
    int updated_round = 0;
    int applied_round = 0;
    int answered_round = 0;
    int served_round = 0;
    simulated::Resource processor;
  };
  enum Step : uint32_t { updated, applied, answered, served };

  [[nodiscard]] bool uses_hosts() const { return config_.way != StudyWay::stream; }
  [[nodiscard]] bool is_read() const { return config_.experiment == Experiment::raid_read; }

  // raid_array.cpp: entries, counters and handlers
  Status prepare(uint32_t index);
  Status prepare_hosts(uint32_t index);
  Status prepare_handlers(uint32_t index);
  Status prepare_client();
  static nic::Entry counting_entry(const Side& side, std::vector<uint8_t>& memory, uint64_t match_bits,
                                   nic::CounterId counter);
  Status append_with_handlers(DataNode& node, uint64_t match_bits, const std::vector<uint32_t>& constants,
                              nic::MemoryWindow state, uint32_t user_header_bytes);

  // raid.cpp: the client
  Result<StudyResult> update();
  Result<StudyResult> read();
  Result<StudyResult> measure(Status (RaidArray::*post)(DataNode&), nic::HandlerKind kind);
  Status post_write(DataNode& node);
  Status post_read(DataNode& node);
  Status compare() const;
  static Status compare_bytes(const std::vector<uint8_t>& bytes, const std::vector<uint8_t>& expected,
                              const std::string& whose);
  [[nodiscard]] Error stall_error() const;
  [[nodiscard]] simulated::HandlerStatistics handlers(nic::HandlerKind kind) const;

  // raid_hosts.cpp: the hosts' programs
  void on_counters(uint32_t rank);
  void on_client_counters();
  void on_parity_counters();
  void on_data_counters(uint32_t index);
  void schedule_work(simulated::Resource& processor, Step then, uint32_t index, const portals::HostWork& work);
  void on_event(uint32_t code, uint64_t argument) override;

  const StudyConfig& config_;
  const LoadedImages& loaded_;
  simulated::World& world_;
  uint64_t block_bytes_ = 0;
  uint64_t touched_nodes_ = 0;  // data nodes that get a message
  Side client_;
  Side parity_side_;
  simulated::Resource parity_processor_;
  nic::MemoryWindow locks_;
  std::array<DataNode, data_nodes> nodes_;
  std::vector<uint8_t> parity_;  // bytes outside the pieces stay as they were: they belong to other stripes
  std::vector<uint8_t> empty_;
  int round_ = 0;
  uint64_t expected_count_ = 0;  // the count of client_.counter when the request is done
  Time end_{};
};

// Match bits. The parity node's entries add the number of the data node.
namespace raid_bits {
inline constexpr uint64_t write = 1;
inline constexpr uint64_t read = 2;
inline constexpr uint64_t acknowledged = 3;
inline constexpr uint64_t stored = 4;  // the client's entry for answers
inline constexpr uint64_t piece = 5;  // the client's entry for the bytes that it reads
inline constexpr uint64_t delta = 16;
}  // namespace raid_bits

}  // namespace spinloom::app
