#include "live/node/state_file.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace spinloom::live {
namespace {

constexpr size_t state_bytes = 2048;  // the line is cut or filled to this length, so that one write replaces it

std::string epoch_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::to_string(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace

Result<std::unique_ptr<StateFile>> StateFile::open(const std::string& path) {
  unlink(path.c_str());  // a file that lies there may be that of another job that runs still
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return fail(Code::environment, "SPINLOOM_TRACE: ", path, ": ", std::strerror(errno));
  struct flock entire_file{};
  entire_file.l_type = F_WRLCK;
  entire_file.l_whence = SEEK_SET;
  fcntl(file, F_SETLK, &entire_file);
  return std::unique_ptr<StateFile>(new StateFile(file));
}

StateFile::~StateFile() { close(file_); }

void StateFile::say(const char* state, const std::string& sentence) {
  const std::lock_guard inside(lock_);
  std::string state_and_sentence = text(state, " ", sentence);
  if (has_left_ || state_and_sentence == written_) return;
  has_left_ = std::strcmp(state, "left") == 0;
  written_ = std::move(state_and_sentence);
  std::string line = text(epoch_ns(), " ", written_);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.resize(state_bytes - 1, ' ');
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = pwrite(file_, line.data() + done, line.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<size_t>(written);
  }
}

}  // namespace spinloom::live
