/* PsPIN's names for the headers of a packet; FPsPIN's with the Ethernet header, in network order (pspin_compat.h). */
#ifndef SPINLOOM_PSPIN_PACKETS_H
#define SPINLOOM_PSPIN_PACKETS_H

#include <string.h>

#include "spinloom/frame.h"
#include "spinloom/pspin/headers.h"

#define bswap_16(value) spl_net16(value)
#define bswap_32(value) spl_net32(value)
#define htons(value) spl_net16(value)
#define ntohs(value) spl_net16(value)
#define htonl(value) spl_net32(value)
#define ntohl(value) spl_net32(value)

#define SLMP_PAYLOAD_LEN(hdrs) (ntohs((hdrs)->udp_hdr.length) - sizeof(udp_hdr_t) - sizeof(slmp_hdr_t))

static inline uint16_t ip_checksum(const void *bytes, size_t length) {
  return spl_checksum(spl_checksum_add(0xffffu, bytes, (uint32_t)length)); /* all zeros: 0, not 0xffff */
}

#endif
