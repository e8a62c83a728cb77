// The part of LiveProcess that starts a rank and serves its calls.
#include "process/live_process.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "process/crowding.hpp"
#include "wire/reliable.hpp"

namespace spinloom::process {
namespace {

constexpr uint64_t whole_message = uint64_t{1} << 40;  // what shared memory carries in one piece
constexpr uint32_t payload_bytes = 4096;  // of an atomic, and of a packet that handlers see
constexpr uint32_t at_once_bytes = 256;  // a put of this length is read before the call returns
constexpr uint32_t idle_looks = 16;  // empty looks in a row, before others get the processor

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
  if (const auto peers = reached_by(Route::udp); port && std::count(peers.begin(), peers.end(), true) > 0) {
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

// The watcher's thread calls this: a peer's process has ended, or something has come over a network.
void LiveProcess::readable(uint64_t tag) {
  if (tag >= all()) {
    if (tag == udp_tag()) udp_->disarmed();
    if (tag == fabric_tag()) fabric_->disarmed();
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
