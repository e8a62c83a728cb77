// The check whether processes can read each other's memory, and the cures that it names.
#include "live/process/copy_check.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace spinloom::process {
namespace {

TEST(CopyCheck, each_cause_has_its_cure) {
  struct Case {
    CopyFacts facts;
    const char* says;
  };
  const Case cases[] = {
      {{0, 1, false, true}, "one copy"},
      {{EPERM, 1, false, false}, "sysctl -w kernel.yama.ptrace_scope=0"},
      {{EPERM, 2, false, true}, "kernel.yama.ptrace_scope is 2"},
      {{EPERM, 3, false, false}, "until the next boot"},
      {{EPERM, 1, true, true}, "seccomp"},
      {{EPERM, -1, false, true}, "--cap-add=SYS_PTRACE"},
      {{EPERM, 0, false, false}, "one user"},
      {{ESRCH, 0, false, false}, "--pid=host"},
      {{ENOSYS, 0, false, false}, "CONFIG_CROSS_MEMORY_ATTACH"},
      {{EFAULT, 0, false, false}, "Bad address"},
  };
  for (const Case& one : cases) EXPECT_NE(explain(one.facts).find(one.says), std::string::npos) << explain(one.facts);
}

TEST(CopyCheck, children_read_each_other_or_an_error_says_why_not) {
  const CopyFacts facts = check_copies();
  if (facts.can_ptrace && !facts.has_seccomp_filter) {
    EXPECT_EQ(facts.error, 0) << explain(facts);
  }
  EXPECT_EQ(explain(facts).find("one copy") == 0, facts.error == 0);
}

}  // namespace
}  // namespace spinloom::process
