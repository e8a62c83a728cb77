// LoopbackTestbed - the testbed of scenarios over the loopback driver, with native scenario handlers.
//
// Contract: see testbed.hpp; a seed makes the driver racy.
// Threads: one owner. Time: none.
#pragma once

#include <memory>
#include <vector>

#include "portals/handler_runner.hpp"
#include "portals/loopback.hpp"
#include "portals/testbed.hpp"

namespace spinloom::portals {

// The scenario handlers in C++.
class NativeScenarioHandlers {
 public:
  NativeScenarioHandlers();
  [[nodiscard]] Result<TestHandlers> find(std::string_view name) const;
  [[nodiscard]] HandlerRunner& runner() { return handlers_; }

 private:
  struct Named {
    std::string_view name;
    TestHandlers handlers;
  };
  NativeHandlers handlers_;
  std::vector<Named> named_;
};

class LoopbackTestbed final : public Testbed {
 public:
  static Result<std::unique_ptr<LoopbackTestbed>> create(uint32_t ranks, const nic::NicLimits& limits,
                                                         std::optional<uint64_t> racy_seed);

  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(interfaces_.size()); }
  [[nodiscard]] Interface& rank(uint32_t rank) override { return *interfaces_.at(rank); }
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override { return loopback_->nic(rank); }
  [[nodiscard]] Result<TestHandlers> handlers(std::string_view name) override { return handlers_.find(name); }
  [[nodiscard]] Status settle() override { return loopback_->run(); }
  [[nodiscard]] Loopback& loopback() { return *loopback_; }

 private:
  LoopbackTestbed() = default;

  NativeScenarioHandlers handlers_;
  std::unique_ptr<Loopback> loopback_;
  std::vector<std::unique_ptr<Interface>> interfaces_;
};

}  // namespace spinloom::portals
