#include "ethernet/host/desk.hpp"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace spinloom::host {
namespace {

// Sends an answer, with the descriptors of a place if it has one. A program that does not read loses it.
void send_answer(int socket, const Answer& answer, const InstalledContext& installed) {
  Answer copy = answer;
  iovec bytes{&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  if (installed.nic_memory >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const int descriptors[] = {installed.nic_memory, installed.host_memory};
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  }
  (void)sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<std::unique_ptr<Desk>> Desk::open(const std::string& nic, NicServices& nic_services) {
  std::unique_ptr<Desk> desk(new Desk(nic_services));
  SPL_ASSIGN(const std::string path, desk_path(nic, true));
  SPL_ASSIGN(desk->listener_, Listener::open(path, sizeof(Request)));
  return desk;
}

void Desk::serve() {
  std::erase_if(contexts_to_remove_, [this](uint32_t context) { return nic_.remove(context).ok(); });
  listener_->serve(*this);
}

void Desk::on_record(int program, std::span<const uint8_t> record) {
  InstalledContext installed;
  const auto request = read_request(record);
  const Answer reply = request ? answer(program, *request, installed) : refusal(request.error());
  send_answer(program, reply, installed);
}

void Desk::on_disconnect(int program) {
  for (auto owner = owners_.begin(); owner != owners_.end();) {
    const uint32_t context = owner->first;
    const bool is_its = owner->second == program;
    owner = is_its ? owners_.erase(owner) : std::next(owner);
    if (is_its) close(context);
  }
}

void Desk::close(uint32_t context) {
  if (!nic_.remove(context)) contexts_to_remove_.push_back(context);
}

Answer Desk::answer(int program, const Request& request, InstalledContext& installed) {
  Answer reply;
  const uint32_t context = request.context;
  const auto tell = [&reply](const Status& status) {
    if (!status) reply = refusal(status.error());
    return reply;
  };
  if (request.kind == RequestKind::counts) {
    reply.counts = nic_.counts();
    return reply;
  }
  if (request.kind == RequestKind::install) {
    const auto result = nic_.install(request);
    if (!result) return refusal(result.error());
    installed = *result;
    owners_[installed.context] = program;
    reply.context = installed.context;
    reply.nic_bytes = installed.nic_bytes;
    reply.state_offset = installed.state_offset;
    reply.constants_offset = installed.constants_offset;
    reply.host_bytes = installed.host_bytes;
    return reply;
  }
  const auto owner = owners_.find(context);
  if (owner == owners_.end() || owner->second != program) {
    return refusal(fail(Code::invalid, "context ", context, " is not this program's"));
  }
  switch (request.kind) {
    case RequestKind::activate: {
      const auto rules = rule_set_of(request.rules);
      return rules ? tell(nic_.activate(context, *rules)) : refusal(rules.error());
    }
    case RequestKind::deactivate: return tell(nic_.deactivate(context));
    case RequestKind::invoke: return tell(nic_.invoke(context, request.message));
    case RequestKind::frames_read: nic_.frames_read(context, request.message); return reply;
    default: break;
  }
  owners_.erase(owner);
  close(context);
  return reply;
}

}  // namespace spinloom::host
