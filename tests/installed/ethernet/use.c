/* A program for a NIC that does not run: it hears so, in a sentence, and goes on. */
#include <spinloom/ethernet.h>
#include <stdio.h>
#include <string.h>

/* The rest needs a NIC; that they can be linked is what is tried here. */
typedef void (*any)(void);
static const any others[] = {
    (any)spl_eth_activate,      (any)spl_eth_deactivate,  (any)spl_eth_invoke,      (any)spl_eth_host_memory,
    (any)spl_eth_state,         (any)spl_eth_constants,   (any)spl_eth_pop_request, (any)spl_eth_next_request,
    (any)spl_eth_push_response, (any)spl_eth_next_notice, (any)spl_eth_next_frame,  (any)spl_eth_counter,
    (any)spl_eth_clear_counter, (any)spl_eth_counts,      (any)spl_eth_context,
};

int main(void) {
  spl_eth* eth = NULL;
  spl_eth_options options;
  memset(&options, 0, sizeof options);
  options.nic = "nobody";
  if (spl_eth_open(&eth, &options) != SPL_ETH_NO_NIC || eth != NULL) return 1;
  if (strstr(spl_eth_error(), "spinloom nic run --name nobody") == NULL) return 2;
  if (spl_eth_open(NULL, &options) != SPL_ETH_INVALID) return 3;
  spl_eth_close(NULL);
  const spl_eth_rules rules[] = {spl_eth_rules_never(),    spl_eth_rules_all(),  spl_eth_rules_udp(7),
                                 spl_eth_rules_slmp(9330), spl_eth_rules_icmp(), spl_eth_rules_arp()};
  if (rules[2].rule[2].start != 7u << 16 || rules[3].last_frame.mask != 0x8000) return 4;
  if (strcmp(spl_eth_count_name(0), "frames received") != 0 || spl_eth_count_name(1000) != NULL) return 5;
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    if (others[i] == NULL) return 6;
  }
  puts("good");
  return 0;
}
