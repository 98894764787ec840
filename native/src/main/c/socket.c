/* Unix-domain stream sockets that can carry one file descriptor, and waiting on several of them. */
#include "zerohop.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3 */
#endif

#define PIDFS 0x50494446 /* Linux 6.9; before, all pidfds share one inode */

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000
#endif

#define MAX_POLL 4096

static int fill_address(JNIEnv *env, jstring path, struct sockaddr_un *address, socklen_t *length) {
  jsize bytes = (*env)->GetStringUTFLength(env, path);
  if (bytes <= 0 || (size_t)bytes >= sizeof address->sun_path) {
    zh_throw(env, "socket address", ENAMETOOLONG);
    return -1;
  }
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  (*env)->GetStringUTFRegion(env, path, 0, (*env)->GetStringLength(env, path), address->sun_path);
  *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)bytes + 1);
  return 0;
}

static int fail(JNIEnv *env, const char *call, int fd) {
  int error = errno;
  if (fd >= 0) {
    (void)close(fd);
  }
  zh_throw(env, call, error);
  return -1;
}

/* A socket, and the address of a path for it; -1, with an exception, if there is none. */
static int open_socket(JNIEnv *env, jstring path, struct sockaddr_un *address, socklen_t *length) {
  if (fill_address(env, path, address, length) != 0) {
    return -1;
  }
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return fd < 0 ? fail(env, "socket", -1) : fd;
}

ZH_JNI(jint, Sockets, listenAt)(JNIEnv *env, jclass type, jstring path, jint backlog) {
  (void)type;
  struct sockaddr_un address;
  socklen_t length;
  int fd = open_socket(env, path, &address, &length);
  if (fd < 0) {
    return -1;
  }
  if (bind(fd, (struct sockaddr *)&address, length) != 0) {
    return fail(env, "bind", fd);
  }
  if (listen(fd, backlog) != 0) {
    int error = errno;
    (void)unlink(address.sun_path);
    errno = error;
    return fail(env, "listen", fd);
  }
  return fd;
}

ZH_JNI(jint, Sockets, connectTo)(JNIEnv *env, jclass type, jstring path) {
  (void)type;
  struct sockaddr_un address;
  socklen_t length;
  int fd = open_socket(env, path, &address, &length);
  if (fd < 0) {
    return -1;
  }
  if (connect(fd, (struct sockaddr *)&address, length) != 0) {
    return fail(env, "connect", fd);
  }
  return fd;
}

/* A new connection, or -1 when none is waiting. */
ZH_JNI(jint, Sockets, accept)(JNIEnv *env, jclass type, jint listener) {
  (void)type;
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    zh_throw(env, "accept4", errno);
  }
  return fd;
}

/* (uid << 32) | pid of the process that opened the other end. */
ZH_JNI(jlong, Sockets, peer)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    zh_throw(env, "getsockopt(SO_PEERCRED)", errno);
    return -1;
  }
  return (jlong)(((uint64_t)(uint32_t)peer.uid << 32) | (uint32_t)peer.pid);
}

/* Closes a pidfd and returns its inode; 0 if the kernel gives it none of its own. */
static jlong take_inode(int pidfd) {
  struct statfs system;
  struct stat status;
  int known =
      fstatfs(pidfd, &system) == 0 && system.f_type == PIDFS && zh_fstat(pidfd, &status) == 0;
  (void)close(pidfd);
  return known ? (jlong)status.st_ino : 0;
}

ZH_JNI(jlong, Sockets, ownProcess)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
  return pidfd < 0 ? 0 : take_inode(pidfd);
}

/* Throws where a lack of descriptors hides who it is. */
ZH_JNI(jlong, Sockets, peerProcess)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      zh_throw(env, "getsockopt(SO_PEERPIDFD)", errno);
    }
    return 0;
  }
  return take_inode(pidfd);
}

ZH_JNI(void, Sockets, shutdown)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  if (shutdown(fd, SHUT_RDWR) != 0 && errno != ENOTCONN) {
    zh_throw(env, "shutdown", errno);
  }
}

#define MAX_MESSAGE 4096

/* Whether the range lies within the array; throws if not. Checked before any byte moves. */
static int in_range(JNIEnv *env, jbyteArray data, jint offset, jint count, const char *call) {
  jsize length = (*env)->GetArrayLength(env, data);
  if (offset < 0 || count < 0 || offset > length || count > length - offset) {
    zh_throw(env, call, EINVAL);
    return 0;
  }
  return 1;
}

union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

/* Sends what fits now; -1 when nothing does. The descriptor, if not negative, goes with byte 0. */
ZH_JNI(jint, Sockets, send)
(JNIEnv *env, jclass type, jint fd, jbyteArray data, jint offset, jint count, jint passed) {
  (void)type;
  char buffer[MAX_MESSAGE];
  if (!in_range(env, data, offset, count, "sendmsg")) {
    return -1;
  }
  if (count > MAX_MESSAGE) {
    count = MAX_MESSAGE;
  }
  (*env)->GetByteArrayRegion(env, data, offset, count, (jbyte *)buffer);
  if ((*env)->ExceptionCheck(env)) {
    return -1;
  }
  struct iovec part = {.iov_base = buffer, .iov_len = (size_t)count};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  union control control;
  memset(&control, 0, sizeof control);
  if (passed >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
  }
  ssize_t sent;
  do {
    sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN) {
    zh_throw(env, "sendmsg", errno);
  }
  return (jint)sent;
}

/*
 * Takes what came with a message: one descriptor, -1 for none, -2 (and all closed) for more, -3 if
 * one came that the kernel could not give to this process, since it has as many as it may.
 */
static int take_descriptor(struct msghdr *message) {
  int taken = -1;
  int extra = 0;
  int cut = (message->msg_flags & MSG_CTRUNC) != 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      if (taken == -1) {
        taken = fd;
      } else {
        (void)close(fd);
        extra = 1;
      }
    }
  }
  if (extra || (cut && taken >= 0)) {
    if (taken >= 0) {
      (void)close(taken);
    }
    return -2;
  }
  return cut ? -3 : taken;
}

/*
 * Receives what is there: its length, 0 at the end of the stream, -1 when nothing is there now.
 * With `descriptor` null no descriptor is accepted: the kernel drops those a peer sends.
 */
ZH_JNI(jint, Sockets, receive)
(JNIEnv *env, jclass type, jint fd, jbyteArray data, jint offset, jint count,
 jintArray descriptor) {
  (void)type;
  char buffer[MAX_MESSAGE];
  if (!in_range(env, data, offset, count, "recvmsg")) {
    return -1;
  }
  struct iovec part = {.iov_base = buffer,
                       .iov_len = (size_t)(count > MAX_MESSAGE ? MAX_MESSAGE : count)};
  union control control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor != NULL) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
  }
  ssize_t received;
  do {
    received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (received < 0 && errno == EINTR);
  if (received < 0) {
    if (errno == ECONNRESET) {
      return 0;
    }
    if (errno != EAGAIN) {
      zh_throw(env, "recvmsg", errno);
    }
    return -1;
  }
  jint passed = descriptor == NULL ? -1 : take_descriptor(&message);
  if (received > 0) {
    (*env)->SetByteArrayRegion(env, data, offset, (jsize)received, (const jbyte *)buffer);
  }
  if (descriptor != NULL) {
    (*env)->SetIntArrayRegion(env, descriptor, 0, 1, &passed);
  }
  if ((*env)->ExceptionCheck(env) && passed >= 0) {
    (void)close(passed);
  }
  return (jint)received;
}

/* events and the results: bit 0 readable, bit 1 writable, bit 2 the peer is gone (always told). */
ZH_JNI(jint, Sockets, poll)
(JNIEnv *env, jclass type, jintArray fds, jintArray events, jint count, jint millis) {
  (void)type;
  if (count < 0 || count > MAX_POLL || count > (*env)->GetArrayLength(env, fds) ||
      count > (*env)->GetArrayLength(env, events)) {
    zh_throw(env, "poll", EINVAL);
    return -1;
  }
  struct pollfd entries[MAX_POLL];
  jint values[MAX_POLL];
  (*env)->GetIntArrayRegion(env, fds, 0, count, values);
  for (jint i = 0; i < count && !(*env)->ExceptionCheck(env); i++) {
    entries[i].fd = values[i];
  }
  (*env)->GetIntArrayRegion(env, events, 0, count, values);
  if ((*env)->ExceptionCheck(env)) {
    return -1;
  }
  for (jint i = 0; i < count; i++) {
    entries[i].events = (short)(((values[i] & 1) ? POLLIN : 0) | ((values[i] & 2) ? POLLOUT : 0) |
                                ((values[i] & 4) ? POLLRDHUP : 0));
    entries[i].revents = 0;
  }
  int ready = poll(entries, (nfds_t)count, millis);
  if (ready < 0) {
    if (errno != EINTR) {
      zh_throw(env, "poll", errno);
      return -1;
    }
    ready = 0;
    for (jint i = 0; i < count; i++) {
      entries[i].revents = 0;
    }
  }
  for (jint i = 0; i < count; i++) {
    short seen = entries[i].revents;
    values[i] = ((seen & POLLIN) ? 1 : 0) | ((seen & POLLOUT) ? 2 : 0) |
                ((seen & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP)) ? 4 : 0);
  }
  (*env)->SetIntArrayRegion(env, events, 0, count, values);
  return ready;
}

ZH_JNI(jint, Sockets, newWakeup)(JNIEnv *env, jclass type) {
  (void)type;
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) {
    zh_throw(env, "eventfd", errno);
  }
  return fd;
}

ZH_JNI(void, Sockets, wakeup)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  uint64_t one = 1;
  if (write(fd, &one, sizeof one) < 0 && errno != EAGAIN) {
    zh_throw(env, "write(eventfd)", errno);
  }
}

ZH_JNI(void, Sockets, drain)(JNIEnv *env, jclass type, jint fd) {
  (void)type;
  uint64_t count;
  if (read(fd, &count, sizeof count) < 0 && errno != EAGAIN) {
    zh_throw(env, "read(eventfd)", errno);
  }
}
