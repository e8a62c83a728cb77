/* Specialised handler for structs whose members are vectors or lists: the first member by binary search over the prefix
 * sums, then member after member, each walked by its kind. Constants: a blob whose root is members of leaves. */
#include "ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const uint8_t *blob = spl_constants();
  const spl_layout_header *header = (const spl_layout_header *)(const void *)blob;
  const spl_node_narrow *root = (const spl_node_narrow *)(const void *)(header + 1);
  const spl_member_narrow *entry = (const spl_member_narrow *)(const void *)(root + 1);
  uint32_t position = (uint32_t)p.offset;
  uint32_t left = (uint32_t)p.length;
  uint32_t packed = 0;
  (void)state;
  if (left == 0) return SUCCESS;
  entry = spl_find_member_narrow(entry, root->count, position);
  for (;;) {
    const uint32_t rest = entry[1].start - position;
    const uint32_t bytes = left < rest ? left : rest;
    spl_walk_leaf_narrow(spl_node_at_narrow(blob, entry->child), (uint32_t)header->origin + (uint32_t)entry->offset,
                         position - entry->start, bytes, packed, ddt_emit_narrow, (void *)p.base);
    left -= bytes;
    if (left == 0) return SUCCESS;
    packed += bytes;
    position += bytes;
    ++entry;
  }
}

#ifndef SPL_DDT_GATHER
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
#endif
