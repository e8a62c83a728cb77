#include "portals/rails/stripes.hpp"

#include <algorithm>
#include <utility>

#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {
namespace {

// A word's user pointer holds everything that is needed to send the word again, because nothing else is kept of it.
struct PartWord {
  uint32_t rank = 0;
  uint64_t slot = 0;
  bits::Part part;
};
constexpr uint32_t slot_width = 23;
constexpr uint32_t part_width = 4;

uint64_t number_of(const PartWord& word) {
  return ((uint64_t{word.rank} << slot_width | word.slot) << part_width | word.part.number) << part_width |
         (word.part.parts - 1);
}

PartWord word_of(uint64_t number) {
  constexpr uint64_t part_mask = (1 << part_width) - 1;
  return {static_cast<uint32_t>(number >> (slot_width + 2 * part_width)),
          number >> (2 * part_width) & ((uint64_t{1} << slot_width) - 1),
          {static_cast<uint32_t>(number >> part_width & part_mask), static_cast<uint32_t>(number & part_mask) + 1}};
}

Error no_rail_to(uint32_t rank) { return fail(Code::fault, "rank ", rank, " is lost: no rail reaches it any more"); }

}  // namespace

std::vector<Fragment> Stripes::fragments_of(const Transfer& transfer) const {
  const std::vector<RailLoad> loads = loads_of(rails_, transfer.rank);
  const auto usable = static_cast<uint64_t>(
      std::count_if(loads.begin(), loads.end(), [](const RailLoad& load) { return load.is_usable; }));
  const bool is_one_fragment = transfer.bytes < options_.stripe_bytes;
  const uint64_t fragment_bytes = is_one_fragment ? std::max<uint64_t>(transfer.bytes, 1)
                                                  : fragment_bytes_for(transfer.bytes, usable, options_.fragment_bytes);
  return plan(transfer.bytes, fragment_bytes, loads);
}

Status Stripes::start(uint64_t number, const Transfer& transfer) {
  const std::vector<Fragment> fragments = fragments_of(transfer);
  if (fragments.empty() && transfer.bytes > 0) return done_(number, no_rail_to(transfer.rank));
  if (fragments.empty()) {  // no bytes are wanted, but the peer waits
    if (transfer.notified_slot) SPL_TRY(send_part_word(transfer.rank, *transfer.notified_slot, {0, 1}));
    return done_(number, {});
  }
  RunningTransfer& running = running_[number];
  running.transfer = transfer;
  running.fragments_left = static_cast<uint32_t>(fragments.size());
  SPL_TRY(begin_parts(running, fragments));
  for (const Fragment& fragment : fragments) {
    uint32_t part = 0;
    while (running.parts[part].rail != fragment.rail) ++part;
    SPL_TRY(issue({number, part, fragment, true, false}, transfer));
  }
  return {};
}

// The triggered puts of all parts are registered in one go, so that a transfer waits once for each NIC.
Status Stripes::begin_parts(RunningTransfer& running, const std::vector<Fragment>& fragments) {
  for (const Fragment& fragment : fragments) {
    const auto of_rail = [&](const Part& part) { return part.rail == fragment.rail; };
    auto part = std::find_if(running.parts.begin(), running.parts.end(), of_rail);
    if (part == running.parts.end()) part = running.parts.insert(part, Part{fragment.rail, 0, 0, {}, false, {}, {}});
    ++part->fragments_left;
    ++part->fragments;
  }
  if (!running.transfer.notified_slot || !options_.offloaded) return {};
  const auto parts = static_cast<uint32_t>(running.parts.size());
  for (uint32_t number = 0; number < parts; ++number) {
    Part& part = running.parts[number];
    Rail& rail = *rails_[part.rail];
    SPL_ASSIGN(part.counter, rail.take_counter());
    part.ends_by_nic = true;
    const nic::Trigger trigger{.counter = part.counter.id, .threshold = part.counter.base + part.fragments_left};
    rail.spend_call_time();
    rail.interface().bundle_begin();
    SPL_TRY(rail.interface().put(
        part_word_put(rail, running.transfer.rank, *running.transfer.notified_slot, {number, parts}), trigger));
  }
  for (const Part& part : running.parts) SPL_TRY(rails_[part.rail]->interface().bundle_end());
  return {};
}

nic::Put Stripes::part_word_put(Rail& rail, uint32_t rank, uint64_t slot, bits::Part part) const {
  nic::Put put;
  put.target = {rank};
  put.portal = rail.portals().keys;
  put.match_bits = bits::match_bits_of(bits::KeyKind::finished, slot);
  put.hdr_data = bits::hdr_data_of(part);
  put.ack_request = nic::AckRequest::ack;  // only failures make an event
  put.queue = rail.queue();
  put.event_send_disable = true;
  put.event_success_disable = true;
  put.user_ptr = user::pointer(user::Kind::finish, number_of(PartWord{rank, slot, part}));
  return put;
}

Status Stripes::send_part_word(uint32_t rank, uint64_t slot, bits::Part part) {
  const std::vector<Fragment> chosen = plan(1, 1, loads_of(rails_, rank));
  if (chosen.empty()) return {};  // the peer finds out by itself that no rail reaches it
  Rail& rail = *rails_[chosen.front().rail];
  rail.spend_call_time();
  return rail.interface().put(part_word_put(rail, rank, slot, part));
}

Status Stripes::issue(const IssuedFragment& issued, const Transfer& transfer) {
  const Fragment& fragment = issued.fragment;
  Rail& rail = *rails_[fragment.rail];
  const uint64_t issued_number = next_issued_++;
  issued_[issued_number] = issued;
  if (issued.is_begun) {
    rail.begin_transfer(transfer.rank, fragment.length);
  } else {
    rail.reserve(fragment.length);
    running_.at(issued.transfer).parts[issued.part].waiting_fragments.push_back(issued_number);
  }
  rail.spend_call_time();
  if (transfer.is_put) {
    nic::Put put;
    if (transfer.pieces) {
      put.descriptor = transfer.pieces->descriptors[fragment.rail];
      put.descriptor_offset = fragment.offset;
    } else {
      put.local = transfer.from + fragment.offset;
    }
    put.length = fragment.length;
    put.target = {transfer.rank};
    put.portal = rail.portals().keys;
    put.match_bits = transfer.match_bits;
    put.remote_offset = transfer.offset + fragment.offset;
    put.ack_request = nic::AckRequest::ack;
    put.queue = rail.queue();
    put.event_send_disable = true;
    put.user_ptr = user::pointer(user::Kind::fragment, issued_number);
    const Part& part = running_.at(issued.transfer).parts[issued.part];
    return rail.interface().put(put, issued.is_begun ? std::nullopt : part.clear_trigger);
  }
  const Part& part = running_.at(issued.transfer).parts[issued.part];
  nic::Get get;
  if (transfer.pieces) {
    get.reply.descriptor = transfer.pieces->descriptors[fragment.rail];
    get.reply.descriptor_offset = fragment.offset;
  } else {
    get.reply.local = transfer.into + fragment.offset;
  }
  get.reply.queue = rail.queue();
  get.reply.user_ptr = user::pointer(user::Kind::fragment, issued_number);
  if (part.ends_by_nic) {
    get.reply.counter = part.counter.id;
    get.reply.ct_reply = true;
  }
  get.length = fragment.length;
  get.target = {transfer.rank};
  get.portal = rail.portals().keys;
  get.match_bits = transfer.match_bits;
  get.remote_offset = transfer.offset + fragment.offset;
  return rail.interface().get(get);
}

bool Stripes::is_own(const nic::Event& event) {
  const user::Kind kind = user::kind_of(event.user_ptr);
  return kind == user::Kind::fragment || kind == user::Kind::finish;
}

Status Stripes::on_event(uint32_t rail_number, const nic::Event& event, bool seen_at_once) {
  if (user::kind_of(event.user_ptr) == user::Kind::fragment) return on_fragment(rail_number, event, seen_at_once);
  if (event.fail == nic::Fail::ok) return {};
  const PartWord lost = word_of(user::number_of(event.user_ptr));
  rails_[rail_number]->lose(lost.rank);
  return send_part_word(lost.rank, lost.slot, lost.part);
}

Status Stripes::on_fragment(uint32_t rail_number, const nic::Event& event, bool seen_at_once) {
  const auto found = issued_.find(user::number_of(event.user_ptr));
  if (found == issued_.end()) return {};
  const IssuedFragment issued = found->second;
  issued_.erase(found);
  RunningTransfer& running = running_.at(issued.transfer);
  Rail& rail = *rails_[rail_number];
  // The receiver closes its memory when all has come, which may be before a fragment that is sent again does.
  const bool came_before = running.transfer.is_landing && issued.is_repeated && event.fail == nic::Fail::dropped;
  const bool is_complete = running.transfer.is_landing || event.manipulated_bytes == issued.fragment.length;
  if (came_before || (event.fail == nic::Fail::ok && is_complete)) {
    rail.end_transfer(running.transfer.rank, issued.fragment.length, seen_at_once);
    return end_fragment(issued.transfer, running, issued.part);
  }
  rail.fail_transfer(running.transfer.rank, issued.fragment.length);
  if (event.fail == nic::Fail::undeliverable) {
    rail.lose(running.transfer.rank);
    return repeat(running, issued);
  }
  running.result =
      event.fail == nic::Fail::ok
          ? fail(Code::invalid, "rank ", running.transfer.rank, " has exposed ", event.manipulated_bytes, " of the ",
                 issued.fragment.length, " B at ", running.transfer.offset + issued.fragment.offset)
          : fail(Code::invalid, "rank ", running.transfer.rank, ": ", nic::name_of(event.fail));
  return end_fragment(issued.transfer, running, issued.part);
}

// Gives a part's counter back. If some of its fragments have not come, it may still count replies, and is freed.
Status Stripes::release(const Part& part, bool complete) {
  Rail& rail = *rails_[part.rail];
  if (complete) {
    rail.give_back({part.counter.id, part.counter.base + part.fragments});
    return {};
  }
  SPL_TRY(rail.interface().ct_cancel(part.counter.id));
  return rail.discard(part.counter);
}

Status Stripes::repeat(RunningTransfer& running, IssuedFragment issued) {
  Part& part = running.parts[issued.part];
  if (std::exchange(part.ends_by_nic, false)) SPL_TRY(release(part, false));
  const std::vector<Fragment> chosen =
      plan(issued.fragment.length, issued.fragment.length, loads_of(rails_, running.transfer.rank));
  if (chosen.empty()) {
    running.result = no_rail_to(running.transfer.rank);
    return end_fragment(issued.transfer, running, issued.part);
  }
  ++repeated_;
  issued.is_repeated = true;
  issued.fragment.rail = chosen.front().rail;
  return issue(issued, running.transfer);
}

Status Stripes::end_fragment(uint64_t number, RunningTransfer& running, uint32_t part_number) {
  Part& part = running.parts[part_number];
  const uint64_t fragments_before = running.fragments_left;
  --running.fragments_left;
  if (--part.fragments_left == 0 && running.result) {
    const std::optional<uint64_t> notified_slot = running.transfer.notified_slot;
    if (notified_slot && !part.ends_by_nic) {
      SPL_TRY(send_part_word(running.transfer.rank, *notified_slot,
                             {part_number, static_cast<uint32_t>(running.parts.size())}));
    }
  }
  if (fragments_before > 1) return {};
  for (const Part& ended : running.parts) {
    if (ended.ends_by_nic) SPL_TRY(release(ended, running.result.ok()));
  }
  const Status result = running.result;
  running_.erase(number);
  return done_(number, result);
}

}  // namespace spinloom::rails
