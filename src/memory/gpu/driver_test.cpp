// Tests of the Errors without a driver, a GPU or NVRTC. Where NVRTC is there, it compiles the kernels' text.
#include "memory/gpu/driver.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "base/testing/folder.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/kernel_text.hpp"
#include "memory/gpu/plan.hpp"

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
  const Error error = driver_error(table, cuda_out_of_memory, "to allocate 5 bytes");
  EXPECT_EQ(error.code, Code::exhausted);
  EXPECT_EQ(error.message,
            "to allocate 5 bytes: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): free memory of the device, or move less "
            "at once");
  // Every result that is listed, and one that is not, has a sentence.
  for (const int result : {1, 3, 46, 100, 101, 201, 209, 214, 217, 222, 400, 700, 719, 721, 801, 900, 12345}) {
    EXPECT_NE(driver_error(table, result, "to try").message.find(text(result)), std::string::npos);
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
  EXPECT_FALSE(unavailable_reason().empty());
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

TEST(WheelOfNvrtc, IsThere) {
  if (std::getenv("SPINLOOM_TEST_WHEEL") == nullptr) GTEST_SKIP() << "a part of OnDeviceNvrtc.IsFoundInAWheel";
  EXPECT_EQ(compiler_version().value(), "NVRTC 13.0");
}

// The wheel nvidia-cuda-nvrtc lies beside the package spinloom, which has this library or, one folder deeper, a layer
// with it; or in the virtual environment. The compiler is that of the driver for tests.
TEST(OnDeviceNvrtc, IsFoundInAWheel) {
  if (!available()) GTEST_SKIP() << unavailable_reason();
  if (Device::at(0)->name() != "a GPU of the tests") GTEST_SKIP() << "its compiler is that of the tests";
  void* const loaded = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  Dl_info compiler{};
  ASSERT_NE(dladdr(dlsym(loaded, "nvrtcVersion"), &compiler), 0);
  for (const char* const place : {"package", "layer", "environment"}) {
    SCOPED_TRACE(place);
    const TestFolder folder;
    const bool is_environment = place == std::string("environment");
    const std::string packages = folder.of(is_environment ? "lib/python3.11/site-packages" : "site-packages");
    const std::string wheel = packages + "/nvidia/cu13/lib";
    const std::string program = packages + (place == std::string("layer") ? "/spinloom/lib/x" : "/spinloom/x");
    std::filesystem::create_directories(wheel);
    std::filesystem::create_directories(packages + "/spinloom/lib");
    std::filesystem::copy(compiler.dli_fname, wheel + "/libnvrtc.so.13");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      unsetenv("LD_LIBRARY_PATH");
      unsetenv("VIRTUAL_ENV");
      setenv("SPINLOOM_TEST_WHEEL", "1", 1);
      if (is_environment) setenv("VIRTUAL_ENV", folder.path().c_str(), 1);
      const char* const name = is_environment ? "spinloom_gpu_test" : program.c_str();
      execl("/proc/self/exe", name, "--gtest_filter=WheelOfNvrtc.*", "--gtest_brief=1", nullptr);
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it is not found";
  }
}

}  // namespace
}  // namespace spinloom::gpu
