// What is said where there is no driver, no GPU, no NVRTC; and the kernels' text compiled by NVRTC where it is there.
#include "gpu/driver.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <string>

#include "gpu/device.hpp"
#include "gpu/kernel_text.hpp"
#include "gpu/plan.hpp"

namespace spinloom::gpu {
namespace {

TEST(Driver, MissingLibraryIsASentence) {
  const auto table = load_driver("libspinloom_no_such_driver.so.1");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().code, Code::environment);
  EXPECT_NE(table.error().message.find("no GPU driver: libspinloom_no_such_driver.so.1"), std::string::npos);
}

// libm has none of the calls.
TEST(Driver, LibraryWithoutTheCallsIsASentence) {
  const auto table = load_driver("libm.so.6");
  ASSERT_FALSE(table.ok());
  EXPECT_NE(table.error().message.find("too old"), std::string::npos);
  EXPECT_NE(table.error().message.find("cuInit"), std::string::npos);
}

TEST(Driver, ResultsOfTheDriverAreSentences) {
  Driver table;
  table.error_name = [](int, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  };
  table.error_string = [](int, const char** what) {
    *what = "out of memory";
    return 0;
  };
  const Error error = told(table, cuda_out_of_memory, "to allocate 5 bytes");
  EXPECT_EQ(error.code, Code::exhausted);
  EXPECT_EQ(error.message,
            "to allocate 5 bytes: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): free memory of the device, or move less "
            "at once");
  // Every result that is listed, and one that is not, has a sentence.
  for (const int result : {1, 3, 46, 100, 101, 201, 209, 214, 217, 222, 400, 700, 719, 721, 801, 900, 12345}) {
    EXPECT_NE(told(table, result, "to try").message.find(text(result)), std::string::npos);
  }
}

TEST(Driver, GuardPutsTheContextBack) {
  static void* current = nullptr;
  static int other = 0;
  static int ours = 0;
  static void* saved = nullptr;
  Driver table;
  table.context_current = [](void** context) {
    *context = current;
    return 0;
  };
  table.context_push = [](void* context) {
    saved = current;
    current = context;
    return 0;
  };
  table.context_pop = [](void** context) {
    *context = current;
    current = saved;
    return 0;
  };
  current = &other;
  {
    const ContextGuard guard(table, &ours);
    EXPECT_EQ(current, &ours);
  }
  EXPECT_EQ(current, &other);
}

TEST(Driver, AbsenceIsSilentAndNamed) {
  if (available()) GTEST_SKIP() << "there is a GPU";
  testing::internal::CaptureStderr();
  EXPECT_EQ(Device::count(), 0);
  EXPECT_FALSE(why_not().empty());
  EXPECT_FALSE(Device::at(0).ok());
  int host = 0;
  EXPECT_FALSE(Device::of(&host).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// NVRTC_TEST=1 where the wheel is at hand: its absence is then a failure, and all entries are compiled.
TEST(Nvrtc, CompilesTheTextThatIsBuiltIn) {
  const auto version = compiler_version();
  const bool all = std::getenv("NVRTC_TEST") != nullptr;
  if (!version && !all) GTEST_SKIP() << version.error().message;
  ASSERT_TRUE(version.ok()) << version.error().message;
  EXPECT_NE(version->find("NVRTC 1"), std::string::npos);
  const char* const names[] = {"spinloom_word",     "spinloom_warp",  "spinloom_tile",
                               "spinloom_pieces",   "spinloom_walk",  "spinloom_set",
                               "spinloom_set_many", "spinloom_words", "spinloom_brief"};
  for (size_t entry = all ? 0 : 2; entry < (all ? std::size(names) : 3); ++entry) {
    const auto image = compile_text(80, entry);
    ASSERT_TRUE(image.ok()) << image.error().message;
    EXPECT_EQ(image->substr(1, 3), "ELF");
    EXPECT_NE(image->find(names[entry]), std::string::npos);
  }
}

}  // namespace
}  // namespace spinloom::gpu
