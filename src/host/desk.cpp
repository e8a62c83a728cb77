#include "host/desk.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/shared_memory.hpp"

namespace spinloom::host {
namespace {

void watch(int poll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

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
  const std::string path = desk_path(nic);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Code::invalid, "the path of the NIC's socket is too long: ", path, "; give the NIC a shorter name");
  }
  path.copy(address.sun_path, path.size());
  std::unique_ptr<Desk> desk(new Desk(office, path));
  // The lock says whether a NIC of this name lives; a socket that a killed one left is taken away.
  desk->lock_ = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (desk->lock_ < 0) return fail(Code::environment, path, ".lock: ", std::strerror(errno));
  if (flock(desk->lock_, LOCK_EX | LOCK_NB) != 0) {
    close(std::exchange(desk->lock_, -1));
    return fail(Code::invalid, "a NIC of the name ", nic, " runs already; take another --name");
  }
  unlink(path.c_str());
  desk->listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  desk->poll_ = epoll_create1(EPOLL_CLOEXEC);
  const mode_t before = umask(0077);
  const bool bound = desk->listener_ >= 0 && desk->poll_ >= 0 &&
                     bind(desk->listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     listen(desk->listener_, 16) == 0;
  const int why = errno;
  umask(before);
  if (!bound) return fail(Code::environment, "the NIC's socket ", path, ": ", std::strerror(why));
  watch(desk->poll_, desk->listener_);
  return desk;
}

Desk::~Desk() {
  for (const Visitor& visitor : visitors_) close(visitor.socket);
  if (listener_ >= 0) {
    close(listener_);
    unlink(path_.c_str());
  }
  if (poll_ >= 0) close(poll_);
  if (lock_ >= 0) close(lock_);
}

void Desk::serve() {
  tidy();
  std::array<epoll_event, 16> events{};
  const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<size_t>(i)].data.fd == listener_) {
      admit();
      continue;
    }
    const int socket = events[static_cast<size_t>(i)].data.fd;
    const auto visitor = std::ranges::find(visitors_, socket, &Visitor::socket);
    if (visitor == visitors_.end() || hear(*visitor)) continue;
    farewell(*visitor);
    close(visitor->socket);
    visitors_.erase(visitor);
  }
}

void Desk::admit() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  visitors_.push_back({socket, {}});
  watch(poll_, socket);
}

// Returns whether the program is still there.
bool Desk::hear(Visitor& visitor) {
  std::array<uint8_t, sizeof(Request) + 1> bytes{};
  const ssize_t got = recv(visitor.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  Place place;
  const auto request = read_request({bytes.data(), static_cast<size_t>(got)});
  const Answer said = request ? answer(visitor, *request, place) : refusal(request.error());
  send_answer(visitor.socket, said, place);
  return true;
}

Status Desk::owned(const Visitor& visitor, uint32_t context) const {
  if (std::ranges::find(visitor.contexts, context) != visitor.contexts.end()) return {};
  return fail(Code::invalid, "context ", context, " is not this program's");
}

Answer Desk::answer(Visitor& visitor, const Request& request, Place& place) {
  Answer said;
  const auto tell = [&said](const Status& status) {
    if (!status) said = refusal(status.error());
    return status.ok();
  };
  if (request.ask == Ask::counts) {
    said.counts = office_.counts();
    return said;
  }
  if (request.ask == Ask::install) {
    const auto made = office_.install(request);
    if (!made) return refusal(made.error());
    visitor.contexts.push_back(request.context);
    place = *made;
    said.nic_bytes = place.nic_bytes;
    said.state_offset = place.state_offset;
    said.constants_offset = place.constants_offset;
    said.host_bytes = place.host_bytes;
    return said;
  }
  if (!tell(owned(visitor, request.context))) return said;
  if (request.ask == Ask::activate) {
    const auto rules = rule_set_of(request.rules);
    if (!rules) return refusal(rules.error());
    tell(office_.activate(request.context, *rules));
  } else if (request.ask == Ask::deactivate) {
    tell(office_.deactivate(request.context));
  } else if (request.ask == Ask::invoke) {
    tell(office_.invoke(request.context, request.message));
  } else if (request.ask == Ask::frames_read) {
    office_.frames_read(request.context, request.message);
  } else {
    std::erase(visitor.contexts, request.context);
    if (!office_.remove(request.context)) leaving_.push_back(request.context);
  }
  return said;
}

void Desk::farewell(Visitor& visitor) {
  for (const uint32_t context : visitor.contexts) {
    if (!office_.remove(context)) leaving_.push_back(context);
  }
}

void Desk::tidy() {
  std::erase_if(leaving_, [this](uint32_t context) { return office_.remove(context).ok(); });
}

}  // namespace spinloom::host
