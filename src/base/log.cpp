#include "base/log.hpp"

#include <mutex>
#include <utility>

namespace spinloom::log {
namespace {

struct State {
  std::mutex mutex;
  Sink sink;
  Level threshold = Level::error;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

void install(Sink sink, Level threshold) {
  const std::scoped_lock lock(state().mutex);
  state().sink = std::move(sink);
  state().threshold = threshold;
}

bool enabled(Level level) {
  const std::scoped_lock lock(state().mutex);
  return state().sink && level >= state().threshold;
}

void emit(Level level, std::string_view area, std::string_view message) {
  const std::scoped_lock lock(state().mutex);
  if (state().sink && level >= state().threshold) state().sink(level, area, message);
}

}  // namespace spinloom::log
