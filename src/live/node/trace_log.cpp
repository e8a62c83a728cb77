#include "live/node/trace_log.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace spinloom::live {
namespace {

constexpr size_t buffer_bytes = 64 << 10;
constexpr const char* head = "time_ns,event,peer,operation,message,portal,match_bits,offset,bytes,message_bytes\n";

// The time of a clock that all ranks of a machine share.
int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void append(std::string& line, uint64_t number) {
  line += ',';
  line += std::to_string(number);
}

}  // namespace

Result<std::unique_ptr<TraceLog>> TraceLog::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return fail(Code::environment, "SPINLOOM_TRACE: ", path, ": ", std::strerror(errno));
  std::unique_ptr<TraceLog> made(new TraceLog(file));
  made->buffer_ = head;
  made->flush();
  return made;
}

TraceLog::~TraceLog() {
  flush();
  if (file_ >= 0) close(file_);
}

void TraceLog::begin_line(const char* event) {
  if (buffer_.size() >= buffer_bytes) flush();
  buffer_ += std::to_string(now_ns());
  buffer_ += ',';
  buffer_ += event;
}

void TraceLog::log_packet(const char* event, nic::Rank peer, const nic::Packet& packet) {
  begin_line(event);
  append(buffer_, peer.value);
  buffer_ += ',';
  buffer_ += nic::name_of(packet.operation);
  for (const uint64_t number : {packet.message, uint64_t{packet.fields.portal_index}, packet.fields.match_bits,
                                packet.offset, packet.payload.length, packet.message_length}) {
    append(buffer_, number);
  }
  buffer_ += '\n';
}

void TraceLog::log_message(const char* event, uint64_t message) {
  begin_line(event);
  buffer_ += ",,";
  append(buffer_, message);
  buffer_ += ",,,,,\n";
}

void TraceLog::log_peer(const char* event, nic::Rank peer) {
  begin_line(event);
  append(buffer_, peer.value);
  buffer_ += ",,,,,,,\n";
}

// Writes the lines. If that fails, the log ends: a gap in the middle would look like messages that were never sent.
void TraceLog::flush() {
  for (size_t done = 0; file_ >= 0 && done < buffer_.size();) {
    const ssize_t written = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      close(file_);
      file_ = -1;
      break;
    }
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
}

}  // namespace spinloom::live
