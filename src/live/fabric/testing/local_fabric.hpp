// LocalFabric - a fabric between ranks of one process, for tests.
//
// Contract: port() makes the port of a rank. Messages go through queues that never overflow. strike() has every later
//   message to a rank end as undeliverable and every read of its memory fail, as if its machine were gone. swallow()
//   has messages to a rank wait for ever, with their slots, and reads of its memory as well, as some fabrics do.
// Threads: each port has its owner; the fabric may be shared between them. Time: none.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "live/fabric/fabric_port.hpp"

namespace spinloom::live {

class LocalFabric {
 public:
  explicit LocalFabric(uint32_t ranks, bool has_reads = true);
  ~LocalFabric();
  [[nodiscard]] std::unique_ptr<FabricPort> port(uint32_t rank);
  void strike(uint32_t rank);
  void swallow(uint32_t rank);
  // Later messages to this rank come in the opposite order, once there are `count`.
  void reverse(uint32_t rank, size_t count);
  // The number of reads of peers' memory that have begun.
  [[nodiscard]] uint64_t reads();
  // The number of pieces of memory that ranks lend at this time.
  [[nodiscard]] size_t lent();
  // Puts a message into a rank's queue that nobody of the job has sent.
  void inject(uint32_t rank, std::vector<uint8_t> bytes);

 private:
  class Port;
  struct Box {
    std::deque<std::vector<uint8_t>> messages;
    int wakes = -1;  // an eventfd
    bool struck = false;
    bool swallows = false;
    size_t reversed = 0;
    std::vector<std::vector<uint8_t>> kept;
  };

  static void put_into(Box& box, std::vector<uint8_t> bytes);

  std::mutex lock_;
  bool has_reads_;
  std::vector<Box> boxes_;  // one for each rank
  std::map<uint64_t, std::pair<const uint8_t*, uint64_t>> lent_;  // the key is that of the memory
  uint64_t next_key_ = 1;
  uint64_t reads_ = 0;
};

}  // namespace spinloom::live
