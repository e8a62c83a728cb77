// Pair::connect(): how two processes find the way between them.
#include "memory/gpu/pair.hpp"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "memory/gpu/device_state.hpp"
#include "memory/gpu/pair_state.hpp"

namespace spinloom::gpu {
namespace {

constexpr std::string_view pair_ways[] = {"auto", "ipc", "staged", "packed"};
constexpr uint32_t card_mark = 0x31475053;  // "SPG1"
constexpr size_t probe_words = 8;

// The data of a process that it sends to the other process.
struct PairCard {
  uint32_t mark = card_mark;
  uint32_t forced_way_index = 0;  // a place in pair_ways
  uint64_t token = 0;
  uint64_t piece_bytes = 0;
  uint64_t pieces = 0;
  uint64_t can_export = 0;
  PairProcess process;
  DeviceUuid device{};
  PeerHandle probe;
  char trouble[256] = {};  // the reason why it cannot export
};

// A process tells the other whether it could use what the other offered.
struct PairVerdict {
  uint32_t mark = card_mark;
  uint32_t ok = 0;
  char message[512] = {};  // the trouble, or the name of what was made

  static PairVerdict of(const Status& status, std::string_view name = {}) {
    PairVerdict verdict;
    verdict.ok = status.ok() ? 1 : 0;
    const std::string_view message = status.ok() ? name : std::string_view(status.error().message);
    message.copy(verdict.message, sizeof verdict.message - 1);
    return verdict;
  }
  [[nodiscard]] std::string text() const { return {message, strnlen(message, sizeof message)}; }
};

// Sends `ours` and waits for what the other process sends.
template <class T>
Result<T> exchange(PairChannel& channel, const T& ours, int patience_ms) {
  SPL_TRY(channel.send(std::as_bytes(std::span(&ours, 1))));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (true) {
    SPL_ASSIGN(const std::optional<PairMessage> came, channel.receive(50));
    if (came) {
      T theirs;
      if (came->size() != sizeof theirs) {
        return fail(Code::invalid, "the other process of the pair is of another version of Spinloom");
      }
      std::memcpy(static_cast<void*>(&theirs), came->data(), sizeof theirs);
      if (theirs.mark != card_mark) {
        return fail(Code::invalid, "the other process of the pair is of another version of Spinloom");
      }
      return theirs;
    }
    if (std::chrono::steady_clock::now() > end) {
      return fail(Code::stalled, "the other process of the pair has not come within ", patience_ms,
                  " ms: both processes must connect");
    }
  }
}

Result<uint32_t> forced_way(const PairOptions& options) {
  std::string wanted = options.way;
  if (wanted.empty()) {
    const char* const variable =
        std::getenv("SPINLOOM_GPU_PEER");  // NOLINT(concurrency-mt-unsafe): nobody sets it here
    wanted = variable == nullptr || *variable == 0 ? "auto" : variable;
  }
  const auto* const way = std::ranges::find(pair_ways, wanted);
  if (way == std::end(pair_ways)) {
    return fail(Code::invalid, "SPINLOOM_GPU_PEER is ", wanted, ": auto, ipc, staged or packed");
  }
  return static_cast<uint32_t>(way - std::begin(pair_ways));
}

// Returns the contents of a probe's memory.
std::array<uint64_t, probe_words> probe_of(uint64_t token) {
  std::array<uint64_t, probe_words> words{};
  for (uint64_t i = 0; i < probe_words; ++i) words[i] = (token + i) * 0x9E3779B97F4A7C15U;
  return words;
}

Status export_probe(const Device& device, PairCard& card, Memory& memory) {
  const auto words = probe_of(card.token);
  SPL_ASSIGN(memory, Memory::device(device, sizeof words));
  SPL_TRY(copy_bytes(device, memory.data(), words.data(), sizeof words, nullptr));
  SPL_TRY(device.synchronise());
  SPL_ASSIGN(card.probe, export_memory(memory.data()));
  card.can_export = 1;
  return {};
}

Status read_probe(const Device& device, const PairCard& ours, const PairCard& theirs) {
  if (!ours.process.same_machine(theirs.process)) return fail(Code::environment, "the processes run on two machines");
  for (const PairCard* const card : {&ours, &theirs}) {
    if (card->can_export == 0) {
      return fail(Code::environment, "a process cannot give its memory away: ",
                  std::string(card->trouble, strnlen(card->trouble, sizeof card->trouble)));
    }
  }
  SPL_ASSIGN(const PeerMemory probe, PeerMemory::open_uncached(device, theirs.probe));
  std::array<uint64_t, probe_words> words{};
  SPL_TRY(copy_bytes(device, words.data(), probe.data(), sizeof words, nullptr));
  SPL_TRY(device.synchronise());
  if (words != probe_of(theirs.token)) {
    return fail(Code::environment, "what is mapped by CUDA IPC is not the other process's memory");
  }
  return {};
}

Result<PairCard> card_of(const Device& device, const PairOptions& options, Memory& probe) {
  PairCard card;
  SPL_ASSIGN(card.forced_way_index, forced_way(options));
  if (options.pieces < 2 || options.piece_bytes < 64 || options.piece_bytes % 64 != 0) {
    return fail(Code::invalid, options.pieces, " pieces of ", options.piece_bytes,
                " bytes: a pair takes two or more, of a multiple of 64 bytes");
  }
  card.piece_bytes = options.piece_bytes;
  card.pieces = static_cast<uint64_t>(options.pieces);
  if (getrandom(&card.token, sizeof card.token, 0) != static_cast<ssize_t>(sizeof card.token)) {
    return fail(Code::environment, "the kernel gives no random numbers");
  }
  card.process = PairProcess::current();
  const Device::State& state = device.state();
  int number = 0;
  SPL_CUDA(*state.driver, state.driver->device_get(&number, state.ordinal), "to open device ", state.ordinal);
  SPL_CUDA(*state.driver, state.driver->device_uuid(&card.device, number), "to ask device ", state.ordinal,
           " for its UUID");
  if (const Status exported = export_probe(device, card, probe); !exported) {
    card.can_export = 0;
    std::strncpy(card.trouble, exported.error().message.c_str(), sizeof card.trouble - 1);
  }
  return card;
}

// Makes or joins the pinned memory that both processes map: the process with the lower token makes it. Returns what
// went wrong; empty if both have it.
Result<std::string> share_ring(Pair::State& pair, const PairCard& ours, const PairCard& theirs) {
  if (!ours.process.same_machine(theirs.process)) return std::string("the processes run on two machines");
  const bool is_maker = ours.token < theirs.token;
  pair.lane_out = is_maker ? 0 : 1;
  pair.options.piece_bytes = std::min(ours.piece_bytes, theirs.piece_bytes);
  pair.options.pieces = static_cast<int>(std::min(ours.pieces, theirs.pieces));
  const PairRingShape shape{pair.options.piece_bytes, static_cast<uint32_t>(pair.options.pieces)};
  const uint64_t token = std::min(ours.token, theirs.token);
  Status made;
  if (is_maker) {
    auto ring = PairRing::make(pair.device, shape, token);
    if (ring) {
      pair.ring = std::move(*ring);
    } else {
      made = ring.error();
    }
  }
  // The other process joins the shared memory by its name, and answers whether it could.
  SPL_ASSIGN(const PairVerdict first,
             exchange(*pair.channel, PairVerdict::of(made, pair.ring.name()), pair.options.patience_ms));
  Status joined = made;
  if (!is_maker) {
    joined = first.ok != 0 ? Status{} : Status(Error{Code::environment, first.text()});
    if (joined) {
      auto ring = PairRing::join(pair.device, shape, token, first.text());
      if (ring) {
        pair.ring = std::move(*ring);
      } else {
        joined = ring.error();
      }
    }
  }
  SPL_ASSIGN(const PairVerdict second, exchange(*pair.channel, PairVerdict::of(joined), pair.options.patience_ms));
  pair.ring.unlink();
  if (joined && second.ok != 0) return std::string();
  pair.ring = PairRing();
  return joined ? second.text() : joined.error().message;
}

Error cannot(std::string_view way, std::string_view why) {
  return fail(Code::environment, "SPINLOOM_GPU_PEER is ", way, ", but this pair cannot: ", why);
}

}  // namespace

const char* name_of(PairWay way) {
  switch (way) {
    case PairWay::ipc: return "ipc";
    case PairWay::staged: return "staged";
    case PairWay::packed: return "packed";
  }
  return "unknown";
}

Result<Pair> Pair::connect(const Device& device, std::shared_ptr<PairChannel> channel, const PairOptions& options) {
  auto pair = std::make_shared<State>(device, std::move(channel), options);
  Memory probe;
  SPL_ASSIGN(const PairCard ours, card_of(device, options, probe));
  SPL_ASSIGN(const PairCard theirs, exchange(*pair->channel, ours, options.patience_ms));
  pair->watch = PairWatch(theirs.process);
  if (theirs.forced_way_index >= std::size(pair_ways) || theirs.pieces < 2 || theirs.pieces > 1024 ||
      theirs.piece_bytes < 64) {
    return fail(Code::invalid, "the other process of the pair tells nonsense of itself");
  }
  if (ours.forced_way_index != 0 && theirs.forced_way_index != 0 && ours.forced_way_index != theirs.forced_way_index) {
    return fail(Code::invalid, "SPINLOOM_GPU_PEER is ", pair_ways[ours.forced_way_index], " here and ",
                pair_ways[theirs.forced_way_index], " at the other process of the pair");
  }
  const std::string_view forced_way = pair_ways[std::max(ours.forced_way_index, theirs.forced_way_index)];
  pair->is_forced = forced_way != "auto";
  std::string why;
  if (forced_way == "auto" || forced_way == "ipc") {
    const Status read = read_probe(device, ours, theirs);
    SPL_ASSIGN(const PairVerdict verdict, exchange(*pair->channel, PairVerdict::of(read), options.patience_ms));
    if (read && verdict.ok != 0) {
      pair->way = PairWay::ipc;
      const bool same = std::memcmp(&ours.device, &theirs.device, sizeof ours.device) == 0;
      pair->reason = text("each process has read the other's memory by CUDA IPC; both use ",
                          same ? "one device, " : "a device of their own, here ", device.name());
      return Pair(std::move(pair));
    }
    why = read ? "the other process: " + verdict.text() : read.error().message;
    if (forced_way == "ipc") return cannot(forced_way, why);
    why = "CUDA IPC does not work between them (" + why + ")";
  } else {
    why = text("SPINLOOM_GPU_PEER is ", forced_way);
  }
  if (forced_way != "packed") {
    SPL_ASSIGN(const std::string trouble, share_ring(*pair, ours, theirs));
    if (trouble.empty()) {
      pair->way = PairWay::staged;
      pair->reason = "both processes have the same pinned memory; " + why;
      return Pair(std::move(pair));
    }
    if (forced_way == "staged") return cannot(forced_way, trouble);
    why += "; they share no pinned memory (" + trouble + ")";
  }
  pair->way = PairWay::packed;
  pair->reason = "packed bytes go through the channel; " + why;
  return Pair(std::move(pair));
}

PairWay Pair::way() const { return state_->way; }
const std::string& Pair::reason() const { return state_->reason; }
const Device& Pair::device() const { return state_->device; }

}  // namespace spinloom::gpu
