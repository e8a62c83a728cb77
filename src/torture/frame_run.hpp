// FrameRun - a run with frames: stations, lossy cables, an Ethernet NIC with handlers, its host, and the oracle.
//
// Contract: run() is the whole run; its Error describes what went wrong. Senders of messages are those of
//   src/ethernet/slmp; they send the frames of frame_format.hpp. The oracle decides by itself which rules hold for a
//   frame, and compares counts, bytes and order at every step (docs/torture.md has the list).
// Invariants: the same configuration and seed give the same run.
// Threads: one owner. Time: its own, for cables, time-outs of senders, and the host.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ethernet/slmp/sender.hpp"
#include "torture/frame_card.hpp"
#include "torture/frame_format.hpp"
#include "torture/frame_link.hpp"
#include "torture/region.hpp"
#include "torture/run.hpp"

namespace spinloom::torture {

class FrameRun final : private FrameCard::Owner {
 public:
  FrameRun(const Config& config, uint64_t seed, bool trace, Outcome& outcome);
  [[nodiscard]] Status run();
  [[nodiscard]] uint64_t steps() const { return card_ == nullptr ? 0 : card_->steps(); }

 private:
  enum class Kind : uint8_t { echo, message, ring };
  // The stage of a context, as the host manages it.
  enum class Stage : uint8_t { active, resting, leaving, gone, initialising };
  struct ContextRecord {  // a context, as the host and the oracle know it
    spin::ContextId id;
    Kind kind = Kind::echo;
    frames::ContextOptions options;
    Region memory;  // host memory
    uint64_t used = 0;  // bytes of it that messages take
    Stage stage = Stage::gone;
    Time until{};  // the time at which the host goes on with a resting or removed context
    uint64_t payload_runs = 0;  // expected count of runs in its state, since it was installed
    uint64_t host_counts = 0;  // expected count in host memory
    uint32_t ring_read = 0;  // entries of the ring that were read since it was installed
    uint32_t mails = 0;  // mails sent to it whose handlers have not ended
  };
  struct Message {  // a message from a station to the NIC
    uint32_t number = 0;
    uint32_t station = 0;
    uint32_t context = 0;
    FrameBytes bytes;
    uint64_t place = 0;  // its offset in the context's host memory
    Conduct conduct = Conduct::good;
    std::unique_ptr<slmp::Sender> sender;
    bool may_fail = false;  // its conduct is bad, or a frame of it did not reach its handlers for a known reason
    bool is_over = false;
    bool header_runs = false;
    bool completion_runs = false;
    uint32_t payloads_run = 0;
    std::vector<std::pair<uint64_t, uint64_t>> written;  // offsets and lengths of its bytes in host memory
  };
  struct ExpectedCounts {  // the counts that the oracle expects of the NIC
    uint64_t done = 0, dropped = 0, passed_on = 0, failed = 0, faults = 0, host_runs = 0, mails = 0, mails_refused = 0;
    uint64_t ring = 0, to_stack = 0, sent_by_handlers = 0, sent_by_host = 0, refused = 0, received = 0;
  };

  // frame_run.cpp: the run and its end
  [[nodiscard]] Status begin_work();
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] Status end();
  [[nodiscard]] Status compare_counts();
  [[nodiscard]] std::string stall_text();
  bool run_outside();
  [[nodiscard]] Time next_time() const;

  // frame_stations.cpp: frames that stations send and get
  void send_frame(uint32_t station, Head head, std::span<const uint8_t> payload);
  void send_message();
  void send_stray();
  bool send_next(Message& message);
  void on_station_frame(const FrameBytes& frame);
  void on_acknowledgement(Message& message, const Head& head, size_t bytes);

  // frame_oracle.cpp: the fates of frames
  void on_nic_frame(FrameBytes frame);
  [[nodiscard]] std::optional<uint32_t> matching_rule_set(FrameView frame) const;
  [[nodiscard]] bool is_known(FrameView frame, const Head& head) const;
  void on_to_host(FrameView frame, bool by_handler) override;
  void on_transmitted(FrameView frame, bool by_handler, uint64_t token) override;
  void on_started(const spin::Her& her) override;
  void on_ended(const spin::Her& her) override;
  void on_initialised(spin::ContextId context, bool good) override;
  void on_trouble(const std::string& what) override;
  void on_handler_waits() override { run_outside(); }
  void hash_frame(FrameView bytes);

  // frame_host.cpp: contexts, rings, and frames of the host
  [[nodiscard]] Status set_up();
  void set_rules();
  [[nodiscard]] Status install(ContextRecord& record);
  void change_contexts();
  bool advance(ContextRecord& record);
  bool read_ring(ContextRecord& record);
  bool send_from_host();
  void kill_host();

  // frame_handlers.cpp
  void make_handlers();
  spin::HandlerOutcome on_echo(spin::NativeHandler& handler);
  spin::HandlerOutcome on_mail(spin::NativeHandler& handler);
  void send_mail(spin::NativeHandler& handler, const Head& head);
  spin::HandlerOutcome on_header(spin::NativeHandler& handler);
  spin::HandlerOutcome on_payload(spin::NativeHandler& handler);
  spin::HandlerOutcome on_completion(spin::NativeHandler& handler);
  bool write(spin::NativeHandler& handler, uint64_t offset, FrameView bytes, uint8_t write_options);
  bool send_back(spin::NativeHandler& handler);
  void count_run(spin::NativeHandler& handler, ContextRecord& record);
  spin::HandlerOutcome count_outcome(spin::HandlerOutcome outcome, bool payload);

  [[nodiscard]] Message* message_of(uint32_t number);
  void note(const std::string& line) const;

  const Config& config_;
  bool trace_;
  Outcome& outcome_;
  Random random_;
  spin::NativeHandlers handlers_;
  uint32_t echo_ = 0, header_ = 0, payload_ = 0, completion_ = 0, initialise_ = 0, mail_ = 0;
  FrameLink link_;
  std::unique_ptr<FrameCard> card_;
  uint64_t seed_;
  Time now_{1};
  uint32_t largest_frame_ = 0;
  uint32_t payload_bytes_ = 0;  // the most payload of a message's frame
  std::vector<ContextRecord> contexts_;
  std::vector<frames::RuleSet> rules_;  // the rules of the NIC: rule set n belongs to context n
  bool strays_in_ring_ = false;  // rules have at some time let any frame into the ring
  std::vector<FrameBytes> frames_;  // frames as stations have sent them; the index is Head::id
  std::vector<std::unique_ptr<Message>> messages_;
  std::deque<FrameBytes> host_queue_;  // frames of the host that the NIC has not taken
  std::deque<std::pair<uint64_t, FrameBytes>> host_in_flight_;  // frames of the host that the NIC has taken, by token
  uint64_t host_tokens_ = 0;
  Time host_death_{Time::never()};
  std::optional<FrameBytes> arriving_;  // the frame that comes to the NIC now
  bool went_to_host_ = false;  // the frame `arriving_` has gone to the host
  ExpectedCounts expected_;
  uint64_t works_begun_ = 0;  // works that have begun
  uint64_t idle_ = 0;  // rounds in a row without progress
  Status trouble_;
};

}  // namespace spinloom::torture
