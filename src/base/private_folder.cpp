#include "base/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

namespace spinloom {
namespace {

constexpr uint64_t all_numbers = UINT32_MAX;  // the count of numbers that the first user namespace maps

// Returns the user number that a namespace shows for users whom it does not know.
uint64_t number_of_strangers() {
  uint64_t number = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> number;
  return number;
}

// Returns this user's number outside of the namespace; nothing where the number inside is also that of strangers, or is
// not mapped at all.
std::optional<uint64_t> number_outside() {
  const uint64_t own = geteuid();
  std::ifstream map("/proc/self/uid_map");
  if (!map) return own;  // a kernel without namespaces
  for (uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;) {
    if (own < inside || own - inside >= count) continue;
    if (count < all_numbers && own == number_of_strangers()) return std::nullopt;
    return outside + (own - inside);
  }
  return std::nullopt;
}

bool is_there(const std::string& path) {
  struct stat found{};
  return lstat(path.c_str(), &found) == 0 || errno != ENOENT;
}

}  // namespace

bool is_this_user(uid_t number) { return number == geteuid() && number_outside().has_value(); }

Status check_private(const std::string& folder) {
  struct stat found{};
  if (lstat(folder.c_str(), &found) != 0) return fail(Code::environment, folder, ": ", std::strerror(errno));
  if (S_ISLNK(found.st_mode)) return fail(Code::environment, folder, " is a link, which may lead anywhere");
  if (!S_ISDIR(found.st_mode)) return fail(Code::environment, folder, " is no folder");
  if (found.st_uid == geteuid() && !is_this_user(found.st_uid)) {
    return fail(Code::environment, folder,
                " may be anybody's: this user has no number of his own in this user namespace");
  }
  if (!is_this_user(found.st_uid)) {
    return fail(Code::environment, folder, " belongs to user ", found.st_uid, ", not to this one (", geteuid(), ")");
  }
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Code::environment, folder, " may be changed by other users (chmod go-w ", folder, ")");
  }
  return {};
}

Result<std::string> runtime_folder(bool makes) {
  const char* const named = std::getenv("XDG_RUNTIME_DIR");
  if (named != nullptr && *named != '\0') {
    const Status checked = is_there(named) ? check_private(named) : Status{};
    if (checked.ok()) return std::string(named);
    return fail(Code::environment, "XDG_RUNTIME_DIR: ", checked.error().message,
                "; name a folder of your own, or none");
  }
  const std::optional<uint64_t> user = number_outside();
  if (!user) {
    return fail(Code::environment, "this user has no number of his own in this user namespace (unshare -r gives one)");
  }
  const std::string folder = text("/tmp/spinloom-", *user);
  if (makes && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(Code::environment, folder, ": ", std::strerror(errno), "; XDG_RUNTIME_DIR names another place");
  }
  const Status checked = is_there(folder) ? check_private(folder) : Status{};
  if (checked.ok()) return folder;
  return fail(Code::environment, checked.error().message,
              ": set XDG_RUNTIME_DIR to a folder of your own, or have this one removed");
}

}  // namespace spinloom
