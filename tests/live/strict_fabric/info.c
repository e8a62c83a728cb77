/* The provider's properties and requirements: fi_getinfo and its like. */
#include "strict_fabric.h"

static int wants(const char* what) {
  const char* list = getenv("STRICT_FABRIC");
  return list && strstr(list, what) != NULL;
}

static struct fi_info* new_info(void) {
  struct fi_info* info = calloc(1, sizeof *info);
  info->tx_attr = calloc(1, sizeof *info->tx_attr);
  info->rx_attr = calloc(1, sizeof *info->rx_attr);
  info->ep_attr = calloc(1, sizeof *info->ep_attr);
  info->domain_attr = calloc(1, sizeof *info->domain_attr);
  info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
  return info;
}

static char* copy_of(const char* text) { return text ? strdup(text) : NULL; }

struct fi_info* dup_info(const struct fi_info* from) {
  struct fi_info* info = new_info();
  if (!from) return info;
  struct fi_info parts = *info;
  *info = *from;
  info->tx_attr = parts.tx_attr;
  info->rx_attr = parts.rx_attr;
  info->ep_attr = parts.ep_attr;
  info->domain_attr = parts.domain_attr;
  info->fabric_attr = parts.fabric_attr;
  *info->tx_attr = *from->tx_attr;
  *info->rx_attr = *from->rx_attr;
  *info->ep_attr = *from->ep_attr;
  *info->domain_attr = *from->domain_attr;
  *info->fabric_attr = *from->fabric_attr;
  info->domain_attr->name = copy_of(from->domain_attr->name);
  info->fabric_attr->name = copy_of(from->fabric_attr->name);
  info->fabric_attr->prov_name = copy_of(from->fabric_attr->prov_name);
  info->next = NULL;
  return info;
}

void free_info(struct fi_info* info) {
  while (info) {
    struct fi_info* next = info->next;
    free(info->domain_attr->name);
    free(info->fabric_attr->name);
    free(info->fabric_attr->prov_name);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info);
    info = next;
  }
}

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags, const struct fi_info* hints,
             struct fi_info** out) {
  (void)version, (void)node, (void)service, (void)flags;
  all.mode = (wants("local") ? FI_MR_LOCAL : 0) | (wants("virtual") ? FI_MR_VIRT_ADDR : 0) |
             (wants("provkey") ? FI_MR_PROV_KEY : 0) | (wants("endpoint") ? FI_MR_ENDPOINT : 0);
  all.noreads = wants("noreads");
  all.nofd = wants("nofd");
  RULE(hints->ep_attr->type == FI_EP_RDM, "only reliable endpoints are here");
  RULE((hints->domain_attr->mr_mode & all.mode) == all.mode, "the caller lacks a mode of registration");
  RULE((hints->mode & FI_CONTEXT2) != 0, "contexts are the provider's");
  RULE((hints->tx_attr->msg_order & FI_ORDER_SAS) != 0, "order is only kept where it is asked for");
  *out = NULL;
  const char* named = hints->fabric_attr->prov_name;
  if ((named && strcmp(named, "strict")) || (all.noreads && (hints->caps & FI_RMA))) return -FI_ENODATA;
  struct fi_info* info = new_info();
  info->caps = hints->caps;
  info->mode = FI_CONTEXT2;
  info->addr_format = FI_ADDR_STR;
  info->tx_attr->size = SENDS;
  info->rx_attr->size = RECEIVES;
  info->ep_attr->type = FI_EP_RDM;
  info->ep_attr->max_msg_size = MESSAGE;
  info->domain_attr->name = strdup("strict0");
  info->domain_attr->mr_mode = all.mode;
  info->domain_attr->mr_key_size = 4;
  info->domain_attr->av_type = FI_AV_TABLE;
  info->fabric_attr->name = strdup("strict");
  info->fabric_attr->prov_name = strdup("strict");
  *out = info;
  return 0;
}

const char* error_text(int error) { return strerror(error); }
uint32_t version(void) { return FI_VERSION(1, 99); }

__asm__(".symver get_info, fi_getinfo@@FABRIC_1.3");
__asm__(".symver free_info, fi_freeinfo@@FABRIC_1.3");
__asm__(".symver dup_info, fi_dupinfo@@FABRIC_1.3");
__asm__(".symver error_text, fi_strerror@@FABRIC_1.0");
__asm__(".symver version, fi_version@@FABRIC_1.0");
