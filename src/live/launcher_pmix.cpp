// PMIx, the interface of Open MPI's launcher and Slurm's: its library is loaded when the environment names a job, so
// that nothing needs it otherwise. Declarations are those of the PMIx standard, version 4 (pmix_common.h): the parts
// used here have had these layouts since version 2.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "live/launcher.hpp"

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
constexpr uint16_t pmix_string = 3, pmix_uint32 = 14;
constexpr uint8_t pmix_global = 3;
constexpr uint32_t pmix_wildcard = UINT32_MAX - 1;  // all ranks: PMIX_RANK_WILDCARD

struct PmixCalls {
  int (*init)(PmixProcess*, void*, size_t);
  int (*put)(uint8_t, const char*, PmixValue*);
  int (*commit)();
  int (*fence)(const PmixProcess*, size_t, const void*, size_t);
  int (*finalize)(const void*, size_t);
  int (*get)(const PmixProcess*, const char*, const void*, size_t, PmixValue**);
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The one that the launcher itself has loaded serves best: it speaks this server's version, wherever it is installed.
std::string launcher_library() {
  std::ifstream maps(text("/proc/", getppid(), "/maps"));
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find("libpmix.so", path) != std::string::npos) return line.substr(path);
  }
  return {};
}

void* load_library() {
  const char* named = std::getenv("SPINLOOM_PMIX");
  if (named != nullptr) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  if (const std::string same = launcher_library(); !same.empty()) {
    if (void* library = dlopen(same.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
}

class Pmix final : public Launcher {
 public:
  Pmix(const PmixCalls& calls, const PmixProcess& self, uint32_t size) : calls_(calls), self_(self), size_(size) {}

  [[nodiscard]] const char* name() const override { return "PMIx"; }
  [[nodiscard]] uint32_t rank() const override { return self_.rank; }
  [[nodiscard]] uint32_t size() const override { return size_; }

  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine) override {
    std::string copy = mine;
    PmixValue value{};
    value.type = pmix_string;
    value.data.string = copy.data();
    SPL_TRY(good("PMIx_Put", calls_.put(pmix_global, "spinloom", &value)));
    SPL_TRY(good("PMIx_Commit", calls_.commit()));
    PmixProcess all = self_;
    all.rank = pmix_wildcard;
    SPL_TRY(good("PMIx_Fence", calls_.fence(&all, 1, nullptr, 0)));
    std::vector<std::string> texts;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      PmixProcess peer = self_;
      peer.rank = rank;
      PmixValue* got = nullptr;
      SPL_TRY(good("PMIx_Get", calls_.get(&peer, "spinloom", nullptr, 0, &got)));
      if (got == nullptr || got->type != pmix_string) {
        return fail(Code::environment, "PMIx: rank ", rank, " has published something else");
      }
      texts.emplace_back(got->data.string);
    }
    return texts;
  }

  void finish() override { calls_.finalize(nullptr, 0); }

 private:
  [[nodiscard]] static Status good(const char* call, int code) {
    if (code == 0) return {};
    return fail(Code::environment, "PMIx: ", call, " answered ", code);
  }

  PmixCalls calls_;
  PmixProcess self_;
  uint32_t size_;
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
      !find(library, "PMIx_Commit", calls.commit) || !find(library, "PMIx_Fence", calls.fence) ||
      !find(library, "PMIx_Get", calls.get) || !find(library, "PMIx_Finalize", calls.finalize)) {
    return fail(Code::environment, "PMIx: the library lacks a call: ", dlerror());
  }
  PmixProcess self{};
  if (const int code = calls.init(&self, nullptr, 0); code != 0) {
    return fail(Code::environment, "PMIx: PMIx_Init answered ", code);
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
