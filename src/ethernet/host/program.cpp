#include "ethernet/host/program.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/private_folder.hpp"

namespace spinloom::host {
namespace {

Error nic_gone() { return fail(Code::environment, "the NIC has gone: its process has ended, or it does not answer"); }

struct Received {
  Answer answer;
  int nic = -1;
  int host = -1;
};

Result<Received> receive(int socket) {
  pollfd one{socket, POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + Program::answer_time;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int ready = poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) break;
    if (ready == 0 || errno != EINTR) return nic_gone();
  }
  Received received;
  iovec bytes{&received.answer, sizeof received.answer};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (length != sizeof received.answer || received.answer.version != desk_version) return nic_gone();
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
    std::memcpy(&received.nic, CMSG_DATA(header), sizeof(int));
    std::memcpy(&received.host, CMSG_DATA(header) + sizeof(int), sizeof(int));
  }
  return received;
}

// Returns an Error unless the process that listens there belongs to this user; the kernel says whose it is.
Status check_owner(int socket, const std::string& path) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return fail(Code::environment, "who listens at ", path, ": ", std::strerror(errno));
  }
  if (is_this_user(peer.uid)) return {};
  return fail(Code::environment, "the NIC at ", path, " is run by user ", peer.uid, ", not by this one (", geteuid(),
              "): it is not asked");
}

Status send_request(int socket, const Request& request) {
  const ssize_t sent = send(socket, &request, sizeof request, MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(sizeof request) ? Status{} : Status{nic_gone()};
}

Error error_of(const Answer& answer) {
  const Code code = answer.status == SPL_ETH_EXHAUSTED ? Code::exhausted : Code::invalid;
  return Error{code, std::string(answer.sentence.data(), strnlen(answer.sentence.data(), answer.sentence.size()))};
}

}  // namespace

Result<std::unique_ptr<Program>> Program::connect(const std::string& nic, const Request& install) {
  SPL_ASSIGN(const std::string path, desk_path(nic, false));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(Code::invalid, "the name of the NIC is too long: ", nic);
  path.copy(address.sun_path, path.size());
  std::unique_ptr<Program> program(new Program);
  program->socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (program->socket_ < 0) return fail(Code::environment, "a socket: ", std::strerror(errno));
  if (::connect(program->socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(Code::environment, "no NIC of the name ", nic, " runs here (", path, ": ", std::strerror(errno),
                "); start one with `spinloom nic run --name ", nic, "`");
  }
  SPL_TRY(check_owner(program->socket_, path));
  SPL_TRY(send_request(program->socket_, install));
  SPL_ASSIGN(Received received, receive(program->socket_));
  if (received.answer.status != SPL_ETH_OK) return error_of(received.answer);
  program->context_ = static_cast<uint32_t>(received.answer.context);
  SPL_ASSIGN(program->nic_, SharedMemory::map(received.nic, received.answer.nic_bytes));
  SPL_ASSIGN(program->host_, SharedMemory::map(received.host, received.answer.host_bytes));
  program->state_ = program->nic_.bytes().subspan(received.answer.state_offset, install.state_bytes);
  program->constants_ = program->nic_.bytes().subspan(received.answer.constants_offset, install.constants_bytes);
  return program;
}

Program::~Program() {
  if (socket_ >= 0) close(socket_);
}

Result<Answer> Program::ask(Request request) {
  request.context = context_;
  SPL_TRY(send_request(socket_, request));
  SPL_ASSIGN(const Received received, receive(socket_));
  if (received.answer.status != SPL_ETH_OK) return error_of(received.answer);
  return received.answer;
}

}  // namespace spinloom::host
