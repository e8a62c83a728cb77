#include "ethernet/port/veth_peer.hpp"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "ethernet/port/descriptor.hpp"

namespace spinloom::port {

namespace {

// The attributes in a part of a message, by their type.
std::map<int, std::string_view> attributes_of(std::string_view bytes) {
  std::map<int, std::string_view> out;
  while (bytes.size() >= sizeof(rtattr)) {
    rtattr head{};
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (head.rta_len < sizeof(head) || head.rta_len > bytes.size()) break;
    out[head.rta_type & NLA_TYPE_MASK] = bytes.substr(sizeof(head), head.rta_len - sizeof(head));
    bytes.remove_prefix(std::min<size_t>(RTA_ALIGN(head.rta_len), bytes.size()));
  }
  return out;
}

}  // namespace

std::string veth_peer(int index) {
  struct {
    nlmsghdr head;
    ifinfomsg about;
  } request{};
  request.head.nlmsg_len = sizeof(request);
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.about.ifi_family = AF_UNSPEC;
  request.about.ifi_index = index;
  const Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  std::array<char, 16384> answer{};
  if (send(socket.number(), &request, sizeof(request), 0) != sizeof(request)) return "";
  const ssize_t length = recv(socket.number(), answer.data(), answer.size(), 0);
  nlmsghdr head{};
  constexpr size_t header_bytes = sizeof(nlmsghdr) + sizeof(ifinfomsg);
  if (length < static_cast<ssize_t>(header_bytes)) return "";
  std::memcpy(&head, answer.data(), sizeof(head));
  if (head.nlmsg_type != RTM_NEWLINK) return "";
  auto attributes = attributes_of({answer.data() + header_bytes, static_cast<size_t>(length) - header_bytes});
  auto kind = attributes_of(attributes[IFLA_LINKINFO])[IFLA_INFO_KIND];
  if (kind.substr(0, kind.find('\0')) != "veth") return "";
  if (attributes.contains(IFLA_LINK_NETNSID) || attributes[IFLA_LINK].size() != sizeof(uint32_t)) return "";
  uint32_t peer = 0;
  std::memcpy(&peer, attributes[IFLA_LINK].data(), sizeof(peer));
  std::array<char, IF_NAMESIZE> name{};
  return if_indextoname(peer, name.data()) == nullptr ? "" : name.data();
}

}  // namespace spinloom::port
