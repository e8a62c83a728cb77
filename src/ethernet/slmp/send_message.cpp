#include "ethernet/slmp/send_message.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ethernet/slmp/udp_port.hpp"

namespace spinloom::slmp {
namespace {

constexpr Time original_sleep{100'000'000};  // the time that FPsPIN's library sleeps when there is nothing to do
constexpr Time progress_interval{100'000'000'000};  // the time from one call of the progress function to the next
constexpr uint64_t packets_at_once = 32;

// A run of the message's segments, with the file that wakes the thread that sends it.
struct SegmentRun {
  SegmentRun(const SenderConfig& config, const Segments& segments, uint32_t first, uint32_t count)
      : sender(config, segments, first, count), wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~SegmentRun() {
    if (wake >= 0) close(wake);
  }
  SegmentRun(const SegmentRun&) = delete;
  SegmentRun& operator=(const SegmentRun&) = delete;

  void wake_thread() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake, &one, sizeof(one));  // a full counter wakes as well
  }
  void clear_wake() const {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read_bytes = ::read(wake, &count, sizeof(count));
  }

  std::mutex mutex;  // guards `sender`
  Sender sender;
  int wake;
};

class MessageSend {
 public:
  MessageSend(const SendOptions& options, const Segments& segments, std::span<const uint8_t> message)
      : options_(options), segments_(segments), message_(message), began_(std::chrono::steady_clock::now()) {}

  Status send(const sockaddr_in& server) {
    SPL_TRY(port_.connect(server));
    const uint32_t count = segments_.count();
    const uint32_t middle = count < 3 ? 0 : count - 2;
    const uint32_t threads = std::min(options_.threads, middle);
    SPL_TRY(add_run(options_.sender, 0, threads <= 1 ? count : 1));
    send_run(*runs_.front());
    if (threads > 1 && !ended()) {
      SPL_TRY(add_runs(middle, threads));
      send_middle();
    }
    if (port_.refused() && !status_) {
      status_ = fail(status_.error().code, status_.error().message,
                     " The host says that nobody listens at its UDP port ", ntohs(server.sin_port), ".");
    }
    return status_;
  }

  [[nodiscard]] SenderCounts counts() const {
    SenderCounts totals;
    for (const auto& run : runs_) {
      const std::lock_guard lock(run->mutex);
      const SenderCounts& one = run->sender.counts();
      totals.sent += one.sent;
      totals.retransmitted += one.retransmitted;
      totals.acknowledged += one.acknowledged;
      totals.duplicates += one.duplicates;
      totals.foreign += one.foreign;
      totals.settled_bytes += one.settled_bytes;
    }
    return totals;
  }

 private:
  [[nodiscard]] Time now() const {
    const auto since = std::chrono::steady_clock::now() - began_;
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000};
  }

  Status add_run(const SenderConfig& config, uint32_t first, uint32_t count) {
    runs_.push_back(std::make_unique<SegmentRun>(config, segments_, first, count));
    if (runs_.back()->wake >= 0) return {};
    return fail(Code::environment, "a message by several threads needs more open files");
  }

  // Adds the runs behind the first packet: a run for each thread, and the last packet.
  Status add_runs(uint32_t middle, uint32_t threads) {
    SenderConfig config = options_.sender;
    config.window = (config.window + options_.threads - 1) / options_.threads;
    config.reports = runs_.front()->sender.receiver_reports();
    config.senders = threads;
    for (uint64_t i = 0; i < threads; ++i) {
      const auto first = static_cast<uint32_t>(1 + i * middle / threads);
      const auto end = static_cast<uint32_t>(1 + (i + 1) * middle / threads);
      SPL_TRY(add_run(config, first, end - first));
    }
    return add_run(config, 1 + middle, 1);
  }

  // The last packet leaves when all others have left or, with retransmission, when all others have been acknowledged.
  void send_middle() {
    const size_t middle = runs_.size() - 2;
    std::vector<std::thread> threads;
    try {
      for (size_t i = 0; i < middle; ++i) {
        threads.emplace_back([this, i] {
          send_run(*runs_[i + 1]);
          const std::lock_guard lock(mutex_);
          ++runs_done_;
          changed_.notify_all();
        });
      }
    } catch (const std::exception&) {
      end(fail(Code::environment, "the system gives no more than ", threads.size(), " threads; ask for fewer"));
    }
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] {
        return !status_ || (options_.sender.retransmit ? runs_done_ == middle : runs_sent_ == middle + 1);
      };
      while (!changed_.wait_for(lock, std::chrono::milliseconds(100), ready)) {
        lock.unlock();
        report();
        lock.lock();
      }
    }
    if (!ended()) send_run(*runs_.back());
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_relaxed); }

  void end(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (status_) status_ = status;
    ended_ = true;
    changed_.notify_all();
    for (const auto& run : runs_) run->wake_thread();
  }

  // Only the caller's thread calls this.
  void report() {
    if (!options_.progress || std::this_thread::get_id() != caller_) return;
    const Time time = now();
    if (time - reported_ < progress_interval) return;
    reported_ = time;
    if (!options_.progress(counts().settled_bytes, segments_.message_bytes)) {
      end(fail(Code::fault, "message ", segments_.message_id, " was stopped on the way"));
    }
  }

  // Sends a run until it is done, or until end() has ended the message.
  void send_run(SegmentRun& run) {
    std::vector<Sender::Packet> packets;
    const auto acknowledgements = std::make_unique_for_overwrite<UdpPort::Received>();
    const size_t most = options_.polling == Polling::original ? 1 : packets_at_once;
    bool all_sent_reported = false;  // true: this run has reported that all its packets have left
    while (!ended()) {
      report();
      if (const Status status = take_acknowledgements(run, *acknowledgements); !status) return end(status);
      packets.clear();
      bool done = false;
      bool all_left = false;
      Time timer;
      {
        const std::lock_guard lock(run.mutex);
        const Time time = now();
        while (packets.size() < most) {
          const auto packet = run.sender.next(time);
          if (!packet) break;
          packets.push_back(*packet);
        }
        if (!run.sender.status()) return end(run.sender.status());
        done = run.sender.done();
        timer = run.sender.timer();
        all_left = run.sender.all_sent();
      }
      if (const Status status = transmit(packets); !status) return end(status);
      if (all_left && !all_sent_reported) {
        all_sent_reported = true;
        const std::lock_guard lock(mutex_);
        ++runs_sent_;
        changed_.notify_all();
      }
      if (done) return;
      if (packets.empty()) wait(run, timer);
    }
  }

  Status take_acknowledgements(const SegmentRun& own, UdpPort::Received& received) {
    while (true) {
      SPL_ASSIGN(const size_t count, port_.receive(received));
      const Time time = now();
      SegmentRun* other = nullptr;  // the run of the acknowledgements just read; its thread must be woken
      const auto wake_other = [&] {
        if (other != nullptr && other != &own) other->wake_thread();
      };
      for (size_t i = 0; i < count; ++i) {
        const Result<Header> header = slmp::read(received.datagram(i));
        if (!header) continue;
        SegmentRun* const run = run_of(header->offset);
        if (run == nullptr) continue;
        {
          const std::lock_guard lock(run->mutex);
          run->sender.on_acknowledgement(time, *header);
        }
        if (run != other) wake_other();
        other = run;
      }
      wake_other();
      if (count < UdpPort::batch) return {};
    }
  }

  SegmentRun* run_of(uint64_t offset) {
    for (const auto& run : runs_) {
      if (run->sender.contains(offset)) return run.get();
    }
    return nullptr;
  }

  Status transmit(std::span<const Sender::Packet> packets) {
    std::array<std::array<uint8_t, header_bytes>, packets_at_once> headers;
    std::array<Datagram, packets_at_once> datagrams;
    for (size_t i = 0; i < packets.size(); ++i) {
      headers[i] = slmp::write(packets[i].header);
      datagrams[i] = {headers[i], message_.subspan(packets[i].offset, packets[i].length)};
    }
    for (size_t left = 0; left < packets.size() && !ended();) {
      SPL_ASSIGN(const size_t sent, port_.send({datagrams.data() + left, packets.size() - left}));
      left += sent;
      if (sent == 0 && options_.polling != Polling::busy) port_.wait(Time{1'000'000'000}, -1, true);
    }
    return {};
  }

  void wait(const SegmentRun& run, Time timer) const {
    if (options_.polling == Polling::busy) return;
    if (options_.polling == Polling::original)
      return std::this_thread::sleep_for(std::chrono::nanoseconds(original_sleep.ps / 1000));
    const Time time = now();
    const Time longest = options_.progress ? progress_interval : Time{1'000'000'000'000};
    port_.wait(timer <= time ? Time{0} : std::min(timer - time, longest), run.wake, false);
    run.clear_wake();
  }

  const SendOptions& options_;
  Segments segments_;
  std::span<const uint8_t> message_;
  std::chrono::steady_clock::time_point began_;
  std::thread::id caller_ = std::this_thread::get_id();
  Time reported_{0};
  UdpPort port_;
  std::vector<std::unique_ptr<SegmentRun>> runs_;  // all made before any thread begins
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  size_t runs_sent_ = 0;  // runs whose packets have all left, that of the first packet included
  size_t runs_done_ = 0;  // runs of threads that have ended
  Status status_;
  std::atomic<bool> ended_ = false;
};

}  // namespace

Status send_message(const SendOptions& options, const sockaddr_in& server, uint32_t message_id,
                    std::span<const uint8_t> message, SenderCounts& counts) {
  const Segments segments{message_id, message.size(), options.payload_bytes, options.mode};
  SPL_TRY(check(segments));
  SPL_TRY(check(options.sender));
  if (options.sender.reports && options.mode != Mode::segment) {
    return fail(Code::invalid,
                "reports of the receiver's room come with acknowledgements: every packet must ask for one");
  }
  if (options.threads < 1 || options.threads > SendOptions::threads_max) {
    return fail(Code::invalid, options.threads, " threads: from 1 to ", SendOptions::threads_max,
                " can send a message");
  }
  MessageSend sending(options, segments, message);
  const Status status = sending.send(server);
  counts = sending.counts();
  return status;
}

}  // namespace spinloom::slmp
