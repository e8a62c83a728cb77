#include "live/process/info.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "base/shared_heap.hpp"
#include "live/process/copy_check.hpp"

namespace spinloom::process {
namespace {

int mtu_of(const char* interface) {
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return 0;
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  const int mtu = ioctl(file, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
  close(file);
  return mtu;
}

// One row for each IPv4 address of this machine.
std::vector<Row> address_rows() {
  std::vector<Row> rows;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return rows;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    char address[INET_ADDRSTRLEN] = "";
    const auto* const here = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    inet_ntop(AF_INET, &here->sin_addr, address, sizeof address);
    rows.push_back({"address", text(address, " (", one->ifa_name, "), MTU ", mtu_of(one->ifa_name), " B")});
  }
  freeifaddrs(list);
  return rows;
}

std::string udp_used(uint32_t address) {
  const auto port = live::open_udp(address);
  if (!port) return port.error().message;
  std::string bound = print((*port)->address());
  bound.resize(bound.rfind(':'));
  return text("bound to ", bound, ", datagrams of up to ", (*port)->datagram_bytes(), " B");
}

// Lists the addresses on all networks.
std::string udp_used(const Settings& settings) {
  if (settings.udp_networks.empty()) return udp_used(settings.udp_address);
  std::string all;
  for (const live::UdpNetwork& one : settings.udp_networks) all += text(all.empty() ? "" : "; ", udp_used(one.address));
  return all;
}

std::string gateway_of(const Settings& settings) {
  if (settings.gateway == live::Gateway::no) return "this rank does not forward";
  const char* const how = settings.gateway_stores ? "whole messages, or half a window of them" : "pieces as they come";
  return text("this rank forwards between ranks that do not reach each other: ", how);
}

// Returns the providers that libfabric offers, as "PROVIDER (DOMAIN, DOMAIN), ...".
std::string fabrics_offered(const Settings& settings) {
  const auto offered = live::list_fabrics(settings.libfabric);
  if (!offered) return offered.error().message;
  std::string list, last;
  for (const live::FabricList::Entry& one : offered->entries) {
    if (one.provider != last) list += text(list.empty() ? "" : "), ", one.provider, " (", one.domain);
    if (one.provider == last) list += text(", ", one.domain);
    last = one.provider;
  }
  return text(offered->library, ": ", list.empty() ? "nothing that we can use" : list + ")");
}

// Says how packets travel between machines, and why.
std::string between_machines(const Settings& settings) {
  if (settings.transport == TransportChoice::shm) return "not at all: SPINLOOM_TRANSPORT=shm";
  if (settings.transport == TransportChoice::udp) return "by UDP: SPINLOOM_TRANSPORT=udp";
  if (settings.fabric.kind == live::FabricWish::Kind::none) return "by UDP: SPINLOOM_FABRIC=none";
  const auto port = live::open_udp(settings.udp_address);
  const auto fabric = live::open_fabric(settings.fabric, {port ? (*port)->address().address : 0, settings.libfabric});
  if (!fabric) return text("by UDP: ", fabric.error().message);
  const bool named = settings.fabric.kind == live::FabricWish::Kind::named;
  return text("by ", (*fabric)->describe(), ": ", named ? "SPINLOOM_FABRIC" : "the cheapest that opens here",
              "; by UDP to ranks that cannot do the same");
}

std::string handlers_of(const Settings& settings) {
  std::string folders;
  for (const std::string& folder : settings.handler_folders) folders += folder + ":";
  const char* const kind =
      settings.handlers == HandlerKind::native ? "native (NAME.so) first" : "in the sandbox (NAME.elf) first";
  return text(kind, ", on ", settings.hpus, " threads; images in ", folders, "the library's own folder");
}

std::string long_messages(live::CopyMode copy) {
  if (copy == live::CopyMode::twice) return "two copies: SPINLOOM_COPY=two-copy";
  if (copy == live::CopyMode::heap) return "two copies: SPINLOOM_COPY=heap";
  return explain(check_copies());
}

std::string from_heap(live::CopyMode copy) {
  if (copy == live::CopyMode::twice || copy == live::CopyMode::single) return "as all others: SPINLOOM_COPY";
  SharedHeap& heap = process_heap();
  if (heap.open() != 0) return text("there is no heap: ", std::strerror(heap.open()));
  const char* const served = process_heap_is_malloc()
                                 ? "malloc has large blocks from it"
                                 : "by PtlSpinHeapAlloc, or malloc with LD_PRELOAD=libspinloom-heap.so";
  return text("one copy: a receiver maps its sender's heap (", heap.location().bytes >> 30, " GiB of addresses; ",
              served, ")");
}

std::string between_threads(live::CopyMode copy) {
  if (copy == live::CopyMode::twice) return "two copies: SPINLOOM_COPY=two-copy";
  const char* const which = copy == live::CopyMode::heap ? " (heap only: SPINLOOM_COPY)" : "";
  return text("one copy, in place", which, ", between ranks of one process: spinloom-threads -n COUNT PROGRAM");
}

}  // namespace

std::vector<Row> machine_rows(const Settings& settings) {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  std::vector<Row> rows{{"machine", text(name, ", ", std::thread::hardware_concurrency(), " processors")}};
  rows.push_back({"long messages here", long_messages(settings.copy)});
  rows.push_back({"those from a heap", from_heap(settings.copy)});
  rows.push_back({"those between threads", between_threads(settings.copy)});
  for (Row& row : address_rows()) rows.push_back(std::move(row));
  rows.push_back(
      {"UDP", settings.transport == TransportChoice::shm ? "not used: SPINLOOM_TRANSPORT=shm" : udp_used(settings)});
  rows.push_back({"fabrics", fabrics_offered(settings)});
  rows.push_back({"between machines", between_machines(settings)});
  rows.push_back({"bridge", gateway_of(settings)});
  rows.push_back({"handlers", handlers_of(settings)});
  return rows;
}

std::vector<Row> limit_rows(const ptl_ni_limits_t& limits) {
  return {{"max_entries", text(limits.max_entries)},
          {"max_unexpected_headers", text(limits.max_unexpected_headers)},
          {"max_mds", text(limits.max_mds)},
          {"max_cts", text(limits.max_cts)},
          {"max_eqs", text(limits.max_eqs)},
          {"max_pt_index", text(limits.max_pt_index)},
          {"max_iovecs", text(limits.max_iovecs)},
          {"max_list_size", text(limits.max_list_size)},
          {"max_triggered_ops", text(limits.max_triggered_ops)},
          {"max_msg_size", text(limits.max_msg_size)},
          {"max_atomic_size", text(limits.max_atomic_size)},
          {"max_fetch_atomic_size", text(limits.max_fetch_atomic_size)},
          {"max_waw_ordered_size", text(limits.max_waw_ordered_size)},
          {"max_war_ordered_size", text(limits.max_war_ordered_size)},
          {"max_volatile_size", text(limits.max_volatile_size)},
          {"features", text(limits.features)}};
}

std::vector<Row> variable_rows() {
  std::vector<Row> rows;
  for (const Variable& variable : variables()) {
    const char* const set = std::getenv(variable.name);
    rows.push_back({variable.name, text(set != nullptr ? text("= ", set) : std::string("not set"), "; ",
                                        variable.meaning, " (", variable.values, ")")});
  }
  return rows;
}

std::string ranges(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    out += text(out.empty() ? "" : ", ", numbers[i]);
    if (end > i) out += text("-", numbers[end]);
    i = end + 1;
  }
  return out;
}

std::vector<Row> reach_rows(LiveProcess& process) {
  std::map<std::string, std::vector<uint32_t>> ways;
  for (uint32_t peer = 0; peer < process.size(); ++peer) ways[process.describe(peer)].push_back(peer);
  std::vector<Row> rows;
  for (const auto& [way, peers] : ways) rows.push_back({ranges(peers), way});
  return rows;
}

std::string table(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string out;
  for (const Row& row : rows) out += text(row.name, std::string(width + 2 - row.name.size(), ' '), row.value, "\n");
  return out;
}

}  // namespace spinloom::process
