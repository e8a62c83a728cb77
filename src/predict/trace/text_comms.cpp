#include "predict/trace/text_comms.hpp"

#include <algorithm>
#include <set>

namespace spinloom::trace {
namespace {

constexpr int rounds_max = 16;  // levels of communicators made of communicators

}  // namespace

TextComms::TextComms(uint32_t ranks) : ranks_(ranks), members_(2), uses_(2), handles_(ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) members_[world].push_back(rank);
}

// The communicator behind a rank's handle depends on the sizes of the communicators that all ranks have made, and these
// depend on the communicators behind the ranks' handles. So each round finds the communicators of one more level of
// depth.
void TextComms::find_all_members(std::span<const std::vector<CommMark>> marks) {
  for (uint32_t rank = 0; rank < marks.size(); ++rank) {
    std::set<TextComm> handles;
    for (const CommMark& mark : marks[rank]) {
      if (mark.kind != CommMark::Kind::release) handles.insert(mark.comm);
    }
    handles_[rank].assign(handles.begin(), handles.end());
  }
  for (int round = 0; round < rounds_max; ++round) {
    const auto previous_members = members_;
    for (auto& uses : uses_) uses.clear();
    for (CommCreation& creation : creations_) creation.split_arguments.clear();
    for (uint32_t rank = 0; rank < marks.size(); ++rank) {
      CommBinder binder(*this, rank);
      for (const CommMark& mark : marks[rank]) binder.apply(mark);
    }
    find_members();
    if (members_ == previous_members) return;
  }
}

std::optional<uint32_t> TextComms::rank_in(uint32_t comm, uint32_t world_rank) const {
  const auto& members = members_[comm];
  const auto member = std::ranges::find(members, world_rank);
  if (member == members.end()) return std::nullopt;
  return static_cast<uint32_t>(member - members.begin());
}

uint32_t TextComms::intern_creation(uint32_t parent, uint32_t nth, TextGroup group) {
  const auto next = static_cast<uint32_t>(creations_.size());
  const auto [entry, is_new] = creation_numbers_.try_emplace({parent, nth}, next);
  if (is_new) creations_.push_back({.parent = parent, .group = group, .split_arguments = {}});
  return entry->second;
}

uint32_t TextComms::intern_comm(uint32_t creation, int64_t colour) {
  const auto [entry, is_new] = comm_numbers_.try_emplace({creation, colour}, count());
  if (is_new) {
    members_.emplace_back();
    uses_.emplace_back();
  }
  return entry->second;
}

void TextComms::find_members() {
  for (const auto& [key, comm] : comm_numbers_) find_members_of(comm, key.first, key.second);
}

void TextComms::find_members_of(uint32_t comm, uint32_t number, int64_t colour) {
  const CommCreation& creation = creations_[number];
  const std::vector<uint32_t>& parent = members_[creation.parent];
  std::vector<uint32_t> members;
  if (creation.group == TextGroup::split) {
    const bool has_all_arguments =
        std::ranges::all_of(parent, [&](uint32_t rank) { return creation.split_arguments.contains(rank); });
    std::vector<std::pair<int64_t, size_t>> order;  // keys, and places in the parent: this gives the order
    for (size_t place = 0; place < parent.size(); ++place) {
      const auto arguments = creation.split_arguments.find(parent[place]);
      if (has_all_arguments && arguments->second.colour == colour) order.emplace_back(arguments->second.key, place);
    }
    std::ranges::sort(order);
    for (const auto& [key, place] : order) members.push_back(parent[place]);
    members_[comm] = std::move(members);
    return;
  }
  members = parent;
  const auto& uses = uses_[comm];
  // If all ranks of the parent have used the communicator, each with its rank in it, these ranks give the order.
  if (creation.group != TextGroup::same && uses.size() == parent.size()) {
    for (const auto& [rank, use] : uses) {
      if (use.rank < members.size()) members[use.rank] = rank;
    }
  }
  const bool fits = std::ranges::all_of(uses, [&](const auto& one) {
    return one.second.size == members.size() && members[one.second.rank] == one.first;
  });
  members_[comm] = fits ? std::move(members) : std::vector<uint32_t>{};
}

bool CommBinder::fits(const LiveComm& live, const TextComm& comm) const {
  if (live.comm == TextComms::unknown) return comm.size <= live.parent.size;
  const auto& members = comms_.members_[live.comm];
  if (live.group == TextGroup::split && !members.empty()) {
    return comm.size == members.size() && members[comm.rank] == world_rank_;
  }
  if (live.group == TextGroup::same) return comm.size == live.parent.size && comm.rank == live.parent.rank;
  return comm.size <= live.parent.size;
}

// Returns how many lower handles of the same rank and size are not bound yet.
size_t CommBinder::lower_handles(const TextComm& comm) const {
  size_t count = 0;
  for (const TextComm& handle : comms_.handles_[world_rank_]) {
    if (handle.rank != comm.rank || handle.size != comm.size || handle.handle >= comm.handle || handle == world_)
      continue;
    if (std::ranges::none_of(live_, [&](const LiveComm& live) { return live.bound == handle; })) ++count;
  }
  return count;
}

uint32_t CommBinder::use(const TextComm& comm) {
  if (world_ == comm) return TextComms::world;
  for (const LiveComm& live : live_) {
    if (live.bound == comm) return live.comm;
  }
  if (!world_ && comm.rank == world_rank_ && comm.size == comms_.ranks_) {
    world_ = comm;
    return TextComms::world;
  }
  std::vector<LiveComm*> fitting;
  for (LiveComm& live : live_) {
    if (!live.bound && fits(live, comm)) fitting.push_back(&live);
  }
  if (!fitting.empty()) {
    ambiguous_handles_ += fitting.size() > 1 ? 1 : 0;
    LiveComm& live = *fitting[std::min(fitting.size() - 1, fitting.size() > 1 ? lower_handles(comm) : 0)];
    live.bound = comm;
    if (live.comm != TextComms::unknown) comms_.uses_[live.comm][world_rank_] = comm;
    return live.comm;
  }
  return comm.size == 1 ? TextComms::itself : TextComms::unknown;
}

uint32_t CommBinder::make(const CommMark& mark) {
  const uint32_t parent = use(mark.comm);
  LiveComm new_comm{.group = mark.group, .parent = mark.comm, .place = mark.place, .bound = {}};
  if (parent != TextComms::unknown && parent != TextComms::itself) {
    const uint32_t number = comms_.intern_creation(parent, creations_of_parent_[parent]++, mark.group);
    const int64_t colour = mark.group == TextGroup::split ? mark.colour : 0;
    comms_.creations_[number].split_arguments[world_rank_] = {mark.colour, mark.key};
    if (mark.group == TextGroup::split && mark.colour < 0) return TextComms::unknown;  // MPI_UNDEFINED
    new_comm.comm = comms_.intern_comm(number, colour);
  }
  // A communicator that was made in the same place before can no longer be named.
  live_.push_back(new_comm);
  return new_comm.comm;
}

uint32_t CommBinder::release(uint64_t place) {
  const auto last =
      std::find_if(live_.rbegin(), live_.rend(), [place](const LiveComm& one) { return one.place == place; });
  if (last == live_.rend()) return TextComms::unknown;
  const uint32_t comm = last->comm;
  live_.erase(std::next(last).base());
  return comm;
}

uint32_t CommBinder::apply(const CommMark& mark) {
  switch (mark.kind) {
    case CommMark::Kind::use: return use(mark.comm);
    case CommMark::Kind::make: return make(mark);
    default: return release(mark.place);
  }
}

}  // namespace spinloom::trace
