// The kernels of a device: a fatbin that was built in, else the source that was built in, compiled by NVRTC.
#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/device_state.hpp"
#include "gpu/kernel_text.hpp"

namespace spinloom::gpu {
namespace {

constexpr const char* entry_names[entries] = {"spinloom_word", "spinloom_warp", "spinloom_tile",    "spinloom_pieces",
                                              "spinloom_walk", "spinloom_set",  "spinloom_set_many"};

Result<Kernels> load_image(const Driver& driver, const void* image, std::string origin) {
  void* module = nullptr;
  SPL_CUDA(driver, driver.module_load(&module, image), "to load the kernels (", origin, ")");
  Kernels kernels;
  for (size_t i = 0; i < entries; ++i) {
    SPL_CUDA(driver, driver.module_function(&kernels.functions[i], module, entry_names[i]), "to find kernel ",
             entry_names[i], " (", origin, ")");
  }
  kernels.origin = std::move(origin);
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

// Names for the loader, then the wheels of nvidia-cuda-nvrtc beside this library and in the virtual environment.
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

Result<std::string> compile_kernels(int compute, std::string* version) {
  SPL_ASSIGN(const Nvrtc nvrtc, load_nvrtc());
  int major = 0;
  int minor = 0;
  (void)nvrtc.version(&major, &minor);
  if (version != nullptr) *version = text("NVRTC ", major, ".", minor);
  void* program = nullptr;
  if (nvrtc.create(&program, kernel_text(), "spinloom.cu", 0, nullptr, nullptr) != 0) {
    return fail(Code::environment, "NVRTC ", major, ".", minor, " did not take the kernels' source");
  }
  const std::string architecture = text("--gpu-architecture=sm_", compute);
  const char* const options[] = {architecture.c_str(), "--std=c++17"};
  const int compiled = nvrtc.compile(program, 2, options);
  std::string image;
  size_t bytes = 0;
  if (compiled != 0) {
    (void)nvrtc.log_bytes(program, &bytes);
    image.resize(bytes);
    (void)nvrtc.log(program, image.data());
    (void)nvrtc.destroy(&program);
    return fail(Code::environment, "NVRTC ", major, ".", minor, " does not compile the kernels for sm_", compute, ": ",
                image.c_str());
  }
  (void)nvrtc.image_bytes(program, &bytes);
  image.resize(bytes);
  (void)nvrtc.image(program, image.data());
  (void)nvrtc.destroy(&program);
  return image;
}

Result<Kernels> load_kernels(const Driver& driver, int compute) {
  if (kernel_fatbin() != nullptr) {
    auto built_in = load_image(driver, kernel_fatbin(), "fatbin");
    if (built_in) return built_in;
  }
  std::string version;
  SPL_ASSIGN(const std::string image, compile_kernels(compute, &version));
  return load_image(driver, image.data(), version);
}

}  // namespace spinloom::gpu
