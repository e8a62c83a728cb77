// Random programs under the simulated driver, judged by the model of Portals 4 (portals/model).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/testing/seeds.hpp"
#include "portals/model/grammar.hpp"
#include "portals/model/text.hpp"
#include "portals/testbed/explorer.hpp"
#include "portals/testbed/judge.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

namespace spinloom::simulated {
namespace {

// Two ranks without handlers.
class PlainTestbed final : public testbed::Testbed {
 public:
  explicit PlainTestbed(const Ordering& ordering) {
    WorldOptions options;
    options.ranks = 2;
    options.ordering = ordering;
    auto world = World::create(profile_, images_, options);
    SPL_ASSERT(world.ok(), world.error().message);
    world_ = std::move(*world);
    for (uint32_t rank = 0; rank < options.ranks; ++rank) {
      interfaces_.push_back(std::make_unique<portals::Interface>(world_->node(rank)));
    }
  }

  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(interfaces_.size()); }
  [[nodiscard]] portals::Interface& rank(uint32_t rank) override { return *interfaces_.at(rank); }
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override { return world_->node(rank).nic(); }
  [[nodiscard]] Result<testbed::TestHandlers> handlers(std::string_view name) override {
    return fail(Code::unsupported, "no handlers here, and no ", name);
  }
  [[nodiscard]] Status settle() override {
    world_->drain();
    return {};
  }

 private:
  Profile profile_ = test_profile();
  std::vector<hpu::Image> images_;
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<portals::Interface>> interfaces_;
};

TEST(SimPrograms, DoWhatTheModelAllows) {
  testbed::Judge judge;
  for_seeds(400, [&](Random& random) {
    PlainTestbed bed({6, random.chance(1, 2), random.next()});
    const uint16_t windows = random.chance(1, 4) ? 4 : 1;
    const model::Program program =
        model::random_history(random, 2, static_cast<uint16_t>(1 + random.below(4)), windows);
    const auto outcome = testbed::run_program(program, bed, random, testbed::Callers::one_thread);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message << '\n' << model::text_of(program);
    ASSERT_EQ(judge.complaint(program, *outcome), "");
  });
  EXPECT_EQ(judge.report(), "");
}

}  // namespace
}  // namespace spinloom::simulated
