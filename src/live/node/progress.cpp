#include "live/node/progress.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

namespace spinloom::live {
namespace {

constexpr uint64_t stop_tag = UINT64_MAX;
constexpr int idle_polls = 1000;                 // the helper sleeps after this number of polls without news
constexpr int idle_polls_crowded = 16;           // the limit if ranks share processors

constexpr int tick_ms = 500;
constexpr int64_t ps_per_ms = 1'000'000'000;

constexpr Time polling_pause{500'000'000};  // 500 us without a call: the program is busy with other work

// Blocks signals while threads are started, which inherit that: signals are for the program's own threads. Faults are
// not blocked, because the threads look for memory that is not there (guarded_memory.hpp).
class SignalsOff {
 public:
  SignalsOff() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsOff() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<Progress>> Progress::start(Node& node, Readable readable, Tick tick) {
  const int events = epoll_create1(EPOLL_CLOEXEC);
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (events < 0 || stop < 0) return fail(Code::environment, "epoll or eventfd: ", error_text(errno));
  const SignalsOff quiet;
  std::unique_ptr<Progress> progress(new Progress(node, std::move(readable), std::move(tick), events, stop));
  try {
    progress->start_threads();
  } catch (const std::system_error& trouble) {
    return fail(Code::environment, "a thread that makes progress: ", error_text(trouble.code().value()));
  }
  return progress;
}

Progress::Progress(Node& node, Readable readable, Tick tick, int events, int stop)
    : node_(node),
      readable_(std::move(readable)),
      tick_(std::move(tick)),
      rings_seen_(Doorbell::rings(node.doorbell().value())),
      events_(events),
      stop_event_(stop) {
  watch(stop_event_, stop_tag);
  node_.doorbell().note_helper_sleeps();
}

void Progress::start_threads() {
  helper_ = std::thread([this] { run_helper(); });
  watcher_ = std::thread([this] { run_watcher(); });
}

Progress::~Progress() {
  stop();
  close(events_);
  close(stop_event_);
}

void Progress::stop() {
  stopping_ = true;
  node_.doorbell().wake_all();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_event_, &one, sizeof one);
  if (helper_.joinable()) helper_.join();
  if (watcher_.joinable()) watcher_.join();
}

void Progress::watch(int descriptor, uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = tag;
  if (epoll_ctl(events_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    epoll_ctl(events_, EPOLL_CTL_MOD, descriptor, &event);
  }
}

void Progress::note_call_end() {
  if (attentive_ || stopping_ || node_.somebody_waits()) return;
  const Time wanted = node_.was_polled() ? Time{} : node_.timer();
  if (wanted == Time::never() || wakes_at_ps_ <= wanted.ps + polling_pause.ps) return;
  attentive_ = true;
  node_.doorbell().wake_all();
}

void Progress::run_helper() {
  Doorbell& bell = node_.doorbell();
  while (!stopping_) {
    const Time until = next_look();
    const uint32_t value = bell.value();
    if (Doorbell::rings(value) == rings_seen_ && monotonic_now() < until) {
      bell.sleep(value, Doorbell::helper, until);
      continue;
    }
    const bool rung = Doorbell::rings(value) != rings_seen_;
    rings_seen_ = Doorbell::rings(value);
    drive_while_alone(rung);
  }
}

// Returns when the helper has to look next. A program that makes calls all the time looks after timers itself; the
// helper leaves it alone until it has made no call for a while.
Time Progress::next_look() {
  if (node_.consume_activity()) {
    attentive_ = true;
    return monotonic_now() + polling_pause;
  }
  const std::lock_guard inside(node_.lock());
  const Time next = next_look_inside();
  wakes_at_ps_ = next.ps;
  attentive_ = false;
  return next;
}

Time Progress::next_look_inside() {
  if (node_.somebody_waits()) return Time::never();
  if (!node_.doorbell().helper_sleeps()) node_.stop_polling();
  // The news count even if the helper listened before: it may have seen them then and left them to a caller that
  // looked only once.
  return node_.has_news() ? Time{} : node_.timer();
}

// Drives the node while no caller does. After a timer it stops if the first look finds nothing. Otherwise more rings
// are likely, so the helper goes on polling for a while.
void Progress::drive_while_alone(bool rung) {
  const std::lock_guard inside(node_.lock());
  Doorbell& bell = node_.doorbell();
  const int idle_max = node_.has_patience() ? idle_polls : idle_polls_crowded;
  if (!rung && (node_.somebody_waits() || node_.was_polled() || !node_.drive())) return;
  for (int idle = 0; !stopping_ && !node_.somebody_waits() && !node_.was_polled();) {
    if (idle == 0) bell.note_polling();
    if (node_.drive()) {
      idle = 0;
      node_.tell_sleepers();
    } else if (++idle > idle_max) {
      node_.stop_polling();
      if (!node_.has_news()) break;
      idle = 0;
    }
    if (node_.lock().has_waiters()) node_.lock().yield();
    relax();
  }
  node_.tell_sleepers();
}

void Progress::run_watcher() {
  Time next_tick{};
  while (!stopping_) {
    epoll_event event{};
    const int found = epoll_wait(events_, &event, 1, tick_ ? tick_ms : -1);
    if (found > 0 && event.data.u64 != stop_tag) readable_(event.data.u64);
    if (!tick_ || stopping_ || monotonic_now() < next_tick) continue;
    tick_();
    next_tick = monotonic_now() + Time{tick_ms * ps_per_ms};
  }
}

}  // namespace spinloom::live
