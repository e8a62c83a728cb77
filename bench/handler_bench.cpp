// Host time of live handlers: from RunHandler to a handler's first call and to its end, natively and in the sandbox,
// on the caller's thread and on an HPU's. Prints medians of host nanoseconds, no modelled time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "live/node/handler_library.hpp"
#include "live/node/hpu_pool.hpp"

namespace {

using namespace spinloom;
using Clock = std::chrono::steady_clock;

int64_t ns_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

int64_t median(std::vector<int64_t>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Handler {
  spin::Context context;
  uint32_t calls = 0;
  spin::HandlerFrame frame;

  Handler(live::HandlerLibrary& library, const std::string& file) {
    context.image = library.load(file).value();
    context.payload_entry = library.entry(context.image, "payload_handler").value();
    frame.her.id = spin::HerId{0};
    frame.her.kind = spin::HandlerKind::payload;
    frame.her.hpu = spin::HpuId{0};
    frame.her.vhpu = spin::VhpuId{0};
    frame.context = &context;
    frame.constants = {reinterpret_cast<const uint8_t*>(&calls), sizeof calls};
  }
};

// Answers every call at once.
class Owner final : public spin::HandlerCalls, public live::HandlerOwner {
 public:
  std::optional<uint32_t> call(const spin::HandlerCall&) override {
    note_call();
    return 0;
  }
  CallResult call(spin::HerId her, const spin::HandlerCall&) override {
    note_call();
    pool->resume(her, 0);
    return {};
  }
  void ended(spin::HerId, const spin::HandlerOutcome&) override {
    end_ns = ns_since(begin);
    done.store(true, std::memory_order_release);
    done.notify_one();
  }
  void note_call() {
    if (first_call_ns == 0) first_call_ns = ns_since(begin);
  }
  void reset() {
    first_call_ns = 0;
    done.store(false, std::memory_order_relaxed);
    begin = Clock::now();
  }

  live::HpuPool* pool = nullptr;
  Clock::time_point begin;
  int64_t first_call_ns = 0;
  int64_t end_ns = 0;
  std::atomic<bool> done{false};
};

void measure_on_caller(live::HandlerLibrary& library, Handler& handler, const char* name) {
  constexpr int rounds = 20'000;
  Owner owner;
  std::vector<int64_t> firsts, ends;
  handler.calls = 1;
  for (int i = 0; i < rounds; ++i) {
    owner.reset();
    (void)library.run(handler.frame, owner);
    ends.push_back(ns_since(owner.begin));
    firsts.push_back(owner.first_call_ns);
  }
  constexpr uint32_t calls_per_handler = 1000;
  std::vector<int64_t> calls;
  handler.calls = calls_per_handler;
  for (int i = 0; i < 200; ++i) {
    owner.reset();
    owner.first_call_ns = 1;
    (void)library.run(handler.frame, owner);
    calls.push_back(ns_since(owner.begin));
  }
  const int64_t first = median(firsts);
  const int64_t end = median(ends);
  std::printf("%-8s  %-22s  %12lld  %8lld  %6.1f\n", name, "caller's thread", static_cast<long long>(first),
              static_cast<long long>(end), static_cast<double>(median(calls)) / calls_per_handler);
}

void measure_on_hpu_thread(const std::shared_ptr<live::HandlerLibrary>& library, Handler& handler, const char* name,
                           bool spinning) {
  Owner owner;
  live::HpuPoolOptions options;
  options.hpus = 1;
  options.spin = std::chrono::microseconds(spinning ? 1000 : 0);
  const auto created = live::HpuPool::create(options, library, owner);
  SPL_ASSERT(created.ok(), created.error().message);
  live::HpuPool* const pool = created->get();
  owner.pool = pool;
  handler.calls = 1;
  std::vector<int64_t> firsts, ends;
  for (int i = 0; i < (spinning ? 20'000 : 2'000); ++i) {
    // The pool's thread returns from ended(), and falls asleep if it does not spin.
    std::this_thread::sleep_for(std::chrono::microseconds(spinning ? 0 : 100));
    owner.reset();
    pool->start(handler.frame);
    while (!owner.done.load(std::memory_order_acquire)) {
      if (!spinning) owner.done.wait(false, std::memory_order_acquire);
    }
    firsts.push_back(owner.first_call_ns);
    ends.push_back(owner.end_ns);
  }
  std::printf("%-8s  %-22s  %12lld  %8lld\n", name, spinning ? "HPU thread, looking out" : "HPU thread, asleep",
              static_cast<long long>(median(firsts)), static_cast<long long>(median(ends)));
}

}  // namespace

int main() {
  auto library = live::HandlerLibrary::create().value();
  std::printf("host ns, medians     where                   to first call    to end  a call\n");
  for (const bool native : {true, false}) {
    Handler handler(*library, std::string(SPINLOOM_BENCH_HANDLERS) + (native ? "/one_call.so" : "/one_call.elf"));
    const char* const name = native ? "native" : "sandbox";
    measure_on_caller(*library, handler, name);
    measure_on_hpu_thread(library, handler, name, true);
    measure_on_hpu_thread(library, handler, name, false);
  }
  return 0;
}
