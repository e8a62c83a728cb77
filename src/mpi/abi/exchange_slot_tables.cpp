// Blocking exchanges by slot tables: a short message lies in the slot table; a long one has an offer or its record
// there, or a note that the MPI carries it.
#include <algorithm>
#include <cstring>

#include "base/shared_heap.hpp"
#include "mpi/abi/calls.hpp"
#include "mpi/abi/exchange.hpp"
#include "mpi/entry/spin.hpp"
#include "mpi/moving/way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using Entry = SlotTables::Entry;
using Kind = SlotTables::Kind;

void count(const Place& place, int rank, Way way, const char* why) {
  const Lock lock;
  layer.count(place, layer.world_rank(place.comm, rank), way, why);
}

}  // namespace

int Exchange::run(SlotTables& slot_tables) {
  if (slot_tables.are_open()) return run_by_slot_tables(slot_tables);
  const int code = begin();
  return code == success ? wait() : code;
}

void Exchange::choose_means(Part& part) const {
  const int64_t bytes = Place::capacity_of(*part.form, part.count);
  part.means = Means::pipeline;
  if (!part.form->is_known || part.count <= 0 || layer.settings.path == Path::pass) return;
  if (bytes <= Entry::data_bytes && bytes < layer.settings.min_bytes) {
    part.means = Means::entry;
    part.why = "short, with its call";
    return;
  }
  if (is_swap_ || senders_ != Senders::wait || !process_heap_is_malloc()) return;
  const Choice choice =
      choose(layer.settings, *part.form, part.count, bytes, {.is_mapped = true, .offers_contiguous = true});
  if (choice.way != Way::mapped || choice.joins) return;
  part.means = Means::offer;
  part.why = choice.why;
}

// True if the datatypes are those that the parts were made with: a handle may have been freed and given to another
// type.
bool Exchange::check_types() {
  if (type_changes_ == layer.types.changes()) return true;
  const auto is_known = [](const Part& part) { return layer.types.form(part.type) == part.form; };
  if (!std::ranges::all_of(sends_, is_known) || !std::ranges::all_of(receives_, is_known)) return false;
  type_changes_ = layer.types.changes();
  return true;
}

void Exchange::number_messages(SlotTables& slot_tables) {
  const auto begin = [](Part& part) {
    part.pending_serial = 0;
    part.is_offered = false;
    part.is_over = part.rank == layer.teams.rank() || part.is_empty();
    return !part.is_over;
  };
  for (Part& part : receives_) {
    if (begin(part)) part.number = slot_tables.next_received(part.rank);
  }
  for (Part& part : sends_) {
    if (begin(part)) part.number = slot_tables.next_sent(part.rank);
  }
}

// Does the call by slot tables. It never waits for one peer while another's message is here, because two ranks may wait
// for room in each other's slot tables.
int Exchange::run_by_slot_tables(SlotTables& slot_tables) {
  requests_.clear();
  requests_.reserve(sends_.size() + receives_.size());
  {
    const Lock lock;
    slot_tables.make();
    number_messages(slot_tables);
  }
  int code = success;
  (void)step(slot_tables, code);
  const int own_code = copy_to_self();
  if (code == success) code = own_code;
  Spin spin;
  while (!is_over()) {
    if (layer.has_work()) layer.progress(Layer::Waiting::blocked);
    if (step(slot_tables, code)) {
      spin = {};
      continue;
    }
    if (!spin.pause()) continue;
    int flag = 0;
    (void)real.Iprobe(any_source, tag_, layer.teams.comm(), &flag,
                      status_ignore);  // others may wait for the MPI's progress
    if (waits_for_dead_rank(slot_tables)) return end(error_other);
  }
  statuses_.assign(requests_.size(), {});
  const int waited = wait();
  return code == success ? waited : code;
}

bool Exchange::step(SlotTables& slot_tables, int& code) {
  bool has_moved = false;
  const bool may_send = !is_relay_ || std::ranges::all_of(receives_, &Part::is_over);
  for (Part& part : sends_) {
    if (may_send && !part.is_over && send_part(slot_tables, part, code)) has_moved = true;
  }
  for (Part& part : receives_) {
    if (!part.is_over && may_take(part) && receive_part(slot_tables, part, code)) has_moved = true;
  }
  return has_moved;
}

// True if a part may be received: after swap(), only when nothing is to be sent from its place any more.
bool Exchange::may_take(const Part& part) const {
  if (!is_swap_) return true;
  const auto sent = std::ranges::find(sends_, part.rank, &Part::rank);
  return sent == sends_.end() || sent->is_over;
}

bool Exchange::send_part(SlotTables& slot_tables, Part& part, int& code) {
  if (part.pending_serial != 0 || part.is_offered) {
    part.is_over = part.is_offered ? slot_tables.is_taken(part.rank, part.number) : !layer.is_open(part.pending_serial);
    return part.is_over;
  }
  Entry* entry = nullptr;
  if (slot_tables.are_made()) {
    entry = slot_tables.free_entry_for(part.rank, part.number);
    if (entry == nullptr) return false;
    if (part.means == Means::entry) {
      post_bytes(slot_tables, *entry, part);
      return true;
    }
    if (part.means == Means::offer && offer(slot_tables, *entry, part)) return true;
  }
  const Place place = part.place(call_);
  const auto pending = entry == nullptr ? std::nullopt : pending_send_for(place, part.rank);
  if (pending) {
    std::memcpy(entry->data, pending->record(), sizeof(Record));
    entry->kind = Kind::record;
    entry->bytes = place.capacity();
    slot_tables.post(*entry, part.number);
    layer.hand_over(*pending, place);
    part.is_over = !pending->is_offered;
    part.pending_serial = pending->serial;
    return true;
  }
  if (entry != nullptr) {
    entry->kind = Kind::by_mpi;
    slot_tables.post(*entry, part.number);
  }
  part.is_over = true;
  requests_.push_back(handles().request_null);
  const int sent = post_to_mpi(part);
  if (code == success) code = sent;
  return true;
}

void Exchange::post_bytes(SlotTables& slot_tables, Entry& entry, Part& part) const {
  const Message message = part.message();
  message.pack({0, message.bytes()}, entry.data);
  entry.kind = Kind::bytes;
  entry.bytes = message.bytes();
  slot_tables.post(entry, part.number);
  part.is_over = true;
  if (layer.tally) count(part.place(call_), part.rank, Way::staged, part.why);
}

// Offers a message in the slot table. False: it cannot be copied where it lies.
bool Exchange::offer(SlotTables& slot_tables, Entry& entry, Part& part) const {
  const Message message = part.message();
  if (!CopyPipeline::is_mapped(message)) return false;
  const auto offer = CopyPipeline::offer_of(message);
  if (!offer) return false;
  std::memcpy(entry.data, &*offer, sizeof(Offer));
  entry.kind = Kind::offer;
  entry.bytes = message.bytes();
  slot_tables.post(entry, part.number);
  part.is_offered = true;
  if (layer.tally) count(part.place(call_), part.rank, Way::mapped, part.why);
  return true;
}

bool Exchange::receive_part(SlotTables& slot_tables, Part& part, int& code) {
  const Entry* const entry = slot_tables.find_arrived(part.rank, part.number);
  if (entry == nullptr && !slot_tables.comes_by_mpi(part.rank)) return false;
  part.is_over = true;
  int taken = success;
  if (entry == nullptr || entry->kind == Kind::by_mpi) {
    taken = post(part, false);
  } else {
    taken = entry->bytes > Place::capacity_of(*part.form, part.count) ? error_truncate : land_entry(*entry, part);
  }
  if (entry != nullptr) slot_tables.take(part.rank, part.number);
  if (code == success) code = taken;
  return true;
}

int Exchange::land_entry(const Entry& entry, Part& part) const {
  if (entry.kind == Kind::record) {
    Status status{};
    return layer.land(Record::read(entry.data), part.place(call_), &status);
  }
  if (entry.kind == Kind::bytes) {
    if (!part.form->is_known) return layer.put_bytes(entry.data, entry.bytes, part.place(call_));
    part.message().unpack({0, entry.bytes}, entry.data);
    return success;
  }
  Offer offer{};
  std::memcpy(&offer, entry.data, sizeof offer);
  const auto sender = static_cast<uint32_t>(layer.pipeline.board().founders()[static_cast<size_t>(part.rank)]);
  if (part.form->is_known) {
    return layer.pipeline.fetch(sender, offer, entry.bytes, part.message(), part.source).ok() ? success : error_other;
  }
  std::vector<uint8_t> packed(static_cast<size_t>(entry.bytes));
  const FormPointer bytes_form = basic_form(1, 1);
  if (!layer.pipeline.fetch(sender, offer, entry.bytes, {*bytes_form, entry.bytes, packed.data()}, part.source).ok()) {
    return error_other;
  }
  return layer.put_bytes(packed.data(), entry.bytes, part.place(call_));
}

bool Exchange::is_over() const {
  return std::ranges::all_of(sends_, &Part::is_over) && std::ranges::all_of(receives_, &Part::is_over);
}

bool Exchange::waits_for_dead_rank(const SlotTables& slot_tables) const {
  const auto is_lost = [&](const Part& part) { return !part.is_over && !slot_tables.is_alive(part.rank); };
  return std::ranges::any_of(receives_, is_lost) || std::ranges::any_of(sends_, is_lost);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
