// The part of LiveProcess that starts a rank and serves its calls.
#include "live/process/live_process.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/udp/udp_networks.hpp"
#include "nic/wire/reliable.hpp"

namespace spinloom::process {
namespace {

constexpr uint64_t whole_message = uint64_t{1} << 40;  // the longest message that shared memory carries in one piece
constexpr uint32_t payload_bytes = 4096;  // the most of an atomic, and of a packet that handlers see
constexpr uint32_t at_once_bytes = 256;  // a put of up to this length is read before the call returns
constexpr uint32_t empty_polls_before_yield = 16;  // empty polls in a row, before others get the processor

// The folder of this library.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

LiveProcess::LiveProcess(const Settings& settings, std::shared_ptr<live::Launcher> launcher)
    : settings_(settings), launcher_(std::move(launcher)), rank_(launcher_->rank()) {
  live::enter(*launcher_);
}

LiveProcess::~LiveProcess() {
  if (!has_left_launcher_) live::withdraw(*launcher_);
}

Result<std::unique_ptr<LiveProcess>> LiveProcess::join(const Settings& settings,
                                                       std::shared_ptr<live::Launcher> launcher) {
  std::unique_ptr<LiveProcess> process(new LiveProcess(settings, std::move(launcher)));
  const Status started = process->start();
  if (started) return process;
  if (process->state_) process->state_->say("left", text("has failed in PtlInit: ", started.error().message));
  if (process->rendezvous_) {
    process->rendezvous_->send_gone_to_all(text("it cannot start: ", started.error().message));
    process->rendezvous_->stop_answering();
    std::ignore = process->rendezvous_.release();  // peers use it as long as the process lives
  }
  return started.error();
}

Status LiveProcess::start() {
  SPL_TRY(live::check_rank_count(launcher_->size()));
  live::BusinessCard card;
  card.pid = getpid();
  card.nonce = live::random_secret();
  card.user = geteuid();
  card.traits = live::traits_of_self();
  SPL_TRY(choose_meeting());
  auto opened = open_endpoints(card);
  Status met;
  // A process that cannot start tells its peers, which would otherwise wait for it.
  if (!rendezvous_) met = meet_all(opened ? live::write(card) : live::write(opened.error()));
  SPL_ASSIGN(auto port, std::move(opened));
  SPL_TRY(met);
  if (rendezvous_) expect_all(card);
  number_ranks();
  if (rank_ != launcher_->rank()) SPL_TRY(open_state());
  SPL_TRY(agree_on_memory());
  SPL_TRY(agree_on_fabrics(card.address));
  SPL_TRY(agree_on_bridge());
  nic::NicLimits limits;
  limits.hpus = settings_.hpus;
  limits.payload_bytes = payload_bytes;
  limits.transfer_bytes = whole_message;
  limits.atomic_bytes = payload_bytes;
  if (const auto peers = reached_by(Route::udp); port && std::count(peers.begin(), peers.end(), true) > 0) {
    const size_t datagram_bytes = live::UdpTransport::datagram_bytes(*port, cards_, peers);
    limits.atomic_bytes = std::min(limits.atomic_bytes, wire::atomic_bytes_max(datagram_bytes));  // it stays whole
  }
  limits.fetch_atomic_bytes = limits.atomic_bytes;
  limits.at_once_bytes = at_once_bytes;
  farewell_ = live::Farewell(rank_count(),
                             settings_.end_s == 0 ? Time::never() : Time{int64_t{settings_.end_s} * 1'000'000'000'000});
  node_ = std::make_unique<live::Node>(nic::Rank{rank_}, rank_count(), limits, segment_);
  processors_.resize(rank_count());
  for (uint32_t rank = 0; rank < rank_count(); ++rank) {
    if (!cards_[rank].exists() || cards_[rank].machine != card.machine) continue;
    processors_[rank] = processors_of(static_cast<pid_t>(cards_[rank].pid));
  }
  live::ShmOptions memory{settings_.copy};
  memory.direct = settings_.direct;
  memory.shared_address_space = true;
  memory.rendezvous = rendezvous_.get();
  if (settings_.start_s > 0) memory.wait_for_peers = Time{int64_t{settings_.start_s} * 1'000'000'000'000};
  SPL_TRY(make_transports(memory, std::move(port)));
  if (rendezvous_) rendezvous_->greet();
  node_->doorbell().wake_all();  // peers may have rung before the channels existed
  if (state_) state_->say("runs", "has joined the job");
  return {};
}

// Opens the rank's state file, its segment and its UDP socket, and writes them into the card. Returns the socket; null
// if none is needed.
Result<std::unique_ptr<live::DatagramPort>> LiveProcess::open_endpoints(live::BusinessCard& card) {
  SPL_TRY(open_state());
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

Result<std::unique_ptr<live::DatagramPort>> LiveProcess::open_port(live::BusinessCard& card) const {
  if (settings_.transport == TransportChoice::shm || launcher_->size() == 1 || rendezvous_)
    return std::unique_ptr<live::DatagramPort>();
  std::vector<live::NetworkPort> ports;
  for (const live::UdpNetwork& wanted : settings_.udp_networks) {
    SPL_ASSIGN(auto socket, live::open_udp(wanted.address));
    const uint32_t address = socket->address().address;
    card.networks.push_back({{address, wanted.bits}, socket->address().port});
    if (wanted.bits == 0) card.networks.back().network = live::network_of(address);
    ports.push_back({card.networks.back().network, std::move(socket)});
  }
  if (ports.empty()) {
    SPL_ASSIGN(auto socket, live::open_udp(0));
    card.networks.push_back({live::network_of(socket->address().address), socket->address().port});
    ports.push_back({card.networks.back().network, std::move(socket)});
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

// Makes the file that says what this rank does, beside its trace.
Status LiveProcess::open_state() {
  if (settings_.trace.empty()) return {};
  SPL_ASSIGN(state_, live::StateFile::open(text(settings_.trace, ".", rank_, ".state")));
  state_->say("starts",
              rendezvous_ ? "is in PtlInit" : text("waits in PtlInit for the other ranks of ", launcher_->size()));
  return {};
}

void LiveProcess::set_activity(std::function<std::string()> activity) {
  {
    const std::lock_guard inside(node_->lock());
    activity_ = std::move(activity);
  }
  write_activity();
}

// Writes what the rank does into its state file. The watcher's thread calls this now and then. `activity` takes the
// locks of a call.
void LiveProcess::write_activity() {
  if (!state_) return;
  std::function<std::string()> activity;
  {
    const std::lock_guard inside(node_->lock());
    activity = activity_;
  }
  if (activity) state_->say("runs", activity());
}

// The watcher's thread calls this: a peer's process has ended, or something has come over a network or from a peer that
// wants to meet.
void LiveProcess::on_readable(uint64_t tag) {
  if (tag == meeting_tag()) return take_rendezvous_news();
  if (tag >= rank_count()) {
    if (tag == udp_tag()) udp_->disarmed();
    if (tag == fabric_tag()) fabric_->disarmed();
    node_->doorbell().ring(true);
    return;
  }
  const std::lock_guard inside(node_->lock());
  shm_->process_ended(nic::Rank{static_cast<uint32_t>(tag)});
  node_->drive();
  node_->tell_sleepers();
  progress_->note_call_end();
}

void LiveProcess::end_call() {
  node_->tell_sleepers();
  progress_->note_call_end();
  node_->lock().unlock();
}

// A program that polls for another rank's message must not keep the processor from that rank.
void LiveProcess::poll() {
  if (node_->poll()) empty_polls_ = 0;
  if (!crowded_ || ++empty_polls_ <= empty_polls_before_yield) return;
  node_->lock().unlock();
  sched_yield();
  node_->lock().lock();
  if (node_->poll()) empty_polls_ = 0;
}

// The threads for handlers are started when the first image is asked for, because most programs have no handlers.
Status LiveProcess::make_pool() {
  std::vector<std::string> folders = settings_.handler_folders;
  for (const char* folder : {"/spinloom/handlers", "/../handlers"}) folders.push_back(own_folder() + folder);
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

Result<calls::HandlerImage> LiveProcess::image(std::string_view name) {
  if (!images_) SPL_TRY(make_pool());
  return images_->find(std::string(name));
}

}  // namespace spinloom::process
