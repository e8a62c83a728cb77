#include "process/live_process.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/bridge_meeting.hpp"
#include "process/crowding.hpp"
#include "wire/reliable.hpp"

namespace spinloom::process {
namespace {

constexpr uint64_t whole_message = uint64_t{1} << 40;     // what shared memory carries in one piece
constexpr uint32_t payload_bytes = 4096;                  // of an atomic, and of a packet that handlers see
constexpr uint32_t at_once_bytes = 256;                   // a put of this length is read before the call returns
constexpr uint32_t idle_looks = 16;                       // empty looks in a row, before others get the processor
constexpr Time look_again{1'000'000'000};                 // 1 ms: how often to look at what peers have taken
// Tags of watched descriptors: a peer's process has its rank, these come behind the last rank.
constexpr uint64_t udp_tag = 0, fabric_tag = 1;

// The folder of this library.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool contains(const std::vector<bool>& list, bool value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

LiveProcess::LiveProcess(const Settings& settings, std::shared_ptr<live::Launcher> launcher)
    : settings_(settings), launcher_(std::move(launcher)), rank_(launcher_->rank()) {
  live::enter(*launcher_);
}

LiveProcess::~LiveProcess() {
  if (!left_) live::withdraw(*launcher_);
}

Result<std::unique_ptr<LiveProcess>> LiveProcess::join(const Settings& settings,
                                                       std::shared_ptr<live::Launcher> launcher) {
  std::unique_ptr<LiveProcess> made(new LiveProcess(settings, std::move(launcher)));
  SPL_TRY(made->start());
  return made;
}

Status LiveProcess::start() {
  live::Card card;
  card.pid = getpid();
  card.nonce = live::random_secret();
  card.user = geteuid();
  card.traits = live::traits_of_self();
  auto opened = open(card);
  // A process that cannot start tells its peers, which would otherwise wait for it.
  auto texts =
      launcher_->exchange(opened ? live::write(card) : live::write(opened.error()), {.limit_s = settings_.start_s});
  SPL_ASSIGN(auto port, std::move(opened));
  if (!texts) return texts.error();
  for (uint32_t rank = 0; rank < launcher_->size(); ++rank) {
    auto read = live::read_card((*texts)[rank]);
    if (!read) return fail(read.error().code, "rank ", rank, " cannot start: ", read.error().message);
    cards_.push_back(*read);
  }
  number_ranks();
  SPL_TRY(agree_on_ways());
  SPL_TRY(agree_on_fabrics(card.address));
  SPL_TRY(agree_on_bridge());
  nic::NicLimits limits;
  limits.hpus = settings_.hpus;
  limits.payload_bytes = payload_bytes;
  limits.transfer_bytes = whole_message;
  limits.atomic_bytes = payload_bytes;
  if (const auto peers = reached_by(Route::udp); port && contains(peers, true)) {
    const size_t datagram_bytes = live::UdpTransport::datagram_bytes(*port, cards_, peers);
    limits.atomic_bytes = std::min(limits.atomic_bytes, wire::atomic_bytes_max(datagram_bytes));  // it is not cut
  }
  limits.fetch_atomic_bytes = limits.atomic_bytes;
  limits.at_once_bytes = at_once_bytes;
  farewell_ =
      live::Farewell(all(), settings_.end_s == 0 ? Time::never() : Time{int64_t{settings_.end_s} * 1'000'000'000'000});
  node_ = std::make_unique<live::Node>(nic::Rank{rank_}, all(), limits, segment_);
  std::vector<Processors> here;
  size_t own = 0;
  for (uint32_t rank = 0; rank < all(); ++rank) {
    if (cards_[rank].machine != card.machine) continue;
    if (rank == rank_) own = here.size();
    here.push_back(processors_of(static_cast<pid_t>(cards_[rank].pid)));
  }
  crowded_ = are_crowded(here, own);
  live::ShmOptions memory{settings_.copy};
  memory.one_space = true;
  if (!crowded_) {
    node_->set_patience(Time{int64_t{settings_.spin_us} * 1'000'000});
  } else {
    node_->set_patience(Time{});
    memory.help_from_bytes = UINT64_MAX;  // helping would take processor time from other ranks
  }
  SPL_TRY(make_transports(memory, std::move(port)));
  node_->doorbell().wake_all();  // peers may have rung before the channels existed
  return {};
}

// If some ranks of a machine may not reach each other's memory, all ranks say whom they reach, because a rank cannot
// know by itself who reaches it.
Status LiveProcess::agree_on_ways() {
  unreached_.resize(all());
  if (!live::must_agree(cards_)) return {};
  unreached_ = live::unreachable_from(rank_, cards_);
  SPL_ASSIGN(const auto texts, exchange(live::write(unreached_)));
  for (uint32_t peer = 0; peer < all(); ++peer) {
    SPL_ASSIGN(const auto marks, live::read_reach(texts[peer], all()));
    if (marks[rank_] && unreached_[peer].empty()) unreached_[peer] = "it cannot use this process's memory";
  }
  return {};
}

// The ranks ask each other about fabrics only if some are on other machines, so that others start as fast as ever.
Status LiveProcess::agree_on_fabrics(uint32_t ip_address) {
  if (!live::need_fabrics(cards_)) return {};
  const live::FabricOffer mine = open_fabric(ip_address);
  SPL_ASSIGN(const auto texts, exchange(live::write(mine)));
  no_fabric_.resize(all());
  std::vector<std::string> addresses(all());
  for (uint32_t peer = 0; peer < all(); ++peer) {
    SPL_ASSIGN(const live::FabricOffer offer, live::read_offer(texts[peer]));
    no_fabric_[peer] = live::apart(mine, offer);
    if (settings_.transport == Way::fabric && !no_fabric_[peer].empty() && !live::needs_bridge(cards_)) {
      return fail(Code::environment, "SPINLOOM_TRANSPORT=fabric: rank ", peer, ": ", no_fabric_[peer]);
    }
    if (peer != rank_ && no_fabric_[peer].empty()) addresses[peer] = offer.address;
  }
  if (!fabric_port_) return {};
  return fabric_port_->meet(addresses);
}

live::FabricOffer LiveProcess::open_fabric(uint32_t ip_address) {
  live::FabricOffer offer;
  if (cards_[rank_].fabric == live::FabricNeed::never) {
    offer.trouble = settings_.transport == Way::automatic ? "SPINLOOM_FABRIC=none"
                    : settings_.transport == Way::udp     ? "SPINLOOM_TRANSPORT=udp"
                                                          : "SPINLOOM_TRANSPORT=shm";
    return offer;
  }
  live::FabricWish wish = settings_.fabric;
  if (settings_.transport == Way::fabric && wish.kind == live::FabricWish::Kind::automatic) {
    wish.kind = live::FabricWish::Kind::named;  // by any provider
  }
  auto opened = live::open_fabric(wish, {ip_address, settings_.libfabric});
  if (!opened) {
    offer.trouble = opened.error().message;
    if (settings_.fabric.kind == live::FabricWish::Kind::named) {
      log::emit(log::Level::warning, "live", text("SPINLOOM_FABRIC=", settings_.fabric.provider, ": ", offer.trouble));
    }
    return offer;
  }
  fabric_port_ = std::move(opened.value());
  if (settings_.fabric_faults.any()) {
    live::FabricFaults faults = settings_.fabric_faults;
    faults.seed += rank_;
    fabric_port_ = live::disturb(std::move(fabric_port_), faults);
  }
  offer.provider = fabric_port_->provider();
  offer.address = fabric_port_->address();
  return offer;
}

LiveProcess::Route LiveProcess::route_to(uint32_t peer) const {
  if (routes_ && peer != rank_ && !routes_->direct(rank_, peer)) return Route::bridge;
  if (peer == rank_ || settings_.transport == Way::shm) return Route::memory;
  if (settings_.transport == Way::udp) return Route::udp;
  const bool by_fabric = !no_fabric_.empty() && no_fabric_[peer].empty();
  if (settings_.transport == Way::automatic && why_not_memory(peer).empty()) return Route::memory;
  return by_fabric ? Route::fabric : Route::udp;
}

// The other ranks that are reached in this way.
std::vector<bool> LiveProcess::reached_by(Route route) const {
  std::vector<bool> reached(all());
  for (uint32_t peer = 0; peer < all(); ++peer) reached[peer] = peer != rank_ && route_to(peer) == route;
  return reached;
}

std::string LiveProcess::why_not_memory(uint32_t peer) const {
  if (cards_[peer].machine != cards_[rank_].machine) return "another machine or process namespace";
  return unreached_[peer];
}

// Opens the socket whose address the card tells to others.
Result<std::unique_ptr<live::DatagramPort>> LiveProcess::open(live::Card& card) {
  const auto machine = live::machine_id();
  if (!machine && machine.error().code != Code::unsupported) return machine.error();
  static const uint64_t nobody_else = live::random_secret()[0];
  card.machine = machine ? *machine : nobody_else;  // threads of a process reach each other in any case
  card.fabric = fabric_need();
  card.gateway = settings_.gateway;
  if (!machine) {
    log::emit(log::Level::warning, "live",
              text(machine.error().message, ": this rank and its peers reach each other by UDP"));
  }
  SPL_ASSIGN(segment_, live::Segment::create(launcher_->rank(), launcher_->size(), card.nonce));
  card.file = segment_.file();
  SPL_ASSIGN(auto port, open_port(card));
  if (port) {
    card.address = port->address().address;
    card.port = port->address().port;
    card.datagram_bytes = static_cast<uint32_t>(port->datagram_bytes());
  }
  return port;
}

Result<std::unique_ptr<live::DatagramPort>> LiveProcess::open_port(live::Card& card) const {
  if (settings_.transport == Way::shm || launcher_->size() == 1) return std::unique_ptr<live::DatagramPort>();
  std::vector<live::NetworkPort> ports;
  for (const live::UdpNetwork& wanted : settings_.udp_networks) {
    SPL_ASSIGN(auto one, live::open_udp(wanted.address));
    const uint32_t address = one->address().address;
    card.networks.push_back({{address, wanted.bits}, one->address().port});
    if (wanted.bits == 0) card.networks.back().network = live::network_of(address);
    ports.push_back({card.networks.back().network, std::move(one)});
  }
  if (ports.empty()) {
    SPL_ASSIGN(auto one, live::open_udp(0));
    card.networks.push_back({live::network_of(one->address().address), one->address().port});
    ports.push_back({card.networks.back().network, std::move(one)});
  }
  SPL_ASSIGN(auto port, live::join_ports(std::move(ports)));
  if (settings_.faults.any()) {
    live::Faults faults = settings_.faults;
    faults.seed += rank_;
    port = live::disturb(std::move(port), faults);
  }
  if (!settings_.record.empty()) return live::record(std::move(port), text(settings_.record, ".", rank_));
  return port;
}

live::FabricNeed LiveProcess::fabric_need() const {
  if (settings_.transport == Way::fabric) return live::FabricNeed::asked;
  const bool never = settings_.transport != Way::automatic || settings_.fabric.kind == live::FabricWish::Kind::none;
  return never ? live::FabricNeed::never : live::FabricNeed::between_machines;
}

// The client of a transport: the node, or the recorder in front of it, or what takes out the bridge's packets before.
live::TransportClient& LiveProcess::client(std::unique_ptr<live::TracingTransport>& trace, bool bridged) {
  live::TransportClient* top = node_.get();
  if (trace_) {
    trace = std::make_unique<live::TracingTransport>(*node_, *trace_);
    top = trace.get();
  }
  return bridged ? *taps_.emplace_back(std::make_unique<live::BridgeTap>(*top)) : *top;
}

// Makes the transports that the routes to the peers need.
Status LiveProcess::make_transports(const live::ShmOptions& memory, std::unique_ptr<live::DatagramPort> port) {
  live::Node& node = *node_;
  SPL_ASSIGN(progress_, live::Progress::start(node, [this](uint64_t tag) { readable(tag); }));
  const std::lock_guard inside(node.lock());
  node.set_after([this] { progress_->look_after(); });
  if (!settings_.trace.empty()) {
    SPL_ASSIGN(trace_, live::TraceLog::open(text(settings_.trace, ".", rank_)));
  }
  shm_ = std::make_unique<live::ShmTransport>(
      client(shm_trace_, routes_ != nullptr), segment_, rank_, cards_, memory,
      [this](int descriptor, nic::Rank peer) { progress_->watch(descriptor, peer.value); });
  take_route(Route::memory, *shm_, shm_trace_.get());
  const auto arm = [this](uint64_t tag) { return [this, tag](int descriptor) { progress_->watch(descriptor, tag); }; };
  if (const auto peers = reached_by(Route::udp); contains(peers, true)) {
    SPL_ASSIGN(udp_, live::UdpTransport::create(client(udp_trace_, routes_ != nullptr), std::move(port), rank_, cards_,
                                                peers, arm(all() + udp_tag), settings_.rails.size() > 1));
    take_route(Route::udp, *udp_, udp_trace_.get());
    udp_->arm();
  }
  if (const auto peers = reached_by(Route::fabric); contains(peers, true)) {
    fabric_ =
        std::make_unique<live::FabricTransport>(client(fabric_trace_, routes_ != nullptr), std::move(fabric_port_),
                                                rank_, cards_[0].nonce, peers, arm(all() + fabric_tag));
    take_route(Route::fabric, *fabric_, fabric_trace_.get());
    fabric_->arm();
  }
  fabric_port_.reset();
  if (routes_) make_bridge();
  return {};
}

// Packets to all peers of this route go by the transport, or by its recorder in front of it.
void LiveProcess::take_route(Route route, live::Transport& transport, live::TracingTransport* trace) {
  if (trace != nullptr) trace->over(transport);
  live::Transport& top = trace != nullptr ? static_cast<live::Transport&>(*trace) : transport;
  node_->add(top);
  const std::vector<bool> peers = reached_by(route);
  for (uint32_t peer = 0; peer < all(); ++peer) {
    if (peers[peer]) node_->route(nic::Rank{peer}, top);
  }
}

// The watcher's thread calls this: a peer's process has ended, or something has come over a network.
void LiveProcess::readable(uint64_t tag) {
  if (tag >= all()) {
    if (tag == all() + udp_tag) udp_->disarmed();
    if (tag == all() + fabric_tag) fabric_->disarmed();
    node_->doorbell().ring(true);
    return;
  }
  const std::lock_guard inside(node_->lock());
  shm_->died(nic::Rank{static_cast<uint32_t>(tag)});
  node_->drive();
  node_->tell_sleepers();
  progress_->look_after();
}

void LiveProcess::end_call() {
  node_->tell_sleepers();
  progress_->look_after();
  node_->lock().unlock();
}

// A program that polls for another rank's message must not keep the processor from that rank.
void LiveProcess::poll() {
  if (node_->poll()) idle_looks_ = 0;
  if (!crowded_ || ++idle_looks_ <= idle_looks) return;
  node_->lock().unlock();
  sched_yield();
  node_->lock().lock();
  if (node_->poll()) idle_looks_ = 0;
}

std::string LiveProcess::describe(uint32_t peer) {
  const std::lock_guard inside(node_->lock());
  if (peer == rank_) return "itself";
  const nic::Rank rank{peer};
  const Route route = route_to(peer);
  if (route == Route::bridge) return bridge_->describe(rank);
  if (route == Route::memory) return text("shared memory, ", shm_->describe(rank));
  std::string why = why_not_memory(peer);
  if (settings_.transport == Way::udp) why = "SPINLOOM_TRANSPORT=udp";
  if (settings_.transport == Way::fabric) why = "SPINLOOM_TRANSPORT=fabric";
  if (route == Route::fabric) return text(fabric_->describe(rank), " (", why, ")");
  const bool asked = settings_.fabric.kind == live::FabricWish::Kind::named;
  if (asked && !no_fabric_.empty()) why += text("; no fabric: ", no_fabric_[peer]);
  return text(udp_->describe(rank), " (", why, ")");
}

bool LiveProcess::drain() {
  node_->drive();
  farewell_.begin(live::monotonic_now());
  for (bool waits = true; waits;) {
    waits = false;
    const Time now = live::monotonic_now();
    for (uint32_t peer = 0; peer < all(); ++peer) {
      const nic::Rank rank{peer};
      waits = farewell_.waits(now, rank, node_->untaken(rank)) || waits;
    }
    if (waits) node_->wait_until(now + look_again);
  }
  const bool written = farewell_.may_be_written();
  const std::string late = farewell_.late();
  if (!late.empty()) {
    log::emit(log::Level::warning, "live",
              text("PtlNIFini or PtlFini has waited ", settings_.end_s, " s (SPINLOOM_END_S): ", late,
                   written ? "; until that peer goes on or ends, the memory must be neither freed nor used" : ""));
  }
  return !written;
}

bool LiveProcess::close() {
  {
    const std::lock_guard inside(node_->lock());
    std::ignore = drain();
    const std::string lost = farewell_.lost();
    if (!lost.empty()) log::emit(log::Level::warning, "live", text("PtlFini: ", lost));
    say_goodbye();
  }
  stop();
  if (!std::exchange(left_, true)) live::leave(*launcher_);
  return true;
}

void LiveProcess::abandon() {
  {
    const std::lock_guard inside(node_->lock());
    const auto is_written = [this] {
      for (uint32_t peer = 0; peer < size(); ++peer) {
        if (const live::Untaken left = node_->untaken(nic::Rank{peer}); left.writes && !left.gone) return true;
      }
      return false;
    };
    for (node_->drive(); is_written();) node_->wait_until(live::monotonic_now() + look_again);
    say_goodbye();
  }
  stop();
}

// Called under the lock.
void LiveProcess::say_goodbye() {
  if (bridge_) leave_bridge();
  shm_->say_goodbye();
  if (udp_) udp_->say_goodbye();
  if (fabric_) fabric_->say_goodbye();
  if (trace_) trace_->flush();
  node_->forget_pool();
}

void LiveProcess::stop() {
  if (pool_ && !pool_->shut_down()) std::ignore = pool_.release();  // a handler that does not return keeps its memory
  progress_->stop();  // kept, because late calls still ask it
}

// The threads for handlers are started when the first image is asked for, because most programs have no handlers.
Status LiveProcess::make_pool() {
  std::vector<std::string> folders = settings_.handler_folders;
  for (const char* beside : {"/spinloom/handlers", "/../handlers"}) folders.push_back(own_folder() + beside);
  SPL_ASSIGN(auto images, Images::create(std::move(folders), settings_.handlers));
  SPL_ASSIGN(pool_, live::HpuPool::create({settings_.hpus}, images->library(), *node_));
  images_ = std::move(images);
  node_->set_pool(*pool_);
  return {};
}

uint64_t LiveProcess::random() {
  uint64_t bits = 0;
  while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits)) {
  }
  return bits;
}

Result<ptl::HandlerImage> LiveProcess::image(std::string_view name) {
  if (!images_) SPL_TRY(make_pool());
  return images_->find(std::string(name));
}

}  // namespace spinloom::process
