#include "live/launch/reach.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

namespace spinloom::live {
namespace {

constexpr std::string_view mark = "spl1-reach-";
constexpr char digits[] = "0123456789abcdef";
constexpr size_t status_bytes = 8 << 10;

// The lines of /proc/self/status that decide which processes may reach each other.
std::string credentials() {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string status(status_bytes, 0);
  const ssize_t got = read(file, status.data(), status.size());
  close(file);
  status.resize(got < 0 ? 0 : static_cast<size_t>(got));
  std::string lines;
  for (size_t at = 0; at < status.size();) {
    const size_t end = std::min(status.find('\n', at), status.size());
    const std::string_view line = std::string_view(status).substr(at, end - at);
    for (const std::string_view wanted : {"Uid:", "Gid:", "CapPrm:", "CapEff:"}) {
      if (line.substr(0, wanted.size()) == wanted) lines += std::string(line) + "\n";
    }
    at = end + 1;
  }
  return lines;
}

int open_process(int64_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)); }

// Says why this process cannot use a peer's memory, or notice the peer's end; empty if it can, or if the peer has
// ended.
std::string trouble_with(const BusinessCard& card) {
  const int process = open_process(card.pid);
  if (process < 0) return errno == ESRCH ? "" : text("pidfd_open: ", std::strerror(errno));
  close(process);
  const std::string path = text("/proc/", card.pid, "/fd/", card.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return errno == ESRCH ? "" : text(path, ": ", std::strerror(errno));
  close(file);
  return {};
}

}  // namespace

uint64_t traits_of_self() {
  const int process = open_process(getpid());
  if (process < 0) return 0;
  close(process);
  struct stat users{};
  const std::string known = credentials();
  if (prctl(PR_GET_DUMPABLE) != 1 || known.empty() || stat("/proc/self/ns/user", &users) != 0) return 0;
  return std::hash<std::string>{}(text(known, users.st_ino)) | 1;
}

bool shares_namespaces(pid_t other) {
  if (other == 0) return false;
  for (const char* kind : {"pid", "net", "user"}) {
    struct stat ours{}, theirs{};
    if (stat(text("/proc/self/ns/", kind).c_str(), &ours) != 0) return false;
    const bool seen = stat(text("/proc/", other, "/ns/", kind).c_str(), &theirs) == 0;
    if (seen && (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)) return false;
  }
  return true;
}

bool must_agree(const std::vector<BusinessCard>& cards) {
  for (size_t i = 0; i < cards.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (cards[i].machine != cards[j].machine) continue;
      if (cards[i].traits != cards[j].traits || cards[i].traits == 0) return true;
      break;  // all others of this machine equal the first one
    }
  }
  return false;
}

UnreachedReasons unreachable_from(uint32_t rank, const std::vector<BusinessCard>& cards) {
  UnreachedReasons reasons(cards.size());
  for (uint32_t peer = 0; peer < cards.size(); ++peer) {
    if (peer == rank || cards[peer].machine != cards[rank].machine || cards[peer].pid == cards[rank].pid) continue;
    reasons[peer] = trouble_with(cards[peer]);
  }
  return reasons;
}

std::string write(const UnreachedReasons& unreached) {
  std::string text(mark);
  for (size_t first = 0; first < unreached.size(); first += 4) {
    unsigned digit = 0;
    for (size_t i = first; i < std::min(first + 4, unreached.size()); ++i) {
      digit |= unreached[i].empty() ? 0U : 1U << (i - first);
    }
    text += digits[digit];
  }
  return text;
}

Result<std::vector<bool>> read_unreached(const std::string& text, uint32_t ranks) {
  const size_t length = (size_t{ranks} + 3) / 4;
  std::vector<bool> marks(ranks);
  bool good = text.size() == mark.size() + length && text.compare(0, mark.size(), mark) == 0;
  for (uint32_t rank = 0; good && rank < ranks; ++rank) {
    const size_t digit = std::string_view(digits).find(text[mark.size() + rank / 4]);
    good = digit != std::string_view::npos;
    marks[rank] = good && (digit >> rank % 4 & 1) != 0;
  }
  if (good) return marks;
  return fail(Code::environment, "a rank published '", text, "' instead of the ranks that it does not reach");
}

}  // namespace spinloom::live
