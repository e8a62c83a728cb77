#include "predict/trace/writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "predict/trace/pack.hpp"

namespace spinloom::trace {
namespace {

constexpr size_t open_bytes = OpenHeader::bytes + open_rooms[0] + open_rooms[1] + open_rooms[2];
constexpr size_t signature_column_max = 2 * varint_bytes_max;  // a number and a count of polls
constexpr size_t time_column_max = 2 * varint_bytes_max;
constexpr size_t known_bytes_max = size_t{64} << 20;
constexpr size_t definition_bytes_max = size_t{1} << 30;
// Polls later than this are an event of their own, so that a rank that is killed while it polls shows it.
constexpr uint64_t polls_ns_max = 100'000'000;

std::string reason(int code) { return std::strerror(code); }

// Returns 0 or an errno.
int write_all(int file, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return 0;
}

template <class Struct>
std::span<const uint8_t> bytes_of_struct(const Struct& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

Result<OpenHeader*> make_open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return fail(Code::environment, path, ": ", reason(errno));
  const int room = posix_fallocate(file, 0, open_bytes);
  void* const at = room != 0 ? MAP_FAILED : mmap(nullptr, open_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int code = room != 0 ? room : errno;
  close(file);
  if (at != MAP_FAILED) return new (at) OpenHeader;
  unlink(path.c_str());
  return fail(Code::environment, path, ": ", reason(code));
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::create(const std::string& directory, const Head& head) {
  const std::string path = trace_path(directory, head.rank);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return fail(Code::environment, path, ": ", reason(errno));
  const int code = write_all(file, bytes_of_struct(trace_magic));
  close(file);
  if (code != 0) return fail(Code::environment, path, ": ", reason(code));
  SPL_ASSIGN(OpenHeader* const open, make_open(open_path(directory, head.rank)));
  open->magic = open_magic;
  open->rooms = open_rooms;
  std::unique_ptr<Writer> writer(new Writer(directory, head.rank, head.begun_ns, open));
  Bytes bytes;
  encode(head, bytes);
  writer->define(Tag::head, bytes);
  writer->publish();
  return writer;
}

Writer::Writer(std::string directory, uint32_t rank, uint64_t begun_ns, OpenHeader* open)
    : directory_(std::move(directory)), rank_(rank), begun_ns_(begun_ns), open_(open) {}

Writer::~Writer() { munmap(open_, open_bytes); }

uint8_t* Writer::column_end(Column which) const {
  auto* at = reinterpret_cast<uint8_t*>(open_) + OpenHeader::bytes;
  for (size_t i = 0; i < static_cast<size_t>(which); ++i) at += open_rooms[i];
  return at + used_bytes_[static_cast<size_t>(which)];
}

bool Writer::fits(size_t definition_bytes, size_t events) const {
  return used_bytes_[0] + definition_bytes <= open_rooms[0] &&
         used_bytes_[1] + events * signature_column_max <= open_rooms[1] &&
         used_bytes_[2] + events * time_column_max <= open_rooms[2];
}

void Writer::publish() { open_->lengths.store(lengths_of(used_bytes_), std::memory_order_release); }

void Writer::define(Tag tag, const Bytes& bytes) {
  const size_t needed_bytes = 1 + varint_bytes_max + bytes.size();
  if (!fits(needed_bytes, 0)) close_chunk();
  if (!trouble_.empty()) return;
  if (fits(needed_bytes, 0)) {
    uint8_t* const first = column_end(Column::definitions);
    uint8_t* at = first;
    *at++ = static_cast<uint8_t>(tag);
    at = put_varint(at, bytes.size());
    std::memcpy(at, bytes.data(), bytes.size());
    used_bytes_[0] += static_cast<uint32_t>(at - first + static_cast<std::ptrdiff_t>(bytes.size()));
    return;
  }
  // More than the open chunk holds: a chunk by itself.
  if (bytes.size() > definition_bytes_max) return stop(text("a datatype or communicator of ", bytes.size(), " bytes"));
  Bytes raw(1 + varint_bytes_max);
  raw[0] = static_cast<uint8_t>(tag);
  raw.resize(static_cast<size_t>(put_varint(raw.data() + 1, bytes.size()) - raw.data()));
  raw.insert(raw.end(), bytes.begin(), bytes.end());
  append({static_cast<uint32_t>(raw.size()), 0, 0}, raw);
}

uint32_t Writer::add(const TypeEntry& type) {
  scratch_.clear();
  encode(type, scratch_);
  const uint64_t hash = Interned::hash_of(scratch_);
  if (const uint32_t found = known_types_.find(scratch_, hash); found != none) return found;
  known_types_.add(scratch_, hash, types_);
  define(Tag::type, scratch_);
  publish();
  return types_++;
}

uint32_t Writer::add(const CommEntry& comm) {
  scratch_.clear();
  encode(comm, scratch_);
  define(Tag::comm, scratch_);
  publish();
  return comms_++;
}

uint32_t Writer::intern(const Signature& signature) {
  scratch_.clear();
  encode(signature, scratch_);
  const uint64_t hash = Interned::hash_of(scratch_);
  if (const uint32_t found = known_signatures_.find(scratch_, hash); found != none) return found;
  if (known_signatures_.memory_bytes() > known_bytes_max) known_signatures_.clear();
  known_signatures_.add(scratch_, hash, signatures_);
  define(Tag::signature, scratch_);
  return signatures_++;
}

void Writer::put_event(const Event& event) {
  if (!fits(0, 1)) close_chunk();
  if (!trouble_.empty()) return;
  uint8_t* at = column_end(Column::signatures);
  uint8_t* behind = put_varint(at, uint64_t{event.signature} << 1 | (event.polls != 0 ? 1 : 0));
  if (event.polls != 0) behind = put_varint(behind, event.polls);
  used_bytes_[1] += static_cast<uint32_t>(behind - at);
  at = column_end(Column::times);
  behind = put_varint(at, event.end_ns - last_end_ns_);
  behind = put_varint(behind, event.end_ns - event.begin_ns);
  used_bytes_[2] += static_cast<uint32_t>(behind - at);
  last_end_ns_ = event.end_ns;
}

void Writer::flush_poll() {
  if (!has_pending_poll_) return;
  has_pending_poll_ = false;
  put_event(pending_poll_);
  publish();
}

void Writer::record(const Signature& signature, uint64_t begin_ns, uint64_t end_ns) {
  if (!trouble_.empty()) return;
  open_->under_way.store(0, std::memory_order_relaxed);
  flush_poll();
  const uint32_t number = intern(signature);
  put_event({number, 0, begin_ns - begun_ns_, end_ns - begun_ns_});
  publish();
}

void Writer::poll(const Signature& signature, uint64_t begin_ns, uint64_t end_ns) {
  if (!trouble_.empty()) return;
  open_->under_way.store(0, std::memory_order_relaxed);
  const uint32_t number = intern(signature);
  if (has_pending_poll_ && pending_poll_.signature == number && pending_poll_.polls < UINT32_MAX &&
      end_ns - begun_ns_ - pending_poll_.begin_ns < polls_ns_max) {
    ++pending_poll_.polls;
    pending_poll_.end_ns = end_ns - begun_ns_;
    return;
  }
  flush_poll();
  pending_poll_ = {number, 1, begin_ns - begun_ns_, end_ns - begun_ns_};
  has_pending_poll_ = true;
}

void Writer::close_chunk() {
  if (used_bytes_ == std::array<uint32_t, columns>{} || !trouble_.empty()) return;
  Bytes raw;
  raw.reserve(used_bytes_[0] + used_bytes_[1] + used_bytes_[2]);
  const auto* at = reinterpret_cast<const uint8_t*>(open_) + OpenHeader::bytes;
  for (size_t i = 0; i < columns; ++i) {
    raw.insert(raw.end(), at, at + used_bytes_[i]);
    at += open_rooms[i];
  }
  append(used_bytes_, raw);
}

// Adds a chunk to the file; then the open chunk, which is empty or the one that was added, begins again.
void Writer::append(std::array<uint32_t, columns> bytes, std::span<const uint8_t> raw) {
  const Bytes packed = pack(raw);
  const std::span<const uint8_t> stored = packed.empty() ? raw : std::span<const uint8_t>(packed);
  ChunkHeader header{.sequence = sequence_,
                     .bytes = bytes,
                     .stored_bytes = static_cast<uint32_t>(stored.size()),
                     .packing = packed.empty() ? Packing::raw : Packing::zstd};
  header.checksum = checksum_of(header, stored);
  const std::string path = trace_path(directory_, rank_);
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  int code = file < 0 ? errno : write_all(file, bytes_of_struct(header));
  if (code == 0) code = write_all(file, stored);
  if (file >= 0 && close(file) != 0 && code == 0) code = errno;
  if (code != 0) return stop(text(path, ": ", reason(code)));
  used_bytes_ = {};
  last_end_ns_ = 0;
  publish();
  open_->sequence.store(++sequence_, std::memory_order_release);
}

void Writer::stop(std::string why) {
  trouble_ = std::move(why);
  std::strncpy(open_->trouble, trouble_.c_str(), sizeof open_->trouble - 1);
}

void Writer::end() {
  if (!trouble_.empty()) return;
  flush_poll();
  close_chunk();
  if (trouble_.empty()) unlink(open_path(directory_, rank_).c_str());
}

// The open chunk is then empty: its file says only in which call the rank is.
void Writer::end_within(Call call, CallForm form, uint64_t begin_ns) {
  if (!trouble_.empty()) return;
  flush_poll();
  close_chunk();
  if (!trouble_.empty()) return;
  enter(call, form, begin_ns);
  open_->rooms = {};
  const std::string path = open_path(directory_, rank_);
  if (truncate(path.c_str(), OpenHeader::bytes) != 0) stop(text(path, ": ", reason(errno)));
}

}  // namespace spinloom::trace
