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

constexpr Time glance{100'000'000};              // how long FPsPIN's library sleeps when there is nothing to do
constexpr Time progress_apart{100'000'000'000};  // from one call of the progress function to the next
constexpr uint64_t packets_at_once = 32;

// A run of the message's segments, with the file that wakes the thread that sends it.
struct Share {
  Share(const SenderConfig& config, const Segments& segments, uint32_t first, uint32_t count)
      : sender(config, segments, first, count), wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Share() {
    if (wake >= 0) close(wake);
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  void tell() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(wake, &one, sizeof(one));  // a full counter wakes as well
  }
  void clear() const {
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

  Status run(const sockaddr_in& server) {
    SPL_TRY(port_.connect(server));
    const uint32_t count = segments_.count();
    const uint32_t middle = count < 3 ? 0 : count - 2;
    const uint32_t threads = std::min(options_.threads, middle);
    SPL_TRY(add_share(options_.sender, 0, threads <= 1 ? count : 1));
    carry(*shares_.front());
    if (threads > 1 && !ended()) {
      SPL_TRY(share_out(middle, threads));
      carry_middle();
    }
    if (port_.refused() && !status_) {
      status_ = fail(status_.error().code, status_.error().message,
                     " The host says that nobody listens at its UDP port ", ntohs(server.sin_port), ".");
    }
    return status_;
  }

  [[nodiscard]] SenderCounts counts() const {
    SenderCounts all;
    for (const auto& share : shares_) {
      const std::lock_guard lock(share->mutex);
      const SenderCounts& one = share->sender.counts();
      all.sent += one.sent;
      all.retransmitted += one.retransmitted;
      all.acknowledged += one.acknowledged;
      all.duplicates += one.duplicates;
      all.foreign += one.foreign;
      all.settled_bytes += one.settled_bytes;
    }
    return all;
  }

 private:
  [[nodiscard]] Time now() const {
    const auto since = std::chrono::steady_clock::now() - began_;
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() * 1000};
  }

  Status add_share(const SenderConfig& config, uint32_t first, uint32_t count) {
    shares_.push_back(std::make_unique<Share>(config, segments_, first, count));
    if (shares_.back()->wake >= 0) return {};
    return fail(Code::environment, "a message by several threads needs more open files");
  }

  // Adds the shares behind the first packet: a run for each thread, and the last packet.
  Status share_out(uint32_t middle, uint32_t threads) {
    SenderConfig config = options_.sender;
    config.window = (config.window + options_.threads - 1) / options_.threads;
    config.reports = shares_.front()->sender.reported();
    config.senders = threads;
    for (uint64_t i = 0; i < threads; ++i) {
      const auto first = static_cast<uint32_t>(1 + i * middle / threads);
      const auto end = static_cast<uint32_t>(1 + (i + 1) * middle / threads);
      SPL_TRY(add_share(config, first, end - first));
    }
    return add_share(config, 1 + middle, 1);
  }

  // The last packet leaves when all others have left or, with retransmission, when all others have been acknowledged.
  void carry_middle() {
    const size_t middle = shares_.size() - 2;
    std::vector<std::thread> threads;
    try {
      for (size_t i = 0; i < middle; ++i) {
        threads.emplace_back([this, i] {
          carry(*shares_[i + 1]);
          const std::lock_guard lock(mutex_);
          ++shares_done_;
          changed_.notify_all();
        });
      }
    } catch (const std::exception&) {
      end(fail(Code::environment, "the system gives no more than ", threads.size(), " threads; ask for fewer"));
    }
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] {
        return !status_ || (options_.sender.retransmit ? shares_done_ == middle : shares_sent_ == middle + 1);
      };
      while (!changed_.wait_for(lock, std::chrono::milliseconds(100), ready)) {
        lock.unlock();
        report();
        lock.lock();
      }
    }
    if (!ended()) carry(*shares_.back());
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_relaxed); }

  void end(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (status_) status_ = status;
    ended_ = true;
    changed_.notify_all();
    for (const auto& share : shares_) share->tell();
  }

  // Only the caller's thread calls this.
  void report() {
    if (!options_.progress || std::this_thread::get_id() != caller_) return;
    const Time time = now();
    if (time - reported_ < progress_apart) return;
    reported_ = time;
    if (!options_.progress(counts().settled_bytes, segments_.message_bytes)) {
      end(fail(Code::fault, "message ", segments_.message_id, " was stopped on the way"));
    }
  }

  // Sends a share until it is done, or until end() has ended the message.
  void carry(Share& share) {
    std::vector<Sender::Packet> packets;
    const auto acknowledgements = std::make_unique_for_overwrite<UdpPort::Received>();
    const size_t most = options_.polling == Polling::original ? 1 : packets_at_once;
    bool told = false;  // true: this share has reported that all its packets have left
    while (!ended()) {
      report();
      if (const Status status = take_acknowledgements(share, *acknowledgements); !status) return end(status);
      packets.clear();
      bool done = false;
      bool all_left = false;
      Time timer;
      {
        const std::lock_guard lock(share.mutex);
        const Time time = now();
        while (packets.size() < most) {
          const auto packet = share.sender.next(time);
          if (!packet) break;
          packets.push_back(*packet);
        }
        if (!share.sender.status()) return end(share.sender.status());
        done = share.sender.done();
        timer = share.sender.timer();
        all_left = share.sender.all_sent();
      }
      if (const Status status = transmit(packets); !status) return end(status);
      if (all_left && !told) {
        told = true;
        const std::lock_guard lock(mutex_);
        ++shares_sent_;
        changed_.notify_all();
      }
      if (done) return;
      if (packets.empty()) wait(share, timer);
    }
  }

  Status take_acknowledgements(const Share& own, UdpPort::Received& received) {
    while (true) {
      SPL_ASSIGN(const size_t count, port_.receive(received));
      const Time time = now();
      Share* other = nullptr;  // the share of the acknowledgements just read; its thread must be woken
      const auto tell_other = [&] {
        if (other != nullptr && other != &own) other->tell();
      };
      for (size_t i = 0; i < count; ++i) {
        const Result<Header> header = slmp::read(received.datagram(i));
        if (!header) continue;
        Share* const share = share_of(header->offset);
        if (share == nullptr) continue;
        {
          const std::lock_guard lock(share->mutex);
          share->sender.on_acknowledgement(time, *header);
        }
        if (share != other) tell_other();
        other = share;
      }
      tell_other();
      if (count < UdpPort::batch) return {};
    }
  }

  Share* share_of(uint64_t offset) {
    for (const auto& share : shares_) {
      if (share->sender.contains(offset)) return share.get();
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

  void wait(const Share& share, Time timer) const {
    if (options_.polling == Polling::busy) return;
    if (options_.polling == Polling::original)
      return std::this_thread::sleep_for(std::chrono::nanoseconds(glance.ps / 1000));
    const Time time = now();
    const Time longest = options_.progress ? progress_apart : Time{1'000'000'000'000};
    port_.wait(timer <= time ? Time{0} : std::min(timer - time, longest), share.wake, false);
    share.clear();
  }

  const SendOptions& options_;
  Segments segments_;
  std::span<const uint8_t> message_;
  std::chrono::steady_clock::time_point began_;
  std::thread::id caller_ = std::this_thread::get_id();
  Time reported_{0};
  UdpPort port_;
  std::vector<std::unique_ptr<Share>> shares_;  // all made before any thread begins
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  size_t shares_sent_ = 0;  // shares whose packets have all left, that of the first packet included
  size_t shares_done_ = 0;  // shares of threads that have ended
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
  const Status status = sending.run(server);
  counts = sending.counts();
  return status;
}

}  // namespace spinloom::slmp
