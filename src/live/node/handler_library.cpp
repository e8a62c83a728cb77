#include "live/node/handler_library.hpp"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace spinloom::live {

Result<std::shared_ptr<HandlerLibrary>> HandlerLibrary::create() {
  std::shared_ptr<HandlerLibrary> made(new HandlerLibrary);
  SPL_ASSIGN(made->sandbox_, spin::ImageHandlers::create());
  return made;
}

Result<uint32_t> HandlerLibrary::load(const std::string& path) {
  if (path.ends_with(".so")) return native_.load(path);
  if (!path.ends_with(".elf")) {
    return fail(Code::invalid, path, " is neither FILE.so (native handlers) nor FILE.elf (an image for the sandbox)");
  }
  const std::lock_guard lock(loading_);
  const auto found = loaded_.find(path);
  if (found != loaded_.end()) return found->second;
  SPL_ASSIGN(const uint32_t number, load_image(path));
  loaded_.emplace(path, number);
  return number;
}

Result<uint32_t> HandlerLibrary::load_image(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::environment, "handler image ", path, " cannot be read");
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto image = hpu::load_elf(bytes);
  if (!image) return fail(image.error().code, "handler image ", path, ": ", image.error().message);
  return sandbox_->add(std::move(*image));
}

Result<uint32_t> HandlerLibrary::entry(uint32_t image, const std::string& symbol) {
  if (is_native(image)) return native_.entry(image, symbol);
  return sandbox_->image(image).address_of(symbol);
}

spin::HandlerOutcome HandlerLibrary::run(const spin::HandlerFrame& frame, spin::HandlerCalls& calls) {
  return is_native(frame.context->image) ? native_.run(frame, calls) : sandbox_->run(frame, calls);
}

}  // namespace spinloom::live
