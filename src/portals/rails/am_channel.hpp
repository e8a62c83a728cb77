// AmChannel - active messages to other ranks over all rails: in order, once, whichever rail carries them.
//
// Contract: send() copies the message (bcopy), or has the NIC read it from its pieces (zcopy). It gives the message to
//   the rail that ends it first among those that reach its target. For a message of pieces, `arrived` runs when it has
//   come, or with an Error when no rail reaches the target. At the target `deliver` runs for the messages of a source
//   in the order in which they were sent. A message that a rail loses is sent again by another one. An event whose user
//   pointer is is_own() belongs here.
// Invariants: (1) a message has a number, one for each target; what comes ahead of its turn waits, what comes again is
//   dropped; (2) the copy is kept until the target's NIC has acknowledged it; (3) `peer_lost` runs once for a target
//   that no rail reaches.
// Source: the active messages of MPC's rails (deliverable D4.7, section 2.2.3.1), which are multiplexed over several
//   NICs only if they are matched in software (section 2.3.2.3).
// Threads: the owner of the Interfaces. Time: that of their ports.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "portals/rails/inbox_blocks.hpp"
#include "portals/rails/pieces.hpp"
#include "portals/rails/rail.hpp"

namespace spinloom::rails {

class AmChannel {
 public:
  // The data that a message carries besides its bytes.
  struct Header {
    uint32_t handler_id = 0;
    uint32_t reserved = 0;
    uint64_t words[3] = {0, 0, 0};
  };
  struct Options {
    uint64_t message_bytes_max = 0;  // the length without the header
    uint64_t unhandled_messages_max = 0;  // messages from all ranks, before progress takes them
    uint32_t ranks = 1;
  };
  using Deliver = std::function<Status(uint32_t source, const Header& header, std::span<const uint8_t> bytes)>;
  using PeerLost = std::function<void(uint32_t rank)>;
  using Arrived = std::function<Status(uint64_t request, const Status& result)>;

  AmChannel(const std::vector<std::unique_ptr<Rail>>& rails, const Options& options, Deliver deliver,
            PeerLost peer_lost, Arrived arrived);

  [[nodiscard]] Status open();
  [[nodiscard]] Status close();
  [[nodiscard]] Status send(uint32_t rank, const Header& header, std::span<const uint8_t> bytes);
  // The pieces stay as they are until `arrived` runs for the request.
  [[nodiscard]] Status send(uint32_t rank, const Header& header, const Pieces& pieces, uint64_t request);
  [[nodiscard]] bool is_own(const nic::Event& event) const;
  [[nodiscard]] Status on_event(uint32_t rail_number, const nic::Event& event, bool seen_at_once);
  // True if all that was sent has been acknowledged, or dropped because no rail reaches its target.
  [[nodiscard]] bool is_idle() const { return unacknowledged_.empty(); }

 private:
  struct Frame {
    uint64_t sequence = 0;
    Header header;
  };
  struct SentMessage {
    uint32_t rank = 0;
    uint32_t rail = 0;
    std::vector<uint8_t> bytes;  // a Frame and the message's bytes; for a message of pieces only the Frame
    std::vector<nic::IovecElement> pieces;  // the memory that follows the Frame
    uint64_t length = 0;  // bytes of the Frame and the message
    std::optional<uint64_t> request;  // the request for which `arrived` runs; none unless the message is of pieces
  };
  struct Peer {
    uint64_t next_sent = 0;  // the number of the next message to the peer
    uint64_t next_delivered = 0;  // the number of the peer's message whose turn it is
    std::map<uint64_t, std::vector<uint8_t>> out_of_order;  // messages ahead of their turn, by number
    bool is_lost = false;
  };

  [[nodiscard]] Status put(uint64_t number, SentMessage& message);
  [[nodiscard]] Status on_arrival(const nic::Event& event);
  [[nodiscard]] Status deliver(uint32_t source, std::span<const uint8_t> bytes);
  [[nodiscard]] Status on_acknowledged(uint32_t rail_number, const nic::Event& event, bool seen_at_once);

  const std::vector<std::unique_ptr<Rail>>& rails_;
  Options options_;
  Deliver deliver_;
  PeerLost peer_lost_;
  Arrived arrived_;
  std::vector<InboxBlocks> inbox_blocks_;  // one for each rail
  std::vector<Peer> peers_;
  std::unordered_map<uint64_t, SentMessage> unacknowledged_;
  uint64_t next_number_ = 0;
};

}  // namespace spinloom::rails
