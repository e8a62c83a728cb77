// PrivateFolder - folders that only this user may change, and whether a file or a process is this user's.
//
// Contract: check_private() accepts a folder, not a link, that belongs to this user and that neither its group nor
//   others may write to; otherwise its Error says which condition fails. runtime_folder() is the folder of this user's
//   sockets: XDG_RUNTIME_DIR, or /tmp/spinloom-USER if that is not set or empty. USER is the user's number outside of
//   the user namespace. A folder that exists is checked. If /tmp/spinloom-USER is missing, it is made with mode 0700
//   where `creates` is true. python/spinloom/common/private.py finds the same.
// Invariants: (1) each call looks again: a name proves nothing, and a number in a namespace may be another user's
//   outside; (2) a user without a number of his own in his namespace owns nothing, for strangers have the same number
//   there.
// Threads: any. Time: none.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace spinloom {

// True if `uid`, the owner of a file or of a peer process as this process sees it, is surely this user's.
[[nodiscard]] bool is_this_user(uid_t uid);

[[nodiscard]] Status check_private(const std::string& folder);

[[nodiscard]] Result<std::string> runtime_folder(bool creates);

}  // namespace spinloom
