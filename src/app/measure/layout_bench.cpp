#include "app/measure/layout_bench.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <span>

#include "app/measure/line.hpp"
#include "app/measure/mpi_program.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

constexpr int64_t guard_bytes = 256;
constexpr int64_t warmed_bytes_max = 4 << 20;  // mpi_pack.c has this; larger messages do not stay in the caches anyway

// The pattern and the hash are those of mpi_pack.c.
uint64_t pattern(uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  return word ^ (word >> 27);
}

void fill(std::span<std::byte> bytes, uint64_t seed) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = pattern(seed + at / sizeof(uint64_t));
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

uint64_t hash_of(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

constexpr uint64_t source_seed = 0;
constexpr uint64_t target_seed = uint64_t{1} << 40;
constexpr uint64_t guarded_seed = target_seed - guard_bytes / sizeof(uint64_t);  // begins in the guard
constexpr uint64_t packed_seed = uint64_t{1} << 41;

// Allocates memory that begins at a cache line, with guards before and behind.
std::byte* allocate(int64_t bytes) {
  const auto whole = static_cast<size_t>((bytes + 2 * guard_bytes + line_bytes - 1) / line_bytes * line_bytes);
  return static_cast<std::byte*>(std::aligned_alloc(line_bytes, whole)) + guard_bytes;
}

// Counts the lines of memory that hold a byte of the type, if its first byte begins a line.
int64_t lines_of(const layout::Type& type) {
  std::vector<bool> touched(static_cast<size_t>(type.true_extent() / line_bytes + 2));
  layout::oracle::for_each_block(type, 1, [&](const layout::oracle::Block& block) {
    const int64_t first = block.offset - type.true_lb();
    for (int64_t line = first / line_bytes; line <= (first + block.bytes - 1) / line_bytes; ++line) {
      touched[static_cast<size_t>(line)] = true;
    }
  });
  return std::count(touched.begin(), touched.end(), true);
}

}  // namespace

Result<BenchOperation> bench_operation_named(const std::string& name) {
  if (name == "pack") return BenchOperation::pack;
  if (name == "unpack") return BenchOperation::unpack;
  if (name == "copy") return BenchOperation::copy;
  return fail(Code::invalid, "there is no operation '", name, "': pack, unpack or copy");
}

Result<BenchWay> bench_way_named(const std::string& name) {
  if (name == "ours") return BenchWay::ours;
  if (name == "hand-elements") return BenchWay::hand_elements;
  if (name == "hand-blocks") return BenchWay::hand_blocks;
  if (name == "hand-structs") return BenchWay::hand_structs;
  if (name == "memcpy") return BenchWay::memory;
  return fail(Code::invalid, "there is no way '", name, "': ours, hand-elements, hand-blocks, hand-structs or memcpy");
}

void LayoutBench::GuardedFree::operator()(std::byte* bytes) const { std::free(bytes - guard_bytes); }

Result<LayoutBench::Side> LayoutBench::side_of(const std::string& type_text) {
  SPL_ASSIGN(layout::Type type, layout::parse(type_text));
  SPL_ASSIGN(layout::Committed committed, layout::Committed::commit(type));
  if (type.size() == 0) return fail(Code::unsupported, "a type of zero bytes takes no time to copy");
  auto plan = plan_of(committed.blob());
  Side side{type, std::move(committed), plan ? std::move(*plan) : HandPlan{}, lines_of(type)};
  return side;
}

Result<LayoutBench> LayoutBench::create(const std::string& type, const std::string& to, const std::string& hand_library,
                                        const std::string& struct_loop) {
  SPL_ASSIGN(Side source, side_of(type));
  SPL_ASSIGN(Side target, side_of(to));
  if (source.type.size() != target.type.size()) {
    return fail(Code::invalid, "a copy from ", source.type.size(), " bytes to ", target.type.size(), " bytes");
  }
  LayoutBench bench(std::move(source), std::move(target));
  SPL_TRY(bench.open_hand(hand_library, struct_loop));
  if (auto plans = match(bench.from_.plan, bench.to_.plan); plans) bench.matched_plans_ = std::move(*plans);
  bench.block_bytes_min_ = layout::oracle::summarise(bench.from_.type, 1).bytes_min;
  bench.source_.reset(allocate(bench.from_.type.true_extent()));
  bench.target_.reset(allocate(bench.to_.type.true_extent()));
  bench.packed_.reset(allocate(bench.bytes()));
  bench.memcpy_target_.reset(allocate(bench.bytes()));
  bench.fill_sources();
  fill({bench.target_.get(), static_cast<size_t>(bench.to_.type.true_extent())}, target_seed);
  fill({bench.memcpy_target_.get(), static_cast<size_t>(bench.bytes())}, packed_seed);
  return bench;
}

Status LayoutBench::open_hand(const std::string& library, const std::string& struct_loop) {
  void* const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open as long as the loops are used
  if (loaded == nullptr) return fail(Code::environment, "the hand loops cannot be loaded: ", dlerror());
  const auto find = [&](auto& function, const std::string& name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name.c_str()));
    return function != nullptr;
  };
  bool complete = find(element_loops_.pack, "hand_pack") && find(element_loops_.unpack, "hand_unpack") &&
                  find(element_loops_.copy, "hand_copy") && find(block_loops_.pack, "hand_pack_blocks") &&
                  find(block_loops_.unpack, "hand_unpack_blocks") && find(block_loops_.copy, "hand_copy_blocks");
  if (!struct_loop.empty()) {
    complete = complete && find(struct_loops_.pack, "hand_pack_" + struct_loop) &&
               find(struct_loops_.unpack, "hand_unpack_" + struct_loop) &&
               find(struct_loops_.copy, "hand_copy_" + struct_loop);
  }
  if (!complete) return fail(Code::environment, library, " lacks a loop: ", dlerror());
  return {};
}

bool LayoutBench::has(BenchOperation operation, BenchWay way) const {
  if (way == BenchWay::ours || way == BenchWay::memory) return true;
  if (way == BenchWay::hand_structs) return struct_loops_.pack != nullptr;
  return operation == BenchOperation::copy ? !matched_plans_.first.parts.empty() : !from_.plan.parts.empty();
}

const LayoutBench::Side& LayoutBench::written_side(BenchOperation operation) const {
  return operation == BenchOperation::copy ? to_ : from_;
}

Status LayoutBench::run(BenchOperation operation, BenchWay way, std::byte* source, std::byte* packed,
                        std::byte* target) const {
  const auto size = static_cast<size_t>(bytes());
  if (way == BenchWay::ours) {
    switch (operation) {
      case BenchOperation::pack:
        if (from_.layout.pack_at_once(1, source, packed)) return {};
        return from_.layout.pack(1, source, {0, bytes()}, {packed, size});
      case BenchOperation::unpack:
        if (from_.layout.unpack_at_once(1, source, packed)) return {};
        return from_.layout.unpack(1, source, {0, bytes()}, {packed, size});
      case BenchOperation::copy: return layout::copy({&from_.layout, 1, source}, {&to_.layout, 1, target});
    }
  }
  const HandLoops& hand = way == BenchWay::hand_elements ? element_loops_
                          : way == BenchWay::hand_blocks ? block_loops_
                                                         : struct_loops_;
  const std::vector<HandPart>& parts = from_.plan.parts;
  const auto count = static_cast<int64_t>(parts.size());
  switch (operation) {
    case BenchOperation::pack: hand.pack(parts.data(), count, packed, source); break;
    case BenchOperation::unpack: hand.unpack(parts.data(), count, packed, source); break;
    case BenchOperation::copy:
      hand.copy(matched_plans_.second.parts.data(), target, matched_plans_.first.parts.data(), source,
                static_cast<int64_t>(matched_plans_.first.parts.size()));  // the loops over structs need no parts
      break;
  }
  return {};
}

Status LayoutBench::check(BenchOperation operation, BenchWay way) {
  if (way == BenchWay::memory) return {};
  SPL_TRY(expect(operation));
  const bool is_pack = operation == BenchOperation::pack;
  const Side& side = written_side(operation);
  const int64_t extent = side.type.true_extent();
  std::byte* const target = operation == BenchOperation::copy ? target_.get() : source_.get();
  if (is_pack) {
    fill({packed_.get(), static_cast<size_t>(bytes())}, packed_seed);
  } else {
    fill({target - guard_bytes, static_cast<size_t>(extent + 2 * guard_bytes)}, guarded_seed);
  }
  SPL_TRY(run(operation, way, source_.get() - from_.type.true_lb(), packed_.get(), target_.get() - to_.type.true_lb()));
  const bool is_equal = is_pack ? std::memcmp(packed_.get(), expected_.data(), expected_.size()) == 0
                                : std::memcmp(target - guard_bytes, expected_.data(), expected_.size()) == 0;
  if (operation == BenchOperation::unpack) fill_sources();
  if (!is_equal) return fail(Code::mismatch, "the bytes differ from those of the oracle");
  return {};
}

// Prepares the expected result by the oracle: packed bytes, or a whole destination with its guards.
Status LayoutBench::expect(BenchOperation operation) {
  if (expected_operation_ == operation) return {};
  fill_sources();
  std::vector<std::byte> packed(static_cast<size_t>(bytes()));
  fill(packed, packed_seed);
  if (operation != BenchOperation::unpack) {
    SPL_TRY(layout::oracle::pack(from_.type, 1, source_.get() - from_.type.true_lb(), packed));
  }
  if (operation == BenchOperation::pack) {
    expected_ = std::move(packed);
  } else {
    const Side& side = written_side(operation);
    expected_ = std::vector<std::byte>(static_cast<size_t>(side.type.true_extent() + 2 * guard_bytes));
    fill(expected_, guarded_seed);
    SPL_TRY(layout::oracle::unpack(side.type, 1, packed, expected_.data() + guard_bytes - side.type.true_lb()));
  }
  expected_operation_ = operation;
  return {};
}

void LayoutBench::fill_sources() {
  fill({source_.get(), static_cast<size_t>(from_.type.true_extent())}, source_seed);
  fill({packed_.get(), static_cast<size_t>(bytes())}, packed_seed);
}

Result<std::vector<double>> LayoutBench::time(BenchOperation operation, BenchWay way, int repetitions, int64_t calls) {
  if (!has(operation, way)) return fail(Code::unsupported, "this row has no such loop");
  std::byte* const source = source_.get() - from_.type.true_lb();
  std::byte* const target = target_.get() - to_.type.true_lb();
  const auto run_once = [&]() -> Status {
    if (way == BenchWay::memory) {
      std::memcpy(memcpy_target_.get(), packed_.get(), static_cast<size_t>(bytes()));
    } else {
      SPL_TRY(run(operation, way, source, packed_.get(), target));
    }
    asm volatile("" ::"r"(packed_.get()), "r"(memcpy_target_.get()) : "memory");
    return {};
  };
  std::vector<double> times;
  // One call before the timing, because earlier work on this core left its own lines in the caches.
  if (bytes() <= warmed_bytes_max) SPL_TRY(run_once());
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t call = 0; call < calls; ++call) SPL_TRY(run_once());
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / static_cast<double>(calls));
  }
  return times;
}

Result<uint64_t> LayoutBench::hash(BenchOperation operation) {
  SPL_TRY(expect(operation));
  const std::span<const std::byte> expected(expected_);
  if (operation == BenchOperation::pack) return hash_of(expected);
  return hash_of(expected.subspan(guard_bytes, expected.size() - 2 * guard_bytes));
}

Status LayoutBench::write_program(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  for (const Side* side : {&from_, &to_}) {
    SPL_ASSIGN(const std::vector<int64_t> program, mpi_program(side->type));
    const int64_t head[] = {side->type.size(), side->type.true_lb(), side->type.true_extent(),
                            static_cast<int64_t>(program.size())};
    file.write(reinterpret_cast<const char*>(head), sizeof head);
    file.write(reinterpret_cast<const char*>(program.data()),
               static_cast<std::streamsize>(program.size() * sizeof(int64_t)));
  }
  file.flush();
  if (!file) return fail(Code::environment, path, " cannot be written");
  return {};
}

int64_t LayoutBench::lines(BenchOperation operation) const {
  return from_.lines + (operation == BenchOperation::copy ? to_.lines : (bytes() + line_bytes - 1) / line_bytes);
}

std::string LayoutBench::kernel(BenchOperation operation) const {
  const std::string from = layout::kernel_name(from_.layout.blob());
  const std::string to = layout::kernel_name(to_.layout.blob());
  return operation == BenchOperation::copy && from != to ? from + ", " + to : from;
}

}  // namespace spinloom::app
