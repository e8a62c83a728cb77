// Layer - what the MPI layer remembers while a program runs, and the steps that its calls are made of.
//
// Contract: start() follows MPI_Init, stop() precedes MPI_Finalize. pending_send_for() decides whether a message goes
//   through shared memory. deliver() looks at what a receive has got, and puts the message's bytes in place of a
//   record. finish() does that for a request that the MPI has completed.
// Invariants: (1) while `is_on` is false every call goes to the MPI unchanged, except those that need `is_pack_on` only
//   (hooks.cpp) and those with buffers in a GPU's memory (bounced.hpp); (2) a request that may receive a record has a
//   TrackedRequest from its start to its completion; (3) claims are messages that probes had to take out of the MPI to
//   know their sizes: those of one source on one communicator are a prefix of its messages, so receives look there
//   first.
// Threads: Lock guards everything where the MPI has granted MPI_THREAD_MULTIPLE; except in stop(), it is not held while
//   the MPI waits for other ranks. Time: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/abi/carried.hpp"
#include "mpi/abi/offload.hpp"
#include "mpi/abi/rma_windows.hpp"
#include "mpi/abi/teams.hpp"
#include "mpi/abi/types.hpp"
#include "mpi/abi/windows.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/entry/library.hpp"
#include "mpi/messages/settings.hpp"
#include "mpi/moving/copy_pipeline.hpp"
#include "mpi/moving/tally.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// A message that a probe has taken out of the MPI. Either `handle` still holds it, or its bytes are here.
struct Claim {
  Comm comm{};
  Status status{};  // the status has the message's true size
  MessageHandle handle{};
  bool received = false;
  int64_t length = 0;
  uint8_t bytes[Record::most + 1] = {};
  std::optional<Record> record;
  Request stand_in{};  // the send of the message that stands for this one; some MPIs complete it with its receive
};
using ClaimPointer = std::unique_ptr<Claim>;

enum class Mode : uint8_t { standard, synchronous, ready };

// The memory that a receive writes, or that a send reads.
struct Place {
  void* buffer = nullptr;
  int64_t count = 0;
  Datatype type{};
  FormPointer form;
  Comm comm{};
  const char* call = "";  // the collective call that it belongs to; empty: none

  // No address below is anybody's memory; MPI_BOTTOM is 0, and its types hold addresses.
  static constexpr int64_t least_address = 4096;
  // Returns the bytes of `count` elements; INT64_MAX if they are more than an int64_t holds.
  [[nodiscard]] static int64_t capacity_of(const Form& form, int64_t count) {
    int64_t bytes = 0;
    return __builtin_mul_overflow(form.size, count, &bytes) ? INT64_MAX : bytes;
  }
  [[nodiscard]] int64_t capacity() const { return capacity_of(*form, count); }
};

// A copy of a datatype that the program may free while the layer still needs the MPI to move its bytes.
struct KeptType {
  Datatype type{};
  bool is_held = false;

  KeptType() = default;
  KeptType(const KeptType&) = delete;
  KeptType& operator=(const KeptType&) = delete;
  ~KeptType() { free(); }
  void free() {
    if (is_held) real.Type_free(&type);
    is_held = false;
  }
};

// A call that the layer carries and that has not ended: the program has `program_request`, a generalized one.
struct OngoingCall {
  std::shared_ptr<CarriedCall> carried;
  Request program_request{};
  int* code = nullptr;  // the error that the request reports; the request owns it
};

// An open request that the layer knows.
struct TrackedRequest {
  Place place;
  bool is_receive = true;
  bool is_persistent = false;
  bool is_active = false;
  bool is_cancelling = false;  // MPI_Cancel was called for it
  int64_t landed_bytes = -1;  // the bytes that MPI_Request_get_status has put in place already; -1: none
  // True if another request carries this start of a persistent one, or its message: `substitute`.
  bool is_substituted = false;
  Request substitute{};
  ClaimPointer claim{};
  Request handle{};  // the MPI's handle
  KeptType kept_type{};  // the copy of the datatype that `place` has, if it is held
  // look_at() has seen its message; what that did not put in place is left to the completion.
  bool was_looked_at = false;
  // The arguments of a persistent send; a persistent receive has `peer` and `tag`, too.
  Mode mode = Mode::standard;
  int peer = 0;
  int tag = 0;
  std::shared_ptr<CarriedCall> carried{};  // the call that each start begins, if it is a collective call

  // Makes it like a new one for its next use, which sets the place and the handle anew.
  void reset() {
    is_receive = true;
    is_persistent = is_active = is_cancelling = is_substituted = was_looked_at = false;
    landed_bytes = -1;
    claim.reset();
    kept_type.free();
    carried.reset();
  }
};

// The offered sends that the MPI has cancelled, by their serials. The mutex is never held while the MPI is called,
// because the MPI calls query_offer() and free_offer() from within.
class Cancelled {
 public:
  void add(uint64_t serial) {
    const std::lock_guard lock(mutex_);
    serials_.push_back(serial);
  }
  [[nodiscard]] bool has(uint64_t serial) {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(serials_, serial) != serials_.end();
  }
  // May be called more than once for a request: some MPIs free a generalized request twice.
  void forget(uint64_t serial) {
    const std::lock_guard lock(mutex_);
    std::erase(serials_, serial);
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> serials_;
};

// A send whose message waits in the sender's memory for its receiver.
struct OfferedSend {
  PendingSend pending;
  Place place;
  Request record_request{};  // the MPI's request for the record
  Request program_request{};  // the program's request; none for a call that waits itself
  bool has_program_request = false;
  bool is_cancelling = false;  // the program has called MPI_Cancel: the MPI decides by the record
  bool is_moved = false;  // the receiver has taken the message, or it was packed after all, or cancelled
  // The time for which a rank that waits leaves the message to its receiver, before it packs it.
  int64_t patience_ns = 0;
  int64_t wait_begun_ns = -1;  // the time when the program first waited or tested; -1: not yet
};

// Returns the time of the processor's own clock, in its ticks. It is read faster than the system's clock, and is the
// same on all processors of a machine.
[[nodiscard]] inline int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__builtin_ia32_rdtsc());
#else
  int64_t now = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#endif
}
[[nodiscard]] int64_t now_ns();

struct Layer {
  bool is_on = false;
  bool is_pack_on =
      false;  // the calls for which the layer needs no peers, such as MPI_Pack (needs_no_peers in hooks.cpp)
  bool is_threaded = false;  // the MPI has granted MPI_THREAD_MULTIPLE
  bool has_processor_each = false;  // the machine has a processor for each of the world's ranks on it
  bool is_plain = false;  // the layer is on, without threads, and without a report that counts every call
  std::recursive_mutex mutex;
  Library* library = nullptr;
  Settings settings;
  std::string why_off;
  int rank = 0;
  int ranks = 0;
  std::string job;
  CopyPipeline pipeline;
  // `tally` is null unless a report is wanted. The next three members are used only with it: when the layer started,
  // and the time that threads have spent in its calls.
  std::unique_ptr<Tally> tally;
  int64_t started_ns = 0;
  int64_t started_ticks = 0;
  std::atomic<int64_t> in_calls_ticks{0};
  Types types;
  Teams teams;
  HandleMap<TrackedRequest*> tracked_requests;
  HandleMap<Claim*> messages;  // the key is the handle that stands for them
  std::deque<ClaimPointer> claims;
  std::vector<std::unique_ptr<TrackedRequest>> spare_requests;  // left by receives that have ended, for the next ones
  struct Orphan {
    Request request;
    TrackedRequest* tracked;
  };
  std::vector<std::unique_ptr<OfferedSend>> offered_sends;
  std::vector<std::unique_ptr<OngoingCall>> ongoing_calls;
  Cancelled cancelled_offers;
  std::vector<Orphan> orphans;  // receives that the program has freed before their end
  Windows windows;
  Nic nic;
  Offload offload{nic};
  RmaWindows rma{nic};
  uint64_t pack_calls = 0;  // calls of MPI_Pack and MPI_Unpack that our kernels did

  // A send of a copy, whose request the program does not know.
  struct SentCopy {
    Request request{};
    std::unique_ptr<std::vector<uint8_t>> bytes;
  };
  std::vector<SentCopy> outbox;
  // Messages in a GPU's memory that are offered already, by the memory of the host that stands for them, until the call
  // that sends them announces them (bounced.hpp).
  struct BouncedSend {
    const void* room;
    int64_t count;
    Datatype type;
    PendingSend pending;
  };
  std::vector<BouncedSend> bounced_sends;
  [[nodiscard]] bool has_bounced(const void* room) const;
  [[nodiscard]] std::optional<PendingSend> take_bounced(const void* room, int64_t count, Datatype type);
  // False, for a number of calls, after this rank has waited in vain for the receiver (Patience).
  [[nodiscard]] bool may_offer_to(uint32_t receiver);

  void start();
  void stop();

  // The offers that a call allows.
  enum class AllowedOffers : uint8_t {
    none,  // none: the buffer changes before the send has ended
    mapped,  // those that the receiver can take whatever this rank does meanwhile
    any,  // all: the sender does nothing but wait, and packs at once what the receiver could not read
  };
  // Prepares or offers a message, and counts it for the report. Nothing where the MPI is to carry it.
  [[nodiscard]] std::optional<PendingSend> pending_send_for(const Place& place, int peer,
                                                            AllowedOffers allowed = AllowedOffers::mapped);
  // Counts a message for the report, if one is wanted. count_pass(): a message that the MPI carries.
  void count(const Place& place, int receiver, Way way, const char* why) {
    if (place.form->tally == nullptr) return;
    place.form->tally->count({counted_as(place), receiver, way, why, place.call}, place.capacity());
    if (tally->is_due()) report_so_far();
  }
  void count_pass(const Form& form, int64_t count, int peer, Comm comm, const char* call = "");
  // Sends the message's record in the given mode, and loads the bytes unless the message is offered. A null request:
  // blocks as the MPI's own send does; if the message is offered, until it has been taken or packed after all. Where
  // the MPI refuses the record, the message is abandoned, and the MPI's code is returned.
  [[nodiscard]] int announce(const PendingSend& pending, const Place& place, Mode mode, int peer, int tag,
                             Request* request);
  // announce() for a record that the receiver gets in another way. is_open(): true while an offered message has neither
  // been taken nor packed, so that its receiver needs this rank.
  void hand_over(const PendingSend& pending, const Place& place);
  [[nodiscard]] bool is_open(uint64_t serial);
  // Puts a record's message in place, or raises the error of a message that is too long.
  [[nodiscard]] int land(const Record& record, const Place& place, Status* status);

  [[nodiscard]] Place place_of(const void* buffer, int64_t count, Datatype type, Comm comm) {
    return {const_cast<void*>(buffer), count, type, types.form(type), comm, ""};
  }
  // Writes the packed bytes of a place to `bytes`. False: the MPI cannot pack them.
  [[nodiscard]] bool copy(const Place& place, std::vector<uint8_t>& bytes);
  // Makes a communicator of this rank alone, without the attributes that the program gives to MPI_COMM_SELF.
  [[nodiscard]] bool split_own_comm(Comm* made);
  [[nodiscard]] int put_bytes(const uint8_t* bytes, int64_t length, const Place& place);
  [[nodiscard]] int deliver(const Place& place, Status* status) {
    return Record::may_be(bytes_of(*status, real)) ? deliver_short(place, status) : success;
  }
  [[nodiscard]] int deliver_claim(const Claim& claim, const Place& place, Status* status);
  // True if what a completed request has got fits into its buffer.
  [[nodiscard]] bool fits(const TrackedRequest& tracked, const Status& status);
  // Ends a request that the MPI has completed with `code`, and returns the code that the program gets.
  [[nodiscard]] int finish(Request handle, TrackedRequest* tracked, Status* status, int code);

  // Requests. take() finds what is known of one, or null. Among threads it removes the entry until put_back(), because
  // other threads may start requests that get the same handle.
  [[nodiscard]] TrackedRequest* take(Request handle);
  void put_back(Request handle, TrackedRequest* tracked);
  void remember(Request handle, TrackedRequest* tracked) {
    tracked->handle = handle;
    if (tracked->is_receive && tracked->place.form && !tracked->place.form->is_known) keep_type(*tracked);
    tracked_requests.put(key_of(handle), tracked);
  }
  // Does nothing if there is no claim and the buffer is too short for a record. A receive from MPI_PROC_NULL must not
  // be remembered: some MPIs use its request for several calls.
  void remember_receive(void* buffer, int64_t count, Datatype type, Comm comm, Request handle, ClaimPointer claim = {});
  void keep_type(TrackedRequest& tracked) const;
  void release(Request handle, TrackedRequest* tracked);
  [[nodiscard]] bool knows(Request handle);
  void poll_orphans();
  void poll_outbox();

  // Claims.
  [[nodiscard]] Claim* find_claim(int source, int tag, Comm comm);
  [[nodiscard]] ClaimPointer take_claim(int source, int tag, Comm comm);
  // Claims the message that a probe has seen, and those of its source in front of it. False: it has gone meanwhile.
  [[nodiscard]] bool claim_seen(const Status& seen, Comm comm);
  [[nodiscard]] ClaimPointer claim_message(MessageHandle handle, const Status& status, Comm comm);
  [[nodiscard]] int hand_out(ClaimPointer claim, MessageHandle* handle);
  [[nodiscard]] int make_completed_request(Request* request);

  [[nodiscard]] int world_rank(Comm comm, int rank_in_comm);
  // Returns the ranks in MPI_COMM_WORLD of a communicator's processes, or of those on the other side of an
  // intercommunicator; below zero for a process of another world. Empty: the MPI does not say them.
  [[nodiscard]] std::vector<int> ranks_of(Comm comm) const;
  // Takes the layer's attributes away from a communicator that the program is about to free.
  void drop_comm_attributes(Comm comm);
  void forget_comm(Comm comm) { freed_comms_.add(key_of(comm)); }  // needs no lock
  // has_work(): true if an offered message or a call that the layer carries is under way. progress() looks once at each
  // and, unless `waiting` is `no`, at what has arrived meanwhile, so that two ranks that wait for each other both end.
  // A call that waits calls progress() until its request is complete. wait() is MPI_Wait that does so.
  [[nodiscard]] bool has_work() const { return work_count_.load(std::memory_order_relaxed) != 0; }
  void add_ongoing(OngoingCall call);
  enum class Waiting : uint8_t { no, asks, blocked };
  void progress(Waiting waiting);
  [[nodiscard]] int wait(Request* request);
  void look_at(TrackedRequest& tracked);
  // MPI_Cancel of an offered send. False: `request` is none.
  [[nodiscard]] bool cancel_offer(Request request);
  // True for calls that need nothing of the layer (bypass.hpp). bypasses_requests(): calls on any requests, or on this
  // one; bypasses_receive(): receives; bypasses_windows(): calls of windows; bypasses_match(): receives of what a probe
  // has matched.
  [[nodiscard]] bool bypasses_requests() const { return is_plain && tracked_requests.empty() && is_quiet(); }
  [[nodiscard]] bool bypasses_requests(const Request* request) {
    return is_plain && is_quiet() && (tracked_requests.empty() || tracked_requests.find(key_of(*request)) == nullptr);
  }
  [[nodiscard]] bool bypasses_receive(Datatype type, int64_t count) {
    return types.bypasses_receive(type, count) && claims.empty();
  }
  [[nodiscard]] bool bypasses_windows() const { return is_plain && windows.none(); }
  [[nodiscard]] bool bypasses_match() const { return is_plain && messages.empty(); }
  void attend() {
    if (pipeline.has_news() || !is_quiet()) [[unlikely]]
      attend_now();
  }

 private:
  [[nodiscard]] std::string begin();
  void attend_now();
  [[nodiscard]] bool is_quiet() const { return !has_work() && orphans.empty() && outbox.empty(); }
  [[nodiscard]] int deliver_short(const Place& place, Status* status);
  [[nodiscard]] std::optional<Record> record_in(const Place& place, const Status& status);
  [[nodiscard]] bool peek(const Place& place, int64_t length, uint8_t* to);
  [[nodiscard]] int mpi_moves(const Place& place, int64_t elements, uint8_t* packed, int64_t bytes, bool packs);
  // Called under the lock, as is the use of the communicator for a collective call.
  [[nodiscard]] bool make_own_comm();
  [[nodiscard]] std::string open_nic();
  void begin_nic();
  void report() const;
  void report_so_far() const;
  [[nodiscard]] std::string report_line(bool has_ended) const;
  [[nodiscard]] std::string part_path() const;
  [[nodiscard]] static const char* why_unreachable(int to);
  [[nodiscard]] const char* why_not_mapped(bool may_offer, bool is_offerable) const;
  // Returns the count under which a message is counted for the report: contiguous ones are not told apart by it.
  [[nodiscard]] static int64_t counted_as(const Place& place) {
    return place.form->is_contiguous(place.count) ? TypeTally::various : place.count;
  }
  [[nodiscard]] static bool fill_bounced(const OfferedSend& send);
  void add_offer(std::unique_ptr<OfferedSend> send);
  void count_work();
  void progress_calls();
  void settle(OfferedSend& send, Waiting waiting);
  void pack_after_all(OfferedSend& send);
  void take_returned();
  [[nodiscard]] bool is_over(OfferedSend& send);
  void look_at_cancelled(OfferedSend& send);
  void look_at_receives();
  [[nodiscard]] static bool may_look_at(const TrackedRequest& tracked);

  // A receiver for which this rank has waited in vain is offered nothing for the next 2, 4, ... 64 messages
  // (`skipped_messages`).
  struct Patience {
    uint32_t waits_in_vain = 0;  // the number of those in a row, 6 at most
    uint32_t skipped_messages = 0;  // the next messages that are not offered
  };
  std::vector<Patience> patience_;
  std::vector<TrackedRequest*> arriving_;
  std::atomic<size_t> work_count_{
      0};  // the sizes of `offered_sends` and `ongoing_calls` together, for threads that hold no lock
  bool is_progressing_ = false;  // progress() is running: what it does may call it again
  FreedHandles freed_comms_;
  HandleMap<std::vector<int>> world_ranks_by_comm_;  // ranks in MPI_COMM_WORLD of a communicator's peers
  int comm_keyval_ = 0;
  Group world_group_{};
  Comm own_comm_{};  // a communicator of this process alone; made when it is first needed
  bool has_own_comm_ = false;
};

extern Layer& layer;

class Lock {
 public:
  Lock() {
    if (layer.is_threaded) layer.mutex.lock();
  }
  ~Lock() {
    if (layer.is_threaded) layer.mutex.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// Callbacks of the generalized requests that stand for what the layer does itself.
int query_nothing(void*, Status* status);
int free_nothing(void*);
int query_offer(void* serial, Status* status);
int free_offer(void* serial);
int cancel_nothing(void*, int);

// Calls the communicator's error handler as the MPI would. Returns the code that the program's call returns.
inline int raise(Comm comm, int code) {
  const int answer = real.Comm_call_errhandler(comm, code);
  return answer == success ? code : answer;
}

// raise() for an error of a file. A null file has no error handler, nor has an MPI that was built without files.
inline int raise_on_file(File file, int code) {
  if (file == nullptr || real.File_call_errhandler == nullptr) return code;
  const int answer = real.File_call_errhandler(file, code);
  return answer == success ? code : answer;
}

// Returns an error code of MPI whose text is the sentence (errors.cpp); MPI_ERR_OTHER where the MPI adds no such code,
// or when there are 64 already.
[[nodiscard]] int code_of(const Error& error);

// The program's status, or one of ours where it wants none.
class CallStatus {
 public:
  explicit CallStatus(Status* theirs) : status_(theirs == status_ignore ? &own_ : theirs) {}
  CallStatus(const CallStatus&) = delete;
  CallStatus& operator=(const CallStatus&) = delete;
  [[nodiscard]] Status* get() { return status_; }

 private:
  Status own_{};
  Status* status_;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
