// Rails - messages of a process over several NICs: a protocol layer above the rails, as one endpoint for each peer.
//
// Contract: all ranks open theirs, with the same options and as many rails. send() and receive() are MPI_Isend and
//   MPI_Irecv with 64-bit tags; put() and get() reach memory that another rank has exposed under a key; send_word() is
//   an active message. test() and wait() complete requests; everything goes on in progress(), which they call.
//   Up to eager_bytes a message leaves at once. Of a longer one only a word leaves (a request to send); its receiver
//   reads the bytes from the sender's memory by gets, from `stripe_bytes` on in fragments over all rails. Each part of
//   a message (what one rail carries) ends with a word to the sender. The receiver's NIC sends it by itself (a
//   triggered put on the counter of the part's replies), so the sender completes without the receiver's processor. By
//   put, the receiver opens its memory and clears the message to be sent, and the sender's NICs put the fragments when
//   that word comes (triggered puts on its count).
//   Mode::tag: the receiver's NIC matches. All short messages and requests to send use the home rail; other rails carry
//   fragments, words about fragments and about taken messages, and active messages of the user.
//   Mode::word: active messages over all rails, matched by the processor in the order of their numbers.
// Invariants: (1) messages of one sender match in the order in which they were sent; (2) at most `window` messages from
//   one rank to another have not been taken by receives yet, further ones wait at their sender, so memory for early
//   messages never runs out; (3) a fragment that a rail loses is read again by another rail; a request that no rail can
//   finish ends with an Error, after everything of it has come back; (4) in Mode::tag a receiver whose home rail is
//   lost is lost, and stays so; any other rail is used again when its peer is back.
// Source: MPC's multirail (deliverable D4.7, sections 2.2.3 and 2.3.2).
// Threads: the owner of the Interfaces. Time: that of their ports.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "portals/rails/am_channel.hpp"
#include "portals/rails/inbox_blocks.hpp"
#include "portals/rails/landings.hpp"
#include "portals/rails/pieces.hpp"
#include "portals/rails/rail.hpp"
#include "portals/rails/slots.hpp"
#include "portals/rails/stripes.hpp"

namespace spinloom::rails {

// The side that matches messages with receives: the receiver's NIC by tags, or its processor by active messages.
enum class Mode : uint8_t { tag, word };

struct RailsOptions {
  Mode mode = Mode::tag;
  uint64_t eager_bytes = 8 << 10;  // longer messages begin with a request to send
  uint64_t stripe_bytes = 512 << 10;  // shorter transfers are one fragment
  uint64_t fragment_bytes = fragment_bytes_usual;  // the longest fragment
  uint32_t window = 32;  // messages from one rank to another that no receive has taken yet; further ones wait
  uint32_t home = 0;  // the home rail of every rank, in Mode::tag
  bool by_put = false;  // long messages are put by their senders, not read by their receivers
  bool offloaded = true;  // parts end by triggered puts; otherwise by the receiver's processor, for comparison
  bool words = false;  // active messages of the user, also in Mode::tag
  uint32_t ranks = 1;
  RailPortals portals;
  std::vector<RailFacts> facts;  // one for each rail
  std::function<void()> spend_call_time;  // spends the time of a call to the NIC
  // Waits until something may have changed. An Error: the caller must stop waiting.
  std::function<Status()> pause;
};

struct Completion {
  uint32_t source = 0;
  uint64_t tag = 0;
  uint64_t bytes = 0;  // bytes in the receiver's memory
  bool truncated = false;
};

struct RequestId {
  uint64_t value = 0;
};

// Memory that other ranks may reach.
struct Key {
  uint64_t number = 0;
};
struct Rights {
  bool read = true;
  bool write = true;
};

class Rails {
 public:
  static constexpr uint32_t any_source = UINT32_MAX;
  static constexpr uint32_t rails_max = 8;
  static constexpr uint32_t words_max = 64;  // handlers of the user
  using Word = std::function<void(uint32_t source, std::span<const uint8_t> bytes)>;

  [[nodiscard]] static Result<std::unique_ptr<Rails>> open(const std::vector<portals::Interface*>& nics,
                                                           RailsOptions options);
  ~Rails();
  // An Error while requests are under way, or while memory under a key is read or written; it may be called again.
  [[nodiscard]] Status close();

  [[nodiscard]] Result<RequestId> send(const uint8_t* data, uint64_t bytes, uint32_t rank, uint64_t tag);
  [[nodiscard]] Result<RequestId> receive(uint8_t* data, uint64_t bytes, uint32_t source, uint64_t tag,
                                          uint64_t ignore_bits);

  // The message is the pieces, one behind the other; the NICs gather and scatter them. The list itself is copied.
  using PieceList = std::span<const nic::IovecElement>;
  [[nodiscard]] Result<RequestId> send(PieceList pieces, uint32_t rank, uint64_t tag);
  [[nodiscard]] Result<RequestId> receive(PieceList pieces, uint32_t source, uint64_t tag, uint64_t ignore_bits);

  [[nodiscard]] Result<Key> expose(uint8_t* data, uint64_t bytes, Rights rights);
  // Code::stalled while the memory is read or written; it may be called again.
  [[nodiscard]] Status withdraw(Key key);
  [[nodiscard]] Result<RequestId> put(const uint8_t* data, uint64_t bytes, uint32_t rank, Key key, uint64_t offset);
  [[nodiscard]] Result<RequestId> get(uint8_t* data, uint64_t bytes, uint32_t rank, Key key, uint64_t offset);

  void handle(uint32_t id, Word handler) { handlers_.at(id) = std::move(handler); }
  // The bytes are copied; the word may wait for the window until a later call. flush() waits until all words have come,
  // and until no message waits for the window.
  [[nodiscard]] Status send_word(uint32_t rank, uint32_t id, std::span<const uint8_t> bytes);
  // The NIC reads the pieces, which are not copied; the request is done when they have come.
  [[nodiscard]] Result<RequestId> send_word_from(PieceList pieces, uint32_t rank, uint32_t id);
  [[nodiscard]] Status flush();

  // A request may be completed once. If the request failed, they return its Error.
  [[nodiscard]] Result<std::optional<Completion>> test(RequestId request_id);
  [[nodiscard]] Result<Completion> wait(RequestId request_id);
  // Takes the messages and events that have come. True if there were any.
  [[nodiscard]] Result<bool> progress();

  [[nodiscard]] const RailsOptions& options() const { return options_; }
  [[nodiscard]] uint32_t rails() const { return static_cast<uint32_t>(rails_.size()); }
  [[nodiscard]] const Rail& rail(uint32_t number) const { return *rails_.at(number); }
  [[nodiscard]] uint64_t repeated_fragments() const { return stripes_->repeated(); }
  // The number of times that a slot was set up on the NICs: memory exposed or, by put, entries for the receiver's word.
  [[nodiscard]] uint64_t exposures() const { return slots_->exposures(); }

 private:
  enum class RequestKind : uint8_t { send, receive, transfer, word };
  struct Request {
    RequestKind kind = RequestKind::send;
    uint8_t* into = nullptr;
    const uint8_t* from = nullptr;
    PiecesRef pieces;  // pieces in place of into and from
    uint64_t bytes = 0;
    uint32_t peer = 0;
    uint64_t tag = 0;
    uint64_t ignore_bits = 0;  // the bits that a receive ignores
    nic::EntryId entry;  // the entry of a receive that the NIC matches
    bool is_matched = false;
    uint32_t handler_id = 0;  // the handler of a word
    std::vector<uint8_t> word_bytes;  // the bytes of a word that is copied
    std::optional<bits::Slot> slot;  // the slot of a long message's send
    bool is_begun = false;  // its transfer by put has begun, or it is a word with pieces and has left
    Completion completion;
    std::optional<Error> error;
    bool is_done = false;
  };
  struct Peer {
    uint64_t sent_messages = 0;  // messages to the peer that have left
    uint64_t acknowledged_messages = 0;  // sent messages of which the peer has said that its receives have taken them
    uint64_t taken_messages = 0;  // messages of the peer that receives here have taken
    uint64_t reported_messages = 0;  // taken messages of which the peer has been told
    std::deque<uint64_t> held_requests;  // numbers of requests that wait for the window
    std::vector<nic::EntryId> entries;  // one for each rail: takes the peer's words about slots and what it has taken
    // One for each rail: they count losses of the peer as failures, its returns as successes.
    std::vector<nic::CounterId> loss_counters;
    std::vector<uint64_t> returns_seen;  // one for each rail: the successes that look_for_loss_of() has seen
    std::vector<uint64_t> losses_seen;  // one for each rail: the failures that look_for_loss_of() has seen
    uint32_t open_requests = 0;  // requests with this peer that are not done
    bool has_work = false;  // the peer is in peers_with_work_
    bool is_lost = false;
  };
  // A message as it comes: its bytes, or where they are to be read.
  struct Message {
    uint32_t source = 0;
    uint64_t tag = 0;
    uint64_t bytes = 0;
    std::optional<uint64_t> slot;
    std::span<const uint8_t> data = {};
  };
  // A message without a receive, in Mode::word.
  struct EarlyMessage {
    Message message;
    std::vector<uint8_t> data;
  };
  struct ExposedMemory {
    std::vector<nic::EntryId> entries;  // one for each rail
  };

  explicit Rails(RailsOptions options);
  [[nodiscard]] Status set_up(const std::vector<portals::Interface*>& nics);
  [[nodiscard]] Status listen_to(uint32_t peer);
  [[nodiscard]] Result<portals::Unlinked> unlink(size_t rail, nic::EntryId& entry);
  [[nodiscard]] Status stop_listening_to(uint32_t peer);
  [[nodiscard]] Status check_rank(const char* call, uint32_t rank) const;
  [[nodiscard]] Rail& home_rail() { return *rails_[options_.home]; }
  [[nodiscard]] RequestId add(Request request);
  void note_work(uint32_t peer);
  void end_request(Request& request);
  void forget_request(uint64_t number);
  void finish_request(uint64_t number) { end_request(requests_.at(number)); }
  void fail_request(uint64_t number, const Error& error);

  [[nodiscard]] Result<RequestId> start_or_hold(Request request);
  [[nodiscard]] Result<RequestId> start_receive(Request new_request);
  [[nodiscard]] Status check_word(uint32_t rank, uint32_t id, uint64_t bytes) const;
  // Copies the bytes of a message into a receive.
  [[nodiscard]] Status copy_into(const Request& request, const uint8_t* data, uint64_t bytes);
  [[nodiscard]] Status on_word_arrived(uint64_t number, const Status& result);
  [[nodiscard]] Status start(uint64_t number);
  [[nodiscard]] Status start_send(uint64_t number, Request& request);
  [[nodiscard]] Status send_by_tag(uint64_t number, const Request& request, uint64_t hdr_data);
  [[nodiscard]] Status release_held(uint32_t rank);

  [[nodiscard]] Result<RequestId> start_transfer(Transfer transfer, uint64_t bytes, uint32_t rank, Key key,
                                                 uint64_t offset);
  // Returns the result of a request, once; nothing while the request is under way.
  [[nodiscard]] Result<std::optional<Completion>> result_of(RequestId request_id);

  [[nodiscard]] Status on_event(uint32_t rail, const nic::Event& event);
  [[nodiscard]] Status on_receive(const nic::Event& event);
  [[nodiscard]] Status on_sent(uint32_t rail, const nic::Event& event);
  [[nodiscard]] Status on_entry(const nic::Event& event);
  [[nodiscard]] Status on_cleared(uint32_t rail, const nic::Event& event);
  [[nodiscard]] static Transfer landing_transfer_of(const Request& request);
  [[nodiscard]] Status on_word(uint32_t source, const AmChannel::Header& header, std::span<const uint8_t> bytes);
  [[nodiscard]] Status match(const Message& message);
  [[nodiscard]] Status match_early(uint64_t number);
  [[nodiscard]] Status take_message(uint64_t number, const Message& message);
  [[nodiscard]] Status count_taken(uint32_t rank);
  [[nodiscard]] Status report_taken(uint32_t rank);
  [[nodiscard]] Status on_transferred(uint64_t number, const Status& result);

  [[nodiscard]] bool sees_at_once();
  [[nodiscard]] Status pause();
  [[nodiscard]] Status look_for_losses();
  [[nodiscard]] Status look_for_loss_of(uint32_t rank);
  [[nodiscard]] Status lose_peer(uint32_t peer);
  [[nodiscard]] Status end_receive(uint64_t number, const Error& error);

  RailsOptions options_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::unique_ptr<InboxBlocks> early_blocks_;  // only in Mode::tag
  std::unique_ptr<AmChannel> channel_;  // null: no active messages
  std::unique_ptr<Stripes> stripes_;
  std::unique_ptr<Slots> slots_;
  std::unique_ptr<Landings> landings_;
  std::vector<Word> handlers_;
  std::vector<Peer> peers_;
  std::vector<uint32_t> peers_with_work_;  // the peers with open requests, and some without
  uint32_t last_looked_at_ = 0;  // the peer without work at which the last call looked
  std::unordered_map<uint64_t, Request> requests_;
  uint64_t next_request_ = 1;
  std::list<uint64_t> posted_receives_;  // receives in Mode::word
  std::list<EarlyMessage> early_messages_;
  std::unordered_map<uint64_t, ExposedMemory> exposed_by_key_;
  uint64_t next_key_ = 1;
  Time last_empty_look_{};  // the time when progress() last found nothing
};

}  // namespace spinloom::rails
