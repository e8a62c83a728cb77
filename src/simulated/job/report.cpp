#include "simulated/job/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace spinloom::job {

void Report::say(const char* format, ...) const {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (wanted < 0) return;
  size_t length = std::min(static_cast<size_t>(wanted), sizeof line - 2);
  line[length++] = '\n';
  for (size_t at = 0; at < length;) {
    const ssize_t written = write(descriptor_, line + at, length - at);
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

void Report::say_trouble(const Error& error) const { say("trouble %s %s", name_of(error.code), error.message.c_str()); }

}  // namespace spinloom::job
