// TestFolder - for tests: a folder with a name that nobody can know before, which ends with the object.
//
// Threads: one owner. Time: none.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace spinloom {

class TestFolder {
 public:
  TestFolder() {
    std::string form = (std::filesystem::temp_directory_path() / "spinloom-test-XXXXXX").string();
    if (mkdtemp(form.data()) == nullptr) throw std::runtime_error(form + " cannot be made");
    path_ = form;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string of(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace spinloom
