// Test images - the shipped handler images, for tests that simulate with them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace spinloom::app {

inline std::map<std::string, std::vector<uint8_t>> test_images(const std::string& folder) {
  std::map<std::string, std::vector<uint8_t>> images;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".elf") continue;
    std::ifstream in(file.path(), std::ios::binary);
    images[file.path().stem().string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return images;
}

}  // namespace spinloom::app
