// PMIx, the interface of Open MPI's launcher and of Slurm. Its library is loaded only if the environment names a job,
// so that other programs do not need it. Declarations are those of the PMIx standard, version 4 (pmix_common.h); the
// parts used here have had these layouts since version 2.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/log.hpp"
#include "live/launch/launcher.hpp"
#include "live/launch/mpi_beside.hpp"
#include "live/launch/reach.hpp"

namespace spinloom::live {
namespace {

struct PmixProcess {
  char name_space[256];
  uint32_t rank;
};
struct PmixValue {
  uint16_t type;
  union {
    char* string;
    uint32_t number;
    uint64_t room[4];
  } data;
};
struct PmixInfo {
  char key[512];
  uint32_t flags;
  PmixValue value;
};
constexpr uint16_t pmix_bool = 1, pmix_string = 3, pmix_uint32 = 14;
constexpr uint8_t pmix_global = 3;
constexpr int pmix_done_at_once = -157;          // PMIX_OPERATION_SUCCEEDED: no callback follows
constexpr uint32_t pmix_wildcard = UINT32_MAX - 1;  // all ranks: PMIX_RANK_WILDCARD

struct PmixCalls {
  int (*init)(PmixProcess*, void*, size_t);
  int (*put)(uint8_t, const char*, PmixValue*);
  int (*commit)();
  int (*fence)(const PmixProcess*, size_t, const void*, size_t, void (*done)(int, void*), void*);
  int (*finalize)(const void*, size_t);
  int (*get)(const PmixProcess*, const char*, const void*, size_t, PmixValue**);
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The path of the PMIx library that a process has loaded.
std::string library_of(const std::string& process) {
  std::ifstream maps(text("/proc/", process, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find("libpmix.so", path) != std::string::npos) return line.substr(path);
  }
  return {};
}

void* load_library() {
  const char* named = std::getenv("SPINLOOM_PMIX");
  if (named != nullptr) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  // Prefers the PMIx library that an MPI library has loaded, so that the server sees one client; otherwise takes that
  // of the launcher, whose version fits the server.
  for (const std::string& path : {library_of("self"), library_of(text(getppid()))}) {
    if (path.empty()) continue;
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
}

// Looks for orders of calls that fail later with less clear errors. PMIx 5 ends a process that begins again after
// PMIx_Finalize (5.0.11, with Open MPI of the same number): that is refused. Open MPI 5 reports "local rank: Not found"
// if somebody has begun before MPI_Init: that only makes a warning.
Status check_order(void* library) {
  const char* (*version)() = nullptr;
  if (!find(library, "PMIx_Get_version", version) || std::strstr(version(), "OpenPMIx 5.") == nullptr) return {};
  const MpiBeside mpi = mpi_beside();
  if (mpi.stage == MpiStage::finalized)
    return fail(Code::environment, "PMIx 5 ends with MPI_Finalize: call PtlInit before");
  if (mpi.stage == MpiStage::not_initialized && mpi.open_mpi) {
    log::emit(log::Level::warning, "live", "Open MPI 5 does not start after PtlInit: call MPI_Init before it");
  }
  return {};
}

// The end of a fence of all ranks. PMIx may call the callback when nobody waits any more.
class FenceCompletion {
 public:
  static void on_done(int code, void* callback_owner) {
    const std::unique_ptr<std::shared_ptr<FenceCompletion>> completion(
        static_cast<std::shared_ptr<FenceCompletion>*>(callback_owner));
    const std::lock_guard inside((*completion)->lock_);
    (*completion)->code_ = code;
    (*completion)->changed_.notify_all();
  }
  // Waits for `seconds` seconds; returns how the fence ended, if it has.
  [[nodiscard]] std::optional<int> wait(uint32_t seconds) {
    std::unique_lock inside(lock_);
    changed_.wait_for(inside, std::chrono::seconds(seconds), [this] { return code_.has_value(); });
    return code_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::optional<int> code_;
};

class Pmix final : public Launcher {
 public:
  Pmix(const PmixCalls& calls, const PmixProcess& self, uint32_t size) : calls_(calls), self_(self), size_(size) {}

  [[nodiscard]] const char* name() const override { return "PMIx"; }
  [[nodiscard]] uint32_t rank() const override { return self_.rank; }
  [[nodiscard]] uint32_t size() const override { return size_; }

  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine, const StartWait& wait) override {
    std::string copy = mine;
    PmixValue value{};
    value.type = pmix_string;
    value.data.string = copy.data();
    const std::string key = ++exchanges_ == 1 ? "spinloom" : text("spinloom-", exchanges_);
    SPL_TRY(check_code("PMIx_Put", calls_.put(pmix_global, key.c_str(), &value)));
    SPL_TRY(check_code("PMIx_Commit", calls_.commit()));
    SPL_TRY(wait_for_all(wait));
    std::vector<std::string> texts;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      PmixProcess peer = self_;
      peer.rank = rank;
      PmixValue* got = nullptr;
      SPL_TRY(check_code("PMIx_Get", calls_.get(&peer, key.c_str(), nullptr, 0, &got)));
      if (got == nullptr || got->type != pmix_string) {
        return fail(Code::environment, "PMIx: rank ", rank, " has published something else");
      }
      texts.emplace_back(got->data.string);
    }
    return texts;
  }

  // The server's address is part of the name, because Open MPI 4 names jobs by short numbers.
  [[nodiscard]] Result<std::string> job_here() override {
    PmixProcess all = self_;
    all.rank = pmix_wildcard;
    PmixValue* here = nullptr;
    const bool known = calls_.get(&all, "pmix.local.size", nullptr, 0, &here) == 0 && here != nullptr;
    if (!known || here->type != pmix_uint32 || here->data.number != size_ || !shares_namespaces(getppid())) {
      return std::string();
    }
    std::string server;
    for (const char* variable : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2"}) {
      const char* const given = std::getenv(variable);
      if (server.empty() && given != nullptr) server = given;
    }
    return text("pmix-", self_.name_space, "-", server);
  }

  void finish() override { calls_.finalize(nullptr, 0); }

 private:
  [[nodiscard]] Status wait_for_all(const StartWait& wait) const {
    PmixProcess all = self_;
    all.rank = pmix_wildcard;
    const auto completion = std::make_shared<FenceCompletion>();
    auto callback_owner = std::make_unique<std::shared_ptr<FenceCompletion>>(completion);
    // The fence collects the data: a server that fetched another node's data once does not look for what was published
    // later.
    static const PmixInfo with_data{"pmix.collect", 0, {pmix_bool, {.room = {1}}}};
    const int begun = calls_.fence(&all, 1, &with_data, 1, FenceCompletion::on_done, callback_owner.get());
    if (begun == pmix_done_at_once) return {};
    SPL_TRY(check_code("PMIx_Fence_nb", begun));
    std::ignore = callback_owner.release();  // the callback owns it from now on
    std::optional<int> code = completion->wait(wait.first_wait_s());
    if (!code && wait.is_reported()) warn_of_waiting(size_, wait);
    for (uint32_t waited_s = wait.first_wait_s(); !code && (wait.limit_s == 0 || waited_s < wait.limit_s); ++waited_s) {
      code = completion->wait(1);
    }
    if (!code) return start_timeout(name(), size_, wait);
    return check_code("PMIx_Fence_nb", *code);
  }

  [[nodiscard]] static Status check_code(const char* call, int code) {
    if (code == 0) return {};
    return fail(Code::environment, "PMIx: ", call, " answered ", code);
  }

  PmixCalls calls_;
  PmixProcess self_;
  uint32_t size_;
  uint32_t exchanges_ = 0;
};

}  // namespace

Result<std::unique_ptr<Launcher>> find_pmix() {
  if (std::getenv("PMIX_RANK") == nullptr || std::getenv("PMIX_NAMESPACE") == nullptr) {
    return std::unique_ptr<Launcher>();
  }
  void* const library = load_library();
  if (library == nullptr) {
    return fail(Code::environment, "PMIx: libpmix.so.2 cannot be loaded (", dlerror(), "); SPINLOOM_PMIX may name it");
  }
  PmixCalls calls{};
  if (!find(library, "PMIx_Init", calls.init) || !find(library, "PMIx_Put", calls.put) ||
      !find(library, "PMIx_Commit", calls.commit) || !find(library, "PMIx_Fence_nb", calls.fence) ||
      !find(library, "PMIx_Get", calls.get) || !find(library, "PMIx_Finalize", calls.finalize)) {
    return fail(Code::environment, "PMIx: the library lacks a call: ", dlerror());
  }
  SPL_TRY(check_order(library));
  PmixProcess self{};
  if (const int code = calls.init(&self, nullptr, 0); code != 0) {
    return fail(Code::environment, "PMIx: PMIx_Init answered ", code,
                ": the server of PMIX_NAMESPACE=", std::getenv("PMIX_NAMESPACE"),
                " is not reached (its job is over, or another user's). Alone the program ",
                "runs with env -u PMIX_RANK");
  }
  PmixProcess all = self;
  all.rank = pmix_wildcard;
  PmixValue* size = nullptr;
  if (const int code = calls.get(&all, "pmix.job.size", nullptr, 0, &size); code != 0 || size->type != pmix_uint32) {
    return fail(Code::environment, "PMIx: the job's size is not known (", code, ")");
  }
  return std::unique_ptr<Launcher>(std::make_unique<Pmix>(calls, self, size->data.number));
}

}  // namespace spinloom::live
