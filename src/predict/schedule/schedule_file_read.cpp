#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "predict/schedule/content.hpp"
#include "predict/schedule/goal.hpp"
#include "predict/schedule/schedule_file.hpp"
#include "predict/schedule/schedule_file_form.hpp"

namespace spinloom::schedule {
namespace {

class FileReader {
 public:
  // `kept`: Programs may stay where they are, and this keeps them there.
  FileReader(std::string_view bytes, std::shared_ptr<const void> kept, const Watch& watch)
      : bytes_(bytes), looks_(watch, "reading the schedule") {
    parts_.source = std::move(kept);
  }

  Result<Schedule> whole() {
    SPL_TRY(head());
    const auto programs = take<file::ProgramEntry>(head_.programs, programs_at_);
    const auto times = take<uint32_t>((head_.flags & file::has_times) != 0 ? head_.programs : 0, times_at_);
    parts_.program_of = take<uint32_t>(head_.ranks, sizeof(file::Head));
    if ((head_.flags & file::has_ends) != 0) parts_.ends = take<Ends>(head_.shapes, ends_at_);
    SPL_TRY(ranks_have_programs());
    SPL_TRY(shapes());
    SPL_TRY(layouts());
    uint64_t operation = 0;
    uint64_t edge = 0;
    for (uint32_t number = 0; number < head_.programs; ++number) {
      const file::ProgramEntry entry = programs[number];
      const uint64_t entry_at = programs_at_ + number * sizeof(file::ProgramEntry);
      if (entry.operations > head_.operations - operation || entry.edges > head_.edges - edge ||
          entry.operations > Edge::operations_most) {
        return fail(Code::invalid, "byte ", entry_at, ": program ", number, " has ", entry.operations,
                    " operations and ", entry.edges, " edges, but ", head_.operations - operation, " and ",
                    head_.edges - edge, " are left");
      }
      const uint32_t passes = times.empty() ? 1 : times[number];
      if (passes == 0 || uint64_t{passes} * entry.operations > Edge::operations_most) {
        return fail(Code::invalid, "byte ", times_at_ + number * sizeof(uint32_t), ": program ", number, " has ",
                    passes, " passes of ", entry.operations, " operations; there is at least one pass, and ",
                    Edge::operations_most, " operations at most");
      }
      SPL_TRY(program(number, entry, passes, operations_at_ + operation * sizeof(Operation),
                      edges_at_ + edge * sizeof(Edge)));
      operation += entry.operations;
      edge += entry.edges;
    }
    if (operation != head_.operations || edge != head_.edges) {
      return fail(Code::invalid, "byte 32: the programs have ", operation, " operations and ", edge,
                  " edges, but the head says ", head_.operations, " and ", head_.edges);
    }
    return Schedule(std::move(parts_));
  }

 private:
  Status head() {
    if (bytes_.size() < sizeof(file::Head)) {
      return fail(Code::invalid, "byte 0: expected a head of ", sizeof(file::Head), " bytes, the file has ",
                  bytes_.size());
    }
    std::memcpy(&head_, bytes_.data(), sizeof(file::Head));
    if (std::string_view(head_.magic.data(), head_.magic.size()) != file::magic) {
      return fail(Code::invalid, "byte 0: expected '", file::magic, "', with which our own form of schedules begins");
    }
    if (head_.version != file::version) {
      return fail(Code::unsupported, "byte 8: the file has version ", head_.version, ", this reads version ",
                  file::version);
    }
    if ((head_.flags & ~file::flags_known) != 0) {
      return fail(Code::invalid, "byte 12: flags are ", head_.flags, ", of which only 1, 2 and 4 are known");
    }
    programs_at_ = sizeof(file::Head) + uint64_t{head_.ranks} * sizeof(uint32_t);
    times_at_ = programs_at_ + uint64_t{head_.programs} * sizeof(file::ProgramEntry);
    shapes_at_ = times_at_ + ((head_.flags & file::has_times) != 0 ? uint64_t{head_.programs} * sizeof(uint32_t) : 0);
    wide_at_ = shapes_at_ + uint64_t{head_.shapes} * sizeof(file::ShapeEntry);
    ends_at_ = wide_at_ + ((head_.flags & file::has_wide) != 0 ? uint64_t{head_.shapes} * sizeof(file::WideEntry) : 0);
    layouts_at_ = ends_at_ + ((head_.flags & file::has_ends) != 0 ? uint64_t{head_.shapes} * sizeof(Ends) : 0);
    blobs_at_ = layouts_at_ + uint64_t{head_.layouts} * sizeof(file::LayoutEntry);
    // Three numbers of 64 bits, of which none may be larger than the file: their sum then fits.
    const bool fits = std::max({head_.operations, head_.edges, head_.blob_bytes}) <= bytes_.size();
    operations_at_ = blobs_at_ + head_.blob_bytes;
    edges_at_ = operations_at_ + head_.operations * sizeof(Operation);
    if (!fits || edges_at_ + head_.edges * sizeof(Edge) != bytes_.size()) {
      return fail(Code::invalid, "byte 16: ", head_.ranks, " ranks, ", head_.programs, " programs, ", head_.shapes,
                  " shapes, ", head_.layouts, " layouts of ", head_.blob_bytes, " B, ", head_.operations,
                  " operations and ", head_.edges, " edges do not make a file of ", bytes_.size(), " bytes");
    }
    file::Checksum found(head_);
    constexpr size_t part_bytes = size_t{1} << 22;
    for (size_t at = sizeof(file::Head); at < bytes_.size(); at += part_bytes) {
      found.add(bytes_.substr(at, part_bytes));
      SPL_TRY(looks_.did(part_bytes / sizeof(uint64_t)));
    }
    if (found.value() != head_.checksum) {
      return fail(Code::invalid, "byte 56: the file is damaged: its checksum is ", head_.checksum, ", its bytes make ",
                  found.value());
    }
    return {};
  }

  template <class T>
  [[nodiscard]] std::vector<T> take(uint64_t count, uint64_t at) const {
    std::vector<T> taken(count);
    if (count != 0) std::memcpy(taken.data(), bytes_.data() + at, count * sizeof(T));
    return taken;
  }

  [[nodiscard]] Status ranks_have_programs() const {
    for (uint32_t rank = 0; rank < head_.ranks; ++rank) {
      const uint32_t number = parts_.program_of[rank];
      if (number >= head_.programs) {
        return fail(Code::invalid, "byte ", sizeof(file::Head) + rank * sizeof(uint32_t), ": rank ", rank,
                    " has program ", number, ", but there are ", head_.programs);
      }
    }
    return {};
  }

  Status shapes() {
    const auto entries = take<file::ShapeEntry>(head_.shapes, shapes_at_);
    const bool is_wide = (head_.flags & file::has_wide) != 0;
    const auto wide = take<file::WideEntry>(is_wide ? head_.shapes : 0, wide_at_);
    parts_.shapes.reserve(entries.size());
    for (uint32_t number = 0; number < head_.shapes; ++number) {
      const file::ShapeEntry& entry = entries[number];
      const uint64_t at = shapes_at_ + number * sizeof(file::ShapeEntry);
      const auto kind = static_cast<Kind>(entry.kind);
      const auto peer = static_cast<Peer>(entry.peer);
      if (kind < Kind::send || kind > Kind::arrived || peer > Peer::relative) {
        return fail(Code::invalid, "byte ", at, ": shape ", number, " is of kind ", uint32_t{entry.kind},
                    " with peers of kind ", uint32_t{entry.peer}, "; kinds are 1 to ", kinds - 1, " and 0 to 1");
      }
      if (is_wide && (entry.cpu != 0 || entry.nic != 0)) {
        return fail(Code::invalid, "byte ", at, ": shape ", number, " has cpu ", uint32_t{entry.cpu}, " and nic ",
                    uint32_t{entry.nic}, " here, and others behind: with flag 4 these are 0");
      }
      parts_.shapes.push_back({entry.size, entry.tag, kind, peer, is_wide ? wide[number].cpu : entry.cpu,
                               is_wide ? wide[number].nic : entry.nic});
    }
    return {};
  }

  Status layouts() {
    uint64_t at = blobs_at_;
    const auto entries = take<file::LayoutEntry>(head_.layouts, layouts_at_);
    for (const file::LayoutEntry& entry : entries) {
      if (entry.blob_bytes > operations_at_ - at) {
        return fail(Code::invalid, "byte ", layouts_at_ + parts_.layouts.size() * sizeof(file::LayoutEntry),
                    ": layout ", parts_.layouts.size(), " has ", entry.blob_bytes, " B, but ", operations_at_ - at,
                    " are left");
      }
      parts_.layouts.push_back({std::string(bytes_.substr(at, entry.blob_bytes)), entry.count, entry.bytes});
      at += entry.blob_bytes;
    }
    // Zeros fill up to a multiple of 4.
    if (operations_at_ - at < file::blobs_end_at &&
        std::ranges::all_of(bytes_.substr(at, operations_at_ - at), [](char one) { return one == 0; }))
      return {};
    return fail(Code::invalid, "byte 48: the layouts have ", at - blobs_at_, " B, but the head says ",
                head_.blob_bytes);
  }

  // Returns values where the file has them if it stays in memory and they are aligned there; else a copy of them.
  template <class T>
  [[nodiscard]] Values<T> values(uint32_t count, uint64_t at) const {
    const char* const first = bytes_.data() + at;
    if (parts_.source != nullptr && reinterpret_cast<uintptr_t>(first) % alignof(T) == 0) {
      return Values<T>::borrow({reinterpret_cast<const T*>(first), count});
    }
    std::vector<T> taken(count, T{});
    if (count != 0) std::memcpy(taken.data(), first, count * sizeof(T));
    return taken;
  }

  Status program(uint32_t number, const file::ProgramEntry& entry, uint32_t times, uint64_t operations_at,
                 uint64_t edges_at) {
    Program made{values<Operation>(entry.operations, operations_at), values<Edge>(entry.edges, edges_at), times};
    // Edges of several passes may lead to the next one.
    const uint64_t targets = uint64_t{entry.operations} * (times == 1 ? 1 : 2);
    uint32_t first = 0;
    for (uint32_t one = 0; one < entry.operations; ++one) {
      if (one % Looks::steps_between == 0)
        SPL_TRY(looks_.did(std::min<uint64_t>(Looks::steps_between, entry.operations)));
      const Operation& operation = made.operations[one];
      const auto place = [&] {
        return text("byte ", operations_at + one * sizeof(Operation), ": program ", number, ", operation ", one, ": ");
      };
      if (operation.shape >= head_.shapes) {
        return fail(Code::invalid, place(), "shape ", operation.shape, ", but there are ", head_.shapes);
      }
      if (operation.edges_end < first || operation.edges_end > entry.edges) {
        return fail(Code::invalid, place(), "its edges go from ", first, " to ", operation.edges_end, " of ",
                    entry.edges);
      }
      Awaits before = Awaits::end;
      for (; first < operation.edges_end; ++first) {
        const Edge edge = made.edges[first];
        if (edge.to() >= targets || edge.awaits() < before) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      one, ": an edge to operation ", edge.to(), " of ", entry.operations,
                      "; those that wait for its end come first");
        }
        if (times > 1 && edge.to() <= one) {
          return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, ", operation ",
                      one, ": an edge back to operation ", edge.to(), "; with several passes edges go forward");
        }
        before = edge.awaits();
      }
    }
    if (first != entry.edges) {
      return fail(Code::invalid, "byte ", edges_at + first * sizeof(Edge), ": program ", number, " has ", entry.edges,
                  " edges, but only ", first, " belong to an operation");
    }
    parts_.programs.push_back(std::move(made));
    return {};
  }

  std::string_view bytes_;
  Looks looks_;
  file::Head head_;
  uint64_t programs_at_ = 0;
  uint64_t times_at_ = 0;
  uint64_t shapes_at_ = 0;
  uint64_t wide_at_ = 0;
  uint64_t ends_at_ = 0;
  uint64_t layouts_at_ = 0;
  uint64_t blobs_at_ = 0;
  uint64_t operations_at_ = 0;
  uint64_t edges_at_ = 0;
  Schedule::Parts parts_;
};

}  // namespace

Result<Schedule> read_schedule_file(std::string_view bytes, const Watch& watch) {
  return FileReader(bytes, nullptr, watch).whole();
}

Result<Schedule> read_schedule(std::string_view bytes, const Watch& watch) {
  return bytes.starts_with(file::magic) ? read_schedule_file(bytes, watch) : read_goal(bytes, watch);
}

Result<Schedule> open_schedule(const std::string& path, const Watch& watch) {
  SPL_ASSIGN(const Content content, content_of(path));
  if (!content.bytes.starts_with(file::magic)) return read_goal(content.bytes, watch);
  return FileReader(content.bytes, content.kept, watch).whole();
}

}  // namespace spinloom::schedule
