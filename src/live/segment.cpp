#include "live/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace spinloom::live {
namespace {

constexpr uint64_t magic_word = 0x31677365676c7073;  // "splgseg1"

// A number that differs between builds in which shared bytes have another meaning: such a change also changes a size.
constexpr uint64_t build_word = sizeof(SegmentHeader) << 48 ^ sizeof(ChannelMemory) << 16 ^ sizeof(PacketRecord);

// Whether the errno means that there is no such process or file.
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

const char* cure_of(int error) {
  if (const char* const limit = limit_of(error)) return limit;
  switch (error) {
    case EACCES:
    case EPERM: return "run all ranks as one user, containers with --cap-add=SYS_PTRACE, or set SPINLOOM_TRANSPORT=udp";
    case ENOSYS: return "use Linux 5.3 or later and a seccomp filter that allows it, or set SPINLOOM_TRANSPORT=udp";
    default: return "set SPINLOOM_TRANSPORT=udp";
  }
}

std::string trouble_of(int error) {
  const char* const limit = limit_of(error);
  return limit == nullptr ? std::strerror(error) : text(std::strerror(error), "; ", limit);
}

Segment::Segment(Segment&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      file_(std::exchange(other.file_, -1)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(file_, other.file_);
  return *this;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (file_ >= 0) close(file_);
}

size_t Segment::bytes_for(uint32_t ranks) { return header_bytes + size_t{ranks} * sizeof(ChannelMemory); }

ChannelMemory* Segment::channel_of(uint32_t sender) const {
  return reinterpret_cast<ChannelMemory*>(base_ + header_bytes) + sender;
}

Status Segment::map(uint32_t ranks) {
  void* const mapped = mmap(nullptr, bytes_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    return fail(Code::environment, "shared memory of ", bytes_for(ranks), " B cannot be mapped: ", std::strerror(error),
                "; ", cure_of(error));
  }
  base_ = static_cast<uint8_t*>(mapped);
  bytes_ = bytes_for(ranks);
  return {};
}

Result<Segment> Segment::create(uint32_t rank, uint32_t ranks, const Secret& nonce) {
  if (ranks > local_ranks_max) {
    return fail(Code::exhausted, "a job of ", ranks, " ranks; shared memory takes ", local_ranks_max,
                " (live::local_ranks_max)");
  }
  Segment made;
  made.file_ = memfd_create("spinloom", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made.file_ < 0) return fail(Code::environment, "memfd_create: ", trouble_of(errno));
  rlimit longest{};  // ftruncate beyond this limit would end the process
  const bool fits = getrlimit(RLIMIT_FSIZE, &longest) != 0 || bytes_for(ranks) <= longest.rlim_cur;
  if (!fits || ftruncate(made.file_, static_cast<off_t>(bytes_for(ranks))) != 0) {
    return fail(Code::environment, "shared memory of ", bytes_for(ranks), " B: ", trouble_of(fits ? errno : EFBIG));
  }
  if (fcntl(made.file_, F_ADD_SEALS, seals) != 0) {
    return fail(Code::environment, "shared memory cannot be sealed: ", std::strerror(errno));
  }
  SPL_TRY(made.map(ranks));
  SegmentHeader& header = made.header();
  header.build = build_word;
  header.nonce = nonce;
  header.rank = rank;
  header.ranks = ranks;
  header.fences = register_for_remote_fences() ? 0 : 1;
  header.self = reinterpret_cast<uint64_t>(made.base_);
  std::atomic_ref(header.magic).store(magic_word, std::memory_order_release);
  return made;
}

Result<Segment> Segment::attach(int64_t pid, int file, uint32_t rank, uint32_t ranks, const Secret& nonce) {
  const std::string path = text("/proc/", pid, "/fd/", file);
  Segment made;
  made.file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (made.file_ < 0) {
    const int error = errno;
    return fail(is_absence(error) ? Code::invalid : Code::environment, "the shared memory of rank ", rank, " (", path,
                "): ", std::strerror(error), "; ", cure_of(error));
  }
  struct stat status{};
  if (fstat(made.file_, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<size_t>(status.st_size) < bytes_for(ranks)) {
    return fail(Code::invalid, "rank ", rank, " has another program at ", path, " by now");
  }
  const int sealed = fcntl(made.file_, F_GET_SEALS);  // checked before any byte is touched; a seal cannot be undone
  if (sealed < 0 || (sealed & F_SEAL_SHRINK) == 0) {
    return fail(Code::invalid, "rank ", rank, " has other memory at ", path, " by now: it is not sealed");
  }
  SPL_TRY(made.map(ranks));
  const SegmentHeader& header = made.header();
  if (std::atomic_ref(made.header().magic).load(std::memory_order_acquire) != magic_word || header.nonce != nonce ||
      header.rank != rank || header.ranks != ranks) {
    return fail(Code::invalid, "rank ", rank, " has another program at ", path, " by now");
  }
  close(std::exchange(made.file_, -1));  // the mapping keeps the memory
  if (header.build != build_word) {
    return fail(Code::environment, "rank ", rank, " runs another version of the library");
  }
  return made;
}

}  // namespace spinloom::live
