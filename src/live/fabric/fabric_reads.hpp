// FabricReads - the bytes that this process is reading out of its peers' memory.
//
// Contract: begin() queues one read; advance() hands pieces of it to the port while there is room. end_piece() takes
//   the end of a piece, and returns the read that has ended by it, if one has. take_refused() returns the reads for
//   which there was no memory. abandon() ends all reads from a peer, and returns them.
// Invariants: (1) bytes land in memory of this class and are copied from there, so that an abandoned read writes to
//   nobody's memory; (2) at most `pieces_of_peer` pieces of a peer are on their way, and `pieces_max` of all, abandoned
//   ones not counted. But a read that the caller waits for has one piece in any case; (3) reads end in any order, each
//   once.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "live/fabric/fabric_port.hpp"

namespace spinloom::live {

struct FabricRead {
  nic::Rank peer;
  uint64_t loan = 0;  // the caller's name for the loan
  FabricRegion from;
  uint8_t* to = nullptr;
  uint64_t length = 0;
  uint64_t token = 0;  // the caller's token
  bool is_blocking = false;  // the caller waits for it
};

class FabricReads {
 public:
  static constexpr uint64_t piece_bytes = 256 << 10;
  static constexpr size_t pieces_of_peer = 4;
  static constexpr size_t pieces_max = 32;

  struct EndedRead {
    FabricRead read;
    bool succeeded = false;
  };

  explicit FabricReads(FabricPort& port) : port_(port) {}
  void begin(const FabricRead& read);
  void advance();
  // `piece` is the token of the port's event.
  [[nodiscard]] std::optional<EndedRead> end_piece(uint64_t piece, bool succeeded);
  [[nodiscard]] std::vector<FabricRead> abandon(nic::Rank peer);
  [[nodiscard]] bool empty() const { return open_.empty(); }
  // Returns the reads that cannot go on, because there is no memory to land in; each once.
  [[nodiscard]] std::vector<FabricRead> take_refused();

 private:
  struct OpenRead {
    FabricRead read;
    uint64_t requested_bytes = 0;  // bytes that have been requested
    uint64_t ended_bytes = 0;  // bytes of pieces that have ended, succeeded or not
    bool succeeded = true;
  };
  struct Piece {
    uint8_t* memory = nullptr;
    std::shared_ptr<OpenRead> read;  // null: abandoned
    uint64_t offset = 0;
    uint64_t length = 0;
  };

  enum class Admission : uint8_t { now, later, never };
  [[nodiscard]] Admission admit_piece(const OpenRead& read);

  FabricPort& port_;
  std::deque<std::shared_ptr<OpenRead>> open_;  // reads whose bytes have not all come
  std::vector<Piece> pieces_;  // indexed by the port's token
  std::vector<size_t> free_;
  size_t on_their_way_ = 0;  // pieces that are not abandoned
  std::vector<FabricRead> refused_;
};

}  // namespace spinloom::live
