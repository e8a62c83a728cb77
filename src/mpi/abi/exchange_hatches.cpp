// Blocking exchanges by hatches: what is short lies in the hatch; in place of what is long its record does.
#include <algorithm>
#include <cstring>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/exchange.hpp"
#include "mpi/spin.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using Entry = Hatches::Entry;
using Kind = Hatches::Kind;

bool fits_entry(const Place& place) {
  const int64_t bytes = place.capacity();
  return place.form->known && bytes >= 0 && bytes <= Entry::data_bytes && bytes < layer.settings.min_bytes &&
         layer.settings.path != Path::pass;
}

void count_short(const Place& place, int rank) {
  if (layer.tally) layer.count(place, layer.world_rank(place.comm, rank), Way::staged, "short, with its call");
}

}  // namespace

int Exchange::run(Hatches& hatches) {
  if (hatches.are_open()) return pass(hatches);
  const int code = begin();
  return code == success ? wait() : code;
}

void Exchange::number(Hatches& hatches) {
  for (Part& part : receives_) {
    part.is_over = part.rank == layer.teams.rank();
    if (!part.is_over) part.message = hatches.next_received(part.rank);
  }
  for (Part& part : sends_) {
    part.is_over = part.rank == layer.teams.rank();
    if (!part.is_over) part.message = hatches.next_sent(part.rank);
  }
}

// Nothing waits for one peer while another's message is here: two ranks may wait for room in each other's hatches.
int Exchange::pass(Hatches& hatches) {
  requests_.clear();
  requests_.reserve(sends_.size() + receives_.size());
  {
    const Lock lock;
    hatches.make();
    number(hatches);
  }
  int code = success;
  (void)step(hatches, code);
  const int own = copy_to_self();
  if (code == success) code = own;
  Spin spin;
  while (!is_over()) {
    if (layer.offers()) layer.progress(Layer::Waiting::blocked);
    if (step(hatches, code)) {
      spin = {};
      continue;
    }
    if (!spin.pause()) continue;
    int flag = 0;
    (void)real.Iprobe(any_source, tag_, layer.teams.comm(), &flag,
                      status_ignore);  // others may wait for the MPI's progress
    if (waits_for_the_dead(hatches)) return end(error_other);
  }
  statuses_.assign(requests_.size(), {});
  const int waited = wait();
  return code == success ? waited : code;
}

bool Exchange::step(Hatches& hatches, int& code) {
  bool has_moved = false;
  for (Part& part : sends_) {
    if (!part.is_over && hand_out(hatches, part, code)) has_moved = true;
  }
  for (Part& part : receives_) {
    if (!part.is_over && take_in(hatches, part, code)) has_moved = true;
  }
  return has_moved;
}

bool Exchange::hand_out(Hatches& hatches, Part& part, int& code) {
  if (part.parcel != 0) {
    part.is_over = !layer.is_open(part.parcel);
    return part.is_over;
  }
  Entry* const entry = hatches.are_made() ? hatches.room_for(part.rank, part.message) : nullptr;
  if (entry == nullptr && hatches.are_made()) return false;
  Place place = place_of(part);
  place.call = call_;
  part.is_over = true;
  if (entry != nullptr && fits_entry(place)) {
    const int64_t bytes = place.capacity();
    Message(*place.form, place.count, place.buffer).pack({0, bytes}, entry->data);
    entry->kind = Kind::bytes;
    entry->bytes = bytes;
    hatches.post(*entry, part.message);
    count_short(place, part.rank);
    return true;
  }
  std::optional<Parcel> parcel;
  if (entry != nullptr) {
    const Lock lock;
    parcel = layer.parcel_for(place, part.rank);
  }
  if (parcel) {
    std::memcpy(entry->data, parcel->record(), sizeof(Record));
    entry->kind = Kind::record;
    hatches.post(*entry, part.message);
    layer.hand_over(*parcel, place);
    part.is_over = !parcel->offered;
    part.parcel = parcel->serial;
    return true;
  }
  if (entry != nullptr) {
    entry->kind = Kind::by_mpi;
    hatches.post(*entry, part.message);
  }
  requests_.push_back(handles().request_null);
  const int sent = post_to_mpi(part);
  if (code == success) code = sent;
  return true;
}

bool Exchange::take_in(Hatches& hatches, Part& part, int& code) {
  const Entry* const entry = hatches.arrived(part.rank, part.message);
  if (entry == nullptr && !hatches.come_by_mpi(part.rank)) return false;
  part.is_over = true;
  int taken = success;
  if (entry == nullptr || entry->kind == Kind::by_mpi) {
    taken = post(part, false);
  } else {
    const Place place = place_of(part);
    Status status{};
    if (entry->kind == Kind::record) {
      taken = layer.land(Record::read(entry->data), place, &status);
    } else if (entry->bytes > place.capacity()) {
      taken = error_truncate;
    } else {
      taken = layer.put_bytes(entry->data, entry->bytes, place);
    }
  }
  if (entry != nullptr) hatches.take(part.rank, part.message);
  if (code == success) code = taken;
  return true;
}

bool Exchange::is_over() const {
  const auto ended = [](const Part& part) { return part.is_over; };
  return std::ranges::all_of(sends_, ended) && std::ranges::all_of(receives_, ended);
}

bool Exchange::waits_for_the_dead(const Hatches& hatches) const {
  const auto is_lost = [&](const Part& part) { return !part.is_over && !hatches.lives(part.rank); };
  return std::ranges::any_of(receives_, is_lost) || std::ranges::any_of(sends_, is_lost);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
