// Transfers that the NICs begin when the peer clears them, and what becomes of those whose word never comes.
#include <algorithm>
#include <utility>

#include "portals/rails/stripes.hpp"

namespace spinloom::rails {

// Fragments wait as triggered puts. Long messages have too many of them; the processor starts those.
Status Stripes::arm(uint64_t number, const Transfer& transfer, std::span<const nic::Trigger> clears) {
  constexpr size_t fragments_max = 64;
  const std::vector<Fragment> fragments = fragments_of(transfer);
  if (fragments.empty() || fragments.size() > fragments_max) return {};
  RunningTransfer& running = running_[number];
  running.transfer = transfer;
  running.fragments_left = static_cast<uint32_t>(fragments.size());
  SPL_TRY(begin_parts(running, fragments));
  for (Part& part : running.parts) {
    part.clear_trigger = clears[part.rail];
    rails_[part.rail]->interface().bundle_begin();
  }
  for (const Fragment& fragment : fragments) {
    uint32_t part = 0;
    while (running.parts[part].rail != fragment.rail) ++part;
    SPL_TRY(issue({number, part, fragment, false, false}, transfer));
  }
  for (const Part& part : running.parts) SPL_TRY(rails_[part.rail]->interface().bundle_end());
  return {};
}

// The fragments of this rail have left. Those of rails over which no word will come never leave, and are taken back.
Status Stripes::on_cleared(uint64_t number, uint32_t rail, uint64_t rails_mask) {
  const auto found = running_.find(number);
  if (found == running_.end()) return {};
  RunningTransfer& running = found->second;
  running.is_cleared = true;
  for (Part& part : running.parts) {
    if (part.rail == rail && std::exchange(part.clear_trigger, std::nullopt)) {
      for (const uint64_t issued_number : part.waiting_fragments) {
        IssuedFragment& issued = issued_.at(issued_number);
        rails_[rail]->unreserve(issued.fragment.length);
        rails_[rail]->begin_transfer(running.transfer.rank, issued.fragment.length);
        issued.is_begun = true;
      }
      part.waiting_fragments.clear();
    }
    if ((rails_mask >> part.rail & 1) == 0) SPL_TRY(disarm(running, part));
  }
  return move_orphans(number);
}

// Takes back what waits for a word on this rail, unless the word has come.
Status Stripes::disarm(RunningTransfer& running, Part& part) {
  if (!part.clear_trigger) return {};
  portals::Interface& interface = rails_[part.rail]->interface();
  SPL_TRY(interface.ct_cancel(part.clear_trigger->counter));
  if (interface.ct_get(part.clear_trigger->counter).success >= part.clear_trigger->threshold) return {};
  part.clear_trigger.reset();
  for (const uint64_t issued_number : std::exchange(part.waiting_fragments, {})) {
    const auto found = issued_.find(issued_number);
    rails_[part.rail]->unreserve(found->second.fragment.length);
    running.orphans.push_back(found->second);
    issued_.erase(found);
  }
  return {};
}

// Sends fragments whose rail brings no word by other rails, once the peer has cleared the message over any rail.
Status Stripes::move_orphans(uint64_t number) {
  RunningTransfer& running = running_.at(number);
  if (!running.is_cleared) return {};
  for (IssuedFragment& issued : std::exchange(running.orphans, {})) {
    issued.is_begun = true;
    SPL_TRY(repeat(running, issued));  // the last one that fails ends the transfer
  }
  return {};
}

Status Stripes::on_lost(uint32_t rank, uint32_t rail) {
  std::vector<uint64_t> numbers;
  for (auto& [number, running] : running_) {
    if (running.transfer.rank != rank) continue;
    for (Part& part : running.parts) {
      if (part.rail == rail) SPL_TRY(disarm(running, part));
    }
    if (!running.orphans.empty()) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) SPL_TRY(move_orphans(number));
  return {};
}

// Gives a transfer up. Fragments that are on their way end by themselves.
Status Stripes::give_up(uint64_t number, const Error& error) {
  RunningTransfer& running = running_.at(number);
  running.result = error;
  for (Part& part : running.parts) SPL_TRY(disarm(running, part));
  const std::vector<IssuedFragment> orphans = std::exchange(running.orphans, {});
  for (const IssuedFragment& issued : orphans) SPL_TRY(end_fragment(number, running, issued.part));
  return {};
}

}  // namespace spinloom::rails
