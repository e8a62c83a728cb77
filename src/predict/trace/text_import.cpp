#include "predict/trace/text_import.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "predict/trace/file.hpp"
#include "predict/trace/text_rank.hpp"

namespace spinloom::trace {
namespace {

constexpr uint64_t world_of_mpich = 0x4400'0000;

Result<std::string> text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file) return fail(Code::invalid, path, " cannot be read");
  return std::move(content).str();
}

// Calls visit.call(call), visit.on_unknown_call(name) or visit.remark(line) for each line that is not empty, and
// visit.cut_line() for a last line that is cut off.
template <class Visit>
Status for_each_line(const std::string& path, std::string_view content, Visit&& visit) {
  uint64_t number = 0;
  TextLine line;
  while (!content.empty()) {
    ++number;
    const size_t end = content.find('\n');
    std::string_view text_of_line = content.substr(0, end);
    content.remove_prefix(std::min(content.size(), end == std::string_view::npos ? content.size() : end + 1));
    const bool is_cut = end == std::string_view::npos;
    if (text_of_line.ends_with('\r')) text_of_line.remove_suffix(1);
    if (text_of_line.empty()) continue;
    if (text_of_line.starts_with('#')) {
      visit.remark(text_of_line);
      continue;
    }
    const auto read_line = [&]() -> Status {
      if (!line.split(text_of_line)) {
        return fail(Code::invalid, "this is no call: 'MPI_Name:begin:arguments:end' was expected");
      }
      const TextForm* const form = form_of(line.name);
      if (form == nullptr) return visit.on_unknown_call(line.name);
      SPL_ASSIGN(const TextCall call, read_call(*form, line));
      return visit.call(call);
    };
    const Status status = read_line();
    if (status) continue;
    // The last line is cut off: the rank was killed while it wrote.
    if (is_cut) return visit.cut_line();
    return fail(status.error().code, path, ":", number, ": ", status.error().message);
  }
  return {};
}

class FactScanner {
 public:
  FactScanner(FileFacts& facts, uint32_t ranks) : facts_(facts), ranks_(ranks) {}

  void remark(std::string_view line) {
    constexpr std::string_view host = "# hostname: ";
    constexpr std::string_view clock = "# clockdiff: ";
    if (line.starts_with(host)) {
      facts_.host = line.substr(host.size(), line.find('.') - host.size());
    } else if (line.starts_with(clock)) {
      const std::string_view rest = line.substr(clock.size());
      facts_.clock_ahead_us = number_in<double>(rest.substr(0, rest.find(' '))).value_or(0);
    }
  }
  Status on_unknown_call(std::string_view) { return {}; }
  Status cut_line() { return {}; }
  Status call(const TextCall& call) {
    if (!call.has_begin && !call.has_end) return fail(Code::invalid, "MPI_", call.form->name, " has no time");
    facts_.first_ns = std::min(facts_.first_ns, call.has_begin ? call.begin_ns : call.end_ns);
    const bool makes_request = call.form->call_form != CallForm::blocking;
    if (makes_request && call.request % sizeof(void*) != 0) facts_.has_int_handles = true;
    if (call.has_comm && call.comm.size > ranks_) {
      return fail(Code::invalid, "a communicator of ", call.comm.size, " ranks, and there are files of ", ranks_);
    }
    if (call.has_comm && call.comm.handle == world_of_mpich) facts_.is_mpich = true;
    if (!has_mark(call)) return {};
    const CommMark mark = mark_of(call);
    if (mark.kind == CommMark::Kind::use) {
      if (!used_.insert(mark.comm).second) return {};
    } else {
      used_.clear();
    }
    facts_.marks.push_back(mark);
    return {};
  }

 private:
  FileFacts& facts_;
  uint32_t ranks_;
  std::set<TextComm> used_;  // those used since communicators were made or freed
};

// Checks by the communicators of the calls that each file is that of the rank by whose number it stands, and that the
// files are not those of programs of one rank each.
Status check_ranks(std::span<const std::string> files, std::span<const std::vector<CommMark>> marks) {
  const auto ranks = static_cast<uint32_t>(files.size());
  size_t single_rank_files = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::optional<TextComm> other_rank;
    bool is_own = false;
    uint32_t largest = 0;
    for (const CommMark& mark : marks[rank]) {
      if (mark.kind == CommMark::Kind::release) continue;
      largest = std::max(largest, mark.comm.size);
      if (mark.comm.size != ranks) continue;
      is_own = is_own || mark.comm.rank == rank;
      if (!other_rank) other_rank = mark.comm;
    }
    if (largest == 1) ++single_rank_files;
    if (other_rank && !is_own) {
      return fail(Code::invalid, files[rank], " is that of rank ", rank,
                  " by its name, and the calls in it are those of rank ", other_rank->rank, " of ", other_rank->size);
    }
  }
  if (ranks > 1 && single_rank_files == ranks) {
    return fail(Code::invalid, "each of the ", ranks, " files, ", files[0], " and so on, is of rank 0 of 1: these are ",
                ranks,
                " programs of one rank, as they come of another MPI's mpiexec; name one file of a folder of its own");
  }
  return {};
}

}  // namespace

Result<TextImport> import_text(std::span<const std::string> files, const std::string& directory) {
  const auto ranks = static_cast<uint32_t>(files.size());
  if (ranks == 0) return fail(Code::invalid, "there are no text traces to import");
  std::vector<FileFacts> facts(ranks);
  std::vector<std::vector<CommMark>> marks;
  bool is_mpich = false;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    SPL_ASSIGN(const std::string content, text_in(files[rank]));
    SPL_TRY(for_each_line(files[rank], content, FactScanner(facts[rank], ranks)));
    if (facts[rank].first_ns == UINT64_MAX) return fail(Code::invalid, files[rank], " has no call");
    is_mpich = is_mpich || facts[rank].is_mpich;
    marks.push_back(std::move(facts[rank].marks));
  }
  SPL_TRY(check_ranks(files, marks));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const std::string& path : {trace_path(directory, rank), open_path(directory, rank)}) {
      if (std::filesystem::exists(path)) return fail(Code::invalid, path, " is there already; take an empty folder");
    }
  }
  TextComms comms(ranks);
  comms.find_all_members(marks);
  TextImport totals;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    facts[rank].is_mpich = is_mpich;
    const auto import_rank = [&]() -> Status {
      SPL_ASSIGN(const std::string content, text_in(files[rank]));
      TextRank own(comms, facts[rank], rank, totals);
      SPL_TRY(for_each_line(files[rank], content, own));
      return own.write(directory, ranks);
    };
    if (const Status done = import_rank(); !done) {
      for (uint32_t written_rank = 0; written_rank <= rank; ++written_rank) {
        std::error_code ignored;
        std::filesystem::remove(trace_path(directory, written_rank), ignored);
        std::filesystem::remove(open_path(directory, written_rank), ignored);
      }
      return done.error();
    }
  }
  return totals;
}

}  // namespace spinloom::trace
