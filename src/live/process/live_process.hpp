// LiveProcess - one rank of a job on its NIC: its node, its transports, its peers' cards, its threads.
//
// Contract: join() takes part in the launcher's exchanges and makes everything that PtlInit needs; all ranks of a job
//   call it. Where all of them are on one machine, there may be no exchange: then each greets the others at the start,
//   and asks again for a card when it needs it, and a rank that never comes is missed only by those that send to it.
//   The C functions use the LiveProcess as their Host. A process may have several: NICs of one rank over one launcher,
//   which all ranks join in the same order, or ranks on threads of their own, each with its launcher. Files that
//   Settings name (record, trace) get the rank behind their names, so NICs of one rank need other names.
// Invariants: (1) two ranks use the same transport in both directions; (2) close() waits until what was sent has
//   arrived, or says what has not; then it says goodbye to the peers and ends the threads. The last one of the process
//   to close leaves the launcher. After that, or after the process has been killed, nothing of the job is left on the
//   machine.
// Threads: any; begin_call() and end_call() take and release the owner lock. Time: the monotonic clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "live/bridge/bridge_tap.hpp"
#include "live/bridge/bridge_transport.hpp"
#include "live/fabric/fabric_offer.hpp"
#include "live/fabric/fabric_transport.hpp"
#include "live/launch/launcher.hpp"
#include "live/launch/reach.hpp"
#include "live/launch/rendezvous.hpp"
#include "live/node/farewell.hpp"
#include "live/node/progress.hpp"
#include "live/node/state_file.hpp"
#include "live/node/tracing_transport.hpp"
#include "live/process/crowding.hpp"
#include "live/process/settings.hpp"
#include "live/udp/udp_transport.hpp"
#include "portals/calls/process.hpp"

namespace spinloom::process {

class LiveProcess final : public calls::Host {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LiveProcess>> join(const Settings& settings,
                                                                 std::shared_ptr<live::Launcher> launcher);
  ~LiveProcess() override;

  [[nodiscard]] uint32_t rank() const { return rank_; }
  [[nodiscard]] const char* launcher() const { return launcher_->name(); }
  [[nodiscard]] std::string describe(uint32_t peer);
  [[nodiscard]] live::Node& node() { return *node_; }
  // True if this NIC has a way to the peer.
  [[nodiscard]] bool reaches(uint32_t peer) const {
    if (routes_ && peer != rank_) return !routes_->path(rank_, peer).empty();
    return peer == rank_ || route_to(peer) != Route::memory || why_not_memory(peer).empty();
  }
  // Makes the process call `at_exit` if it ends by exit(0) without having been closed; one call serves the whole
  // process.
  void set_exit_action(void (*at_exit)()) { live::set_exit_action(*launcher_, at_exit); }

  // Sets the function that says, for readers of a trace, what the rank does, from now on until it leaves. It is called
  // now and by the watcher's thread, any number of times, without the lock, and takes the locks of a call itself.
  void set_activity(std::function<std::string()> activity);
  // Records for a trace's reader that the program has ended without closing its interfaces. Takes no lock that a call
  // may hold.
  void note_exit();

  // Leaves without waiting for what was sent to arrive: the rank is gone for its peers, as if its process had ended. It
  // waits only for peers that may be writing to this rank's memory and, in a job with gateways, as close() does for
  // these. The launcher is not told.
  void abandon();

  // calls::Host
  [[nodiscard]] portals::Port& port() override { return *node_; }
  void wait(Time deadline) override { node_->wait_until(deadline); }
  void poll() override;
  void begin_call() override { node_->lock().lock(); }
  void end_call() override;
  void interrupt() override { node_->interrupt(); }
  void spend_call_time() override {}
  [[nodiscard]] bool drain() override;
  [[nodiscard]] bool close() override;
  [[nodiscard]] uint32_t size() const override { return programs_; }
  [[nodiscard]] uint32_t user() const override { return cards_[rank_].user; }
  [[nodiscard]] uint32_t atomic_bytes() const override { return node_->engine().limits().atomic_bytes; }
  [[nodiscard]] uint64_t random() override;
  [[nodiscard]] Result<calls::HandlerImage> image(std::string_view name) override;

 private:
  LiveProcess(const Settings& settings, std::shared_ptr<live::Launcher> launcher);
  [[nodiscard]] Status start();
  [[nodiscard]] Result<std::unique_ptr<live::DatagramPort>> open_endpoints(live::BusinessCard& card);
  [[nodiscard]] Result<std::unique_ptr<live::DatagramPort>> open_port(live::BusinessCard& card) const;
  // The number of all ranks, also of those that only forward.
  [[nodiscard]] uint32_t rank_count() const { return static_cast<uint32_t>(cards_.size()); }
  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine);
  void on_readable(uint64_t tag);
  [[nodiscard]] Status open_state();
  void write_activity();
  [[nodiscard]] Status make_pool();

  // live_process_meeting.cpp
  [[nodiscard]] Status choose_meeting();
  [[nodiscard]] Status meet_all(const std::string& mine);
  void expect_all(const live::BusinessCard& mine);
  void take_rendezvous_news();
  void update_crowding();

  // live_process_ways.cpp
  enum class Route : uint8_t { memory, udp, fabric, bridge };
  [[nodiscard]] Status agree_on_memory();
  [[nodiscard]] Status agree_on_fabrics(uint32_t ip_address);
  [[nodiscard]] live::FabricOffer open_fabric(uint32_t ip_address);
  [[nodiscard]] live::FabricNeed fabric_need() const;
  [[nodiscard]] Route route_to(uint32_t peer) const;
  [[nodiscard]] std::vector<bool> reached_by(Route route) const;
  [[nodiscard]] std::string why_not_memory(uint32_t peer) const;
  [[nodiscard]] Status make_transports(const live::ShmOptions& memory, std::unique_ptr<live::DatagramPort> port);
  [[nodiscard]] live::TransportClient& make_client(std::unique_ptr<live::TracingTransport>& trace, bool bridged);
  void use_route(Route route, live::Transport& transport, live::TracingTransport* trace);
  // Tags of watched descriptors: a peer's process has its rank as tag; the tags here come after the last rank.
  [[nodiscard]] uint64_t udp_tag() const { return rank_count(); }
  [[nodiscard]] uint64_t fabric_tag() const { return uint64_t{rank_count()} + 1; }
  [[nodiscard]] uint64_t meeting_tag() const { return uint64_t{rank_count()} + 2; }

  // live_process_bridge.cpp
  void number_ranks();
  [[nodiscard]] Status agree_on_bridge();
  [[nodiscard]] std::string why_not_directly(uint32_t peer);
  void make_bridge();
  void leave_bridge();

  // live_process_end.cpp
  void say_goodbye();
  void stop();

  Settings settings_;
  std::shared_ptr<live::Launcher> launcher_;
  bool has_left_launcher_ = false;  // close() has left the launcher
  uint32_t rank_ = 0;
  bool crowded_ = false;  // ranks share processors
  uint32_t empty_polls_ = 0;  // polls in a row that have found nothing
  std::unique_ptr<live::Rendezvous> rendezvous_;  // null if all ranks have met when PtlInit returns
  std::unique_ptr<live::Rendezvous> refusal_;  // held until all have met, to refuse ranks that meet one by one
  std::vector<live::BusinessCard> cards_;  // a rendezvous lets other ranks' cards come later, under the node's lock
  // One for each rank; ranks of this machine have theirs, and an empty one counts as this rank's.
  std::vector<Processors> processors_;
  uint32_t programs_ = 0;  // number of ranks with programs, which come first; the ranks after them only forward
  std::vector<uint32_t> launcher_ranks_;  // each rank's number at the launcher; empty: the same numbers
  // One for each peer: the reason why one of us cannot reach the other's memory; empty: none.
  live::UnreachedReasons unreached_;
  std::unique_ptr<live::FabricPort> fabric_port_;  // null once the transport has it
  std::string fabric_name_;
  std::vector<std::string> no_fabric_;  // one for each peer: the reason why no fabric is shared; empty if never asked
  live::Segment segment_;
  std::unique_ptr<live::Node> node_;
  std::unique_ptr<live::StateFile> state_;  // null if nobody has asked for the rank's state
  std::function<std::string()> activity_;  // guarded: the node's lock
  std::unique_ptr<live::TraceLog> trace_;  // null: packets are not recorded
  std::unique_ptr<live::TracingTransport> shm_trace_;
  std::unique_ptr<live::TracingTransport> udp_trace_;
  std::unique_ptr<live::TracingTransport> fabric_trace_;
  std::unique_ptr<live::ShmTransport> shm_;
  std::unique_ptr<live::UdpTransport> udp_;  // null if no peer is reached by it
  std::unique_ptr<live::FabricTransport> fabric_;  // null if no peer is reached by it
  std::unique_ptr<live::BridgeRoutes> routes_;  // null if the job has no gateways
  std::vector<std::unique_ptr<live::BridgeTap>> taps_;
  std::unique_ptr<live::TracingTransport> bridge_trace_;
  std::unique_ptr<live::BridgeTransport> bridge_;
  std::shared_ptr<Images> images_;
  std::unique_ptr<live::HpuPool> pool_;  // made when the first image is asked for
  std::unique_ptr<live::Progress> progress_;
  live::Farewell farewell_{0};
  std::string told_owing_;  // the last such text of the farewell that was told
};

}  // namespace spinloom::process
