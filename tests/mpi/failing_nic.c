/* A libportals.so.4 in which one function fails where the environment names it: FAILING_NIC=PtlNIInit, for instance.
 * All other functions are those of the real one, which this library needs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <portals4.h>
#include <spinloom/offload.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char* function) {
  const char* const named = getenv("FAILING_NIC");
  return named != NULL && strcmp(named, function) == 0;
}

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

int PtlInit(void) {
  const int code = REAL(PtlInit)();
  if (!fails("PtlInit")) return code;
  REAL(PtlFini)();
  return PTL_FAIL;
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t* desired,
              ptl_ni_limits_t* actual, ptl_handle_ni_t* interface) {
  return fails("PtlNIInit") ? PTL_NO_SPACE : REAL(PtlNIInit)(iface, options, pid, desired, actual, interface);
}

int spl_oe_open(ptl_handle_ni_t interface, const spl_oe_options* options, spl_oe** engine) {
  return fails("spl_oe_open") ? PTL_NO_SPACE : REAL(spl_oe_open)(interface, options, engine);
}
