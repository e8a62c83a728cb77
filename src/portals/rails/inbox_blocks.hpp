// InboxBlocks - memory of a rail for messages that are not announced: eager messages without a receive, and active
// messages.
//
// Contract: blocks are overflow entries of one portal table entry, in which the NIC puts messages behind each other.
//   After prepare(), and after every on_event(), the blocks in the list have room for `messages_max` messages of
//   `message_bytes_max` bytes. A block comes back when its messages have been taken: those with kept headers by
//   receives that are posted later, others with the events that tell of them.
// Invariants: (1) a block's memory lives until the InboxBlocks is gone; (2) no block is in the list while a message in
//   it may still be read.
// Threads: the owner of the Interface. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "portals/rails/rail.hpp"

namespace spinloom::rails {

class InboxBlocks {
 public:
  struct Options {
    nic::PortalIndex portal;
    uint64_t message_bytes_max = 0;
    uint64_t messages_max = 0;  // the number of messages that may come before on_event() is called
    bool keep_headers = false;  // receives that are posted later find the messages
    uint64_t user_ptr = 0;  // block i has user_ptr + i
  };
  InboxBlocks(Rail& rail, const Options& options);

  [[nodiscard]] Status prepare();
  // For events of kind auto_unlink and auto_free of a block.
  [[nodiscard]] Status on_event(const nic::Event& event, uint64_t block);
  // Takes back the blocks in the list.
  [[nodiscard]] Status withdraw();
  [[nodiscard]] uint64_t memory_bytes() const { return blocks_.size() * block_bytes_; }

 private:
  struct Block {
    std::unique_ptr<uint8_t[]> memory;
    nic::EntryId entry;
    bool is_linked = false;
  };
  [[nodiscard]] Status post_block(uint64_t block);
  [[nodiscard]] Status post_idle_block();

  Rail& rail_;
  Options options_;
  uint64_t block_bytes_;
  uint64_t wanted_blocks_;  // the number of blocks that should be in the list
  uint64_t linked_blocks_ = 0;  // the number of blocks that are in the list
  std::vector<Block> blocks_;
  std::vector<uint64_t> idle_blocks_;  // numbers of blocks that are not in the list
};

}  // namespace spinloom::rails
