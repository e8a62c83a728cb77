// Ranks tell each other that a schedule has failed: who waits for one that will not go on would wait for ever.
#include <algorithm>
#include <tuple>

#include "collective/endpoint.hpp"
#include "collective/message_bits.hpp"

namespace spinloom::collective {

Status Endpoint::listen() {
  nic::Entry entry;
  entry.match_bits = bits::failed;
  entry.ignore_bits = ~bits::all_kinds;
  spend();
  SPL_ASSIGN(hears_, interface_.me_append(portal_, entry));
  return {};
}

void Endpoint::tell(uint32_t rank, uint64_t schedule, uint64_t start) {
  nic::Put notice;
  notice.target = {rank};
  notice.portal = portal_;
  notice.match_bits = bits::failed | schedule;
  notice.hdr_data = start;
  spend();
  std::ignore = interface_.put(notice);
}

void Endpoint::hear(const nic::Event& event) {
  const uint64_t schedule = event.match_bits & ~bits::all_kinds;
  const Notice notice{event.hdr_data, event.initiator.value};
  const auto [known, is_new] = notices_.try_emplace(schedule, notice);
  if (!is_new && notice.start < known->second.start) known->second = notice;
  failed_teams_.insert(bits::team_of(schedule));
}

std::optional<Error> Endpoint::trouble_of(uint64_t schedule, uint64_t start) const {
  if (notices_.empty()) return {};
  const auto found = notices_.find(schedule);
  if (found == notices_.end() || found->second.start > start) return {};
  return fail(Code::fault, "rank ", found->second.rank,
              "'s part of the schedule has failed: a peer is gone, or an entry ", "does not allow an operation");
}

}  // namespace spinloom::collective
