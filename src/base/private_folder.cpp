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

constexpr uint64_t full_map_count = UINT32_MAX;  // user numbers that the first user namespace maps

// Returns the user number that a namespace shows for users whom it does not know.
uint64_t overflow_uid() {
  uint64_t uid = 65534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> uid;
  return uid;
}

// Returns this user's number outside of the namespace; nothing where the number inside is also that of strangers, or is
// not mapped at all.
std::optional<uint64_t> uid_outside() {
  const uint64_t uid = geteuid();
  std::ifstream map("/proc/self/uid_map");
  if (!map) return uid;  // a kernel without namespaces
  for (uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;) {
    if (uid < inside || uid - inside >= count) continue;
    if (count < full_map_count && uid == overflow_uid()) return std::nullopt;
    return outside + (uid - inside);
  }
  return std::nullopt;
}

bool exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 || errno != ENOENT;
}

}  // namespace

bool is_this_user(uid_t uid) { return uid == geteuid() && uid_outside().has_value(); }

Status check_private(const std::string& folder) {
  struct stat status{};
  if (lstat(folder.c_str(), &status) != 0) return fail(Code::environment, folder, ": ", std::strerror(errno));
  if (S_ISLNK(status.st_mode)) return fail(Code::environment, folder, " is a link, which may lead anywhere");
  if (!S_ISDIR(status.st_mode)) return fail(Code::environment, folder, " is no folder");
  if (status.st_uid == geteuid() && !is_this_user(status.st_uid)) {
    return fail(Code::environment, folder,
                " may be anybody's: this user has no number of his own in this user namespace");
  }
  if (!is_this_user(status.st_uid)) {
    return fail(Code::environment, folder, " belongs to user ", status.st_uid, ", not to this one (", geteuid(), ")");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Code::environment, folder, " may be changed by other users (chmod go-w ", folder, ")");
  }
  return {};
}

Result<std::string> runtime_folder(bool creates) {
  const char* const runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && *runtime_dir != '\0') {
    const Status checked = exists(runtime_dir) ? check_private(runtime_dir) : Status{};
    if (checked.ok()) return std::string(runtime_dir);
    return fail(Code::environment, "XDG_RUNTIME_DIR: ", checked.error().message,
                "; name a folder of your own, or none");
  }
  const std::optional<uint64_t> uid = uid_outside();
  if (!uid) {
    return fail(Code::environment, "this user has no number of his own in this user namespace (unshare -r gives one)");
  }
  const std::string folder = text("/tmp/spinloom-", *uid);
  if (creates && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(Code::environment, folder, ": ", std::strerror(errno), "; XDG_RUNTIME_DIR names another place");
  }
  const Status checked = exists(folder) ? check_private(folder) : Status{};
  if (checked.ok()) return folder;
  return fail(Code::environment, checked.error().message,
              ": set XDG_RUNTIME_DIR to a folder of your own, or have this one removed");
}

}  // namespace spinloom
