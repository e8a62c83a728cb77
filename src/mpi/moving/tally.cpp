#include "mpi/moving/tally.hpp"

#include <ctime>
#include <functional>

#include "base/result.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::mpi {
namespace {

constexpr size_t types_max = 1'024;
constexpr size_t text_bytes_max = 256 << 10;  // the longest text of one type
constexpr size_t all_texts_bytes_max = 16 << 20;  // further texts are cut when all together have so many bytes
constexpr size_t cut_text_bytes = 400;
constexpr size_t cells_max = 128;  // so many cells tell counts and receivers apart, as many again only receivers

}  // namespace

size_t TypeTally::Hash::operator()(const Kind& kind) const {
  constexpr uint64_t multiplier = 0x9e37'79b9'7f4a'7c15;  // 2^64 over the golden ratio
  uint64_t mixed = static_cast<uint64_t>(kind.count) * multiplier ^ static_cast<uint64_t>(kind.receiver);
  mixed = mixed * multiplier ^ reinterpret_cast<uint64_t>(kind.why) ^ reinterpret_cast<uint64_t>(kind.call) << 1 ^
          static_cast<uint64_t>(kind.way);
  return static_cast<size_t>(mixed * multiplier >> 16);
}

TypeTally::Cell& TypeTally::find_or_add(Kind kind) {
  auto found = by_kind_.find(kind);
  if (found == by_kind_.end() && cells_.size() >= cells_max) {
    kind.count = various;
    if (cells_.size() >= 2 * cells_max) kind.receiver = various;
    found = by_kind_.find(kind);
  }
  if (found == by_kind_.end()) {
    cells_.push_back({kind});
    found = by_kind_.emplace(kind, &cells_.back()).first;
  }
  last_ = found->second;
  return *last_;
}

void TypeTally::withdraw(int64_t count, int64_t receiver) {
  // If no cell has this count and receiver, the last cell with an offered message that was not withdrawn is meant.
  Cell* candidate = nullptr;
  for (Cell& cell : cells_) {
    if (!is_offered(cell.kind.way) || cell.withdrawn == cell.messages) continue;
    candidate = &cell;
    if (cell.kind.count == count && cell.kind.receiver == receiver) break;
  }
  if (candidate != nullptr) ++candidate->withdrawn;
}

void TypeTally::describe(const Form& form) {
  size_ = form.size;
  extent_ = form.extent;
  spread_ = form.spread;
  block_bytes_ = form.block_bytes;
}

std::string TypeTally::as_json() const {
  std::string out = text("{\"kind\": \"", kind_name_, "\"");
  if (!text_.empty()) {
    out += text(", \"text\": \"", text_, "\", \"whole\": ", is_whole_ ? "true" : "false", ", \"size\": ", size_,
                ", \"extent\": ", extent_, ", \"spread\": ", spread_, ", \"block_bytes\": ", block_bytes_);
  }
  out += ", \"sent\": [";
  const char* comma = "";
  for (const Cell& cell : cells_) {
    out += text(comma, "[", cell.kind.count, ", ", cell.kind.receiver, ", \"", name_of(cell.kind.way), "\", \"",
                cell.kind.why, "\", ", cell.messages, ", ", cell.bytes, ", ", cell.withdrawn, ", \"", cell.kind.call,
                "\"]");
    comma = ", ";
  }
  return out + "]}";
}

TypeTally* Tally::tally_of(const layout::Type& type, const Form& form) {
  const size_t text_bytes_allowed = text_bytes_ < all_texts_bytes_max ? text_bytes_max : cut_text_bytes;
  std::string printed = layout::print_beginning(type, text_bytes_allowed + 1);
  const bool is_whole = printed.size() <= text_bytes_allowed;
  if (!is_whole) printed.resize(cut_text_bytes);
  // Cut texts are completed by sizes, so that fewer different types share a key.
  std::string key = is_whole ? printed : text(printed, " ", form.size, " ", form.extent, " ", form.true_extent);
  if (const auto found = by_text_.find(key); found != by_text_.end()) return found->second;
  if (derived_.size() >= types_max) return &other_;
  text_bytes_ += printed.size();
  TypeTally& tally = derived_.emplace_back("derived", std::move(printed), is_whole);
  tally.describe(form);
  by_text_.emplace(std::move(key), &tally);
  return &tally;
}

bool Tally::is_report_time() {
  constexpr uint64_t doubles_until = 64;
  constexpr int64_t second_ns = 1'000'000'000;
  if (messages_ < doubles_until) {
    next_check_ = 2 * messages_;
    return true;
  }
  next_check_ = messages_ + doubles_until;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const int64_t now_ns = now.tv_sec * second_ns + now.tv_nsec;
  if (now_ns - last_report_ns_ < second_ns) return false;
  last_report_ns_ = now_ns;
  return true;
}

std::string Tally::as_json() const {
  std::string out = "[";
  const char* comma = "";
  const auto add = [&](const TypeTally& type_tally) {
    if (type_tally.is_empty()) return;
    out += comma + type_tally.as_json();
    comma = ", ";
  };
  for (const TypeTally& type_tally : derived_) add(type_tally);
  add(contiguous_);
  add(unknown_);
  add(other_);
  return out + "]";
}

}  // namespace spinloom::mpi
