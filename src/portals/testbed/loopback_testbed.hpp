// LoopbackTestbed - the testbed of scenarios over the loopback driver.
//
// Contract: that of Testbed, over Loopback; with `racy_seed` the driver reorders its work (loopback.hpp). The scenario
//   handlers are C++ functions (native) or the RV32 images of scenario_handlers/*.c.
// Threads: one owner. Time: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/spin/handler_runner.hpp"
#include "nic/spin/image_runner.hpp"
#include "portals/testbed/loopback.hpp"
#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

// Scenario handlers by name, and their runner.
class ScenarioHandlers {
 public:
  virtual ~ScenarioHandlers() = default;
  [[nodiscard]] virtual Result<TestHandlers> find(std::string_view name) = 0;
  [[nodiscard]] virtual spin::HandlerRunner& runner() = 0;
};

class NativeScenarioHandlers final : public ScenarioHandlers {
 public:
  NativeScenarioHandlers();
  [[nodiscard]] Result<TestHandlers> find(std::string_view name) override;
  [[nodiscard]] spin::HandlerRunner& runner() override { return runner_; }

 private:
  struct NamedHandlers {
    std::string_view name;
    TestHandlers handlers;
  };
  spin::NativeHandlers runner_;
  std::vector<NamedHandlers> named_handlers_;
};

// Finds scenario handlers in the images NAME.elf of a folder. They run without a notion of time.
class ImageScenarioHandlers final : public ScenarioHandlers {
 public:
  static Result<std::unique_ptr<ImageScenarioHandlers>> create(const std::string& folder);
  [[nodiscard]] Result<TestHandlers> find(std::string_view name) override;
  [[nodiscard]] spin::HandlerRunner& runner() override { return *runner_; }

 private:
  std::string folder_;
  std::unique_ptr<spin::ImageHandlers> runner_;
};

// One image and the entries of its handlers.
struct ScenarioImage {
  hpu::Image image;
  TestHandlers handlers;  // its image number is 0 until a runner has given it one
};
[[nodiscard]] Result<ScenarioImage> load_scenario_image(const std::string& folder, std::string_view name);

class LoopbackTestbed final : public Testbed {
 public:
  static Result<std::unique_ptr<LoopbackTestbed>> create(
      uint32_t ranks, const nic::NicLimits& limits, std::optional<uint64_t> racy_seed,
      std::unique_ptr<ScenarioHandlers> handlers = std::make_unique<NativeScenarioHandlers>());

  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(interfaces_.size()); }
  [[nodiscard]] portals::Interface& rank(uint32_t rank) override { return *interfaces_.at(rank); }
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override { return loopback_->nic(rank); }
  [[nodiscard]] Result<TestHandlers> handlers(std::string_view name) override { return handlers_->find(name); }
  [[nodiscard]] Status settle() override { return loopback_->run(); }
  [[nodiscard]] Loopback& loopback() { return *loopback_; }

 private:
  LoopbackTestbed() = default;

  std::unique_ptr<ScenarioHandlers> handlers_;
  std::unique_ptr<Loopback> loopback_;
  std::vector<std::unique_ptr<portals::Interface>> interfaces_;
};

}  // namespace spinloom::testbed
