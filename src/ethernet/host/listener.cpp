#include "ethernet/host/listener.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace spinloom::host {
namespace {

void watch(int poll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const std::string& path, size_t record_bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(Code::invalid, "the path of the NIC's socket is too long: ", path, "; give the NIC a shorter name");
  }
  path.copy(address.sun_path, path.size());
  std::unique_ptr<Listener> listener(new Listener(path, record_bytes));
  SPL_TRY(listener->lock());
  unlink(path.c_str());
  listener->listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  listener->poll_ = epoll_create1(EPOLL_CLOEXEC);
  const mode_t before = umask(0077);
  const bool bound = listener->listener_ >= 0 && listener->poll_ >= 0 &&
                     bind(listener->listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     listen(listener->listener_, 16) == 0;
  const int why = errno;
  umask(before);
  if (!bound) return fail(Code::environment, "the NIC's socket ", path, ": ", std::strerror(why));
  watch(listener->poll_, listener->listener_);
  return listener;
}

// A process that ends deletes its lock file. Whoever had opened it before then locks a file that nobody else can find,
// so it opens the new one.
Status Listener::lock() {
  const std::string file = path_ + ".lock";
  for (;;) {
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_ < 0) {
      return fail(Code::environment, file, ": ", std::strerror(errno),
                  "; sockets lie in the folder that XDG_RUNTIME_DIR names, or in one of this user's in /tmp");
    }
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      return fail(Code::invalid, "another NIC listens at ", path_, ": give this one another name");
    }
    struct stat locked{};
    struct stat on_disk{};
    if (fstat(lock_, &locked) == 0 && stat(file.c_str(), &on_disk) == 0 && locked.st_ino == on_disk.st_ino) return {};
    close(std::exchange(lock_, -1));
  }
}

Listener::~Listener() {
  for (const int client : clients_) close(client);
  if (listener_ >= 0) {
    close(listener_);
    unlink(path_.c_str());
  }
  if (poll_ >= 0) close(poll_);
  if (lock_ < 0) return;
  if (listener_ >= 0) unlink((path_ + ".lock").c_str());  // it is ours
  close(lock_);
}

void Listener::serve(RecordHandler& handler) {
  std::array<epoll_event, 16> events{};
  const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int socket = events[static_cast<size_t>(i)].data.fd;
    if (socket == listener_) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (client < 0) continue;
      clients_.push_back(client);
      watch(poll_, client);
    } else if (!receive_from(socket, handler)) {
      handler.on_disconnect(socket);
      close(socket);
      std::erase(clients_, socket);
    }
  }
}

// Returns true if the client is still there.
bool Listener::receive_from(int client, RecordHandler& handler) {
  const ssize_t got = recv(client, record_.data(), record_.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  handler.on_record(client, {record_.data(), static_cast<size_t>(got)});
  return true;
}

}  // namespace spinloom::host
