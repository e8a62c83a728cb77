#include "nic/registers/control_format.hpp"

#include <algorithm>

#include "base/byte_order.hpp"

namespace spinloom::registers {
namespace {

constexpr uint32_t request_magic = 0x3f4c5053;  // "SPL?"
constexpr uint32_t answer_magic = 0x214c5053;   // "SPL!"
constexpr uint16_t version = 1;
constexpr size_t request_header_bytes = 24;
constexpr size_t answer_header_bytes = 16;
constexpr size_t entry_bytes = 64;
static_assert(entry_bytes == 4 * sizeof(uint32_t) + 2 + path_bytes_max);

class Writer {
 public:
  template <class T>
  void put(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    store_le(&bytes_[bytes_.size() - sizeof(T)], value);
  }
  void put_text(std::string_view text, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_.push_back(i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

// Takes fields from the front of bytes; the caller makes sure that the bytes are there.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    SPL_ASSERT(bytes_.size() >= sizeof(T), bytes_.size(), " bytes left");
    const T value = load_le<T>(bytes_.data());
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  std::string take_text(size_t bytes) {
    std::string text(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
    bytes_ = bytes_.subspan(bytes);
    return text;
  }
  [[nodiscard]] size_t remaining_bytes() const { return bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
};

bool is_request_kind(uint16_t value) {
  return value >= static_cast<uint16_t>(RequestKind::read_registers) &&
         value <= static_cast<uint16_t>(RequestKind::status);
}

// Takes the magic number, the version and the kind, with which requests and answers begin.
Result<RequestKind> take_prefix(Reader& reader, size_t bytes_min, uint32_t magic, const char* what) {
  if (reader.remaining_bytes() < bytes_min) {
    return fail(Code::invalid, "a ", what, " has at least ", bytes_min, " bytes, these are ", reader.remaining_bytes());
  }
  if (reader.take<uint32_t>() != magic) return fail(Code::invalid, "these bytes do not begin as a ", what);
  const auto message_version = reader.take<uint16_t>();
  if (message_version != version) {
    return fail(Code::unsupported, "a ", what, " of version ", message_version, "; this is version ", version);
  }
  const auto kind = reader.take<uint16_t>();
  if (!is_request_kind(kind)) return fail(Code::unsupported, "a ", what, " of kind ", kind, ", which does not exist");
  return static_cast<RequestKind>(kind);
}

Status check_count(RequestKind kind, uint32_t count) {
  const bool has_entries = kind == RequestKind::list_registers;
  const bool has_count = has_entries || kind == RequestKind::read_registers || kind == RequestKind::read_memory ||
                         kind == RequestKind::pop_stdout;
  const uint32_t max_value = has_entries ? entries_max : has_count ? words_max : 0;
  const uint32_t min_value = has_count ? 1 : 0;
  if (count >= min_value && count <= max_value) return {};
  return fail(Code::invalid, "a request of kind ", static_cast<uint16_t>(kind), " with count ", count, "; from ",
              min_value, " to ", max_value);
}

}  // namespace

std::vector<uint8_t> encode(const Request& request) {
  Writer out;
  out.put(request_magic);
  out.put(version);
  out.put(static_cast<uint16_t>(request.kind));
  out.put(request.address);
  out.put(request.count);
  out.put(static_cast<uint32_t>(request.words.size()));
  for (const uint64_t word : request.words) out.put(word);
  return out.take();
}

Result<Request> decode_request(std::span<const uint8_t> bytes) {
  Reader in(bytes);
  Request request;
  SPL_ASSIGN(request.kind, take_prefix(in, request_header_bytes, request_magic, "request"));
  request.address = in.take<uint64_t>();
  request.count = in.take<uint32_t>();
  const auto words = in.take<uint32_t>();
  SPL_TRY(check_count(request.kind, request.count));
  const bool takes_word = request.kind == RequestKind::write_register;
  const bool takes_words = request.kind == RequestKind::write_memory;
  if (words < (takes_word || takes_words ? 1 : 0) || words > (takes_words ? words_max : takes_word ? 1 : 0)) {
    return fail(Code::invalid, "a request of kind ", static_cast<uint16_t>(request.kind), " with ", words, " words");
  }
  if (in.remaining_bytes() != size_t{words} * 8) {
    return fail(Code::invalid, "a request of ", words, " words has ", in.remaining_bytes(), " bytes after its header");
  }
  for (uint32_t i = 0; i < words; ++i) request.words.push_back(in.take<uint64_t>());
  return request;
}

std::vector<uint8_t> encode(const Answer& answer) {
  Writer out;
  out.put(answer_magic);
  out.put(version);
  out.put(static_cast<uint16_t>(answer.kind));
  out.put(static_cast<uint16_t>(answer.succeeded ? 0 : 1 + static_cast<uint16_t>(answer.code)));
  out.put(static_cast<uint16_t>(answer.entries.size()));
  out.put(static_cast<uint32_t>(answer.words.empty() ? answer.text.size() : answer.words.size()));
  for (const uint64_t word : answer.words) out.put(word);
  for (const Entry& entry : answer.entries) {
    out.put(entry.address);
    out.put(entry.value);
    out.put(entry.reset);
    out.put(entry.guard_address);
    out.put(entry.access);
    out.put(entry.width);
    out.put_text(entry.path, path_bytes_max);
  }
  if (answer.words.empty()) out.put_text(answer.text, answer.text.size());
  return out.take();
}

Result<Answer> decode_answer(std::span<const uint8_t> bytes) {
  Reader in(bytes);
  Answer answer;
  SPL_ASSIGN(answer.kind, take_prefix(in, answer_header_bytes, answer_magic, "answer"));
  const auto code = in.take<uint16_t>();
  const auto entries = in.take<uint16_t>();
  const auto count = in.take<uint32_t>();
  answer.succeeded = code == 0;
  if (code > 1 + static_cast<uint16_t>(Code::environment)) {
    return fail(Code::unsupported, "an answer with code ", code, ", which does not exist");
  }
  if (code != 0) answer.code = static_cast<Code>(code - 1);
  const bool has_words =
      answer.succeeded && (answer.kind == RequestKind::read_registers || answer.kind == RequestKind::read_memory ||
                           answer.kind == RequestKind::pop_stdout);
  const bool has_entries = answer.succeeded && answer.kind == RequestKind::list_registers;
  const bool has_text = !answer.succeeded || answer.kind == RequestKind::status;
  if (entries > (has_entries ? entries_max : 0) || count > (has_words ? words_max : has_text ? text_bytes_max : 0)) {
    return fail(Code::invalid, "an answer with ", entries, " entries and count ", count);
  }
  if (in.remaining_bytes() != entries * entry_bytes + size_t{count} * (has_words ? 8 : 1)) {
    return fail(Code::invalid, "an answer of ", entries, " entries and count ", count, " has ", in.remaining_bytes(),
                " bytes after its header");
  }
  for (uint32_t i = 0; has_words && i < count; ++i) answer.words.push_back(in.take<uint64_t>());
  for (uint32_t i = 0; i < entries; ++i) {
    Entry entry;
    entry.address = in.take<uint32_t>();
    entry.value = in.take<uint32_t>();
    entry.reset = in.take<uint32_t>();
    entry.guard_address = in.take<uint32_t>();
    entry.access = in.take<uint8_t>();
    entry.width = in.take<uint8_t>();
    const std::string padded = in.take_text(path_bytes_max);
    entry.path = padded.substr(0, padded.find('\0'));
    if (padded.find_first_not_of('\0', entry.path.size()) != std::string::npos) {
      return fail(Code::invalid, "an answer whose entry ", i, " has bytes after the end of its path");
    }
    answer.entries.push_back(std::move(entry));
  }
  if (has_text) answer.text = in.take_text(count);
  return answer;
}

}  // namespace spinloom::registers
