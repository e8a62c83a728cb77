// spinloom-info - prints what the live library finds on this machine. Under a launcher, rank 0 prints the texts of
// all ranks. The ranks send their texts by Portals puts, so that a complete table shows that all ranks reach rank 0.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "live/node/futex.hpp"
#include "live/process/info.hpp"

namespace spinloom::process {
namespace {

constexpr size_t report_bytes = 16 << 10;  // the longest text of one rank
constexpr ptl_time_t patience_ms = 20'000;  // the wait of rank 0; the others wait twice as long for its answer
constexpr ptl_time_t one_try_ms = 2'000;
constexpr useconds_t between_tries_us = 1'000;
constexpr Time patience{int64_t{patience_ms} * 1'000'000'000};
constexpr ptl_match_bits_t report_bits = 0x696e666f;
constexpr int exit_environment = 3;

calls::Process* this_rank = nullptr;

[[nodiscard]] bool good(int code, const char* call) {
  if (code == PTL_OK) return true;
  std::fprintf(stderr, "spinloom-info: %s answers %d\n", call, code);
  return false;
}

struct Reports {
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  ptl_ni_limits_t limits{};
  std::vector<char> texts;  // report_bytes for each rank, on rank 0
  ptl_handle_ct_t arrived = PTL_CT_NONE;

  [[nodiscard]] bool open(uint32_t ranks) {
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    texts.resize(report_bytes * ranks);
    if (!good(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, &limits, &interface),
              "PtlNIInit") ||
        !good(PtlPTAlloc(interface, 0, PTL_EQ_NONE, 0, &portal), "PtlPTAlloc") ||
        !good(PtlCTAlloc(interface, &arrived), "PtlCTAlloc")) {
      return false;
    }
    ptl_me_t where{};
    where.start = texts.data();
    where.length = texts.size();
    where.ct_handle = arrived;
    where.uid = PTL_UID_ANY;
    where.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    where.match_id.rank = PTL_RANK_ANY;
    where.match_bits = report_bits;
    return good(PtlMEAppend(interface, portal, &where, PTL_PRIORITY_LIST, nullptr, &entry), "PtlMEAppend");
  }

  // The other rank may not have appended its entry yet; the acknowledgement then says so, and there are more tries.
  [[nodiscard]] bool send(uint32_t to, uint32_t slot, const std::string& report) const {
    ptl_handle_ct_t acked = PTL_CT_NONE;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    if (!good(PtlCTAlloc(interface, &acked), "PtlCTAlloc")) return false;
    ptl_md_t what{};
    what.start = const_cast<char*>(report.data());
    what.length = report.size();
    what.options = PTL_MD_EVENT_CT_ACK;
    what.eq_handle = PTL_EQ_NONE;
    what.ct_handle = acked;
    if (!good(PtlMDBind(interface, &what, &md), "PtlMDBind")) return false;
    ptl_process_t target{};
    target.rank = to;
    const ptl_size_t one = 1;
    for (const Time until = live::monotonic_now() + patience; live::monotonic_now() < until;) {
      ptl_ct_event_t count{};
      unsigned which = 0;
      if (!good(PtlPut(md, 0, report.size(), PTL_CT_ACK_REQ, target, portal, report_bits, slot * report_bytes, nullptr,
                       0),
                "PtlPut")) {
        return false;
      }
      if (PtlCTPoll(&acked, &one, 1, one_try_ms, &count, &which) == PTL_OK && count.success > 0) return true;
      if (!good(PtlCTSet(acked, ptl_ct_event_t{0, 0}), "PtlCTSet")) return false;
      usleep(between_tries_us);
    }
    return false;
  }

  // Waits until `expected` messages have come.
  [[nodiscard]] bool take(uint32_t expected, ptl_time_t limit_ms) const {
    ptl_ct_event_t count{};
    unsigned which = 0;
    const ptl_size_t test = expected;
    return expected == 0 ||
           (PtlCTPoll(&arrived, &test, 1, limit_ms, &count, &which) == PTL_OK && count.success >= test);
  }

  [[nodiscard]] bool has_come(uint32_t peer) const { return texts[peer * report_bytes] != 0; }

  // Every rank stays until rank 0 has all texts, because others may still be finding out how they reach it. Returns the
  // ranks from which nothing has come, or, on rank 0, that have not taken its answer. Rank 0 does not answer ranks from
  // which nothing has come, because it may be long until that fails.
  [[nodiscard]] std::vector<uint32_t> gather(uint32_t rank, uint32_t ranks, const std::string& report) const {
    std::vector<uint32_t> silent;
    if (rank != 0) {
      if (!send(0, rank, report) || !take(1, 2 * patience_ms)) silent.push_back(0);
      return silent;
    }
    std::ignore = take(ranks - 1, patience_ms);
    for (uint32_t peer = 1; peer < ranks; ++peer) {
      if (!has_come(peer) || !send(peer, 0, {})) silent.push_back(peer);
    }
    return silent;
  }
};

// Prints which ranks do not answer, and what may be done about it.
void complain(LiveProcess& process, const std::vector<uint32_t>& silent) {
  bool by_udp = false;
  for (const uint32_t peer : silent) {
    const std::string way = process.describe(peer);
    by_udp = by_udp || way.rfind("UDP", 0) == 0;
    std::fprintf(stderr, "spinloom-info: rank %u does not answer rank %u, which reaches it by %s\n", peer,
                 process.rank(), printable(way).c_str());
  }
  if (by_udp && process.rank() == 0) {
    std::fputs(
        "spinloom-info: where such an address is on a network that does not join the machines, set "
        "SPINLOOM_UDP_ADDRESS to the one that does, as 10.1.0.0/16; firewalls must let UDP through\n",
        stderr);
  }
}

std::string report_of(LiveProcess& process, const std::string& machine) {
  std::string report = text("rank ", process.rank(), ": process ", getpid(), " on ", machine, "\n");
  for (Row& row : reach_rows(process)) {
    if (row.value != "itself") report += text("  reaches ", row.name, " by ", row.value, "\n");
  }
  report.resize(std::min(report.size(), report_bytes - 1));
  return report;
}

int show_job(const Settings& settings, const std::vector<Row>& machine) {
  auto launcher = live::find_launcher();
  Settings all = settings;
  all.meet = Meet::start;  // each rank can then say how it reaches the others
  auto joined = launcher ? LiveProcess::join(all, std::move(*launcher)) : launcher.error();
  if (!joined) {
    std::fprintf(stderr, "spinloom-info: %s\n", printable(joined.error().message).c_str());
    return exit_environment;
  }
  LiveProcess& process = **joined;
  static calls::Process rank(process);
  this_rank = &rank;
  calls::Process::serve_all_threads([] { return this_rank; });
  Reports reports;
  if (!good(PtlInit(), "PtlInit") || !reports.open(process.size())) return 1;
  const std::string own = report_of(process, machine.front().value);
  const std::vector<uint32_t> silent = reports.gather(process.rank(), process.size(), own);
  if (process.rank() == 0) {
    std::vector<Row> rows{{"launcher", text(process.launcher(), ", ranks: ", process.size())}};
    rows.insert(rows.end(), machine.begin(), machine.end());
    std::string out = table(rows) + "\nlimits of a network interface\n" + table(limit_rows(reports.limits)) +
                      "\nenvironment\n" + table(variable_rows()) + "\n" + own;
    for (uint32_t peer = 1; peer < process.size(); ++peer) {
      const char* const peer_report = reports.texts.data() + peer * report_bytes;
      out += reports.has_come(peer) ? std::string(peer_report) : text("rank ", peer, ": nothing came\n");
    }
    std::fputs(printable(out).c_str(), stdout);
    std::fflush(stdout);
  }
  complain(process, silent);
  PtlNIFini(reports.interface);
  PtlFini();
  joined->release();  // the process is not freed: its threads may be inside a call
  return silent.empty() ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!asked.empty() && asked != "--machine")) {
    std::fputs(
        "usage: spinloom-info            this machine, or, under mpiexec or srun, all ranks of the job\n"
        "       spinloom-info --machine  this machine only\n",
        asked == "--help" || asked == "-h" ? stdout : stderr);
    return asked == "--help" || asked == "-h" ? 0 : 2;
  }
  log::install(
      [](log::Level, std::string_view, std::string_view message) {
        std::fprintf(stderr, "spinloom-info: %s\n", printable(message).c_str());
      },
      log::Level::warning);
  const Settings settings = read_settings(environ);
  for (const std::string& warning : settings.warnings)
    std::fprintf(stderr, "spinloom-info: %s\n", printable(warning).c_str());
  const std::vector<Row> machine = machine_rows(settings);
  if (asked.empty()) return show_job(settings, machine);
  std::fputs(printable(table(machine)).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace spinloom::process

int main(int argc, char** argv) { return spinloom::process::run(argc, argv); }
