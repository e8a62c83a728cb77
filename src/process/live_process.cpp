#include "process/live_process.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <mutex>
#include <thread>

namespace spinloom::process {
namespace {

constexpr uint64_t whole_message = uint64_t{1} << 40;     // what shared memory carries at once
constexpr Time patience_at_end{5'000'000'000'000};        // 5 s: for peers to read what was sent to them

// Where this library lies.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<LiveProcess>> LiveProcess::join(const Settings& settings) {
  std::unique_ptr<LiveProcess> made(new LiveProcess);
  SPL_ASSIGN(made->launcher_, live::find_launcher());
  live::Launcher* const launcher = made->launcher_.get();
  made->settings_ = settings;
  made->rank_ = launcher->rank();
  live::Card card;
  card.machine = live::machine_id();
  card.pid = getpid();
  card.nonce = live::random_secret();
  card.user = geteuid();
  SPL_ASSIGN(made->segment_, live::Segment::create(launcher->rank(), launcher->size(), card.nonce));
  card.file = made->segment_.file();
  SPL_ASSIGN(const auto texts, launcher->exchange(live::write(card)));
  for (const std::string& one : texts) {
    SPL_ASSIGN(made->cards_.emplace_back(), live::read_card(one));
  }
  nic::NicLimits limits;
  limits.hpus = settings.hpus;
  limits.transfer_bytes = whole_message;
  const nic::Rank rank{made->rank_};
  made->node_ = std::make_unique<live::Node>(rank, launcher->size(), limits, made->segment_);
  live::Node& node = *made->node_;
  uint32_t here = 0;
  for (const live::Card& other : made->cards_) here += other.machine == card.machine ? 1 : 0;
  node.set_patience(here <= std::thread::hardware_concurrency() ? Time{int64_t{settings.spin_us} * 1'000'000} : Time{});
  LiveProcess* const self = made.get();
  SPL_ASSIGN(made->progress_, live::Progress::start(node, [self](uint64_t peer) {
               self->shm_->died(nic::Rank{static_cast<uint32_t>(peer)});
             }));
  made->shm_ = std::make_unique<live::ShmTransport>(
      node, made->segment_, made->rank_, made->cards_, live::ShmOptions{settings.copy},
      [self](int descriptor, nic::Rank peer) { self->progress_->watch(descriptor, peer.value); });
  const std::lock_guard inside(node.lock());
  node.add(*made->shm_);
  node.set_look([self] { return self->shm_->has_news(); });
  for (uint32_t peer = 0; peer < made->size(); ++peer) {
    if (peer != made->rank_ && made->cards_[peer].machine == card.machine) node.route(nic::Rank{peer}, *made->shm_);
  }
  return made;
}

LiveProcess::~LiveProcess() = default;

void LiveProcess::end() {
  node_->tell_sleepers();
  progress_->look_after();
  node_->lock().unlock();
}

std::string LiveProcess::describe(uint32_t peer) {
  const std::lock_guard inside(node_->lock());
  if (peer == rank_) return "itself";
  return shm_->describe(nic::Rank{peer});
}

void LiveProcess::drain() {
  const Time deadline = live::monotonic_now() + patience_at_end;
  node_->drive();
  while (!node_->drained() && live::monotonic_now() < deadline) {
    node_->wait_until(std::min(deadline, live::monotonic_now() + Time{1'000'000'000}));
  }
}

bool LiveProcess::close() {
  {
    const std::lock_guard inside(node_->lock());
    drain();
    shm_->say_goodbye();
    node_->forget_pool();
  }
  if (pool_ && !pool_->shut_down()) pool_.release();  // a handler that does not come back keeps its memory
  progress_.reset();
  launcher_->finish();
  return true;
}

// Handlers have threads from the first one on: most programs have none.
ptl::HandlerImage LiveProcess::image(std::string_view name) {
  if (!images_) {
    std::vector<std::string> folders = settings_.handler_folders;
    folders.push_back(own_folder() + "/../handlers");
    auto images = Images::create(std::move(folders), settings_.handlers);
    if (!images) return {};
    images_ = std::move(*images);
    auto pool = live::HpuPool::create({settings_.hpus}, images_, *node_);
    if (!pool) return {};
    pool_ = std::move(*pool);
    node_->set_pool(*pool_);
  }
  std::string why;
  return images_->find(std::string(name), why);
}

}  // namespace spinloom::process
