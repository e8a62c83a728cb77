/* Registered memory: its keys, and what operations may do with it. */
#include "strict_fabric.h"

void check_local(const void* bytes, size_t length, void* description, uint64_t access) {
  if ((all.mode & FI_MR_LOCAL) == 0) return;
  const struct region* region = description;
  RULE(region && region->live && region->enabled, "an operation without registered memory");
  RULE((region->access & access) == access, "memory is registered for something else");
  RULE((const uint8_t*)bytes >= region->bytes && (const uint8_t*)bytes + length <= region->bytes + region->length,
       "an operation outside of its registered memory");
}

static int close_region(struct fid* fid) {
  enter();
  struct region* region = (struct region*)fid;
  RULE(region->live, "memory is closed twice");
  region->live = 0;
  --all.objects;
  leave();
  return 0;
}
static int bind_region(struct fid* fid, struct fid* other, uint64_t flags) {
  (void)flags;
  RULE(((struct region*)fid)->live && other == &all.ep.fid && all.endpoint_open, "memory is bound to an endpoint");
  return 0;
}
static int control_region(struct fid* fid, int command, void* argument) {
  (void)argument;
  RULE(command == FI_ENABLE, "memory is enabled, and nothing else");
  ((struct region*)fid)->enabled = 1;
  return 0;
}
static struct fi_ops region_ops = {
    .size = sizeof region_ops, .close = close_region, .bind = bind_region, .control = control_region};

static int reg(struct fid* fid, const void* bytes, size_t length, uint64_t access, uint64_t offset, uint64_t key,
               uint64_t flags, struct fid_mr** out, void* context) {
  (void)fid, (void)flags, (void)context;
  enter();
  RULE(offset == 0, "an offset is not for callers");
  size_t at = 0;
  while (at < REGIONS && all.regions[at].live) ++at;
  if (at == REGIONS) {
    leave();
    return -FI_ENOSPC;
  }
  struct region* region = &all.regions[at];
  if (all.mode & FI_MR_PROV_KEY) key = 0x5000000 + (uint64_t)rand();
  RULE(key <= UINT32_MAX, "a key is longer than mr_key_size");
  for (size_t i = 0; i < REGIONS; ++i)
    RULE(!all.regions[i].live || all.regions[i].mr.key != key, "a key is used twice");
  memset(region, 0, sizeof *region);
  region->mr.fid.ops = &region_ops;
  region->mr.mem_desc = region;
  region->mr.key = key;
  region->bytes = bytes;
  region->length = length;
  region->access = access;
  region->live = 1;
  region->enabled = (all.mode & FI_MR_ENDPOINT) == 0;
  ++all.objects;
  *out = &region->mr;
  leave();
  return 0;
}
struct fi_ops_mr mr_ops = {sizeof mr_ops, reg, NULL, NULL};
