#include "live/node/hpu_pool.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "live/node/futex.hpp"

namespace spinloom::live {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds shut_down_wait{1};

// Waits until the count is no longer `seen`; returns the new count.
uint32_t await_change(const std::atomic<uint32_t>& count, uint32_t seen, std::chrono::nanoseconds spin) {
  uint32_t now = count.load(std::memory_order_acquire);
  if (now != seen) return now;
  if (spin.count() > 0) {
    const auto until = steady_clock::now() + spin;
    do {
      for (int i = 0; i < 8; ++i) {
        now = count.load(std::memory_order_acquire);
        if (now != seen) return now;
        relax();
      }
    } while (steady_clock::now() < until);
  }
  while ((now = count.load(std::memory_order_acquire)) == seen) count.wait(seen, std::memory_order_acquire);
  return now;
}

void announce(std::atomic<uint32_t>& count) {
  count.fetch_add(1, std::memory_order_release);
  count.notify_one();
}

}  // namespace

struct HpuPool::Shared {
  HpuPoolOptions options;
  std::shared_ptr<spin::HandlerRunner> runner;
  HandlerOwner* owner = nullptr;
  std::vector<std::unique_ptr<Slot>> slots;
  std::atomic<bool> stopping{false};
  std::mutex lock;
  std::condition_variable thread_ended;
  uint32_t running_threads = 0;  // guarded by lock
};

// One HPU. It has room for two handlers, because one may be posted while the one before is about to end.
struct alignas(64) HpuPool::Slot final : spin::HandlerCalls {
  struct Job {
    spin::HandlerFrame frame;
    spin::Context context;
  };

  explicit Slot(Shared& pool) : shared(pool) {}
  std::optional<uint32_t> call(const spin::HandlerCall& given) override;
  [[nodiscard]] bool given_up() const override { return shared.stopping.load(std::memory_order_relaxed); }
  [[nodiscard]] bool budget_used() const override { return is_budget_used; }
  void work();

  Shared& shared;
  Job jobs[2];
  std::atomic<uint32_t> posted{0};
  std::atomic<uint32_t> answers{0};
  uint32_t answer = 0;
  spin::HerId her;  // used by the thread: the HER of the running handler
  bool is_budget_used = false;  // used by the thread: that handler's budget is used up
  std::atomic<bool> has_ended{false};
};

std::optional<uint32_t> HpuPool::Slot::call(const spin::HandlerCall& given) {
  const uint32_t seen = answers.load(std::memory_order_relaxed);
  if (given_up()) return std::nullopt;
  const HandlerOwner::CallResult result = shared.owner->call(her, given);
  if (!result.goes_on) return std::nullopt;
  is_budget_used = is_budget_used || result.budget_used;
  await_change(answers, seen, shared.options.spin);
  if (given_up()) return std::nullopt;
  return answer;
}

void HpuPool::Slot::work() {
  for (uint32_t done = 0;; ++done) {
    await_change(posted, done, shared.options.spin);
    if (given_up()) break;
    Job& job = jobs[done % 2];
    her = job.frame.her.id;
    is_budget_used = false;
    const spin::HandlerOutcome outcome = shared.runner->run(job.frame, *this);
    if (given_up()) break;
    shared.owner->ended(her, outcome);
  }
}

Result<std::unique_ptr<HpuPool>> HpuPool::create(const HpuPoolOptions& options,
                                                 std::shared_ptr<spin::HandlerRunner> runner, HandlerOwner& owner) {
  if (options.hpus == 0 || options.hpus > limits::hpu_count_max) {
    return fail(Code::invalid, options.hpus, " HPU threads; 1 to ", limits::hpu_count_max, " are possible");
  }
  auto shared = std::make_shared<Shared>();
  shared->options = options;
  shared->runner = std::move(runner);
  shared->owner = &owner;
  for (uint32_t hpu = 0; hpu < options.hpus; ++hpu) shared->slots.push_back(std::make_unique<Slot>(*shared));
  std::unique_ptr<HpuPool> pool(new HpuPool(shared));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // threads inherit the mask
  Status made;
  for (uint32_t hpu = 0; hpu < options.hpus && made.ok(); ++hpu) {
    try {
      const std::lock_guard lock(shared->lock);
      pool->threads_.emplace_back([shared, hpu] {
        pthread_setname_np(pthread_self(), text("spinloom-hpu", hpu).c_str());
        shared->slots[hpu]->work();
        const std::lock_guard counting(shared->lock);
        shared->slots[hpu]->has_ended = true;
        --shared->running_threads;
        shared->thread_ended.notify_all();
      });
      ++shared->running_threads;
    } catch (const std::system_error& error) {
      made = fail(Code::exhausted, "thread of HPU ", hpu, ": ", error.what());
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  SPL_TRY(made);
  return pool;
}

void HpuPool::start(const spin::HandlerFrame& frame) {
  const spin::Her& her = frame.her;
  SPL_ASSERT(her.hpu.value < shared_->slots.size(), "HPU ", her.hpu, " of ", shared_->slots.size());
  if (her.id.value >= slot_of_her_.size()) slot_of_her_.resize(her.id.value + 1);
  slot_of_her_[her.id.value] = her.hpu.value;
  Slot& slot = *shared_->slots[her.hpu.value];
  Slot::Job& job = slot.jobs[slot.posted.load(std::memory_order_relaxed) % 2];
  job.context = *frame.context;
  job.frame = frame;
  job.frame.context = &job.context;
  announce(slot.posted);
}

void HpuPool::resume(spin::HerId her, uint32_t value) {
  SPL_ASSERT(her.value < slot_of_her_.size(), "HER ", her, " was not started here");
  Slot& slot = *shared_->slots[slot_of_her_[her.value]];
  slot.answer = value;
  announce(slot.answers);
}

Status HpuPool::shut_down() {
  if (threads_.empty()) return {};
  shared_->stopping = true;
  for (const auto& slot : shared_->slots) {
    announce(slot->posted);
    announce(slot->answers);
  }
  std::string stuck;
  {
    std::unique_lock lock(shared_->lock);
    shared_->thread_ended.wait_for(lock, shut_down_wait, [this] { return shared_->running_threads == 0; });
  }
  for (size_t hpu = 0; hpu < threads_.size(); ++hpu) {
    if (shared_->slots[hpu]->has_ended) {
      threads_[hpu].join();
    } else {
      threads_[hpu].detach();
      stuck += text(stuck.empty() ? "" : ", ", hpu);
    }
  }
  threads_.clear();
  if (stuck.empty()) return {};
  return fail(Code::stalled, "handlers on HPU ", stuck, " did not come back within ", shut_down_wait.count(),
              " s after the NIC was shut down; their threads go on with the memory that they were given");
}

HpuPool::~HpuPool() {
  const Status down = shut_down();
  if (!down.ok()) log::emit(log::Level::error, "live", down.error().message);
}

}  // namespace spinloom::live
