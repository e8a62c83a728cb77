#include "ethernet/host/desk.hpp"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace spinloom::host {
namespace {

// Sends an answer, with the descriptors of a place if it has one. A program that does not read loses it.
void send_answer(int socket, const Answer& answer, const Place& place) {
  Answer copy = answer;
  iovec bytes{&copy, sizeof copy};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  if (place.nic_memory >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(2 * sizeof(int));
    const int descriptors[] = {place.nic_memory, place.host_memory};
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  }
  (void)sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

Result<std::unique_ptr<Desk>> Desk::open(const std::string& nic, Office& office) {
  std::unique_ptr<Desk> desk(new Desk(office));
  SPL_ASSIGN(const std::string path, desk_path(nic, true));
  SPL_ASSIGN(desk->listener_, Listener::open(path, sizeof(Request)));
  return desk;
}

void Desk::serve() {
  std::erase_if(leaving_, [this](uint32_t context) { return office_.remove(context).ok(); });
  listener_->serve(*this);
}

void Desk::hear(int program, std::span<const uint8_t> record) {
  Place place;
  const auto request = read_request(record);
  const Answer said = request ? answer(program, *request, place) : refusal(request.error());
  send_answer(program, said, place);
}

void Desk::left(int program) {
  for (auto owner = owners_.begin(); owner != owners_.end();) {
    const uint32_t context = owner->first;
    const bool its = owner->second == program;
    owner = its ? owners_.erase(owner) : std::next(owner);
    if (its) close(context);
  }
}

void Desk::close(uint32_t context) {
  if (!office_.remove(context)) leaving_.push_back(context);
}

Answer Desk::answer(int program, const Request& request, Place& place) {
  Answer said;
  const uint32_t context = request.context;
  const auto tell = [&said](const Status& status) {
    if (!status) said = refusal(status.error());
    return said;
  };
  if (request.ask == Ask::counts) {
    said.counts = office_.counts();
    return said;
  }
  if (request.ask == Ask::install) {
    const auto made = office_.install(request);
    if (!made) return refusal(made.error());
    place = *made;
    owners_[place.context] = program;
    said.context = place.context;
    said.nic_bytes = place.nic_bytes;
    said.state_offset = place.state_offset;
    said.constants_offset = place.constants_offset;
    said.host_bytes = place.host_bytes;
    return said;
  }
  const auto owner = owners_.find(context);
  if (owner == owners_.end() || owner->second != program) {
    return refusal(fail(Code::invalid, "context ", context, " is not this program's"));
  }
  switch (request.ask) {
    case Ask::activate: {
      const auto rules = rule_set_of(request.rules);
      return rules ? tell(office_.activate(context, *rules)) : refusal(rules.error());
    }
    case Ask::deactivate: return tell(office_.deactivate(context));
    case Ask::invoke: return tell(office_.invoke(context, request.message));
    case Ask::frames_read: office_.frames_read(context, request.message); return said;
    default: break;
  }
  owners_.erase(owner);
  close(context);
  return said;
}

}  // namespace spinloom::host
