#include "live/process/images.hpp"

#include <unistd.h>

#include <optional>
#include <utility>

namespace spinloom::process {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Images::Images(std::vector<std::string> folders, HandlerKind preferred)
    : folders_(std::move(folders)), preferred_(preferred) {}

Result<std::unique_ptr<Images>> Images::create(std::vector<std::string> folders, HandlerKind preferred) {
  std::unique_ptr<Images> images(new Images(std::move(folders), preferred));
  SPL_ASSIGN(images->library_, live::HandlerLibrary::create());
  return images;
}

std::vector<std::string> Images::candidates(const std::string& name) const {
  if (name.find('/') != std::string::npos) return {name};
  const char* const first = preferred_ == HandlerKind::native ? ".so" : ".elf";
  const char* const second = preferred_ == HandlerKind::native ? ".elf" : ".so";
  std::vector<std::string> paths;
  for (const std::string& folder : folders_) {
    if (ends_with(name, ".elf") || ends_with(name, ".so")) {
      paths.push_back(folder + "/" + name);
    } else {
      for (const char* end : {first, second}) paths.push_back(folder + "/" + name + end);
    }
  }
  return paths;
}

Result<calls::HandlerImage> Images::find(const std::string& name) {
  for (const std::string& path : candidates(name)) {
    if (const auto known = loaded_.find(path); known != loaded_.end()) return known->second;
    if (access(path.c_str(), R_OK) != 0) continue;
    SPL_ASSIGN(loaded_[path], load(path));
    return loaded_[path];
  }
  std::string where;
  for (const std::string& folder : folders_) where += text(where.empty() ? "" : ":", folder);
  return fail(Code::invalid, "no handler image '", name, "' in ", where, " (SPINLOOM_HANDLERS adds folders)");
}

Result<calls::HandlerImage> Images::load(const std::string& path) {
  calls::HandlerImage image;
  SPL_ASSIGN(image.index, library_->load(path));
  image.entry = [library = library_, index = image.index](const std::string& symbol) -> std::optional<uint32_t> {
    const auto found = library->entry(index, symbol);
    return found ? std::optional<uint32_t>(*found) : std::nullopt;
  };
  return image;
}

}  // namespace spinloom::process
