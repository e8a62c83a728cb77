// The report of a rank (SPINLOOM_MPI_REPORT), at its end and so far, and the reasons for its messages' ways.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/shared_heap.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/device/device_moves.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

int open_file(const std::string& path, int flags) {
  constexpr mode_t readable = 0644;
  return ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, readable);
}

bool write_all(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

std::string without_quotes(std::string sentence) {
  std::ranges::replace_if(sentence, [](char c) { return c == '"' || c == '\\' || c < ' '; }, '\'');
  return sentence;
}

double seconds(int64_t ns) { return 1e-9 * static_cast<double>(ns); }

std::string machine() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

}  // namespace

std::string Layer::report_line(bool has_ended) const {
  const CopyPipeline::Totals& totals = pipeline.totals();
  const double lived_seconds = tally ? seconds(now_ns() - started_ns) : 0;
  const int64_t lived_ticks = tally ? std::max<int64_t>(1, ticks() - started_ticks) : 1;
  const auto in_calls = static_cast<double>(in_calls_ticks.load(std::memory_order_relaxed));
  return text(
      "{\"job\": \"", job, "\", \"rank\": ", rank, ", \"ranks\": ", ranks,
      ", \"ended\": ", has_ended ? "true" : "false", ", \"on\": ", is_on ? "true" : "false", ", \"why_off\": \"",
      why_off, "\", \"sent\": ", totals.sent, ", \"sent_bytes\": ", totals.sent_bytes, ", \"landed\": ", totals.landed,
      ", \"landed_bytes\": ", totals.landed_bytes, ", \"refused\": ", totals.refused, ", \"offered\": ", totals.offered,
      ", \"within\": ", totals.within, ", \"within_bytes\": ", totals.within_bytes,
      ", \"withdrawn\": ", totals.withdrawn, ", \"helped\": ", totals.helped, ", \"packs\": ", pack_calls,
      ", \"gpu_moves\": ", DeviceMoves::of_process().moves(), ", \"gpu_bytes\": ", DeviceMoves::of_process().bytes(),
      ", \"gpu_taken\": ", DeviceMoves::of_process().taken(),
      ", \"gpu_taken_bytes\": ", DeviceMoves::of_process().taken_bytes(), ", \"gpu_why\": \"",
      without_quotes(pipeline.devices().why()), "\", \"gpu_within\": ", DeviceMoves::of_process().within(),
      ", \"gpu_as_they_are\": ", DeviceMoves::of_process().as_they_are(), ", \"window_copies\": ", windows.copies(),
      ", \"seconds\": ", lived_seconds,
      ", \"in_calls_seconds\": ", lived_seconds * in_calls / static_cast<double>(lived_ticks), ", \"machine\": \"",
      machine(), "\", \"collectives\": ", offload.as_json(), ", \"rma\": ", rma.as_json(),
      ", \"types\": ", tally ? tally->as_json() : "[]", "}\n");
}

std::string Layer::part_path() const { return text(settings.report, ".", job, "-", rank, ".part"); }

// Adds this rank's line to the report, as a whole: ranks of several machines may write to one file.
void Layer::report() const {
  if (settings.report.empty()) return;
  const int file = open_file(settings.report, O_APPEND);
  if (file < 0) return;
  ::flock(file, LOCK_EX);  // lines are whole where that works, however long they are
  write_all(file, report_line(true));
  ::close(file);
  if (tally) ::unlink(part_path().c_str());
}

// Writes the report so far, which stays if this rank is killed. A reader never sees half of it.
void Layer::report_so_far() const {
  const std::string path = part_path();
  const std::string unfinished_path = path + ".half";
  ::unlink(unfinished_path.c_str());  // a rank that was killed has left it; a link of somebody else is not followed
  const int file = open_file(unfinished_path, O_EXCL);
  if (file < 0) return;
  const bool is_whole = write_all(file, report_line(false));
  ::close(file);
  if (!is_whole || std::rename(unfinished_path.c_str(), path.c_str()) != 0) ::unlink(unfinished_path.c_str());
}

const char* Layer::why_not_mapped(bool may_offer, bool is_offerable) const {
  if (!may_offer) return "the call changes the buffer that it sends";
  if (!process_heap_is_malloc()) return "the heap that ranks map is not preloaded";
  return is_offerable ? cannot_be_mapped : "receivers did not come in time for earlier ones";
}

const char* Layer::why_unreachable(int to) {
  if (to < 0) return "to a process of another MPI_COMM_WORLD";
  return "the receiver has not mapped this rank's memory";
}

// Counts a message that is the MPI's whoever receives it: it is contiguous, short, or of a type that is not known.
void Layer::count_pass(const Form& form, int64_t elements, int peer, Comm comm, const char* call) {
  if (form.tally == nullptr || peer == proc_null || elements < 0) return;
  const bool contiguous = form.is_contiguous(elements);
  const int to = world_rank(comm, peer);
  const char* const why = contiguous ? "contiguous" : !form.is_known ? "a type that is not known here" : "short";
  form.tally->count({contiguous ? TypeTally::various : elements, to, Way::pass, why, call}, form.size * elements);
  if (tally->is_due()) report_so_far();
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
