// The check of a destination: it accepts the oracle's bytes, and finds each error that is put in.
#include "app/studies/ddt.hpp"

#include <gtest/gtest.h>

#include "app/measure/destination.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

strategies::Message message_of(const char* text_form) {
  return strategies::make_message(layout::parse(text_form).value(), 1).value();
}

// Unpacks by the oracle, which check() must accept; then breaks one thing, which check() must find.
std::string check_after(Inject what, uint64_t seed) {
  const strategies::Message message = message_of("vector(8, 2, 3, int)");
  auto destination = Destination::create(message, seed).value();
  const auto packed = random_bytes(seed, "app.message", static_cast<size_t>(message.bytes));
  const Status unpacked = layout::oracle::unpack(message.type, 1, std::as_bytes(std::span(packed)),
                                                 reinterpret_cast<std::byte*>(destination.base()));
  EXPECT_TRUE(unpacked);
  EXPECT_TRUE(destination.check(message, packed));
  EXPECT_TRUE(destination.inject(what, message, seed));
  const Status checked = destination.check(message, packed);
  return checked ? "" : checked.error().message;
}

TEST(Destination, AcceptsWhatTheOracleWrites) { EXPECT_EQ(check_after(Inject::none, 1), ""); }

TEST(Destination, FindsEveryInjection) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    EXPECT_NE(check_after(Inject::flip, seed).find("block"), std::string::npos) << "seed " << seed;
    EXPECT_NE(check_after(Inject::skip, seed).find("block"), std::string::npos) << "seed " << seed;
    const std::string stray = check_after(Inject::stray, seed);
    EXPECT_TRUE(stray.find("gap") != std::string::npos || stray.find("guard") != std::string::npos)
        << "seed " << seed << ": " << stray;
  }
}

// A block of one byte often already holds the message's byte; skipping such a block would show nothing.
TEST(Destination, SkipAlwaysChangesSomething) {
  const strategies::Message message = message_of("hvector(16, 1, 2B, byte)");
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    auto destination = Destination::create(message, seed).value();
    const auto packed = random_bytes(seed, "app.message", static_cast<size_t>(message.bytes));
    ASSERT_TRUE(layout::oracle::unpack(message.type, 1, std::as_bytes(std::span(packed)),
                                       reinterpret_cast<std::byte*>(destination.base())));
    ASSERT_TRUE(destination.inject(Inject::skip, message, seed));
    EXPECT_FALSE(destination.check(message, packed)) << "seed " << seed;
  }
}

TEST(Inject, RefusesUnknownNames) {
  EXPECT_EQ(inject_named("flip").value(), Inject::flip);
  EXPECT_EQ(inject_named("flop").error().code, Code::invalid);
}

}  // namespace
}  // namespace spinloom::app
