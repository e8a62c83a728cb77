#include "mpi/abi/rma_windows.hpp"

#include <algorithm>
#include <utility>

#include "base/result.hpp"
#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The facts of its part that a rank sends to the others.
struct PartFacts {
  int32_t is_good = 0;
  int32_t rank = 0;  // the rank in the job
  int64_t bytes = 0;
  int64_t unit = 1;
  spl_rma_part_text part{};
  spl_rma_key_text word{};
};

}  // namespace

void RmaWindows::turn_off(std::string why) {
  why_off_ = std::move(why);
  std::ranges::replace(why_off_, '"', '\'');  // it stands in the report
}

void RmaWindows::end() {
  if (!is_on()) return;
  has_ended_ = true;
  windows_ = {};
  arguments_.end();
  // Messages that an MPI has promised to send move only while ranks wait in its calls.
  real.Barrier(layer.teams.comm());
}

void RmaWindows::add(Win handle, Comm comm, void* base, int64_t bytes, int64_t unit) {
  if (!is_on()) return;
  std::shared_ptr<const Members> members;
  PartFacts own_facts{.rank = layer.rank, .bytes = bytes, .unit = unit};
  auto word = std::make_unique<RmaWindow::Word>();
  spl_rma_window* window = nullptr;
  {
    const Lock lock;
    members = layer.teams.members(comm);
    if (members == nullptr) return;
    const std::vector<ptl_rank_t> group(members->begin(), members->end());
    own_facts.is_good =
        nic_.spl_rma_window_part(nic_.memory(), group.data(), static_cast<uint32_t>(group.size()), base,
                                 static_cast<uint64_t>(bytes), SPL_RMA_ALL, 0, &window, &own_facts.part) == PTL_OK &&
        nic_.spl_rma_register(nic_.memory(), &word->value, sizeof word->value, 0, &word->memory) == PTL_OK &&
        nic_.spl_rma_export(word->memory, SPL_RMA_ATOMIC, &own_facts.word) == PTL_OK;
  }
  std::vector<PartFacts> all_facts(members->size());
  const int code = real.Allgather(&own_facts, sizeof own_facts, handles().byte, all_facts.data(), sizeof own_facts,
                                  handles().byte, comm);
  const Lock lock;
  std::vector<spl_rma_part_text> texts;
  for (const PartFacts& facts : all_facts) texts.push_back(facts.part);
  bool is_good = code == success &&
                 std::ranges::all_of(all_facts, [](const PartFacts& facts) { return facts.is_good == 1; }) &&
                 nic_.spl_rma_window_join(window, texts.data()) == PTL_OK;
  std::vector<RmaWindow::Part> parts;
  for (const PartFacts& facts : all_facts) {
    if (!is_good) break;
    RmaWindow::Part& part = parts.emplace_back();
    part = {static_cast<uint32_t>(facts.rank), facts.bytes, facts.unit};
    part.key = nic_.spl_rma_window_key(window, part.rank);
    is_good = nic_.spl_rma_import(nic_.memory(), &facts.word, &part.word) == PTL_OK;
  }
  if (is_good) {
    ++windows_made_;
    windows_.put(key_of(handle),
                 std::make_unique<RmaWindow>(nic_, types_, counts_, handle, window, std::move(parts), std::move(word)));
    return;
  }
  ++windows_left_;
  for (const RmaWindow::Part& part : parts) {
    if (part.word != nullptr) nic_.spl_rma_forget(part.word);
  }
  if (word->memory != nullptr) nic_.spl_rma_deregister(word->memory);
  if (window != nullptr) nic_.spl_rma_window_drop(window);
}

RmaWindow* RmaWindows::find(Win handle) {
  const Lock lock;
  std::unique_ptr<RmaWindow>* const found = windows_.find(key_of(handle));
  return found == nullptr ? nullptr : found->get();
}

int RmaWindows::free(RmaWindow& window) {
  const int code = window.close();
  const Lock lock;
  windows_.erase(key_of(window.handle()));
  return code;
}

std::string RmaWindows::as_json() const {
  return text("{\"asked\": ", layer.settings.rma ? "true" : "false", ", \"on\": ", why_off_.empty() ? "true" : "false",
              ", \"why_off\": \"", why_off_, "\", \"windows\": ", windows_made_, ", \"left\": ", windows_left_,
              ", \"puts\": ", counts_.puts, ", \"gets\": ", counts_.gets, ", \"accumulates\": ", counts_.accumulates,
              ", \"fetches\": ", counts_.fetches, ", \"updates\": ", counts_.updates, ", \"bytes\": ", counts_.bytes,
              "}");
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
