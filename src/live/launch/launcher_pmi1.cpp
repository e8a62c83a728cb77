// PMI-1, the wire protocol of MPICH's process managers and of Slurm's plugin pmi2, which takes it beside PMI-2: lines
// of key=value over a descriptor that PMI_FD names (MPICH, src/pmi, "simple PMI").
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "live/launch/launcher.hpp"
#include "live/launch/mpi_beside.hpp"
#include "live/launch/pmi_users.hpp"
#include "live/launch/reach.hpp"
#include "live/node/futex.hpp"

namespace spinloom::live {
namespace {

constexpr int64_t ps_per_s = 1'000'000'000'000;
constexpr uint32_t answer_limit_s = 30;  // the limit for answers that involve no other rank
constexpr uint32_t repeated_limit_s = 5;  // the limit for the answer to an "init" that may not be the first
constexpr const char* init_line = "cmd=init pmi_version=1 pmi_subversion=1";

std::optional<uint32_t> number_in(const char* variable) {
  const char* given = std::getenv(variable);
  if (given == nullptr) return std::nullopt;
  uint32_t value = 0;
  const auto [end, trouble] = std::from_chars(given, given + std::strlen(given), value);
  if (trouble != std::errc() || *end != 0) return std::nullopt;
  return value;
}

using Fields = std::map<std::string, std::string, std::less<>>;

Fields fields_of(const std::string& line) {
  Fields fields;
  size_t at = 0;
  while (at < line.size()) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, end - at);
    const size_t equals = word.find('=');
    if (equals != std::string::npos) fields[word.substr(0, equals)] = word.substr(equals + 1);
    at = end + 1;
  }
  return fields;
}

// Waits until there is something to read, at most until `deadline`. Returns true if there is.
bool readable_by(int file, Time deadline) {
  for (;;) {
    const int64_t left_ms = (deadline - monotonic_now()).ps / 1'000'000'000 + 1;
    pollfd watched{file, POLLIN, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 0, 60'000)));
    if (ready > 0) return true;
    if (monotonic_now() >= deadline) return false;
  }
}

class Pmi1 final : public Launcher {
 public:
  Pmi1(int file, uint32_t rank, uint32_t size) : file_(file), rank_(rank), size_(size) {}
  Pmi1(const Pmi1&) = delete;
  Pmi1& operator=(const Pmi1&) = delete;
  ~Pmi1() override { close(file_); }

  [[nodiscard]] const char* name() const override { return "PMI-1"; }
  [[nodiscard]] uint32_t rank() const override { return rank_; }
  [[nodiscard]] uint32_t size() const override { return size_; }

  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait& wait) override {
    if (key_space_.empty()) SPL_TRY(open_key_space());
    const std::string in = " kvsname=" + key_space_;
    const std::string key = ++exchanges_ == 1 ? "spinloom-" : text("spinloom-", exchanges_, "-");
    SPL_TRY(ask(text("cmd=put", in, " key=", key, rank_, " value=", mine), "put_result"));
    SPL_TRY(send_line("cmd=barrier_in"));
    if (!wait_for_others(wait)) return start_timeout(name(), size_, wait);
    SPL_TRY(answer_to("cmd=barrier_in", "barrier_out"));
    std::vector<std::string> texts;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      SPL_ASSIGN(const Fields fields, ask(text("cmd=get", in, " key=", key, rank), "get_result"));
      const auto value = fields.find("value");
      if (value == fields.end()) return fail(Code::environment, "PMI-1: rank ", rank, " has published nothing");
      texts.push_back(value->second);
    }
    return texts;
  }

  // Asks where the launcher's processes are. A launcher that does not say that answers with an error.
  [[nodiscard]] Result<std::string> job_here() override {
    if (key_space_.empty()) SPL_TRY(open_key_space());
    const auto places = ask(text("cmd=get kvsname=", key_space_, " key=PMI_process_mapping"), "get_result");
    if (!places) return std::string();
    const auto value = places->find("value");
    const bool here = value != places->end() && value->second == text("(vector,(0,1,", size_, "))");
    return here && shares_namespaces(launcher_process()) ? text("pmi1-", key_space_) : std::string();
  }

  // An MPI library that has begun also ends the connection, and needs nothing of us.
  [[nodiscard]] bool is_shared() const override { return !mpi_has_begun(mpi_beside()) && pmi_has_other_users(); }

  // Sends "finalize", unless an MPI library does. The launcher takes a process that ends without it for a crashed one.
  // MPI libraries send it in MPI_Finalize or at exit. If another client has sent it already, the launcher has hung up
  // or answers again; both are fine.
  void finish() override {
    if (!mpi_has_begun(mpi_beside())) std::ignore = ask("cmd=finalize", "finalize_ack");
  }

  void abort(int code) override {
    if (mpi_has_begun(mpi_beside())) return;
    hand_over_output();
    std::ignore = send_line(text("cmd=abort exitcode=", code));
  }

 private:
  // Sends "init", if no MPI library has, and asks for the key-value space, which we share with other clients.
  [[nodiscard]] Status open_key_space() {
    const MpiBeside mpi = mpi_beside();
    if (!mpi_has_begun(mpi)) SPL_TRY(send_init());
    SPL_ASSIGN(const Fields space, ask("cmd=get_my_kvsname", "my_kvsname"));
    const auto kvs = space.find("kvsname");
    if (kvs == space.end()) return fail(Code::environment, "PMI-1: the launcher names no key-value space");
    if (mpi.stage == MpiStage::not_initialized && !mpi.open_mpi && is_slurm(kvs->second)) {
      return fail(Code::environment, "PMI-1: Slurm lets a process start once, and MPI_Init would wait for ever after ",
                  "PtlInit: call MPI_Init before PtlInit");
    }
    key_space_ = kvs->second;
    return {};
  }

  // Slurm answers the first "init" only, which another client may have sent.
  [[nodiscard]] Status send_init() {
    SPL_TRY(send_line(init_line));
    if (pmi_has_other_users() && !readable_by(file_, monotonic_now() + Time{ps_per_s} * repeated_limit_s)) return {};
    auto answer = answer_to(init_line, "response_to_init");
    return answer ? Status{} : Status{answer.error()};
  }

  // True if an MPI library has sent "init", and so sends "finalize" itself or has sent it.
  [[nodiscard]] static bool mpi_has_begun(const MpiBeside& mpi) {
    return !mpi.open_mpi && (mpi.stage == MpiStage::initialized || mpi.stage == MpiStage::finalized);
  }

  // The process at the other end of the connection; 0 if it is not to be seen from here.
  [[nodiscard]] pid_t launcher_process() const {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return getsockopt(file_, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
  }

  // Slurm gives its key-value space the name of the job step.
  [[nodiscard]] static bool is_slurm(const std::string& space) {
    const char* const step = std::getenv("PMI_JOBID");
    return step != nullptr && space == step;
  }

  // Waits for an answer that may need other ranks; returns whether it has come.
  [[nodiscard]] bool wait_for_others(const StartWait& wait) const {
    const Time start = monotonic_now();
    const auto after = [start](uint32_t seconds) { return start + Time{ps_per_s} * seconds; };
    if (readable_by(file_, after(wait.first_wait_s()))) return true;
    if (wait.is_reported()) warn_of_waiting(size_, wait);
    return readable_by(file_, wait.limit_s == 0 ? Time::never() : after(wait.limit_s));
  }

  [[nodiscard]] Result<Fields> ask(const std::string& line, std::string_view expected) {
    SPL_TRY(send_line(line));
    return answer_to(line, expected);
  }

  [[nodiscard]] static Error hung_up() {
    return fail(Code::environment,
                "PMI-1: the launcher has hung up: it is gone, or something else in this process has ",
                "said cmd=finalize (MPI_Finalize does): call PtlInit before that");
  }

  [[nodiscard]] Status send_line(const std::string& line) const {
    const std::string with_end = line + "\n";
    size_t done = 0;
    while (done < with_end.size()) {
      const ssize_t wrote = send(file_, with_end.data() + done, with_end.size() - done, MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return hung_up();
      done += static_cast<size_t>(wrote);
    }
    return {};
  }

  [[nodiscard]] Result<Fields> answer_to(const std::string& line, std::string_view expected) const {
    const Time deadline = monotonic_now() + Time{ps_per_s} * answer_limit_s;
    std::string answer;
    for (char letter = 0;;) {
      if (!readable_by(file_, deadline)) {
        return fail(Code::environment, "PMI-1: '", line, "' has no answer in ", answer_limit_s,
                    " s: the launcher may speak another protocol over PMI_FD; under Slurm, try srun --mpi=pmix");
      }
      const ssize_t got = read(file_, &letter, 1);  // no more than this line: an MPI library may read the next
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return hung_up();
      if (letter == '\n') break;
      answer += letter;
    }
    Fields fields = fields_of(answer);
    const auto code = fields.find("rc");
    if (fields["cmd"] != expected || (code != fields.end() && code->second != "0")) {
      return fail(Code::environment, "PMI-1: '", line, "' was answered by '", answer, "'");
    }
    return fields;
  }

  int file_;
  uint32_t rank_;
  uint32_t size_;
  std::string key_space_;
  uint32_t exchanges_ = 0;
};

bool is_socket(int file) {
  struct stat status{};
  return fstat(file, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

Result<std::unique_ptr<Launcher>> find_pmi1() {
  const auto file = number_in("PMI_FD");
  const auto rank = number_in("PMI_RANK");
  const auto size = number_in("PMI_SIZE");
  if (!file || !rank || !size) return std::unique_ptr<Launcher>();
  if (*rank >= *size) return fail(Code::environment, "PMI-1: PMI_RANK is ", *rank, " of PMI_SIZE ", *size);
  if (!is_socket(static_cast<int>(*file))) {
    if (*size == 1 || std::getenv("PMIX_RANK") != nullptr)
      return std::unique_ptr<Launcher>();  // the variable belongs to a job around this one
    return fail(Code::environment, "PMI-1: PMI_FD=", *file,
                " is no connection to a launcher: what started this process ",
                "has closed it, or MPI_Finalize has. Alone it runs with env -u PMI_FD -u PMI_SIZE");
  }
  // Uses a duplicate of the descriptor, if a number is free. MPI_Finalize closes the original, and its number may
  // then mean another file.
  const int own = fcntl(static_cast<int>(*file), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return std::unique_ptr<Launcher>(std::make_unique<Pmi1>(own < 0 ? static_cast<int>(*file) : own, *rank, *size));
}

}  // namespace spinloom::live
