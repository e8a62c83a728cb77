#include "predict/schedule/content.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace spinloom::schedule {
namespace {

// A name that cannot be opened is the user's to mend; what the machine lacks is not.
Error error_of(int number) {
  const bool lacks = number == EMFILE || number == ENFILE || number == ENOMEM || number == EIO;
  return fail(lacks ? Code::environment : Code::invalid, std::strerror(number));
}

Result<Content> read_all(int file) {
  const auto read_bytes = std::make_shared<std::string>();
  std::array<char, 1 << 16> chunk{};
  for (;;) {
    const ssize_t count = ::read(file, chunk.data(), chunk.size());
    if (count == 0) return Content{*read_bytes, read_bytes};
    if (count < 0 && errno != EINTR) return error_of(errno);
    if (count > 0) read_bytes->append(chunk.data(), static_cast<size_t>(count));
  }
}

Result<Content> map_or_read(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return error_of(errno);
  if (S_ISDIR(status.st_mode)) return error_of(EISDIR);
  const auto bytes = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || bytes == 0) return read_all(file);
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return read_all(file);
  return Content{{static_cast<const char*>(at), bytes},
                 {at, [bytes](const void* memory) { ::munmap(const_cast<void*>(memory), bytes); }}};
}

}  // namespace

Result<Content> content_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return error_of(errno);
  Result<Content> content = map_or_read(file);
  ::close(file);
  return content;
}

}  // namespace spinloom::schedule
