#include "mpi/abi/offload.hpp"

#include <algorithm>

#include "base/result.hpp"
#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

void Offload::begin() {
  why_off_.clear();
  constexpr uint32_t id_of_world = 1;
  make_team(handles().comm_world, id_of_world);
}

void Offload::turn_off(std::string why) {
  why_off_ = std::move(why);
  std::ranges::replace(why_off_, '"', '\'');  // it stands in the report
}

void Offload::end() {
  if (!is_on()) return;
  teams_.for_each([](uint64_t, std::shared_ptr<NicTeam>& team) { team->retire(); });
  teams_ = {};
  has_ended_ = true;
}

void Offload::make_team(Comm comm, uint32_t id) {
  const std::vector<int> in_world = layer.ranks_of(comm);
  const std::vector<uint32_t> ranks(in_world.begin(), in_world.end());
  int own = 0;
  if (real.Comm_rank(comm, &own) != success) return;
  teams_.put(key_of(comm), std::make_shared<NicTeam>(nic_, id, ranks, static_cast<uint32_t>(own)));
}

Nic::Ids Offload::offer_to(Key key) {
  if (offered_key_.is_none() && key == *keys_without_number_.begin()) offered_key_ = key;
  return offered_key_ == key ? nic_.taken_ids() : Nic::busy();
}

// No thread of a rank keeps the lock while it waits for other ranks.
void Offload::add_comm(Comm made, Key key) {
  if (!is_on() || key.is_none() || made == handles().comm_null) return;
  int is_inter = 0;
  int size = 0;
  if (real.Comm_test_inter(made, &is_inter) != success || is_inter != 0) return;
  if (real.Comm_size(made, &size) != success || size < 2) return;
  {
    const Lock lock;
    (void)of(made);  // communicators that were freed give their numbers back
    keys_without_number_.insert(key);
  }
  const auto bit_or = std::ranges::find(operations(), PTL_BOR, &Arithmetic<Op, ptl_op_t>::code);
  for (;;) {
    Nic::Ids own{};
    Nic::Ids taken{};
    {
      const Lock lock;
      own = offer_to(key);
    }
    const int code =
        real.Allreduce(own.data(), taken.data(), static_cast<int>(taken.size()), handles().byte, bit_or->handle, made);
    const Lock lock;
    if (offered_key_ == key) offered_key_ = {};
    if (code == success && Nic::is_busy(taken)) continue;
    keys_without_number_.erase(keys_without_number_.find(key));
    if (const uint32_t id = Nic::free_id(taken); code == success && id != 0) make_team(made, id);
    return;
  }
}

std::shared_ptr<NicTeam> Offload::of(Comm comm) {
  if (freed_.any()) {
    freed_.take_each([this](uint64_t key) {
      std::shared_ptr<NicTeam>* const freed = teams_.find(key);
      if (freed == nullptr) return;
      (*freed)->retire();
      teams_.erase(key);
    });
  }
  const std::shared_ptr<NicTeam>* const found = teams_.find(key_of(comm));
  return found == nullptr ? nullptr : *found;
}

void Offload::count(const char* call, const char* why, uint64_t bytes) {
  if (layer.settings.report.empty()) return;
  const auto same = [&](const Count& entry) { return entry.call == call && entry.why == why; };
  auto found = std::ranges::find_if(counts_, same);
  if (found == counts_.end()) found = counts_.insert(found, Count{.call = call, .why = why});
  ++found->calls;
  found->bytes += bytes;
}

std::string Offload::as_json() const {
  std::string out =
      text("{\"asked\": ", layer.settings.collectives ? "true" : "false",
           ", \"on\": ", why_off_.empty() ? "true" : "false", ", \"why_off\": \"", why_off_, "\", \"calls\": [");
  const char* comma = "";
  for (const Count& entry : counts_) {
    out += text(comma, "[\"", entry.call, "\", \"", entry.why == nullptr ? "" : entry.why, "\", ", entry.calls, ", ",
                entry.bytes, "]");
    comma = ", ";
  }
  return out + "]}";
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
