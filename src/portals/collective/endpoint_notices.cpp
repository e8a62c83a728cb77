// Ranks tell each other that a schedule has failed: otherwise a rank would wait for ever for one that does not go on.
#include <algorithm>
#include <tuple>

#include "portals/collective/endpoint.hpp"
#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {
namespace {

constexpr uint64_t no_start = UINT64_MAX;  // the notice is of no schedule

uint64_t name_of_rank(uint32_t rank) { return uint64_t{rank} + 1; }

}  // namespace

Status Endpoint::append_notice_entry() {
  nic::Entry entry;
  entry.match_bits = bits::failed;
  entry.ignore_bits = ~bits::kind_mask;
  spend_call_time();
  SPL_ASSIGN(notice_entry_, interface_.me_append(portal_, entry));
  return {};
}

void Endpoint::send_notice(uint32_t rank, const std::vector<uint32_t>& team, uint64_t schedule, uint64_t start) {
  const std::optional<uint32_t> overrun = overrun_rank_of(team);
  nic::Put notice;
  notice.target = {rank};
  notice.portal = portal_;
  notice.match_bits = bits::failed | schedule | (overrun ? name_of_rank(*overrun) : 0);
  notice.hdr_data = start;
  spend_call_time();
  std::ignore = interface_.put(notice);
}

void Endpoint::on_notice(const nic::Event& event) {
  const uint64_t overrun = event.match_bits & bits::message_mask;
  if (overrun > 0) overrun_.insert(static_cast<uint32_t>(overrun - 1));
  if (event.hdr_data == no_start) return;
  const uint64_t schedule = event.match_bits & ~bits::kind_mask & ~bits::message_mask;
  const Notice notice{event.hdr_data, event.initiator.value};
  const auto [entry, is_new] = notices_.try_emplace(schedule, notice);
  if (!is_new && notice.start < entry->second.start) entry->second = notice;
  failed_teams_.insert(bits::team_of(schedule));
}

void Endpoint::on_overrun() {
  const uint32_t self = interface_.rank().value;
  overrun_.insert(self);
  for (uint32_t rank = 0; rank < options_.ranks; ++rank) {
    if (rank == self) continue;
    sent_to_.insert(rank);
    send_notice(rank, {self}, 0, no_start);
  }
}

std::optional<uint32_t> Endpoint::overrun_rank_of(const std::vector<uint32_t>& team) const {
  for (const uint32_t rank : overrun_) {
    if (std::ranges::find(team, rank) != team.end()) return rank;
  }
  return {};
}

std::optional<Error> Endpoint::overrun_error_of(const std::vector<uint32_t>& team) const {
  const std::optional<uint32_t> rank = overrun_rank_of(team);
  if (!rank) return {};
  return fail(Code::exhausted, "rank ", *rank, " was sent more messages before their receives than its NIC keeps ",
              "unexpected headers for (", options_.unexpected_headers, " here) or events (", events_max,
              "), and has refused some; ask for more headers (max_unexpected_headers), or for fewer early_messages (",
              options_.early_messages, "), and open the engines again");
}

std::optional<Error> Endpoint::error_of(const std::vector<uint32_t>& team, uint64_t schedule, uint64_t start) const {
  if (std::optional<Error> overrun = overrun_error_of(team)) return overrun;
  const auto found = notices_.find(schedule);
  if (found == notices_.end() || found->second.start > start) return {};
  return fail(Code::fault, "rank ", found->second.rank,
              "'s part of the schedule has failed: a peer is gone or has run out of unexpected headers, or an entry ",
              "does not allow an operation");
}

}  // namespace spinloom::collective
