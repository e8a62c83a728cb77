#include "live/node/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/shared_heap.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t magic_word = 0x31677365676c7073;  // "splgesg1"

// A number that differs between builds in which these structures have other sizes. A change of what shared bytes mean
// must therefore change a size.
constexpr uint64_t build_word = sizeof(SegmentHeader) << 48 ^ sizeof(ChannelMemory) << 16 ^ sizeof(PacketRecord);

// True if the errno means that there is no such process or file.
bool is_absence(int error) { return error == ENOENT || error == ESRCH; }

// The length of the file is fixed: touching a page beyond the end of a file would kill the process.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

constexpr size_t header_bytes = (sizeof(SegmentHeader) + 4095) / 4096 * 4096;

}  // namespace

const char* limit_of(int error) {
  switch (error) {
    case EMFILE: return "raise the limit of open files: ulimit -n";
    case ENFILE: return "raise the machine's limit of open files: sysctl fs.file-max";
    case EAGAIN: return "raise the limit of processes and threads: ulimit -u, or the container's";
    case EFBIG: return "raise the limit of files' sizes: ulimit -f";
    case ENOMEM: return "raise the limit of memory: ulimit -v, or the container's";
    default: return nullptr;
  }
}

const char* remedy_for(int error) {
  if (const char* const limit = limit_of(error)) return limit;
  switch (error) {
    case EACCES:
    case EPERM: return "run all ranks as one user, containers with --cap-add=SYS_PTRACE, or set SPINLOOM_TRANSPORT=udp";
    case ENOSYS: return "use Linux 5.3 or later and a seccomp filter that allows it, or set SPINLOOM_TRANSPORT=udp";
    default: return "set SPINLOOM_TRANSPORT=udp";
  }
}

std::string error_text(int error) {
  const char* const limit = limit_of(error);
  return limit == nullptr ? std::strerror(error) : text(std::strerror(error), "; ", limit);
}

// Shared memory that is mapped here, until the last Segment of this process that has it is gone.
class Segment::Mapping {
 public:
  Mapping(uint8_t* base, size_t bytes) : base_(base), bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    for (void* const channel : anonymous_) munmap(channel, sizeof(ChannelMemory));
    munmap(base_, bytes_);
  }

  // Registers the mapping that create() has made, so that the other ranks of this process find it.
  void register_mapping(const std::shared_ptr<Mapping>& self, const Secret& nonce) {
    const std::lock_guard inside(registry().lock);
    std::erase_if(registry().by_nonce, [](const auto& one) { return one.second.expired(); });
    registry().by_nonce[nonce] = self;
  }
  [[nodiscard]] static std::shared_ptr<Mapping> find(const Secret& nonce) {
    const std::lock_guard inside(registry().lock);
    const auto found = registry().by_nonce.find(nonce);
    return found == registry().by_nonce.end() ? nullptr : found->second.lock();
  }
  [[nodiscard]] uint8_t* base() const { return base_; }
  [[nodiscard]] ChannelMemory* inner_channel(uint32_t sender, ChannelMemory& shared) {
    const std::lock_guard inside(lock_);
    const auto [at, is_new] = inner_.emplace(sender, &shared);
    if (!is_new) return at->second;
    void* const made = mmap(nullptr, sizeof(ChannelMemory), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return &shared;
    anonymous_.push_back(made);
    return at->second = static_cast<ChannelMemory*>(made);
  }

 private:
  struct Registry {
    std::mutex lock;
    std::map<Secret, std::weak_ptr<Mapping>> by_nonce;
  };
  [[nodiscard]] static Registry& registry() {
    static Registry* const registry = new Registry;  // never freed: segments may outlive this library's statics
    return *registry;
  }

  uint8_t* base_;
  size_t bytes_;
  std::mutex lock_;
  std::map<uint32_t, ChannelMemory*> inner_;  // channels by sender
  std::vector<void*> anonymous_;              // the channels among them that are not in shared memory
};

Segment::Segment(Segment&& other) noexcept
    : mapping_(std::move(other.mapping_)),
      base_(std::exchange(other.base_, nullptr)),
      file_(std::exchange(other.file_, -1)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(base_, other.base_);
  std::swap(file_, other.file_);
  return *this;
}

Segment::~Segment() {
  if (file_ >= 0) close(file_);
}

size_t Segment::bytes_for(uint32_t ranks) { return header_bytes + size_t{ranks} * sizeof(ChannelMemory); }

ChannelMemory* Segment::channel_of(uint32_t sender) const {
  return reinterpret_cast<ChannelMemory*>(base_ + header_bytes) + sender;
}

bool Segment::publish_heap() const {
  SegmentHeader& header = this->header();
  if (header.heap_bytes.load(std::memory_order_relaxed) != 0) return true;
  const SharedHeap::Location place = process_heap().location();
  if (place.bytes == 0) return false;
  header.heap_base = place.base;
  header.heap_inode = place.inode;
  header.heap_file = place.file;
  header.heap_bytes.store(place.bytes, std::memory_order_release);
  return true;
}

Status Segment::map(uint32_t ranks) {
  void* const mapped = mmap(nullptr, bytes_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    return fail(Code::environment, "shared memory of ", bytes_for(ranks), " B cannot be mapped: ", std::strerror(error),
                "; ", remedy_for(error));
  }
  base_ = static_cast<uint8_t*>(mapped);
  mapping_ = std::make_shared<Mapping>(base_, bytes_for(ranks));
  return {};
}

Result<Segment> Segment::create(uint32_t rank, uint32_t ranks, const Secret& nonce) {
  if (ranks > local_ranks_max) {
    return fail(Code::exhausted, "a job of ", ranks, " ranks; shared memory takes ", local_ranks_max,
                " (live::local_ranks_max)");
  }
  Segment segment;
  segment.file_ = memfd_create("spinloom", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (segment.file_ < 0) return fail(Code::environment, "memfd_create: ", error_text(errno));
  rlimit size_limit{};  // ftruncate beyond this limit would end the process
  const bool fits = getrlimit(RLIMIT_FSIZE, &size_limit) != 0 || bytes_for(ranks) <= size_limit.rlim_cur;
  if (!fits || ftruncate(segment.file_, static_cast<off_t>(bytes_for(ranks))) != 0) {
    return fail(Code::environment, "shared memory of ", bytes_for(ranks), " B: ", error_text(fits ? errno : EFBIG));
  }
  if (fcntl(segment.file_, F_ADD_SEALS, seals) != 0) {
    return fail(Code::environment, "shared memory cannot be sealed: ", std::strerror(errno));
  }
  SPL_TRY(segment.map(ranks));
  SegmentHeader& header = segment.header();
  header.build = build_word;
  header.nonce = nonce;
  header.rank = rank;
  header.ranks = ranks;
  header.fences = register_for_remote_fences() ? 0 : 1;
  header.self = reinterpret_cast<uint64_t>(segment.base_);
  std::atomic_ref(header.magic).store(magic_word, std::memory_order_release);
  segment.mapping_->register_mapping(segment.mapping_, nonce);
  return segment;
}

Result<Segment> Segment::attach_here(uint32_t rank, const Secret& nonce) {
  Segment segment;
  segment.mapping_ = Mapping::find(nonce);
  if (!segment.mapping_) return fail(Code::invalid, "rank ", rank, " of this process is gone");
  segment.base_ = segment.mapping_->base();
  return segment;
}

// Without memory for a private channel, both ends use the channel in shared memory.
ChannelMemory* Segment::inner_channel_of(uint32_t sender) const {
  return mapping_->inner_channel(sender, *channel_of(sender));
}

Result<Segment> Segment::attach(int64_t pid, int file, uint32_t rank, uint32_t ranks, const Secret& nonce) {
  const std::string path = text("/proc/", pid, "/fd/", file);
  Segment segment;
  segment.file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (segment.file_ < 0) {
    const int error = errno;
    return fail(is_absence(error) ? Code::invalid : Code::environment, "the shared memory of rank ", rank, " (", path,
                "): ", std::strerror(error), "; ", remedy_for(error));
  }
  struct stat status{};
  if (fstat(segment.file_, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<size_t>(status.st_size) < bytes_for(ranks)) {
    return fail(Code::invalid, "rank ", rank, " has another program at ", path, " by now");
  }
  const int sealed = fcntl(segment.file_, F_GET_SEALS);  // checked before any byte is touched; a seal cannot be undone
  if (sealed < 0 || (sealed & F_SEAL_SHRINK) == 0) {
    return fail(Code::invalid, "rank ", rank, " has other memory at ", path, " by now: it is not sealed");
  }
  SPL_TRY(segment.map(ranks));
  const SegmentHeader& header = segment.header();
  if (std::atomic_ref(segment.header().magic).load(std::memory_order_acquire) != magic_word || header.nonce != nonce ||
      header.rank != rank || header.ranks != ranks) {
    return fail(Code::invalid, "rank ", rank, " has another program at ", path, " by now");
  }
  close(std::exchange(segment.file_, -1));  // the mapping keeps the memory
  if (header.build != build_word) {
    return fail(Code::environment, "rank ", rank, " runs another version of the library");
  }
  return segment;
}

}  // namespace spinloom::live
