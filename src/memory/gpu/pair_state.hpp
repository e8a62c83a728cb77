// Pair state - the state that a pair and its two moves share: letters, lanes, layouts that the peer has. For the floor
// only.
//
// Contract: a letter is one message of the channel. pump() takes one that has come, if any, and sorts it by its reader;
//   it never waits. A channel that breaks and a peer that has ended are kept in `broken`, behind the letters that came
//   before. A layout is sent with its first message: a slot of 64 names it afterwards, and both sides fill the slots in
//   the same order. It is sent again when its slot has been used again, or after a refusal. Letters of a message carry
//   its number; those of a message that is over are passed over, because both ends may end one at once.
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
  offer,  // to the receiver: a message, with its layout where that is new
  withdrawn,  // to the receiver: a sentence, there is no message or no more of it
  piece,  // to the receiver: packed bytes
  go,  // to the sender: pieces may come
  done,  // to the sender: the bytes are there
  refused,  // to the sender: a sentence
  ended,  // to either: a sentence, the pair has ended
};

struct PairLetter {
  struct Head {
    PairLetterKind kind = PairLetterKind::offer;
    PairWay way = PairWay::ipc;
    uint8_t has_event = 0;
    uint8_t is_new = 0;  // the layout follows
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
  struct Kept {
    Side from;
    Side to;
    Plan plan;
  };

  std::weak_ptr<PairMove::State> move;  // the move that is under way
  Memory packed;
  std::vector<Memory> pieces;  // pinned pieces, for packed bytes that go through the channel
  std::vector<Event> events;  // one for each piece
  std::deque<Kept> plans;

  Result<const Plan*> plan(const Device& device, const Side& from, const Side& to);
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
  int lane_out = 0;
  PairLane out;
  PairLane in;
  std::deque<PairLetter> to_sender;
  std::deque<PairLetter> to_receiver;
  std::optional<Error> broken;
  unsigned quiet = 0;
  std::array<std::optional<layout::Blob>, pair_blobs_max> blobs_sent;
  std::array<std::optional<layout::Blob>, pair_blobs_max> blobs_known;
  uint32_t blob_next = 0;
  uint32_t sent_number = 0;  // of the message that was offered last
  uint32_t received_number = 0;  // of the offer that was taken last
  Event order;  // marks what was on the sender's stream before a message
  std::optional<EventHandle> order_handle;
  Event peer_order;
  std::optional<EventHandle> peer_order_handle;
  std::optional<uint64_t> exporter;  // the process whose memory was mapped

  State(Device on, std::shared_ptr<PairChannel> over, PairOptions with)
      : device(std::move(on)), channel(std::move(over)), options(std::move(with)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (exporter) PeerMemory::forget(*exporter);
  }

  void pump();
  void listen();  // waits for a letter, at most a millisecond
  Status post(PairLetter::Head head, std::span<const std::byte> rest = {});
  Status post(PairLetterKind kind, std::string_view sentence = {});
  static bool for_receiver(PairLetterKind kind) { return kind <= PairLetterKind::piece; }
  [[nodiscard]] int pieces() const { return options.pieces; }
  [[nodiscard]] int64_t piece_bytes() const { return static_cast<int64_t>(options.piece_bytes); }
  // Makes what a lane still lacks: events, a buffer of the device for the packed bytes, and pinned pieces if
  // `with_pieces`.
  Status furnish(PairLane& lane, int64_t packed_bytes, bool with_pieces) const;

 private:
  void take(PairMessage message);
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
  bool sends = false;
  Side side;
  std::byte* base = nullptr;
  Stream stream = nullptr;
  Phase phase = Phase::offer;
  PairWay way = PairWay::ipc;
  bool may_go = false;
  bool direct = false;  // kernels read and write the one piece in place
  int64_t bytes = 0;
  int64_t count = 0;  // pieces of the message
  int64_t issued = 0;  // copies put on the stream
  int64_t filled = 0;  // pieces handed over (sender), pieces that came (receiver)
  int64_t freed = 0;
  std::optional<Error> wrong;  // the receiver's trouble with its own side, reported when the offer comes
  std::optional<Error> failed;
  std::optional<PeerMemory> memory;
  Event done;

  ~State();

  [[nodiscard]] PairLane& lane() const { return sends ? pair->out : pair->in; }
  [[nodiscard]] int64_t first_of(int64_t piece) const { return piece * pair->piece_bytes(); }
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
  [[nodiscard]] std::shared_ptr<State> other() const { return (sends ? pair->in : pair->out).move.lock(); }
  void end();
  Error end(Error error, bool tell_peer);

 private:
  Result<bool> advance();
  Status offer_memory(PairLetter::Head& head, std::byte* first);
  Status fill_pieces();
  Result<bool> accept(const PairLetter& letter);
  Status load(const PairLetter::Head& head, const layout::Blob& blob);
  Status empty_pieces();
};

// span_of() checks that the bytes which a side touches lie as a whole in memory that the device reaches. It returns the
// packed bytes and the first byte that is touched.
struct PairSpan {
  int64_t bytes = 0;
  std::byte* first = nullptr;
};
Result<PairSpan> span_of(const Device& device, const Side& side, const std::byte* base, const char* role);

}  // namespace spinloom::gpu
