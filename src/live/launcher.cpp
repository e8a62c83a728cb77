#include "live/launcher.hpp"

namespace spinloom::live {
namespace {

// Nobody started this process but its user.
class Alone final : public Launcher {
 public:
  [[nodiscard]] const char* name() const override { return "none"; }
  [[nodiscard]] uint32_t rank() const override { return 0; }
  [[nodiscard]] uint32_t size() const override { return 1; }
  [[nodiscard]] Result<std::vector<std::string>> exchange(const std::string& mine) override {
    return std::vector<std::string>{mine};
  }
};

}  // namespace

Result<std::unique_ptr<Launcher>> find_launcher() {
  SPL_ASSIGN(auto pmi1, find_pmi1());
  if (pmi1) return pmi1;
  SPL_ASSIGN(auto pmix, find_pmix());
  if (pmix) return pmix;
  return std::unique_ptr<Launcher>(std::make_unique<Alone>());
}

}  // namespace spinloom::live
