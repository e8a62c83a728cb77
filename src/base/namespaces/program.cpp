#include "base/namespaces/program.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace spinloom::namespaces {
namespace {

#if defined(__x86_64__)
constexpr uint16_t machine = EM_X86_64;
constexpr uint32_t copy_relocation = R_X86_64_COPY;
#elif defined(__aarch64__)
constexpr uint16_t machine = EM_AARCH64;
constexpr uint32_t copy_relocation = R_AARCH64_COPY;
#else
#error "programs are loaded on x86-64 and AArch64"
#endif

// Pointers whose copies in a program stay valid, because they point into the C library.
constexpr std::array<std::string_view, 7> shared_variables = {
    "stdin", "stdout", "stderr", "environ", "_environ", "__environ", "program_invocation_name"};

}  // namespace

// Reads a file and checks every offset, because the file may be anything.
class ElfReader {
 public:
  explicit ElfReader(Program& program) : program_(program), image_(program.image_) {}

  Status read() {
    SPL_TRY(read_header());
    SPL_TRY(read_segments());
    SPL_TRY(read_sections());
    SPL_TRY(read_dynamic());
    return find_main();
  }

 private:
  template <class... Parts>
  [[nodiscard]] Error refuse(const Parts&... parts) const {
    return fail(Code::invalid, program_.path_, ": ", parts...);
  }

  template <class T>
  [[nodiscard]] const T* at(uint64_t offset, uint64_t count = 1) const {
    if (offset > image_.size() || count > (image_.size() - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(image_.data() + offset);
  }

  Status read_header() {
    const auto* header = at<Elf64_Ehdr>(0);
    if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
      return refuse("this is no program that a linker made (ELF)");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != machine) {
      return refuse("it was built for another machine than this one");
    }
    if (header->e_type != ET_DYN) {
      return refuse("it is not position-independent; build it with -pie -fPIE", program_.advice_);
    }
    header_ = header;
    return {};
  }

  Status read_segments() {
    const auto* segments = at<Elf64_Phdr>(header_->e_phoff, header_->e_phnum);
    if (segments == nullptr) return refuse("its table of segments is cut off");
    for (uint16_t i = 0; i < header_->e_phnum; ++i) {
      const Elf64_Phdr& segment = segments[i];
      if (segment.p_type == PT_LOAD) {
        load_segments_.push_back(segment);
        program_.memory_bytes_ = std::max<uint64_t>(program_.memory_bytes_, segment.p_vaddr + segment.p_memsz);
      }
      if (segment.p_type == PT_TLS) has_thread_locals_ = segment.p_memsz > 0;
      if (segment.p_type == PT_DYNAMIC) dynamic_ = segment;
    }
    return {};
  }

  // Reads the functions and sorts them by address, main() among them.
  Status read_sections() {
    const auto* sections = at<Elf64_Shdr>(header_->e_shoff, header_->e_shnum);
    if (sections == nullptr) return refuse("it has no table of sections: it was stripped too far");
    for (uint16_t i = 0; i < header_->e_shnum; ++i) {
      const Elf64_Shdr& section = sections[i];
      if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || section.sh_link >= header_->e_shnum)
        continue;
      const Elf64_Shdr& names = sections[section.sh_link];
      const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
      const auto* symbols = at<Elf64_Sym>(section.sh_offset, count);
      if (symbols == nullptr) return refuse("its table of symbols is cut off");
      if (section.sh_type == SHT_DYNSYM) make_global(section.sh_offset, count);
      for (uint64_t symbol = 0; symbol < count; ++symbol) {
        if (ELF64_ST_TYPE(symbols[symbol].st_info) != STT_FUNC || symbols[symbol].st_value == 0) continue;
        const char* name = name_at(names.sh_offset, names.sh_size, symbols[symbol].st_name);
        if (name == nullptr) return refuse("a symbol has no name");
        program_.functions_.push_back({symbols[symbol].st_value, symbols[symbol].st_size, name});
      }
    }
    std::sort(program_.functions_.begin(), program_.functions_.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    return {};
  }

  // Makes unique symbols (STB_GNU_UNIQUE) ordinary global ones. C++ compilers use them for inline variables and for the
  // static variables of templates and inline functions; the loader would give all copies one variable for each.
  void make_global(uint64_t table, uint64_t count) {
    for (uint64_t symbol = 0; symbol < count; ++symbol) {
      uint8_t& info = program_.image_[table + symbol * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_info)];
      if (ELF64_ST_BIND(info) == STB_GNU_UNIQUE) info = ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(info));
    }
  }

  [[nodiscard]] const char* name_at(uint64_t table, uint64_t bytes, uint64_t offset) const {
    if (at<char>(table, bytes) == nullptr || offset >= bytes) return nullptr;
    const char* name = at<char>(table + offset);
    return std::memchr(name, 0, bytes - offset) == nullptr ? nullptr : name;
  }

  [[nodiscard]] uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr& load : load_segments_) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz)
        return address - load.p_vaddr + load.p_offset;
    }
    return UINT64_MAX;
  }

  // Gives the entry of the dynamic section at this offset of the file another value.
  void set_entry_value(uint64_t offset, uint64_t value) {
    std::memcpy(program_.image_.data() + offset + offsetof(Elf64_Dyn, d_un), &value, sizeof value);
  }

  // Changes the flag that keeps an executable from being loaded as a shared object, and takes the destructors from the
  // loader. Refuses executables with thread-local variables, and copies of a library's variables.
  Status read_dynamic() {
    uint64_t relocations = 0;
    uint64_t relocation_bytes = 0;
    uint64_t symbols = 0;
    uint64_t names = 0;
    uint64_t name_bytes = 0;
    bool executable = false;
    for (uint64_t offset = dynamic_.p_offset; offset < dynamic_.p_offset + dynamic_.p_filesz;
         offset += sizeof(Elf64_Dyn)) {
      const auto* entry = at<Elf64_Dyn>(offset);
      if (entry == nullptr) return refuse("its dynamic section is cut off");
      if (entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_RELA) relocations = entry->d_un.d_ptr;
      if (entry->d_tag == DT_RELASZ) relocation_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_SYMTAB) symbols = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) names = entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRSZ) name_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_FINI_ARRAY) program_.destructors_offset_ = entry->d_un.d_ptr;
      if (entry->d_tag == DT_FINI_ARRAYSZ) {  // run_destructors() runs them, and the loader runs none
        program_.destructor_count_ = entry->d_un.d_val / sizeof(void (*)());
        set_entry_value(offset, 0);
      }
      if (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_PIE) != 0) {
        executable = true;
        set_entry_value(offset, entry->d_un.d_val & ~uint64_t{DF_1_PIE});
      }
    }
    if (executable && has_thread_locals_) {
      return refuse(
          "an executable with thread-local variables cannot be loaded once a rank; link it with -shared -fPIC "
          "instead of -pie",
          program_.advice_);
    }
    const auto* relocation_entries = at<Elf64_Rela>(offset_of(relocations), relocation_bytes / sizeof(Elf64_Rela));
    if (relocation_entries == nullptr) return {};
    for (uint64_t i = 0; i < relocation_bytes / sizeof(Elf64_Rela); ++i) {
      if (ELF64_R_TYPE(relocation_entries[i].r_info) != copy_relocation) continue;
      const auto* symbol =
          at<Elf64_Sym>(offset_of(symbols) + ELF64_R_SYM(relocation_entries[i].r_info) * sizeof(Elf64_Sym));
      const char* name = symbol == nullptr ? nullptr : name_at(offset_of(names), name_bytes, symbol->st_name);
      if (name == nullptr) return refuse("a relocation names no symbol");
      if (std::find(shared_variables.begin(), shared_variables.end(), name) != shared_variables.end()) continue;
      return refuse("it has its own copy of the library's variable ", name, "; compile it with -fPIC",
                    program_.advice_);
    }
    return {};
  }

  Status find_main() {
    for (const Program::Function& function : program_.functions_) {
      if (function.name == "main") program_.main_offset_ = function.start;
    }
    if (program_.main_offset_ == 0) return refuse("it has no function main(), or was stripped of its name");
    return {};
  }

  Program& program_;
  const std::vector<uint8_t>& image_;
  const Elf64_Ehdr* header_ = nullptr;
  std::vector<Elf64_Phdr> load_segments_;
  Elf64_Phdr dynamic_{};
  bool has_thread_locals_ = false;
};

Result<Program> Program::open(const std::string& path, const std::string& advice) {
  Program program;
  program.path_ = path;
  program.advice_ = advice.empty() ? "" : ", " + advice;
  std::error_code error;
  const std::filesystem::file_status found = std::filesystem::status(path, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    return fail(Code::invalid, path, ": this is no file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::invalid, path, ": it cannot be read: ", std::strerror(errno));
  program.image_.assign(std::istreambuf_iterator<char>(file), {});
  SPL_TRY(ElfReader(program).read());
  return program;
}

// The loader recognises a file by name and inode, so each copy is a separate file, which is removed at once.
Result<LoadedCopy> Program::load() const {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder == nullptr || *folder == 0 ? "/tmp" : folder) + "/spinloom-XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) return fail(Code::environment, name, " cannot be written (TMPDIR): ", std::strerror(errno));
  size_t written = 0;
  while (written < image_.size()) {
    const ssize_t chunk_bytes = write(file, image_.data() + written, image_.size() - written);
    if (chunk_bytes <= 0) break;
    written += static_cast<size_t>(chunk_bytes);
  }
  const int error = errno;
  close(file);
  void* handle = written == image_.size() ? dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const char* reason = handle == nullptr && written == image_.size() ? dlerror() : nullptr;
  unlink(name.c_str());
  if (written < image_.size()) {
    return fail(Code::environment, name, " cannot be written (TMPDIR): ", std::strerror(error));
  }
  if (handle == nullptr) return fail(Code::environment, path_, " cannot be loaded: ", reason);
  const auto* map = static_cast<const link_map*>(handle);
  LoadedCopy copy;
  copy.handle = handle;
  copy.base = map->l_addr;
  copy.main = reinterpret_cast<Main>(copy.base + main_offset_);
  return copy;
}

void Program::run_destructors(const LoadedCopy& copy) const {
  using Destructor = void (*)();
  const auto* const functions = reinterpret_cast<const Destructor*>(copy.base + destructors_offset_);
  for (uint64_t left = destructor_count_; left > 0; --left) functions[left - 1]();
}

const char* Program::function_at(uint64_t offset) const {
  const auto after = std::upper_bound(functions_.begin(), functions_.end(), offset,
                                      [](uint64_t value, const Function& function) { return value < function.start; });
  if (after == functions_.begin()) return "";
  const Function& found = *std::prev(after);
  return offset - found.start < std::max<uint64_t>(found.size, 1) ? found.name.c_str() : "";
}

}  // namespace spinloom::namespaces
