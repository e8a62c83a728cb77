#include "process/images.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "hpu/elf.hpp"

namespace spinloom::process {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Images::Images(std::vector<std::string> folders, HandlerKind preferred)
    : folders_(std::move(folders)), preferred_(preferred) {}

Result<std::unique_ptr<Images>> Images::create(std::vector<std::string> folders, HandlerKind preferred) {
  std::unique_ptr<Images> made(new Images(std::move(folders), preferred));
  SPL_ASSIGN(made->sandbox_, portals::ImageHandlers::create());
  return made;
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

ptl::HandlerImage Images::find(const std::string& name, std::string& why) {
  for (const std::string& path : candidates(name)) {
    if (const auto known = loaded_.find(path); known != loaded_.end()) return known->second;
    if (access(path.c_str(), R_OK) != 0) continue;
    auto image = load(path);
    if (image) return loaded_[path] = *image;
    why = image.error().message;
    return {};
  }
  why = text("no handler image '", name, "' in ", folders_.size(), " folders (SPINLOOM_HANDLERS)");
  return {};
}

Result<ptl::HandlerImage> Images::load(const std::string& path) {
  ptl::HandlerImage made;
  if (ends_with(path, ".so")) {
    SPL_ASSIGN(const uint32_t number, native_.load(path));
    made.index = number | native_bit;
    made.entry = [this, number](const std::string& symbol) -> std::optional<uint32_t> {
      const auto found = native_.entry(number, symbol);
      return found ? std::optional<uint32_t>(*found) : std::nullopt;
    };
    return made;
  }
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> content(std::istreambuf_iterator<char>(file), {});
  SPL_ASSIGN(hpu::Image image, hpu::load_elf(content));
  made.index = sandbox_->add(std::move(image));
  made.entry = ptl::entries_of(sandbox_->image(made.index));
  return made;
}

portals::HandlerOutcome Images::run(const portals::HandlerFrame& frame, portals::HandlerCalls& calls) {
  if ((frame.context->image & native_bit) != 0) return native_.run(frame, calls);
  return sandbox_->run(frame, calls);
}

}  // namespace spinloom::process
