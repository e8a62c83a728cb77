#include "predict/trace/pack.hpp"

#include <dlfcn.h>

namespace spinloom::trace {
namespace {

struct Zstd {
  size_t (*compress)(void* to, size_t capacity, const void* from, size_t length, int level) = nullptr;
  size_t (*bound)(size_t length) = nullptr;
  size_t (*decompress)(void* to, size_t capacity, const void* from, size_t length) = nullptr;
  unsigned (*is_error)(size_t code) = nullptr;

  [[nodiscard]] bool found() const {
    return compress != nullptr && bound != nullptr && decompress != nullptr && is_error != nullptr;
  }
};

const Zstd& zstd() {
  static const Zstd loaded = [] {
    Zstd zstd;
    void* const library = dlopen("libzstd.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return zstd;
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    find(zstd.compress, "ZSTD_compress");
    find(zstd.bound, "ZSTD_compressBound");
    find(zstd.decompress, "ZSTD_decompress");
    find(zstd.is_error, "ZSTD_isError");
    return zstd;
  }();
  return loaded;
}

}  // namespace

bool can_pack() { return zstd().found(); }

Bytes pack(std::span<const uint8_t> raw) {
  if (!can_pack()) return {};
  constexpr int level = 3;
  Bytes packed(zstd().bound(raw.size()));
  const size_t length = zstd().compress(packed.data(), packed.size(), raw.data(), raw.size(), level);
  if (zstd().is_error(length) != 0 || length >= raw.size()) return {};
  packed.resize(length);
  return packed;
}

bool unpack(std::span<const uint8_t> packed, size_t raw_bytes, Bytes& raw) {
  raw.resize(raw_bytes);
  const size_t length = zstd().decompress(raw.data(), raw.size(), packed.data(), packed.size());
  return zstd().is_error(length) == 0 && length == raw_bytes;
}

}  // namespace spinloom::trace
