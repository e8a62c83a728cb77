// Content - the bytes of a file, for as long as somebody keeps them.
//
// Contract: of a regular file they are mapped, read-only: memory holds what has been looked at last, and the system
//   drops it where it needs room. Others, such as pipes, are read. The file must not become shorter meanwhile.
// Threads: plain values. Time: none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::schedule {

struct Content {
  std::string_view bytes;
  std::shared_ptr<const void> kept;
};

[[nodiscard]] Result<Content> content_of(const std::string& path);

}  // namespace spinloom::schedule
