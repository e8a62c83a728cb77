// WindowWords - the words by which ranks that share a machine synchronise a window, in memory that all of them map.
//
// Contract: each rank makes its own words, gives the others their address, and retires the words in the end. A
//   WindowMeeting has the words of all ranks of a window, as this process sees them, and does what MPI asks: fences;
//   posts and starts; shared and exclusive locks of a rank's memory, and the short lock under which elements are
//   changed. Nobody answers for a rank: what one rank writes, others read. Calls named *_test() do not wait; they are
//   called again until they say `done`. Between two of them a rank may sleep: until another rank has done what it may
//   wait for, or a moment is over.
// Invariants: (1) fences and counts only grow, and each is written by one rank; (2) a lock belongs to a rank. That of a
//   rank that has died is free: who waits for it finds that out. (3) Whoever sees a fence, a post, a completion or a
//   free lock sees all that was written before it. (4) While an exclusive lock is wanted, no shared lock is given, so
//   that it comes.
// Threads: the caller's lock. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace spinloom::mpi {

class WindowWords {
 public:
  // The words that a rank has for one other rank.
  struct alignas(64) ForPeer {
    std::atomic<uint64_t> posts;  // this rank's posts to the peer
    std::atomic<uint64_t> completions;  // the epochs of accesses to the peer that this rank has completed
    std::atomic<uint32_t> reads;  // 1: the peer has this rank's shared lock, or asks for it; the peer writes it
  };
  struct alignas(64) Words {
    std::atomic<uint64_t> fences;
    std::atomic<uint32_t> left;  // the ranks that do not look at these words any more
    std::atomic<uint32_t> bell;  // the rank sleeps on it; who wakes the rank counts it up
    std::atomic<uint32_t> sleepers;  // the rank's threads that sleep, or are about to
    std::atomic<uint32_t> reads_all;  // 1: the rank has the shared locks of all ranks at once, or asks for them
    alignas(64) std::atomic<uint32_t> writer;  // rank + 1 of who has the exclusive lock, or waits for readers
    std::atomic<uint32_t> waiters;  // the threads of all ranks that sleep because of this lock
    alignas(64) std::atomic<uint32_t> changer;  // rank + 1 of who changes elements
    [[nodiscard]] ForPeer& of(size_t peer) { return reinterpret_cast<ForPeer*>(this + 1)[peer]; }  // NOLINT: behind it
  };

  WindowWords() = default;
  WindowWords(WindowWords&& other) noexcept : words_(std::exchange(other.words_, nullptr)) {}
  WindowWords& operator=(WindowWords&& other) noexcept {
    std::swap(words_, other.words_);
    return *this;
  }
  ~WindowWords();

  // In the heap that peers map; without room words() is null.
  [[nodiscard]] static WindowWords make(size_t ranks);
  // Takes words of which this rank needs no more. make() gives them out again once all other ranks have left them.
  static void retire(WindowWords words, size_t ranks);
  [[nodiscard]] static uint64_t bytes_of(size_t ranks) { return sizeof(Words) + ranks * sizeof(ForPeer); }
  [[nodiscard]] Words* words() const { return words_; }

 private:
  Words* words_ = nullptr;
};

class WindowMeeting {
 public:
  enum class Answer : uint8_t { not_yet, done, dead };
  enum class Kind : uint8_t { shared, exclusive };

  // `words`: of all ranks of the window, as this process sees them. `is_alive` is asked about ranks of the window.
  WindowMeeting(size_t own, std::vector<WindowWords::Words*> words, std::function<bool(size_t)> is_alive)
      : own_(own),
        words_(std::move(words)),
        is_alive_(std::move(is_alive)),
        posted_(words_.size()),
        started_(words_.size()) {}

  void fence_begin();
  [[nodiscard]] Answer fence_test();

  void post(std::span<const int> origins);
  [[nodiscard]] Answer completed_test();
  void start(std::span<const int> targets);
  [[nodiscard]] Answer started_test();
  void complete();

  [[nodiscard]] Answer lock_test(size_t target, Kind kind);
  void unlock(size_t target, Kind kind);
  // The shared locks of all ranks at once. They do not come while any exclusive lock is held or wanted, so that who has
  // asked in vain for a while had better take one after the other.
  [[nodiscard]] Answer lock_all_test();
  void unlock_all();

  // After the last fence: tells the others that this rank does not look at their words any more.
  void leave();

  // Sleeps until a rank rings, after test() has said `not_yet` once more. At most so long, because who has died rings
  // nobody, and because the MPI must go on. `lock_of`: the rank for whose lock it waits; nothing: it waits for others.
  static constexpr int64_t sleep_ns_max = 200'000;
  template <class Test>
  void sleep(Test&& test, std::optional<size_t> lock_of = {}) {
    Sleeper sleeper(*this, lock_of);
    if (test()) sleeper.sleep();
  }

  // The lock under which elements of the target are changed. It is held for a moment, and begin_change() is called
  // again until it returns true.
  [[nodiscard]] bool begin_change(size_t target);
  void end_change(size_t target);

 private:
  [[nodiscard]] WindowWords::Words& own() const { return *words_[own_]; }
  // A thread of this rank that is about to sleep: from here on others ring.
  class Sleeper {
   public:
    Sleeper(const WindowMeeting& meeting, std::optional<size_t> lock_of);
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper();
    void sleep() const;

   private:
    WindowWords::Words& own_;
    std::atomic<uint32_t>* waiters_;
    uint32_t seen_;
  };
  // Wakes a rank, if it sleeps. What it waits for has been written before.
  void ring(size_t rank) const;
  void ring_all() const;
  // Frees the lock of a rank that has died. Returns whether it is free.
  bool free_if_dead(std::atomic<uint32_t>& holder, uint32_t seen) const;
  template <class HasCome>
  [[nodiscard]] Answer not_yet_or_dead(size_t rank, HasCome has_come) const;

  size_t own_;
  std::vector<WindowWords::Words*> words_;
  std::function<bool(size_t)> is_alive_;
  uint64_t fences_ = 0;
  std::vector<uint64_t> posted_;  // this rank's posts to each origin
  std::vector<uint64_t> started_;  // this rank's starts with each target
  std::vector<int> origins_;  // the group of the last post
  std::vector<int> targets_;  // the group of the last start
};

}  // namespace spinloom::mpi
