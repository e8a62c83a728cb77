// Writer - one rank's trace, written while the program runs.
//
// Contract: create() makes the two files; it fails if one of them exists. add() of a type or a communicator gives its
//   number; equal types share one. record() adds an event at the end; poll() does so for a poll in vain, or makes it
//   part of the event before, if that is the same poll and began less than 100 ms earlier. end() completes the trace;
//   end_within() does so while the rank is in a call. What cannot be written stops the recording: trouble() says why,
//   and so does the trace; from then on nothing more is recorded.
// Invariants: (1) whatever happens to the process, what was recorded can be read: but for the last event, while polls
//   may still become part of it; (2) a full disk raises no SIGBUS, because the room is allocated at the
//   beginning; (3) no file is open between two calls.
// Threads: the caller's lock. Time: ns of the monotonic clock; the ends of events do not decrease.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "predict/trace/code.hpp"
#include "predict/trace/file.hpp"
#include "predict/trace/interned.hpp"

namespace spinloom::trace {

class Writer {
 public:
  static Result<std::unique_ptr<Writer>> create(const std::string& directory, const Head& head);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();  // both files stay without end(), as those of a process that is killed

  [[nodiscard]] uint32_t add(const TypeEntry& type);
  [[nodiscard]] uint32_t add(const CommEntry& comm);
  // Shows readers that a call has begun, which may never end. The next event shows that it has ended.
  uint64_t enter(Call call, CallForm form, uint64_t begin_ns) {
    const uint64_t word = UnderWay::word(static_cast<uint8_t>(call), static_cast<uint8_t>(form), begin_ns - begun_ns_);
    open_->under_way.store(word, std::memory_order_relaxed);
    return word;
  }
  // After an event, shows the call of another thread that has not ended; `word` is what enter() gave for it.
  void restore_call(uint64_t word) { open_->under_way.store(word, std::memory_order_relaxed); }
  void record(const Signature& signature, uint64_t begin_ns, uint64_t end_ns);
  void poll(const Signature& signature, uint64_t begin_ns, uint64_t end_ns);
  void end();
  void end_within(Call call, CallForm form, uint64_t begin_ns);
  void stop(std::string why);
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  Writer(std::string directory, uint32_t rank, uint64_t begun_ns, OpenHeader* open);
  [[nodiscard]] uint8_t* column_end(Column which) const;
  [[nodiscard]] uint32_t intern(const Signature& signature);
  [[nodiscard]] bool fits(size_t definition_bytes, size_t events) const;
  void define(Tag tag, const Bytes& bytes);
  void put_event(const Event& event);
  void flush_poll();
  void publish();
  void close_chunk();
  void append(std::array<uint32_t, columns> bytes, std::span<const uint8_t> raw);

  std::string directory_;
  uint32_t rank_;
  uint64_t begun_ns_;
  OpenHeader* open_;
  std::array<uint32_t, columns> used_bytes_{};
  uint32_t sequence_ = 0;
  uint64_t last_end_ns_ = 0;  // the end of the event before, since begun_ns_; 0 at the beginning of a chunk
  uint32_t types_ = 0;
  uint32_t comms_ = 0;
  uint32_t signatures_ = 0;
  Interned known_types_;
  Interned known_signatures_;
  Event pending_poll_{};
  bool has_pending_poll_ = false;
  Bytes scratch_;
  std::string trouble_;
};

}  // namespace spinloom::trace
