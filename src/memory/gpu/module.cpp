// The kernels of a device: a fatbin that was built in, or, where that is missing or does not load, the source that was
// built in, compiled by NVRTC.
#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "memory/gpu/device_state.hpp"
#include "memory/gpu/kernel_text.hpp"

namespace spinloom::gpu {
namespace {

constexpr const char* entry_names[entry_count] = {"spinloom_word",     "spinloom_warp",  "spinloom_tile",
                                                  "spinloom_pieces",   "spinloom_walk",  "spinloom_set",
                                                  "spinloom_set_many", "spinloom_words", "spinloom_brief"};

Result<void*> load_module(const Driver& driver, const void* image, const char* origin) {
  void* module = nullptr;
  SPL_CUDA(driver, driver.module_load(&module, image), "to load the kernels (", origin, ")");
  return module;
}

Result<void*> find_entry(const Driver& driver, void* module, size_t entry) {
  void* function = nullptr;
  SPL_CUDA(driver, driver.module_function(&function, module, entry_names[entry]), "to find kernel ",
           entry_names[entry]);
  return function;
}

Result<Kernels> load_fatbin(const Driver& driver) {
  SPL_ASSIGN(void* const module, load_module(driver, kernel_fatbin(), "fatbin"));
  Kernels kernels;
  for (size_t entry = 0; entry < entry_count; ++entry) {
    SPL_ASSIGN(kernels.functions[entry], find_entry(driver, module, entry));
  }
  kernels.origin = "fatbin";
  return kernels;
}

// ---- NVRTC ----

#define SPL_NVRTC_CALLS(call)                                                                            \
  call(version, "nvrtcVersion", (int* major, int* minor))                                                \
      call(create, "nvrtcCreateProgram",                                                                 \
           (void** program, const char* source, const char* name, int headers, const char* const* texts, \
            const char* const* names))                                                                   \
          call(compile, "nvrtcCompileProgram", (void* program, int options, const char* const* values))  \
              call(destroy, "nvrtcDestroyProgram", (void** program))                                     \
                  call(image_bytes, "nvrtcGetCUBINSize", (void* program, size_t* bytes))                 \
                      call(image, "nvrtcGetCUBIN", (void* program, char* image))                         \
                          call(log_bytes, "nvrtcGetProgramLogSize", (void* program, size_t* bytes))      \
                              call(log, "nvrtcGetProgramLog", (void* program, char* log))

struct Nvrtc {
#define SPL_NVRTC_MEMBER(name, symbol, arguments) int(*name) arguments = nullptr;
  SPL_NVRTC_CALLS(SPL_NVRTC_MEMBER)
#undef SPL_NVRTC_MEMBER
};

// Returns names for the loader, then the files in the wheels of nvidia-cuda-nvrtc beside this library and in the
// virtual environment.
std::vector<std::string> nvrtc_candidates() {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::string> patterns;
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&nvrtc_candidates), &here) != 0 && here.dli_fname != nullptr) {
    const std::string path = here.dli_fname;
    const std::string folder = path.substr(0, path.find_last_of('/') + 1);
    patterns.push_back(folder + "../nvidia/*/lib/libnvrtc.so.1*");
    patterns.push_back(folder + "../../nvidia/*/lib/libnvrtc.so.1*");
  }
  if (const char* const environment = std::getenv("VIRTUAL_ENV")) {
    patterns.push_back(std::string(environment) + "/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1*");
  }
  for (const std::string& pattern : patterns) {
    glob_t found{};
    if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) names.emplace_back(found.gl_pathv[i]);
    }
    globfree(&found);
  }
  return names;
}

Result<Nvrtc> load_nvrtc() {
  void* handle = nullptr;
  for (const std::string& name : nvrtc_candidates()) {
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
  }
  if (handle == nullptr) {
    return fail(Code::environment,
                "this build has no kernels for the GPU, and NVRTC, which would compile them, is not "
                "there: pip install nvidia-cuda-nvrtc, or build Spinloom where nvcc is");
  }
  Nvrtc table;
#define SPL_NVRTC_FIND(name, symbol, arguments)                           \
  table.name = reinterpret_cast<int(*) arguments>(dlsym(handle, symbol)); \
  if (table.name == nullptr) return fail(Code::environment, "NVRTC has no ", symbol, ": version 11.1 and later have");
  SPL_NVRTC_CALLS(SPL_NVRTC_FIND)
#undef SPL_NVRTC_FIND
  return table;
}

}  // namespace

Result<std::string> compiler_version() {
  SPL_ASSIGN(const Nvrtc nvrtc, load_nvrtc());
  int major = 0;
  int minor = 0;
  (void)nvrtc.version(&major, &minor);
  return text("NVRTC ", major, ".", minor);
}

Result<std::string> compile_text(int compute_capability, size_t entry) {
  SPL_ASSIGN(const Nvrtc nvrtc, load_nvrtc());
  void* program = nullptr;
  if (nvrtc.create(&program, kernel_text(), "spinloom.cu", 0, nullptr, nullptr) != 0) {
    return fail(Code::environment, "NVRTC did not take the kernels' source");
  }
  const std::string architecture = text("--gpu-architecture=sm_", compute_capability);
  const std::string only = text("--define-macro=SPINLOOM_ONLY=", entry);
  const char* const options[] = {architecture.c_str(), "--std=c++17", only.c_str()};
  const bool compiled = nvrtc.compile(program, 3, options) == 0;
  std::string image;
  size_t bytes = 0;
  (void)(compiled ? nvrtc.image_bytes(program, &bytes) : nvrtc.log_bytes(program, &bytes));
  image.resize(bytes);
  (void)(compiled ? nvrtc.image(program, image.data()) : nvrtc.log(program, image.data()));
  (void)nvrtc.destroy(&program);
  if (!compiled) {
    return fail(Code::environment, "NVRTC does not compile ", entry_names[entry], " for sm_", compute_capability, ": ",
                image.c_str());
  }
  return image;
}

Result<void*> compile_kernel(const Driver& driver, int compute_capability, size_t entry) {
  SPL_ASSIGN(const std::string image, compile_text(compute_capability, entry));
  SPL_ASSIGN(void* const module, load_module(driver, image.data(), "NVRTC"));
  return find_entry(driver, module, entry);
}

Result<Kernels> load_kernels(const Driver& driver) {
  if (kernel_fatbin() != nullptr) {
    auto built_in = load_fatbin(driver);
    if (built_in) return built_in;
  }
  Kernels kernels;
  SPL_ASSIGN(kernels.origin, compiler_version());
  return kernels;
}

}  // namespace spinloom::gpu
