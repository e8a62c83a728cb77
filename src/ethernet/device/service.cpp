// Sockets, rule sets and the requests of programs; service_registers.cpp has the control registers.
#include "ethernet/device/service.hpp"

#include <sys/socket.h>

#include "base/private_folder.hpp"

namespace spinloom::ethernet {
namespace {

registers::Shape shape_of(const frames::Limits& limits) {
  registers::Shape shape;
  shape.rule_sets = limits.matcher.rule_sets;
  shape.rules = limits.matcher.rules + 1;
  shape.contexts = limits.matcher.rule_sets;
  shape.match_words = limits.matcher.inspected_bytes / 4;
  shape.handler_memory_bytes = static_cast<uint32_t>(limits.nic_memory_bytes);
  return shape;
}

constexpr uint64_t host_bytes_max = uint64_t{1} << 32;

}  // namespace

Result<std::unique_ptr<Service>> Service::open(const std::string& nic, Card& card,
                                               std::vector<frames::RuleSet> rule_sets) {
  SPL_ASSIGN(const registers::Map map, registers::Map::make(shape_of(card.nic().limits())));
  std::unique_ptr<Service> service(new Service(card, std::move(rule_sets), map));
  SPL_ASSIGN(service->desk_, host::Desk::open(nic, *service));
  SPL_ASSIGN(const std::string folder, runtime_folder(true));
  const std::string path = registers::control_socket_path(nic, folder);
  SPL_ASSIGN(service->tools_, host::Listener::open(path, registers::request_bytes_max));
  service->show_rules();
  Service* const raw_service = service.get();
  card.watch(service->desk_->descriptor());
  card.watch(service->tools_->descriptor());
  card.set_host_callback([raw_service] { raw_service->serve(); });
  card.set_debug([raw_service](const frames::DebugLine& line) { raw_service->print(line); });
  return service;
}

Service::Service(Card& card, std::vector<frames::RuleSet> rule_sets, const registers::Map& map)
    : card_(card), rule_sets_(std::move(rule_sets)), file_(map, *this) {
  rule_sets_.resize(card.nic().limits().matcher.rule_sets);
  calls_.resize(rule_sets_.size());
}

void Service::serve() {
  if (card_.in_handler()) return;  // requests could start other handlers
  desk_->serve();
  tools_->serve(*this);
}

void Service::on_record(int client, std::span<const uint8_t> record) {
  show_contexts();
  const std::vector<uint8_t> answer = registers::answer(file_, *this, record);
  (void)send(client, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status Service::configure(std::vector<frames::RuleSet> rule_sets) {
  SPL_TRY(card_.configure(rule_sets));
  rule_sets_ = std::move(rule_sets);
  return {};
}

Result<ContextId> Service::context_for(const host::Request& request) const {
  if (request.context != SPL_ETH_ANY_CONTEXT) return ContextId{request.context};
  for (uint32_t number = 0; number < rule_sets_.size(); ++number) {
    if (card_.nic().context(ContextId{number}) == nullptr) return ContextId{number};
  }
  return fail(Code::exhausted, "all ", rule_sets_.size(),
              " contexts of this NIC are taken: end one of its programs, or start "
              "it with fewer handlers");
}

Result<host::InstalledContext> Service::install(const host::Request& request) {
  if (request.host_bytes > host_bytes_max) {
    return fail(Code::exhausted, "host memory of ", request.host_bytes, " B; the NIC shares at most ", host_bytes_max);
  }
  ContextSetup setup;
  setup.image = request.handlers.data();
  setup.state_bytes = request.state_bytes;
  setup.host_bytes = request.host_bytes;
  if (request.constants_bytes > card_.nic().limits().nic_memory_bytes) {
    return fail(Code::exhausted, request.constants_bytes, " B of constants; NIC memory has ",
                card_.nic().limits().nic_memory_bytes, " B");
  }
  setup.constants.resize(request.constants_bytes);
  SPL_ASSIGN(const ContextId id, context_for(request));
  SPL_TRY(card_.install(id, setup));
  const spin::Context& context = *card_.nic().context(id);
  const host::SharedMemory& memory = *card_.shared_host_memory(id);
  return host::InstalledContext{id.value,
                                card_.nic_memory().descriptor(),
                                memory.descriptor(),
                                card_.nic_memory().bytes().size(),
                                context.state.offset,
                                context.constants.offset,
                                memory.bytes().size()};
}

Status Service::activate(uint32_t context, const frames::RuleSet& rules) {
  const ContextId id{context};
  std::vector<frames::RuleSet> sets = rule_sets_;
  sets[context] = rules;
  SPL_TRY(card_.nic().activate(id, false));
  if (card_.nic().context(id)->initialise_entry) SPL_TRY(card_.initialise(id));
  SPL_TRY(configure(std::move(sets)));
  SPL_TRY(card_.activate(id, true));
  show_rules();
  return {};
}

Status Service::deactivate(uint32_t context) {
  SPL_TRY(card_.activate(ContextId{context}, false));
  return {};
}

Status Service::remove(uint32_t context) {
  const ContextId id{context};
  if (card_.nic().context(id) == nullptr) return {};
  SPL_TRY(card_.activate(id, false));
  SPL_TRY(card_.remove(id));
  std::vector<frames::RuleSet> sets = rule_sets_;
  sets[context] = {};
  SPL_TRY(configure(std::move(sets)));
  show_rules();
  return {};
}

Status Service::invoke(uint32_t context, uint32_t message) { return card_.invoke(ContextId{context}, message); }

void Service::frames_read(uint32_t context, uint32_t entries) { card_.nic().on_host_read(ContextId{context}, entries); }

}  // namespace spinloom::ethernet
