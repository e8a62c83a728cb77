#include "mpi/abi/rma_windows.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_mapped_way.hpp"
#include "mpi/abi/rma_nic_way.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The facts of its part that a rank sends to the others.
struct PartFacts {
  int64_t bytes = 0;
  int64_t unit = 1;
  uint64_t words = 0;  // the address of its WindowWords; 0: it has none
};
struct NicFacts {
  int32_t is_good = 0;
  spl_rma_part_text part{};
  spl_rma_key_text word{};
};

// Gives all ranks of the communicator the facts of each. Empty: the MPI could not.
template <class Facts>
std::vector<Facts> all_facts(const Facts& own, Comm comm, size_t ranks) {
  std::vector<Facts> all(ranks);
  const int code = real.Allgather(&own, sizeof own, handles().byte, all.data(), sizeof own, handles().byte, comm);
  if (code != success) all.clear();
  return all;
}

// The window that was found last, of the process's RmaWindows. Under the lock.
struct Latest {
  uint64_t key = 0;
  RmaWindow* window = nullptr;
} latest;

bool is_good_at_all(bool is_good_here, Comm comm, size_t ranks) {
  const std::vector<char> all = all_facts(static_cast<char>(is_good_here ? 1 : 0), comm, ranks);
  return !all.empty() && std::ranges::find(all, 0) == all.end();
}

}  // namespace

void RmaWindows::turn_off(std::string why) {
  why_off_ = std::move(why);
  std::ranges::replace(why_off_, '"', '\'');  // it stands in the report
}

void RmaWindows::end() {
  if (!is_on()) return;
  has_ended_ = true;
  latest = {};
  windows_ = {};
  arguments_.end();
  // Messages that an MPI has promised to send move only while ranks wait in its calls.
  if (layer.settings.rma) real.Barrier(layer.teams.comm());
}

void RmaWindows::add(Win handle, Comm comm, void* base, int64_t bytes, int64_t unit) {
  if (!is_on()) return;
  std::shared_ptr<const Members> members;
  WindowWords words;
  {
    const Lock lock;
    members = layer.teams.members(comm);
    if (members == nullptr) return;
    words = WindowWords::make(members->size());
  }
  const PartFacts own{bytes, unit, reinterpret_cast<uint64_t>(words.words())};
  const std::vector<PartFacts> parts = all_facts(own, comm, members->size());
  if (parts.empty()) return;
  std::vector<RmaWindow::Part> shown;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    shown.push_back({static_cast<uint32_t>((*members)[rank]), parts[rank].bytes, parts[rank].unit});
  }
  std::vector<uint64_t> places;
  for (const PartFacts& part : parts) places.push_back(part.words);
  std::string why_not = "another rank cannot map all of its memory";
  std::unique_ptr<RmaWay> way = mapped_way(handle, *members, shown, places, std::move(words), why_not);
  const bool is_mapped = is_good_at_all(way != nullptr, comm, members->size());
  if (!is_mapped) way = layer.settings.rma ? nic_way(comm, *members, base, bytes) : nullptr;
  if (way != nullptr && !has_arguments_) {
    has_arguments_ = true;
    arguments_.begin();
  }
  const Lock lock;
  if (way == nullptr) {
    ++windows_left_[why_not];
    return;
  }
  ++windows_made_;
  if (is_mapped) ++windows_mapped_;
  latest = {};
  windows_.put(key_of(handle), std::make_unique<RmaWindow>(std::move(way), types_, counts_, handle, std::move(shown)));
}

// Null: some rank's memory or words cannot be mapped here. All ranks have posted their memory (windows.hpp) before.
std::unique_ptr<RmaWay> RmaWindows::mapped_way(Win handle, const Members& members,
                                               const std::vector<RmaWindow::Part>& parts,
                                               const std::vector<uint64_t>& places, WindowWords own,
                                               std::string& why_not) {
  const Lock lock;
  Window* const window = layer.windows.find(handle);
  const auto is_told = [&why_not](const char* why) {
    why_not = why;
    return nullptr;
  };
  if (!layer.settings.maps_windows()) return is_told("the NIC was asked for");
  if (window == nullptr || own.words() == nullptr) return is_told("there is no shared memory left");
  const Board& board = layer.pipeline.board();
  const auto own_place = static_cast<size_t>(std::ranges::find(members, layer.rank) - members.begin());
  window->look_up(static_cast<int>(own_place));
  SharedMappings mappings(reinterpret_cast<uint64_t>(window->memory_of(static_cast<int>(own_place))->local_address));
  std::vector<uint8_t*> memory;
  std::vector<WindowWords::Words*> words;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    window->look_up(static_cast<int>(rank), &mappings);
    const Window::TargetMemory* const found = window->memory_of(static_cast<int>(rank));
    auto* const start = reinterpret_cast<uint8_t*>(found->local_address);
    if (start == nullptr && parts[rank].bytes > 0) return is_told("the memory of a rank cannot be mapped");
    memory.push_back(start);
    const auto world_rank = static_cast<uint32_t>(members[rank]);
    void* const place = members[rank] == layer.rank
                            ? static_cast<void*>(own.words())
                            : board.writable_at(world_rank, places[rank], WindowWords::bytes_of(members.size()));
    if (places[rank] == 0 || place == nullptr) return is_told("a rank has no shared memory left");
    words.push_back(static_cast<WindowWords::Words*>(place));
  }
  const auto is_alive = [ranks = members](size_t rank) {
    return ranks[rank] == layer.rank || layer.pipeline.board().is_alive(static_cast<uint32_t>(ranks[rank]));
  };
  return std::make_unique<RmaMappedWay>(std::move(memory), std::move(own),
                                        WindowMeeting(own_place, std::move(words), is_alive));
}

// Null: some rank could not make its part.
std::unique_ptr<RmaWay> RmaWindows::nic_way(Comm comm, const Members& members, void* base, int64_t bytes) {
  NicFacts own;
  auto word = std::make_unique<RmaNicWay::Word>();
  spl_rma_window* window = nullptr;
  {
    const Lock lock;
    const std::vector<ptl_rank_t> group(members.begin(), members.end());
    own.is_good =
        nic_.spl_rma_window_part(nic_.memory(), group.data(), static_cast<uint32_t>(group.size()), base,
                                 static_cast<uint64_t>(bytes), SPL_RMA_ALL, 0, &window, &own.part) == PTL_OK &&
        nic_.spl_rma_register(nic_.memory(), &word->value, sizeof word->value, 0, &word->memory) == PTL_OK &&
        nic_.spl_rma_export(word->memory, SPL_RMA_ATOMIC, &own.word) == PTL_OK;
  }
  const std::vector<NicFacts> facts = all_facts(own, comm, members.size());
  const Lock lock;
  std::vector<spl_rma_part_text> texts;
  for (const NicFacts& each : facts) texts.push_back(each.part);
  bool is_good = !facts.empty() && std::ranges::all_of(facts, [](const NicFacts& each) { return each.is_good == 1; }) &&
                 nic_.spl_rma_window_join(window, texts.data()) == PTL_OK;
  std::vector<RmaNicWay::Part> parts;
  for (size_t rank = 0; rank < members.size() && is_good; ++rank) {
    RmaNicWay::Part& part = parts.emplace_back();
    part.rank = static_cast<uint32_t>(members[rank]);
    part.key = nic_.spl_rma_window_key(window, part.rank);
    is_good = nic_.spl_rma_import(nic_.memory(), &facts[rank].word, &part.word) == PTL_OK;
  }
  if (is_good) return std::make_unique<RmaNicWay>(nic_, window, std::move(parts), std::move(word));
  for (const RmaNicWay::Part& part : parts) {
    if (part.word != nullptr) nic_.spl_rma_forget(part.word);
  }
  if (word->memory != nullptr) nic_.spl_rma_deregister(word->memory);
  if (window != nullptr) nic_.spl_rma_window_drop(window);
  return nullptr;
}

RmaWindow* RmaWindows::find(Win handle) {
  const Lock lock;
  const uint64_t key = key_of(handle);
  if (latest.window != nullptr && latest.key == key) return latest.window;
  std::unique_ptr<RmaWindow>* const found = windows_.find(key);
  if (found == nullptr) return nullptr;
  latest = {key, found->get()};
  return latest.window;
}

int RmaWindows::free(RmaWindow& window) {
  const int code = window.close();
  if (code == error_rma_sync)
    return code;  // an epoch is open: the window stays, and other ranks may write to its words
  const Lock lock;
  latest = {};
  windows_.erase(key_of(window.handle()));
  return code;
}

std::string RmaWindows::as_json() const {
  uint64_t left = 0;
  std::string why_left;
  for (const auto& [why, windows] : windows_left_) {
    why_left += text(why_left.empty() ? "" : ", ", "\"", why, "\": ", windows);
    left += windows;
  }
  return text("{\"asked\": ", layer.settings.rma || windows_made_ + left > 0 ? "true" : "false",
              ", \"on\": ", why_off_.empty() ? "true" : "false", ", \"why_off\": \"", why_off_,
              "\", \"windows\": ", windows_made_, ", \"mapped\": ", windows_mapped_, ", \"left\": ", left,
              ", \"why_left\": {", why_left, "}", ", \"puts\": ", counts_.puts, ", \"gets\": ", counts_.gets,
              ", \"accumulates\": ", counts_.accumulates, ", \"fetches\": ", counts_.fetches,
              ", \"updates\": ", counts_.updates, ", \"bytes\": ", counts_.bytes, "}");
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
