#include "live/trace_log.hpp"

#include <time.h>

#include <cerrno>
#include <cinttypes>
#include <cstring>

namespace spinloom::live {
namespace {

constexpr const char* head = "time_ns,event,peer,operation,message,portal,match_bits,offset,bytes,message_bytes\n";

// Of one clock for all ranks of a machine.
long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Result<std::unique_ptr<TraceLog>> TraceLog::open(const std::string& path) {
  FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return fail(Code::environment, "SPINLOOM_TRACE: ", path, ": ", std::strerror(errno));
  std::unique_ptr<TraceLog> made(new TraceLog(file));
  std::fputs(head, file);
  made->dirty_ = true;
  made->flush();
  return made;
}

TraceLog::~TraceLog() { std::fclose(file_); }

void TraceLog::packet(const char* what, nic::Rank peer, const nic::Packet& packet) {
  dirty_ = true;
  std::fprintf(file_,
               "%lld,%s,%" PRIu32 ",%s,%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
               now_ns(), what, peer.value, nic::name_of(packet.operation), packet.message, packet.fields.portal_index,
               packet.fields.match_bits, packet.offset, packet.payload.length, packet.message_length);
}

void TraceLog::message(const char* what, uint64_t message) {
  dirty_ = true;
  std::fprintf(file_, "%lld,%s,,,%" PRIu64 ",,,,,\n", now_ns(), what, message);
}

void TraceLog::peer(const char* what, nic::Rank peer) {
  dirty_ = true;
  std::fprintf(file_, "%lld,%s,%" PRIu32 ",,,,,,,\n", now_ns(), what, peer.value);
}

void TraceLog::flush() {
  if (!dirty_) return;
  dirty_ = false;
  std::fflush(file_);
}

}  // namespace spinloom::live
