// PMI-1, the wire protocol of MPICH's process managers and Slurm's: lines of key=value over a descriptor that PMI_FD
// names (MPICH, src/pmi, "simple PMI").
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "live/launcher.hpp"

namespace spinloom::live {
namespace {

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

class Pmi1 final : public Launcher {
 public:
  Pmi1(int file, uint32_t rank, uint32_t size) : file_(file), rank_(rank), size_(size) {}

  [[nodiscard]] const char* name() const override { return "PMI-1"; }
  [[nodiscard]] uint32_t rank() const override { return rank_; }
  [[nodiscard]] uint32_t size() const override { return size_; }

  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine) override {
    SPL_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
    SPL_ASSIGN(const Fields space, ask("cmd=get_my_kvsname", "my_kvsname"));
    const auto kvs = space.find("kvsname");
    if (kvs == space.end()) return fail(Code::environment, "PMI-1: the launcher names no key-value space");
    const std::string in = " kvsname=" + kvs->second;
    SPL_TRY(ask(text("cmd=put", in, " key=spinloom-", rank_, " value=", mine), "put_result"));
    SPL_TRY(ask("cmd=barrier_in", "barrier_out"));
    std::vector<std::string> all;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      SPL_ASSIGN(const Fields got, ask(text("cmd=get", in, " key=spinloom-", rank), "get_result"));
      const auto value = got.find("value");
      if (value == got.end()) return fail(Code::environment, "PMI-1: rank ", rank, " has published nothing");
      all.push_back(value->second);
    }
    return all;
  }

  // A process that ends without this is taken for one that crashed.
  void finish() override { std::ignore = ask("cmd=finalize", "finalize_ack"); }

 private:
  [[nodiscard]] Result<Fields> ask(const std::string& line, std::string_view expected) {
    const std::string with_end = line + "\n";
    size_t done = 0;
    while (done < with_end.size()) {
      const ssize_t wrote = write(file_, with_end.data() + done, with_end.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return fail(Code::environment, "PMI-1: the launcher is gone: ", std::strerror(errno));
      done += static_cast<size_t>(wrote);
    }
    std::string answer;
    for (char letter = 0;;) {
      const ssize_t got = read(file_, &letter, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return fail(Code::environment, "PMI-1: the launcher is gone");
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
};

}  // namespace

Result<std::unique_ptr<Launcher>> find_pmi1() {
  const auto file = number_in("PMI_FD");
  const auto rank = number_in("PMI_RANK");
  const auto size = number_in("PMI_SIZE");
  if (!file || !rank || !size) return std::unique_ptr<Launcher>();
  if (*rank >= *size) return fail(Code::environment, "PMI-1: PMI_RANK is ", *rank, " of PMI_SIZE ", *size);
  return std::unique_ptr<Launcher>(std::make_unique<Pmi1>(static_cast<int>(*file), *rank, *size));
}

}  // namespace spinloom::live
