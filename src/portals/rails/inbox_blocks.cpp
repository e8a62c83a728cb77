#include "portals/rails/inbox_blocks.hpp"

#include <algorithm>

namespace spinloom::rails {
namespace {

constexpr uint64_t block_bytes_least = 256 << 10;

}  // namespace

// A block leaves the list when it has no room for another message, so `longest` bytes of it may stay empty. One block
// more than the messages need is in the list, because the first may be nearly full.
InboxBlocks::InboxBlocks(Rail& rail, const Options& options)
    : rail_(rail), options_(options), block_bytes_(std::max(block_bytes_least, 8 * options.longest)) {
  const uint64_t useful = block_bytes_ - options_.longest;
  linked_wanted_ = (options_.messages * options_.longest + useful - 1) / useful + 1;
}

Status InboxBlocks::prepare() {
  while (linked_ < linked_wanted_) SPL_TRY(post_another());
  return {};
}

Status InboxBlocks::post_another() {
  if (idle_.empty()) {
    idle_.push_back(blocks_.size());
    blocks_.push_back({std::make_unique_for_overwrite<uint8_t[]>(block_bytes_), {}, false});
  }
  const uint64_t block = idle_.back();
  idle_.pop_back();
  return post(block);
}

Status InboxBlocks::post(uint64_t block) {
  nic::Entry entry;
  entry.start = blocks_[block].memory.get();
  entry.length = block_bytes_;
  entry.ignore_bits = ~uint64_t{0};
  entry.user_ptr = options_.user_ptr + block;
  entry.min_free = options_.longest;
  entry.options.manage_local = true;
  entry.options.event_comm_disable = options_.keep_headers;
  entry.options.unexpected_hdr_disable = !options_.keep_headers;
  rail_.spend();
  SPL_ASSIGN(blocks_[block].entry, rail_.interface().me_append(options_.portal, entry, nic::ListKind::overflow));
  blocks_[block].linked = true;
  ++linked_;
  return {};
}

Status InboxBlocks::on_event(const nic::Event& event, uint64_t block) {
  if (event.kind == nic::EventKind::auto_unlink) {
    blocks_[block].linked = false;
    --linked_;
    return prepare();
  }
  if (event.kind == nic::EventKind::auto_free) {
    if (blocks_[block].linked) {  // both at once
      blocks_[block].linked = false;
      --linked_;
    }
    idle_.push_back(block);
    return prepare();
  }
  return {};
}

Status InboxBlocks::withdraw() {
  for (Block& block : blocks_) {
    if (!block.linked) continue;
    rail_.spend();
    SPL_ASSIGN(const portals::Unlinked unlinked, rail_.interface().me_unlink(block.entry));
    if (unlinked == portals::Unlinked::in_use) return fail(Code::stalled, "messages that nobody has received are here");
    block.linked = false;
    --linked_;
  }
  return {};
}

}  // namespace spinloom::rails
