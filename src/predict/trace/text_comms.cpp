#include "predict/trace/text_comms.hpp"

#include <algorithm>
#include <set>

namespace spinloom::trace {
namespace {

constexpr int rounds_most = 16;  // levels of communicators made of communicators

}  // namespace

TextComms::TextComms(uint32_t ranks) : ranks_(ranks), members_(2), seen_(2), handles_(ranks) {
  for (uint32_t rank = 0; rank < ranks; ++rank) members_[world].push_back(rank);
}

// The communicator behind a rank's handle depends on the sizes of the communicators that all ranks have made, and these
// depend on the communicators behind the ranks' handles. So each round finds the communicators of one more level of
// depth.
void TextComms::learn(std::span<const std::vector<CommMark>> marks) {
  for (uint32_t rank = 0; rank < marks.size(); ++rank) {
    std::set<TextComm> handles;
    for (const CommMark& mark : marks[rank]) {
      if (mark.kind != CommMark::Kind::release) handles.insert(mark.comm);
    }
    handles_[rank].assign(handles.begin(), handles.end());
  }
  for (int round = 0; round < rounds_most; ++round) {
    const auto before = members_;
    for (auto& seen : seen_) seen.clear();
    for (Making& one : makings_) one.pieces.clear();
    for (uint32_t rank = 0; rank < marks.size(); ++rank) {
      CommBinder binder(*this, rank);
      for (const CommMark& mark : marks[rank]) binder.apply(mark);
    }
    find_members();
    if (members_ == before) return;
  }
}

std::optional<uint32_t> TextComms::rank_in(uint32_t comm, uint32_t world_rank) const {
  const auto& members = members_[comm];
  const auto found = std::ranges::find(members, world_rank);
  if (found == members.end()) return std::nullopt;
  return static_cast<uint32_t>(found - members.begin());
}

uint32_t TextComms::making(uint32_t parent, uint32_t nth, TextGroup group) {
  const auto next = static_cast<uint32_t>(makings_.size());
  const auto [found, is_new] = making_numbers_.try_emplace({parent, nth}, next);
  if (is_new) makings_.push_back({.parent = parent, .group = group, .pieces = {}});
  return found->second;
}

uint32_t TextComms::comm_of(uint32_t making, int64_t colour) {
  const auto [found, is_new] = comm_numbers_.try_emplace({making, colour}, count());
  if (is_new) {
    members_.emplace_back();
    seen_.emplace_back();
  }
  return found->second;
}

void TextComms::find_members() {
  for (const auto& [key, comm] : comm_numbers_) find_members_of(comm, key.first, key.second);
}

void TextComms::find_members_of(uint32_t comm, uint32_t number, int64_t colour) {
  const Making& making = makings_[number];
  const std::vector<uint32_t>& parent = members_[making.parent];
  std::vector<uint32_t> members;
  if (making.group == TextGroup::split) {
    const bool all_told = std::ranges::all_of(parent, [&](uint32_t rank) { return making.pieces.contains(rank); });
    std::vector<std::pair<int64_t, size_t>> order;  // by key, and then as in the parent
    for (size_t place = 0; place < parent.size(); ++place) {
      const auto piece = making.pieces.find(parent[place]);
      if (all_told && piece->second.colour == colour) order.emplace_back(piece->second.key, place);
    }
    std::ranges::sort(order);
    for (const auto& [key, place] : order) members.push_back(parent[place]);
    members_[comm] = std::move(members);
    return;
  }
  members = parent;
  const auto& seen = seen_[comm];
  // If all ranks of the parent have used the communicator, each with its rank in it, these ranks give the order.
  if (making.group != TextGroup::same && seen.size() == parent.size()) {
    for (const auto& [rank, as] : seen) {
      if (as.rank < members.size()) members[as.rank] = rank;
    }
  }
  const bool fits = std::ranges::all_of(seen, [&](const auto& one) {
    return one.second.size == members.size() && members[one.second.rank] == one.first;
  });
  members_[comm] = fits ? std::move(members) : std::vector<uint32_t>{};
}

bool CommBinder::fits(const Living& one, const TextComm& comm) const {
  if (one.comm == TextComms::unknown) return comm.size <= one.parent.size;
  const auto& members = comms_.members_[one.comm];
  if (one.group == TextGroup::split && !members.empty()) {
    return comm.size == members.size() && members[comm.rank] == world_rank_;
  }
  if (one.group == TextGroup::same) return comm.size == one.parent.size && comm.rank == one.parent.rank;
  return comm.size <= one.parent.size;
}

// Returns how many lower handles of the same rank and size are not bound yet.
size_t CommBinder::lower_handles(const TextComm& comm) const {
  size_t count = 0;
  for (const TextComm& one : comms_.handles_[world_rank_]) {
    if (one.rank != comm.rank || one.size != comm.size || one.handle >= comm.handle || one == world_) continue;
    if (std::ranges::none_of(living_, [&](const Living& living) { return living.bound == one; })) ++count;
  }
  return count;
}

uint32_t CommBinder::use(const TextComm& comm) {
  if (world_ == comm) return TextComms::world;
  for (const Living& one : living_) {
    if (one.bound == comm) return one.comm;
  }
  if (!world_ && comm.rank == world_rank_ && comm.size == comms_.ranks_) {
    world_ = comm;
    return TextComms::world;
  }
  std::vector<Living*> fitting;
  for (Living& one : living_) {
    if (!one.bound && fits(one, comm)) fitting.push_back(&one);
  }
  if (!fitting.empty()) {
    guessed_ += fitting.size() > 1 ? 1 : 0;
    Living& one = *fitting[std::min(fitting.size() - 1, fitting.size() > 1 ? lower_handles(comm) : 0)];
    one.bound = comm;
    if (one.comm != TextComms::unknown) comms_.seen_[one.comm][world_rank_] = comm;
    return one.comm;
  }
  return comm.size == 1 ? TextComms::itself : TextComms::unknown;
}

uint32_t CommBinder::make(const CommMark& mark) {
  const uint32_t parent = use(mark.comm);
  Living made{.group = mark.group, .parent = mark.comm, .place = mark.place, .bound = {}};
  if (parent != TextComms::unknown && parent != TextComms::itself) {
    const uint32_t number = comms_.making(parent, made_[parent]++, mark.group);
    const int64_t colour = mark.group == TextGroup::split ? mark.colour : 0;
    comms_.makings_[number].pieces[world_rank_] = {mark.colour, mark.key};
    if (mark.group == TextGroup::split && mark.colour < 0) return TextComms::unknown;  // MPI_UNDEFINED
    made.comm = comms_.comm_of(number, colour);
  }
  // A communicator that was made in the same place before can no longer be named.
  living_.push_back(made);
  return made.comm;
}

uint32_t CommBinder::release(uint64_t place) {
  const auto last =
      std::find_if(living_.rbegin(), living_.rend(), [place](const Living& one) { return one.place == place; });
  if (last == living_.rend()) return TextComms::unknown;
  const uint32_t comm = last->comm;
  living_.erase(std::next(last).base());
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
