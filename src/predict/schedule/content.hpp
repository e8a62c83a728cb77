// Content - the bytes of a file, kept as long as they are in use.
//
// Contract: the bytes of a regular file are mapped, read-only: memory holds those that were used last, and the system
//   drops them if it needs room. Other files, such as pipes, are read. The file must not become shorter meanwhile.
// Threads: plain values. Time: none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::schedule {

struct Content {
  std::string_view bytes;
  std::shared_ptr<const void> owner;  // keeps the bytes where they are
};

[[nodiscard]] Result<Content> content_of(const std::string& path);

}  // namespace spinloom::schedule
