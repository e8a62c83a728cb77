// UnexpectedBuffer, UnexpectedBlocks - take messages whose receive has not been posted yet.
//
// Contract: overflow entries of a portal. The NIC puts the messages behind each other. A receive that is posted later
//   finds its message here (Receive::finish, Inbox). The host unpacks it, because the datatype was unknown at arrival
//   (SC'19 datatypes paper, section 3.2.6). A buffer takes any message and is never used again. Blocks take ordinary
//   messages (spinloom/rendezvous.h) of at most `message_bytes_max` bytes: a block without room for another one leaves
//   the list, and comes back when all its messages have been unpacked.
// Invariants: (1) the memory outlives every message in it; (2) a buffer makes no events; a block makes auto_unlink and
//   auto_free only, and on_event() wants the latter.
// Threads: the owner of the Interface. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "portals/interface/interface.hpp"
#include "spinloom/rendezvous.h"

namespace spinloom::strategies {

class UnexpectedBuffer {
 public:
  explicit UnexpectedBuffer(uint64_t bytes) : bytes_(bytes) {}

  Status post(portals::Interface& interface, nic::PortalIndex portal) {
    nic::Entry entry;
    entry.start = bytes_.data();
    entry.length = bytes_.size();
    entry.ignore_bits = ~uint64_t{0};
    entry.options.manage_local = true;
    entry.options.event_comm_disable = true;
    entry.options.event_unlink_disable = true;
    const auto appended = interface.me_append(portal, entry, nic::ListKind::overflow);
    return appended ? Status() : Status(appended.error());
  }

 private:
  std::vector<uint8_t> bytes_;
};

class UnexpectedBlocks {
 public:
  UnexpectedBlocks(uint64_t blocks, uint64_t block_bytes, uint64_t message_bytes_max)
      : message_bytes_max_(message_bytes_max), blocks_(blocks, std::vector<uint8_t>(block_bytes)) {}

  Status post(portals::Interface& interface, nic::PortalIndex portal) {
    for (uint64_t block = 0; block < blocks_.size(); ++block) SPL_TRY(post_block(interface, portal, block));
    return {};
  }
  // Links a block again. For the portal's events of kind auto_free.
  Status on_event(portals::Interface& interface, nic::PortalIndex portal, const nic::Event& event) {
    return post_block(interface, portal, event.user_ptr);
  }

 private:
  Status post_block(portals::Interface& interface, nic::PortalIndex portal, uint64_t block) {
    nic::Entry entry;
    entry.start = blocks_[block].data();
    entry.length = blocks_[block].size();
    entry.ignore_bits = ~SPL_KIND_BITS;
    entry.user_ptr = block;
    entry.min_free = message_bytes_max_;
    entry.options.manage_local = true;
    entry.options.event_comm_disable = true;
    const auto appended = interface.me_append(portal, entry, nic::ListKind::overflow);
    return appended ? Status() : Status(appended.error());
  }

  uint64_t message_bytes_max_;
  std::vector<std::vector<uint8_t>> blocks_;
};

}  // namespace spinloom::strategies
