// ShmTransport - carries packets between ranks of one machine, through channels in shared memory.
//
// Contract: see Transport. Payloads shorter than the limits of ShmOptions travel through the channel, which takes two
//   copies. Longer payloads are lent, if they need not be read at once and the receiver has found that it can read them
//   in the sender's memory: then the receiver copies them from there, which takes one copy. It reads them out of the
//   sender's heap, which it has mapped, or by the kernel, or, from a rank of this process, where they are. Except out
//   of the heap, a sender that polls copies a part of payloads from `help_from_bytes` on; from 256 KiB on, a sender
//   that sleeps in a call is woken to help, too. If the receiver cannot read the sender's memory, long payloads travel
//   through the channel in parts. With a Rendezvous, cards of peers may come later: the owner puts a card into `cards`
//   and calls card_arrived(), and calls peer_lost() for news without a card. What is sent to a peer without a card
//   waits; after `wait_for_peers` it fails.
// Invariants: (1) whatever a peer writes into its channel, it can only lose its own packets; (2) the last thing from a
//   peer is `bye` or the end of its process, unless it never came or is out of reach; (3) answers overtake packets that
//   wait because the peer said stop.
// Threads: the owner of the NIC. Time: the monotonic clock, for peers without a card and for channels that are full.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "live/launch/business_card.hpp"
#include "live/launch/contacts.hpp"
#include "live/launch/rendezvous.hpp"
#include "live/node/transport.hpp"
#include "memory/peer/peer_memory.hpp"
#include "memory/peer/shared_copy.hpp"

namespace spinloom::live {

// The ways in which a receiver may read lent payloads. automatic: from the mapped heap or through the kernel; heap,
// single: only from the heap, or only through the kernel; twice: not at all. Between ranks of one process, automatic
// and single read in place, heap reads the heap in place.
enum class CopyMode : uint8_t { automatic, heap, single, twice };

// The messages that are done directly in the memory of their target, unless a caller of it waits for packets. never:
// none. mapped: those to memory of its heap, which is mapped. automatic: also those to other memory, by the kernel.
// always: all of these, whoever waits.
enum class DirectMode : uint8_t { never, mapped, automatic, always };

struct ShmOptions {
  CopyMode copy_mode = CopyMode::automatic;
  uint64_t lend_from_bytes = 16 << 10;
  uint64_t lend_heap_from_bytes = 8 << 10;  // lower, because it costs no system call; also within a process
  uint64_t help_from_bytes = 48 << 10;  // help with shorter copies costs more system calls than it saves
  DirectMode direct = DirectMode::automatic;
  bool shared_address_space = false;  // ranks whose cards have this process's id are threads of this process
  Rendezvous* rendezvous = nullptr;  // the source of later cards; null: all cards are there
  Time wait_for_peers = Time::never();  // the longest wait for a card
};

class ShmTransport final : public Transport {
 public:
  // Watches a peer's process, by a descriptor that becomes readable when the process has ended.
  using Watch = std::function<void(int descriptor, nic::Rank peer)>;

  ShmTransport(TransportClient& client, Segment& own, uint32_t rank, const std::vector<BusinessCard>& cards,
               const ShmOptions& options, Watch watch);

  [[nodiscard]] const char* name() const override { return "shm"; }
  [[nodiscard]] bool send(nic::Send& outbound) override;
  [[nodiscard]] bool send_small(const nic::QuickPut& put, uint64_t message) override;
  [[nodiscard]] bool access_directly(const nic::Send& send, DirectEnd& end) override;
  [[nodiscard]] bool put_directly(const nic::QuickPut& put) override;
  void note_settled() override;
  [[nodiscard]] bool has_ended(nic::Rank peer) const override;
  bool poll() override;
  [[nodiscard]] bool has_news() const override;
  void return_loan(nic::Rank peer, uint64_t loan) override;
  void set_stopped(nic::Rank peer, bool stopped) override;
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override;
  [[nodiscard]] bool fetch_with_help(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length,
                                     uint64_t token) override;
  // No caller slows down for a peer that has not come.
  [[nodiscard]] bool congested(nic::Rank peer) const override {
    const Peer& one = *peers_[peer.value];
    return one.attached && one.waits();
  }
  [[nodiscard]] bool drained() const override;
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const override;
  void note_resumed(nic::Rank peer) override { peers_[peer.value]->reader.note_resumed(); }
  [[nodiscard]] std::string describe(nic::Rank peer) override;
  [[nodiscard]] Time timer() const override;
  void say_goodbye() override;
  // Says that the process of this peer has ended. The peer is lost when what it had sent has been read.
  void process_ended(nic::Rank peer);
  // Says that the peer's card has come.
  void card_arrived(nic::Rank peer);
  // Says that this rank has lost the peer: it has left (`why` is empty), or could not start, or cannot reach us.
  void peer_lost(nic::Rank peer, const std::string& why);
  // Changes ShmOptions::help_from_bytes.
  void set_help_from(uint64_t bytes) { options_.help_from_bytes = bytes; }
  // The number of cells that were ignored because they made no sense.
  [[nodiscard]] uint64_t refused_cells() const { return refused_cells_; }
  // The number of messages that were done in their targets' memory.
  [[nodiscard]] uint64_t direct_accesses() const { return direct_accesses_; }
  // The number of parts that this rank has copied into receivers of its lent payloads, to help them.
  [[nodiscard]] uint64_t helped_parts() const { return helped_parts_; }

 private:
  struct Loan {
    bool open = false;  // the peer has not returned it
    SendCompletion completion;
    uint64_t bytes = 0;
  };
  static constexpr uint64_t no_loan = UINT64_MAX;
  struct Waiting {
    nic::Send outbound;
    std::vector<uint8_t> payload_copy;  // a copy of the payload, if the sender may change its memory already
    uint64_t done = 0;  // bytes of the payload that are in the channel
    uint64_t returned_loan = no_loan;  // no packet waits here, but the return of this loan to the peer, unless no_loan
  };
  struct Peer {
    bool in_process = false;  // the peer is a thread of this process
    Segment segment;
    ChannelMemory* channel_out = nullptr;  // the memory that `writer` writes into
    ChannelWriter writer;
    ChannelReader reader;
    peer::PeerMemory memory;
    uint32_t found_waiting = 0;  // messages in a row that found a caller of the peer waiting, up to a limit
    uint32_t trusted_messages = 0;  // messages that will not look for that
    uint32_t cells_when_asked = 0;  // the cells taken from its channel when the last message chose its way
    bool heap_tried = false;  // we have tried to map its heap
    bool kernel_refuses = false;  // the kernel has not let us put into its memory
    bool heap_announced = false;  // we have told it that we have a heap
    bool attached = false;
    bool card_awaited = false;  // we need its card, and it has not come
    bool needs_fence = true;  // the peer's doorbell must be rung with a fence
    bool is_reading = false;  // its channel is one of those that we read
    bool loss_noted = false;  // the next poll() reads what it had sent, and then loses it
    bool lost = false;  // the client has been told
    Outstanding outstanding_at_loss;  // everything that the peer had not taken when it was lost
    std::string unreachable;  // the reason why a living peer cannot be reached; empty: none
    std::deque<Waiting> waiting;  // packets that wait for room, or because the peer has said stop
    std::deque<Waiting> answers;  // answers that wait for room
    [[nodiscard]] bool waits() const { return !waiting.empty() || !answers.empty(); }
    std::vector<Loan> loans;
    uint32_t open_loans = 0;
    peer::SharedCopy shared_copy;  // the copy of a payload that it has lent us
    uint64_t shared_copy_token = 0;
    peer::CopyHelper copy_helper;  // helps with payloads that we have lent it
    std::vector<uint64_t> loans_to_return;  // the peer's loans that we give back when the shared copy has ended
  };
  // Says what is in the channel: all of a packet, a loan in place of its payload, or at most some of it.
  enum class WriteResult : uint8_t { all, lent, some };

  struct Access;
  [[nodiscard]] bool may_access_directly(Peer& peer, bool is_answered) const;
  [[nodiscard]] bool takes_packets_at_once(Peer& peer, bool is_answered) const;
  [[nodiscard]] bool access(Peer& peer, Access& access);
  static void ring_for_counts(Peer& peer);
  [[nodiscard]] uint8_t* place_at(Peer& peer, uint64_t address, uint64_t length);
  [[nodiscard]] bool move(Peer& peer, const PublishedPortal& portal, uint64_t address, Access& access);
  [[nodiscard]] bool attach(uint32_t rank);
  [[nodiscard]] Result<Segment> open_segment(uint32_t rank);
  [[nodiscard]] bool await_card(uint32_t rank);
  void stop_awaiting(uint32_t rank);
  void ask_for_card(uint32_t rank);
  bool check_awaited();
  [[nodiscard]] std::string why_memory_unread() const;
  bool note_loss(uint32_t rank, std::string why);
  void begin_reading(uint32_t rank);
  void offer_help(uint32_t rank);
  void map_heap(Peer& peer);
  [[nodiscard]] bool can_lend(Peer& peer, const nic::PayloadRef& payload);
  void announce_heap(Peer& peer);
  void attach_new_peers();
  static void copy_payload(Waiting& waiting);
  [[nodiscard]] WriteResult write(Peer& peer, nic::Send& outbound, uint64_t& done);
  [[nodiscard]] bool write_small(Peer& peer, const nic::QuickPut& put, uint64_t message, nic::AckRequest ack);
  [[nodiscard]] bool write_part(Peer& peer, const nic::Send& outbound, uint64_t done, uint64_t length);
  [[nodiscard]] bool lend(Peer& peer, const nic::Send& outbound);
  [[nodiscard]] bool write_loan_return(Peer& peer, uint64_t loan);
  Waiting& enqueue(Peer& peer, bool is_answer);
  [[nodiscard]] bool enqueue_send(Peer& peer, nic::Send& outbound, uint64_t done);
  bool flush(uint32_t rank);
  bool flush(Peer& peer, std::deque<Waiting>& queue);
  bool read_cells(uint32_t rank);
  void handle_cell(uint32_t rank, const Cell& cell);
  void handle_packet(uint32_t rank, const Cell& cell);
  void end_loan(uint32_t rank, uint64_t loan);
  bool help_copy(Peer& peer);
  bool end_shared_copy(uint32_t rank);
  bool lose_noted();
  void lose(uint32_t rank);

  TransportClient& client_;
  Segment& own_;
  uint32_t rank_;
  const std::vector<BusinessCard>& cards_;
  ShmOptions options_;
  Watch watch_;
  SharedHeap& heap_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<uint32_t> readable_peers_;  // peers whose channels we read
  std::vector<uint32_t> noted_losses_;  // peers that note_loss() has noted, until the next poll()
  std::vector<uint64_t> seen_attached_;  // the part of SegmentHeader::attached_peers that we have seen
  nic::Packet small_packet_;  // the packet of small puts: the fields that they do not set keep their values
  Contacts contacts_;  // peers that are awaited
  uint32_t waiting_peers_ = 0;  // number of peers for which something waits for room, or that are awaited
  Time retry_at_{};  // the time when full channels are tried again
  Time retry_pause_{};  // the pause until then; it doubles while nothing moves
  uint64_t open_loans_ = 0;  // number of loans to all peers
  uint32_t shared_copies_ = 0;  // number of peers that are helping us copy
  uint64_t refused_cells_ = 0;
  uint64_t helped_parts_ = 0;
  uint64_t direct_accesses_ = 0;
  bool warned_ = false;  // the line about a peer that cannot be reached has been printed
};

}  // namespace spinloom::live
