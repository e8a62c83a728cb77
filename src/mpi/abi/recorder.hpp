// Recorder - what a program does, call by call, written down as a trace (src/predict/trace).
//
// Contract: begin() follows MPI_Init where SPINLOOM_MPI_RECORD names a directory; end() follows the MPI's own
//   MPI_Finalize. records() is called at the beginning of each call. Where it is true, prepare() lets the call's rule
//   look at the arguments, enter() notes that the call is under way, and note() writes it down when it has ended. The
//   rules of calls (recorder_messages.hpp, recorder_requests.hpp, recorder_collectives.hpp, recorder_windows.hpp) fill
//   in numbers of this rank: type(), comm(), and slots of requests.
// Invariants: (1) the program sees what it would see without: its statuses, codes and requests; (2) calls from inside
//   the MPI, and those that the recorder makes itself, are not recorded; (3) what cannot be written stops the
//   recording, never the program; (4) a child made by fork() records nothing.
// Threads: Guard, where the MPI has granted MPI_THREAD_MULTIPLE. It is not held while the MPI works for the program.
//   Time: ns of the monotonic clock, or CPU time of the calling thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/entry/library.hpp"
#include "mpi/entry/slots.hpp"
#include "predict/trace/writer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Recorder {
 public:
  struct CommFacts {
    uint32_t number = trace::none;
    int rank = 0;
    int size = 0;
    int peers = 0;  // the remote side's of an intercommunicator, else the size
    bool is_inter = false;
    int sources = 0;
    int destinations = 0;
  };
  struct Message {
    uint32_t comm = trace::none;
    trace::Match match;
  };
  struct Window {
    uint32_t number = trace::none;
    uint32_t comm = trace::none;
  };

  [[nodiscard]] bool records(const void* caller) const {
    return is_on_.load(std::memory_order_relaxed) && !library_->contains(caller);
  }
  // True if the caller is the MPI, and before begin(), when there is nothing to know of the program.
  [[nodiscard]] bool is_inside(const void* caller) const { return library_ == nullptr || library_->contains(caller); }
  [[nodiscard]] static uint64_t now_ns() {
    timespec now{};
    clock_gettime(clock_, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }

  void begin(uint64_t begin_ns);
  void end(uint64_t begin_ns, int code);

  // Calls before(), what a rule does before the call. False: that has failed, and the recording has stopped.
  template <class Before>
  [[nodiscard]] bool prepare(Before&& before) {
    try {
      before();
      return true;
    } catch (...) {
      const Guard guard(*this);
      stop();
      return false;
    }
  }
  void enter(trace::Call call, trace::CallForm form, uint64_t begin_ns) {
    const uint64_t word = writer_->enter(call, form, begin_ns);
    if (is_threaded_) inside_[lane()].store(word, std::memory_order_relaxed);
  }
  // Writes a call down that has ended with `code`. fill(signature) may call the functions below.
  template <class Fill>
  void note(trace::Call call, trace::CallForm form, uint64_t begin_ns, int code, Fill&& fill) {
    uint64_t end_ns = now_ns();
    const Guard guard(*this);
    if (!is_on_ || is_noting_) return;
    is_noting_ = true;
    try {
      clear(call, form, code);
      fill(signature_);
      end_ns = last_end_ns_ = std::max(end_ns, last_end_ns_);
      if (is_poll_) {
        writer_->poll(signature_, begin_ns, end_ns);
      } else {
        writer_->record(signature_, begin_ns, end_ns);
      }
      if (is_threaded_) leave();
      if (!writer_->trouble().empty()) is_on_ = false;
    } catch (...) {
      stop();
    }
    is_noting_ = false;
  }
  // Called by a rule: the call has found nothing that has ended or arrived.
  void mark_as_poll() { is_poll_ = true; }

  [[nodiscard]] uint32_t type(Datatype type) {
    const uint64_t key = key_of(type);
    if (key == last_type_key_ && !freed_types_.any()) return last_type_;
    return find_type(type);
  }
  [[nodiscard]] int64_t extent(uint32_t type) const { return type < extents_.size() ? extents_[type] : 0; }
  [[nodiscard]] uint32_t byte_type() const { return byte_type_; }
  // The reference holds until the next call.
  [[nodiscard]] const CommFacts& comm(Comm comm) {
    const uint64_t key = key_of(comm);
    if (key == last_comm_key_ && !freed_comms_.any()) return *last_comm_;
    return find_comm(comm);
  }
  [[nodiscard]] const CommFacts& comm_made(Comm made, Comm parent) {
    const uint32_t number = comm(parent).number;
    return find_comm(made, number);
  }
  // Returns the number of a communicator that the program is about to free.
  [[nodiscard]] uint32_t number_of(Comm made) {
    const Guard guard(*this);
    return comm(made).number;
  }
  // Take our attribute away from an object that the program is about to free.
  void drop_type_attribute(Datatype type);
  void drop_comm_attributes(Comm comm);
  void forget_type(Datatype type) { freed_types_.add(key_of(type)); }  // these need no lock
  void forget_comm(Comm comm) { freed_comms_.add(key_of(comm)); }

  [[nodiscard]] Slots& slots() { return slots_; }
  // True if a call must ask for a status although the program gave it none: some receive of any source or tag is open,
  // or some request that may be cancelled.
  [[nodiscard]] bool wants_status() {
    const Guard guard(*this);
    return slots_.any_wants_status();
  }
  // Adds a request that has ended to the signature: its slot, and what it has met. A null status: nothing is known.
  void note_ended(trace::Signature& signature, uint64_t request, uint32_t slot, const Status* status);
  [[nodiscard]] bool is_threaded() const { return is_threaded_; }
  // Find the slots of requests that a call may complete, so that no other thread finds them; give_back() frees those
  // that are not `none`.
  void claim(int count, const Request* requests, uint32_t* slots) {
    const Guard guard(*this);
    for (int i = 0; i < count; ++i) slots[i] = slots_.claim(key_of(requests[i]));
  }
  void give_back(int count, const uint32_t* slots) {
    const Guard guard(*this);
    for (int i = 0; i < count; ++i) {
      if (slots[i] != Slots::none) slots_.at(slots[i]).is_claimed = false;
    }
  }
  [[nodiscard]] trace::Match match_of(const Status& status, uint32_t request = trace::none) const;
  [[nodiscard]] HandleMap<Message>& messages() { return messages_; }
  [[nodiscard]] std::optional<Message> take_message(uint64_t key) {
    const Guard guard(*this);
    const Message* const found = messages_.find(key);
    if (found == nullptr) return std::nullopt;
    const Message taken = *found;
    messages_.erase(key);
    return taken;
  }
  [[nodiscard]] HandleMap<Window>& windows() { return windows_; }
  [[nodiscard]] uint32_t next_window() { return windows_made_++; }

  [[nodiscard]] static int32_t peer(int rank) {
    return rank == proc_null    ? trace::nobody
           : rank == any_source ? trace::any
           : rank == root_here  ? trace::itself
                                : rank;
  }
  [[nodiscard]] static int32_t tag(int tag) { return tag == any_tag ? trace::any : tag; }

 private:
  class Guard {
   public:
    explicit Guard(Recorder& recorder) : recorder_(recorder) {
      if (recorder_.is_threaded_) recorder_.mutex_.lock();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (recorder_.is_threaded_) recorder_.mutex_.unlock();
    }

   private:
    Recorder& recorder_;
  };

  // Returns a thread's place in inside_. More threads than there are places share some.
  [[nodiscard]] static size_t lane() {
    static std::atomic<size_t> threads{0};
    static thread_local const size_t own = threads.fetch_add(1, std::memory_order_relaxed) % lanes;
    return own;
  }
  // Notes that this thread's call has ended: a reader now sees the call that another thread has been in for longest.
  void leave() {
    inside_[lane()].store(0, std::memory_order_relaxed);
    uint64_t first = 0;
    for (const auto& one : inside_) {
      const uint64_t word = one.load(std::memory_order_relaxed);
      if (word != 0 && (first == 0 || word >> trace::UnderWay::time_shift < first >> trace::UnderWay::time_shift)) {
        first = word;
      }
    }
    if (first != 0) writer_->restore_call(first);
  }

  [[nodiscard]] bool open_writer(uint64_t begin_ns);
  [[nodiscard]] static trace::Match cancel_of(const Status& status, uint32_t request);
  void clear(trace::Call call, trace::CallForm form, int code);
  void stop();
  void take_freed_types();
  void take_freed_comms();
  [[nodiscard]] uint32_t find_type(Datatype type);
  [[nodiscard]] uint32_t add_type(Datatype type);
  [[nodiscard]] const CommFacts& find_comm(Comm comm, uint32_t parent = trace::none);
  [[nodiscard]] CommFacts add_comm(Comm comm, uint32_t parent);
  [[nodiscard]] std::vector<uint32_t> world_ranks(Group group, int size) const;

  static constexpr uint64_t no_key = ~uint64_t{0};
  std::atomic<bool> is_on_{false};
  static const clockid_t clock_;
  bool is_threaded_ = false;
  bool is_noting_ = false;
  bool is_poll_ = false;
  std::recursive_mutex mutex_;
  static constexpr size_t lanes = 64;
  std::array<std::atomic<uint64_t>, lanes> inside_{};  // the calls that threads are in, where there are several threads
  Library* library_ = nullptr;
  std::unique_ptr<trace::Writer> writer_;
  trace::Signature signature_;
  uint64_t last_end_ns_ = 0;
  Slots slots_;
  HandleMap<Message> messages_;
  HandleMap<Window> windows_;
  uint32_t windows_made_ = 0;

  HandleMap<uint32_t> types_;
  FreedHandles freed_types_;
  std::vector<int64_t> extents_;  // the extent of each datatype, by number
  uint64_t last_type_key_ = no_key;
  uint32_t last_type_ = trace::none;
  uint32_t byte_type_ = trace::none;
  int type_keyval_ = 0;

  HandleMap<CommFacts> comms_;
  FreedHandles freed_comms_;
  uint64_t last_comm_key_ = no_key;
  const CommFacts* last_comm_ = nullptr;
  int comm_keyval_ = 0;
  Group world_group_{};
};

extern Recorder& recorder;

}  // namespace spinloom::mpi::SPINLOOM_ABI
