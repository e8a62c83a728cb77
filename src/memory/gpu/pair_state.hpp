// Pair state - the state that a pair and its two moves share: letters, lanes, layouts that the peer has. For the floor
// only.
//
// Contract: a letter is one message of the channel. pump() takes one that has come, if any, and sorts it by its reader;
//   it never waits. A channel that breaks and a peer that has ended are kept in `pair_error`, behind the letters that
//   came before. A layout is sent with its first message: a slot of 64 names it afterwards, and both sides fill the
//   slots in the same order. It is sent again when its slot has been used again, or after a refusal. Letters of a
//   message carry its number; those of a message that is over are passed over, because both ends may end one at once.
// Threads: those of the pair. Time: host time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/gpu/event.hpp"
#include "memory/gpu/pair.hpp"
#include "memory/gpu/pair_process.hpp"
#include "memory/gpu/pair_ring.hpp"
#include "memory/gpu/peer.hpp"
#include "memory/gpu/plan.hpp"

namespace spinloom::gpu {

inline constexpr uint32_t pair_blobs_max = 64;
inline constexpr size_t pair_plans_max = 64;

enum class PairLetterKind : uint32_t {
  offer,  // the receiver gets a message, with its layout where that is new
  withdrawn,  // the receiver gets a sentence: there is no message or no more of it
  piece,  // the receiver gets packed bytes
  go,  // the sender learns that pieces may come
  done,  // the sender learns that the bytes are there
  refused,  // the sender gets a sentence
  ended,  // either gets a sentence: the pair has ended
};

struct PairLetter {
  struct Head {
    PairLetterKind kind = PairLetterKind::offer;
    PairWay way = PairWay::ipc;
    uint8_t has_event = 0;
    uint8_t has_layout = 0;  // the layout follows
    uint8_t reserved = 0;
    uint32_t slot = 0;
    uint32_t number = 0;  // number of the message in its direction
    int64_t bytes = 0;
    int64_t count = 0;
    int64_t offset = 0;
    PeerHandle memory;
    EventHandle event{};
  };
  Head head;
  PairMessage rest;

  [[nodiscard]] std::string sentence() const { return {reinterpret_cast<const char*>(rest.data()), rest.size()}; }
};
static_assert(sizeof(PairLetter::Head) == 40 + sizeof(PeerHandle) + sizeof(EventHandle), "no bytes that nobody set");

// The state that one direction keeps from message to message.
struct PairLane {
  struct CachedPlan {
    Side from;
    Side to;
    Plan plan;
  };

  std::weak_ptr<PairMove::State> move;  // the move that is under way
  Memory packed;
  std::vector<Memory> pieces;  // pinned pieces, for packed bytes that go through the channel
  std::vector<Event> events;  // one for each piece
  std::deque<CachedPlan> plans;

  Result<const Plan*> plan_for(const Device& device, const Side& from, const Side& to);
};

struct Pair::State {
  Device device;
  std::shared_ptr<PairChannel> channel;
  PairOptions options;
  PairWay way = PairWay::packed;
  bool is_forced = false;
  std::string reason;
  PairWatch watch;
  PairRing ring;
  int lane_out = 0;  // the lane of the ring that this process writes
  PairLane out;
  PairLane in;
  std::deque<PairLetter> to_sender;
  std::deque<PairLetter> to_receiver;
  std::optional<Error> pair_error;  // set once the pair has ended
  unsigned empty_polls = 0;  // calls of pump() since a letter came
  std::array<std::optional<layout::Blob>, pair_blobs_max> blobs_sent;  // the layouts of the peer's slots
  std::array<std::optional<layout::Blob>, pair_blobs_max> blobs_known;  // the layouts of our slots
  uint32_t next_slot = 0;  // the slot of the next layout that is sent
  uint32_t sent_number = 0;  // number of the message that was offered last
  uint32_t received_number = 0;  // number of the offer that was taken last
  Event stream_event;  // marks what was on the sender's stream before a message
  std::optional<EventHandle> stream_event_handle;
  Event peer_event;  // the peer's stream_event, opened here
  std::optional<EventHandle> peer_event_handle;
  std::optional<uint64_t> peer_process;  // the process whose memory was mapped (PeerHandle::process)

  State(Device on_device, std::shared_ptr<PairChannel> over_channel, PairOptions pair_options)
      : device(std::move(on_device)), channel(std::move(over_channel)), options(std::move(pair_options)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (peer_process) PeerMemory::unmap_unused(*peer_process);
  }

  void pump();
  void wait_for_letter();  // waits for a letter, at most a millisecond
  Status post(PairLetter::Head head, std::span<const std::byte> rest = {});
  Status post(PairLetterKind kind, std::string_view sentence = {});
  static bool is_for_receiver(PairLetterKind kind) { return kind <= PairLetterKind::piece; }
  [[nodiscard]] int pieces() const { return options.pieces; }
  [[nodiscard]] int64_t piece_bytes() const { return static_cast<int64_t>(options.piece_bytes); }
  // Makes what a lane still lacks: events, a buffer of the device for the packed bytes, and pinned pieces if
  // `with_pieces`.
  Status prepare(PairLane& lane, int64_t packed_bytes, bool with_pieces) const;

 private:
  void sort_letter(PairMessage message);
};

struct PairMove::State {
  enum class Phase : uint8_t {
    offer,  // receiver: an offer has not come yet
    pieces,  // packed bytes go through pieces
    finishing,  // receiver: the last kernel is under way
    answer,  // sender: everything was handed over
    over,
  };

  std::shared_ptr<Pair::State> pair;
  bool is_send = false;
  Side side;
  std::byte* base = nullptr;
  Stream stream = nullptr;
  Phase phase = Phase::offer;
  PairWay way = PairWay::ipc;
  bool may_send_pieces = false;
  bool is_in_place = false;  // kernels read and write the one piece in place
  int64_t bytes = 0;  // packed bytes of the message
  // The pieces of the message, and how many of them have come so far: their copies are on the stream, they were handed
  // over (sender) or came (receiver), they were given back.
  int64_t piece_count = 0;
  int64_t issued = 0;
  int64_t filled = 0;
  int64_t freed = 0;
  std::optional<Error> side_error;  // the receiver's trouble with its own side, reported when the offer comes
  std::optional<Error> move_error;
  std::optional<PeerMemory> memory;
  Event done;  // marks the receiver's last kernel

  ~State();

  [[nodiscard]] PairLane& lane() const { return is_send ? pair->out : pair->in; }
  [[nodiscard]] int64_t offset_of(int64_t piece) const { return piece * pair->piece_bytes(); }
  [[nodiscard]] size_t length_of(int64_t piece) const;
  [[nodiscard]] std::byte* piece_at(int64_t piece) const;
  [[nodiscard]] std::byte* piece_on_device(int64_t piece) const;
  [[nodiscard]] Event& event_of(int64_t piece) const;

  Status offer();  // pair_send.cpp, like step_send()
  Result<bool> step_send();
  Result<bool> step_receive();  // pair_receive.cpp
  // Takes the next steps of this move, and of the one in the other direction if this one is not over.
  Result<bool> step();
  [[nodiscard]] bool waits_for_letter() const;
  [[nodiscard]] std::shared_ptr<State> opposite_move() const { return (is_send ? pair->in : pair->out).move.lock(); }
  void finish();
  Error fail_move(Error error, bool tell_peer);

 private:
  Result<bool> advance();
  Status offer_memory(PairLetter::Head& head, std::byte* first);
  Status fill_pieces();
  Result<bool> accept(const PairLetter& letter);
  Status launch_from_peer(const PairLetter::Head& head, const layout::Blob& blob);
  Status drain_pieces();
};

// span_of() checks that the bytes which a side touches lie as a whole in memory that the device reaches. It returns the
// packed bytes and the first byte that is touched.
struct PairSpan {
  int64_t bytes = 0;
  std::byte* first = nullptr;
};
Result<PairSpan> span_of(const Device& device, const Side& side, const std::byte* base, const char* role);

}  // namespace spinloom::gpu
