#include "simulated/job/capture.hpp"

#include <stdio_ext.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace spinloom::job {
namespace {

// Returns 0, or the errno of the write that failed.
int write_all(int descriptor, const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t written = write(descriptor, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes += written;
    length -= static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

Status Capture::begin(uint32_t ranks, bool prefix) {
  std::fflush(stream_);
  unfinished_lines_.resize(ranks);
  prefix_ = prefix;
  real_descriptor_ = dup(descriptor_);
  const int memory = memfd_create("spinloom-output", MFD_CLOEXEC);
  if (real_descriptor_ < 0 || memory < 0 || dup2(memory, descriptor_) < 0) {
    return fail(Code::environment, "the ranks' output cannot be redirected: ", std::strerror(errno));
  }
  close(memory);
  return {};
}

void Capture::collect(uint32_t rank) {
  if (__fpending(stream_) > 0) std::fflush(stream_);
  take_captured(rank);
}

void Capture::finish(uint32_t rank) {
  collect(rank);
  std::string& line = unfinished_lines_[rank];
  if (line.empty()) return;
  line += '\n';
  print(rank, line.data(), line.size());
  line.clear();
}

void Capture::rescue(uint32_t rank) {
#if defined(__GLIBC__)
  if (stream_->_IO_write_ptr > stream_->_IO_write_base) {
    write_all(descriptor_, stream_->_IO_write_base,
              static_cast<size_t>(stream_->_IO_write_ptr - stream_->_IO_write_base));
  }
#endif
  char bytes[4096];
  const off_t end = lseek(descriptor_, 0, SEEK_CUR);
  for (off_t at = 0; at < end;) {
    const ssize_t got = pread(descriptor_, bytes, sizeof bytes, at);
    if (got <= 0) break;
    if (at == 0) write_all(real_descriptor_, unfinished_lines_[rank].data(), unfinished_lines_[rank].size());
    write_all(real_descriptor_, bytes, static_cast<size_t>(got));
    at += got;
  }
}

void Capture::write_unprefixed(const char* bytes, size_t length) const { write_all(real_descriptor_, bytes, length); }

void Capture::take_captured(uint32_t rank) {
  const off_t end = lseek(descriptor_, 0, SEEK_CUR);
  if (end <= 0) return;
  std::string& line = unfinished_lines_[rank];
  const size_t before = line.size();
  line.resize(before + static_cast<size_t>(end));
  const ssize_t got = pread(descriptor_, line.data() + before, static_cast<size_t>(end), 0);
  line.resize(before + static_cast<size_t>(got < 0 ? 0 : got));
  lseek(descriptor_, 0, SEEK_SET);
  if (ftruncate(descriptor_, 0) != 0) return;
  const size_t last = line.rfind('\n');
  if (last == std::string::npos) return;
  print(rank, line.data(), last + 1);
  line.erase(0, last + 1);
}

void Capture::note_error(int error) {
  if (error_ == 0) error_ = error;
}

// Prints whole lines.
void Capture::print(uint32_t rank, const char* bytes, size_t length) {
  if (!prefix_) return note_error(write_all(real_descriptor_, bytes, length));
  const std::string name = text("[", rank, "] ");
  std::string out;
  const char* const end = bytes + length;
  while (bytes < end) {
    const auto* newline = static_cast<const char*>(std::memchr(bytes, '\n', static_cast<size_t>(end - bytes)));
    out += name;
    out.append(bytes, newline + 1);
    bytes = newline + 1;
  }
  note_error(write_all(real_descriptor_, out.data(), out.size()));
}

}  // namespace spinloom::job
