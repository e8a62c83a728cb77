/* PsPIN's and FPsPIN's names for what handlers and host programs both see: the headers of a packet, and a request to
 * the host. Frames have them in network order; with SPL_PSPIN_PACKETS packets are those of PsPIN's test bench
 * (pspin_compat.h).
 */
#ifndef SPINLOOM_PSPIN_HEADERS_H
#define SPINLOOM_PSPIN_HEADERS_H

#include <stdint.h>

typedef struct mac_addr {
  uint8_t data[6];
} __attribute__((packed)) mac_addr_t;
typedef struct eth_hdr {
  mac_addr_t dest;
  mac_addr_t src;
  uint16_t length; /* the type, of the frames that are IP's */
} __attribute__((packed)) eth_hdr_t;
typedef struct ip_hdr {
#if defined(SPL_PSPIN_PACKETS)
  uint8_t version : 4;
  uint8_t ihl : 4;
#else
  uint8_t ihl : 4;
  uint8_t version : 4;
#endif
  uint8_t tos;
  uint16_t length;
  uint16_t identification;
  uint16_t offset;
  uint8_t ttl;
  uint8_t protocol;
  uint16_t checksum;
  uint32_t source_id;
  uint32_t dest_id;
} __attribute__((packed)) ip_hdr_t;
typedef struct udp_hdr {
  uint16_t src_port;
  uint16_t dst_port;
  uint16_t length;
  uint16_t checksum;
} __attribute__((packed)) udp_hdr_t;
typedef struct slmp_hdr {
  uint16_t flags;
  uint32_t msg_id;
  uint32_t pkt_off;
} __attribute__((packed)) slmp_hdr_t;
typedef struct pkt_hdr {
#if !defined(SPL_PSPIN_PACKETS)
  eth_hdr_t eth_hdr;
#endif
  ip_hdr_t ip_hdr;
  udp_hdr_t udp_hdr;
} __attribute__((packed)) pkt_hdr_t;
typedef struct slmp_pkt_hdr {
  eth_hdr_t eth_hdr;
  ip_hdr_t ip_hdr;
  udp_hdr_t udp_hdr;
  slmp_hdr_t slmp_hdr;
} __attribute__((packed)) slmp_pkt_hdr_t;

#define MKEOM SPL_SLMP_EOM
#define MKSYN SPL_SLMP_SYN
#define MKACK SPL_SLMP_ACK
#define EOM(flags) ((flags) & MKEOM)
#define SYN(flags) ((flags) & MKSYN)
#define ACK(flags) ((flags) & MKACK)

/* A request or its answer, as SPL_HOST_FLAG. */
typedef struct {
  union {
    struct {
      uint8_t dma_id;
      uint32_t len;
      uint16_t hpu_id;
    } __attribute__((packed));
    uint64_t data;
  };
} fpspin_flag_t;

#endif
