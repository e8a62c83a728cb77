// A program for pmi_users_test.cpp: its exit code is 1 if something but ours knows PMI, when it has loaded the
// libraries that its arguments name, else 0.
#include "live/launch/pmi_users.hpp"

#include <dlfcn.h>

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    if (dlopen(words[i], RTLD_NOW) == nullptr) return 2;
  }
  return spinloom::live::pmi_has_other_users() ? 1 : 0;
}
