#include "mpi/abi/rma_windows.hpp"

#include <algorithm>
#include <utility>

#include "base/result.hpp"
#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The facts of its part that a rank sends to the others.
struct Told {
  int32_t is_good = 0;
  int32_t rank = 0;  // of the job
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
  known_ = {};
  arguments_.end();
  // Messages that an MPI has promised to send move only while ranks wait in its calls.
  real.Barrier(layer.teams.comm());
}

void RmaWindows::add(Win handle, Comm comm, void* base, int64_t bytes, int64_t unit) {
  if (!is_on()) return;
  std::shared_ptr<const Members> members;
  Told own{.rank = layer.rank, .bytes = bytes, .unit = unit};
  auto word = std::make_unique<RmaWindow::Word>();
  spl_rma_window* window = nullptr;
  {
    const Lock lock;
    members = layer.teams.members(comm);
    if (members == nullptr) return;
    const std::vector<ptl_rank_t> group(members->begin(), members->end());
    own.is_good =
        nic_.spl_rma_window_part(nic_.memory(), group.data(), static_cast<uint32_t>(group.size()), base,
                                 static_cast<uint64_t>(bytes), SPL_RMA_ALL, 0, &window, &own.part) == PTL_OK &&
        nic_.spl_rma_register(nic_.memory(), &word->value, sizeof word->value, 0, &word->memory) == PTL_OK &&
        nic_.spl_rma_export(word->memory, SPL_RMA_ATOMIC, &own.word) == PTL_OK;
  }
  std::vector<Told> told(members->size());
  const int code = real.Allgather(&own, sizeof own, handles().byte, told.data(), sizeof own, handles().byte, comm);
  const Lock lock;
  std::vector<spl_rma_part_text> texts;
  for (const Told& one : told) texts.push_back(one.part);
  bool is_good = code == success && std::ranges::all_of(told, [](const Told& one) { return one.is_good == 1; }) &&
                 nic_.spl_rma_window_join(window, texts.data()) == PTL_OK;
  std::vector<RmaWindow::Part> parts;
  for (const Told& one : told) {
    if (!is_good) break;
    RmaWindow::Part& part = parts.emplace_back();
    part = {static_cast<uint32_t>(one.rank), one.bytes, one.unit};
    part.key = nic_.spl_rma_window_key(window, part.rank);
    is_good = nic_.spl_rma_import(nic_.memory(), &one.word, &part.word) == PTL_OK;
  }
  if (is_good) {
    ++made_;
    known_.put(key_of(handle),
               std::make_unique<RmaWindow>(nic_, types_, counts_, handle, window, std::move(parts), std::move(word)));
    return;
  }
  ++left_to_the_mpi_;
  for (const RmaWindow::Part& part : parts) {
    if (part.word != nullptr) nic_.spl_rma_forget(part.word);
  }
  if (word->memory != nullptr) nic_.spl_rma_deregister(word->memory);
  if (window != nullptr) nic_.spl_rma_window_drop(window);
}

RmaWindow* RmaWindows::find(Win handle) {
  const Lock lock;
  std::unique_ptr<RmaWindow>* const found = known_.find(key_of(handle));
  return found == nullptr ? nullptr : found->get();
}

int RmaWindows::free(RmaWindow& window) {
  const int code = window.close();
  const Lock lock;
  known_.erase(key_of(window.handle()));
  return code;
}

std::string RmaWindows::as_json() const {
  return text("{\"asked\": ", layer.settings.rma ? "true" : "false", ", \"on\": ", why_off_.empty() ? "true" : "false",
              ", \"why_off\": \"", why_off_, "\", \"windows\": ", made_, ", \"left\": ", left_to_the_mpi_,
              ", \"puts\": ", counts_.puts, ", \"gets\": ", counts_.gets, ", \"accumulates\": ", counts_.accumulates,
              ", \"fetches\": ", counts_.fetches, ", \"updates\": ", counts_.updates, ", \"bytes\": ", counts_.bytes,
              "}");
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
