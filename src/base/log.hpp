// Log - structured, silent until somebody installs a sink.
//
// Contract: emit() is free when no sink is installed or the level is below the threshold; the library
//   never writes to stdout or stderr itself.
// Threads: install before use; emit from any thread (the sink serialises). Time: none.
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
