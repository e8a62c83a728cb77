// Log - structured, silent until somebody installs a sink.
//
// Contract: emit() calls the sink, unless none is installed or the level is below the threshold. The library never
//   writes to stdout or stderr itself. One lock is held while the sink runs, so a sink must not call this file.
// Threads: any; the lock lets one call into the sink at a time. Time: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace spinloom::log {

enum class Level { debug, info, warning, error };

using Sink = std::function<void(Level, std::string_view area, std::string_view message)>;

void install(Sink sink, Level threshold);
[[nodiscard]] bool enabled(Level level);
void emit(Level level, std::string_view area, std::string_view message);

}  // namespace spinloom::log
