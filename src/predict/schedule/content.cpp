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

Error no_content(int number) { return fail(Code::environment, std::strerror(number)); }

Result<Content> read_all(int file) {
  const auto read_bytes = std::make_shared<std::string>();
  std::array<char, 1 << 16> part{};
  for (;;) {
    const ssize_t count = ::read(file, part.data(), part.size());
    if (count == 0) return Content{*read_bytes, read_bytes};
    if (count < 0 && errno != EINTR) return no_content(errno);
    if (count > 0) read_bytes->append(part.data(), static_cast<size_t>(count));
  }
}

Result<Content> content(int file) {
  struct stat about{};
  if (::fstat(file, &about) != 0) return no_content(errno);
  if (S_ISDIR(about.st_mode)) return no_content(EISDIR);
  const auto bytes = static_cast<size_t>(about.st_size);
  if (!S_ISREG(about.st_mode) || bytes == 0) return read_all(file);
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return read_all(file);
  return Content{{static_cast<const char*>(at), bytes},
                 {at, [bytes](const void* memory) { ::munmap(const_cast<void*>(memory), bytes); }}};
}

}  // namespace

Result<Content> content_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return no_content(errno);
  Result<Content> found = content(file);
  ::close(file);
  return found;
}

}  // namespace spinloom::schedule
