/* A filter: the first rule that holds for a frame says what becomes of it.
 *
 * Contract: constants: filter_constants. A rule holds if each of the frame's fields, as frame_flow.h has them, does: an
 *   address under the mask is the rule's, a port lies between two others, the protocol is the rule's (zero: any). A
 *   verdict is a return code: DROP, PROCEED (the host's stack), SUCCESS (done with it).
 * State: uint32_t for each rule, how many frames it held for, and one for those that no rule held for.
 */
#include "frame_flow.h"

typedef struct {
  uint32_t source, source_mask; /* the network's byte order */
  uint32_t destination, destination_mask;
  uint16_t source_port[2]; /* the first and the last one */
  uint16_t destination_port[2];
  uint16_t protocol;
  uint16_t verdict;
} filter_rule;
typedef struct {
  uint32_t rules;
  uint32_t otherwise; /* the verdict where none holds */
  filter_rule rule[];
} filter_constants;

static bool between(uint16_t value, const uint16_t *range) { return range[0] <= value && value <= range[1]; }

static bool holds(const filter_rule *rule, const frame_flow *flow) {
  return (flow->source & rule->source_mask) == rule->source &&
         (flow->destination & rule->destination_mask) == rule->destination &&
         between(flow->source_port, rule->source_port) && between(flow->destination_port, rule->destination_port) &&
         (rule->protocol == 0 || rule->protocol == flow->protocol);
}

int payload_handler(const ptl_payload_t p, void *state) {
  const filter_constants *const given = spl_constants();
  uint32_t *const counts = state;
  const frame_flow flow = frame_flow_of(p.base, (uint32_t)p.length);
  uint32_t found = 0;
  while (found < given->rules && !holds(&given->rule[found], &flow)) ++found;
  __atomic_fetch_add(&counts[found], 1u, __ATOMIC_RELAXED);
  return (int)(found < given->rules ? given->rule[found].verdict : given->otherwise);
}
