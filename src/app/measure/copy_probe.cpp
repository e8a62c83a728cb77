#include "app/measure/copy_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>

#include "app/measure/line.hpp"
#include "base/random.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

constexpr double sample_ns = 40'000;
constexpr int64_t guard_bytes = 64;

int64_t whole_lines(int64_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

// Bytes that begin at a cache line.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes)
      : store_(static_cast<size_t>(bytes + line_bytes)), bytes_(static_cast<size_t>(bytes)) {}

  [[nodiscard]] std::span<std::byte> span() {
    void* first = store_.data();
    size_t room = store_.size();
    std::align(line_bytes, bytes_, first, room);
    return {static_cast<std::byte*>(first), bytes_};
  }

 private:
  std::vector<std::byte> store_;
  size_t bytes_;
};

// The memory that a message may touch, with guards. The buffer address as given to MPI begins a line.
struct Arena {
  explicit Arena(const layout::oracle::Reach& reach)
      : base(whole_lines(std::max<int64_t>(0, -reach.first)) + guard_bytes),
        memory(base + std::max<int64_t>(0, reach.last) + guard_bytes) {}

  int64_t base;
  AlignedBytes memory;
  [[nodiscard]] std::byte* address() { return memory.span().data() + base; }
};

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

void fill(std::span<std::byte> bytes, uint64_t seed) {
  Random random(seed, "app.copy_probe");
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

double call_ns(int64_t calls, const auto& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) (void)call();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / static_cast<double>(calls);
}

// Makes one call and compares what it did with the type map.
Status compare(const layout::Type& type, int64_t count, Movement movement, Arena& array, Arena& copy_target,
               std::span<const std::byte> packed, const auto& call) {
  std::vector<std::byte> expected(packed.size());
  const bool writes_packed = movement == Movement::pack;
  if (movement != Movement::unpack) SPL_TRY(layout::oracle::pack(type, count, array.address(), expected));
  Arena& written = movement == Movement::copy ? copy_target : array;
  const std::vector<std::byte> before = copy_of(written.memory.span());
  SPL_TRY(call());
  if (writes_packed) {
    if (copy_of(packed) != expected) return fail(Code::mismatch, "the packed bytes differ from the oracle's");
  } else {
    const std::vector<std::byte> message = movement == Movement::copy ? expected : copy_of(packed);
    SPL_TRY(layout::oracle::compare(type, count, message, written.memory.span(), written.base, before));
  }
  return {};
}

}  // namespace

Result<std::vector<double>> probe_copy(const std::string& type_text, int64_t count, Movement movement, int samples,
                                       bool is_checked) {
  if (samples < 1) return fail(Code::invalid, "samples is ", samples, ", it must be at least 1");
  SPL_ASSIGN(const layout::Type type, layout::parse(type_text));
  SPL_ASSIGN(const layout::Committed layout, layout::Committed::commit(type));
  SPL_ASSIGN(const int64_t bytes, layout.packed_bytes(count));
  SPL_ASSIGN(const layout::oracle::Reach reach, layout.reach(count));
  if (bytes == 0) return fail(Code::unsupported, "a message of zero bytes takes no time");
  Arena array(reach);
  Arena copy_target(movement == Movement::copy ? reach : layout::oracle::Reach{});
  AlignedBytes packed_bytes(bytes);
  const std::span<std::byte> packed = packed_bytes.span();
  if (is_checked) {
    fill(array.memory.span(), 1);
    fill(copy_target.memory.span(), 2);
    fill(packed, 3);
  }
  const layout::PackedRange whole_message{0, bytes};
  const auto call = [&]() -> Status {
    switch (movement) {
      case Movement::pack: return layout.pack(count, array.address(), whole_message, packed);
      case Movement::unpack: return layout.unpack(count, array.address(), whole_message, packed);
      case Movement::copy: break;
    }
    return layout::copy({&layout, count, array.address()}, {&layout, count, copy_target.address()});
  };

  if (is_checked) {
    SPL_TRY(compare(type, count, movement, array, copy_target, packed, call));
  } else {
    SPL_TRY(call());
  }
  const auto calls = std::max<int64_t>(1, static_cast<int64_t>(sample_ns / std::max(1.0, call_ns(1, call))));
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(call_ns(calls, call));
  return times;
}

}  // namespace spinloom::app
