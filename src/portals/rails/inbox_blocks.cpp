#include "portals/rails/inbox_blocks.hpp"

#include <algorithm>

namespace spinloom::rails {
namespace {

constexpr uint64_t block_bytes_min = 256 << 10;

}  // namespace

// A block leaves the list when it has no room for another message, so `message_bytes_max` bytes of it may stay empty.
// One block more than the messages need is in the list, because the first may be nearly full.
InboxBlocks::InboxBlocks(Rail& rail, const Options& options)
    : rail_(rail), options_(options), block_bytes_(std::max(block_bytes_min, 8 * options.message_bytes_max)) {
  const uint64_t usable_bytes = block_bytes_ - options_.message_bytes_max;
  wanted_blocks_ = (options_.messages_max * options_.message_bytes_max + usable_bytes - 1) / usable_bytes + 1;
}

Status InboxBlocks::prepare() {
  while (linked_blocks_ < wanted_blocks_) SPL_TRY(post_idle_block());
  return {};
}

Status InboxBlocks::post_idle_block() {
  if (idle_blocks_.empty()) {
    idle_blocks_.push_back(blocks_.size());
    blocks_.push_back({std::make_unique_for_overwrite<uint8_t[]>(block_bytes_), {}, false});
  }
  const uint64_t block = idle_blocks_.back();
  idle_blocks_.pop_back();
  return post_block(block);
}

Status InboxBlocks::post_block(uint64_t block) {
  nic::Entry entry;
  entry.start = blocks_[block].memory.get();
  entry.length = block_bytes_;
  entry.ignore_bits = ~uint64_t{0};
  entry.user_ptr = options_.user_ptr + block;
  entry.min_free = options_.message_bytes_max;
  entry.options.manage_local = true;
  entry.options.event_comm_disable = options_.keep_headers;
  entry.options.unexpected_hdr_disable = !options_.keep_headers;
  rail_.spend_call_time();
  SPL_ASSIGN(blocks_[block].entry, rail_.interface().me_append(options_.portal, entry, nic::ListKind::overflow));
  blocks_[block].is_linked = true;
  ++linked_blocks_;
  return {};
}

Status InboxBlocks::on_event(const nic::Event& event, uint64_t block) {
  if (event.kind == nic::EventKind::auto_unlink) {
    blocks_[block].is_linked = false;
    --linked_blocks_;
    return prepare();
  }
  if (event.kind == nic::EventKind::auto_free) {
    if (blocks_[block].is_linked) {  // both at once
      blocks_[block].is_linked = false;
      --linked_blocks_;
    }
    idle_blocks_.push_back(block);
    return prepare();
  }
  return {};
}

Status InboxBlocks::withdraw() {
  for (Block& block : blocks_) {
    if (!block.is_linked) continue;
    rail_.spend_call_time();
    SPL_ASSIGN(const portals::Unlinked unlinked, rail_.interface().me_unlink(block.entry));
    if (unlinked == portals::Unlinked::in_use) return fail(Code::stalled, "messages that nobody has received are here");
    block.is_linked = false;
    --linked_blocks_;
  }
  return {};
}

}  // namespace spinloom::rails
