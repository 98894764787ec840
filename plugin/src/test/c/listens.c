/*
 * Preloaded into a process, writes each socket that it listens at into the file LISTENERS names: the
 * process, the family and the address. However short a time it listens, it is seen.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void note(int fd) {
  const char *file = getenv("LISTENERS");
  int out = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) {
    return;
  }
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage storage;
  } at = {0};
  socklen_t length = sizeof at;
  char text[256];
  char host[INET6_ADDRSTRLEN] = "?";
  getsockname(fd, &at.any, &length);
  if (at.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &at.in.sin_addr, host, sizeof host);
    snprintf(text, sizeof text, "%d tcp %s %d\n", getpid(), host, ntohs(at.in.sin_port));
  } else if (at.any.sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &at.in6.sin6_addr, host, sizeof host);
    snprintf(text, sizeof text, "%d tcp %s %d\n", getpid(), host, ntohs(at.in6.sin6_port));
  } else if (at.any.sa_family == AF_UNIX) {
    int bytes = (int)length - (int)offsetof(struct sockaddr_un, sun_path);
    int named = bytes > 0 && at.un.sun_path[0] != 0;
    snprintf(text, sizeof text, "%d unix %s%.*s\n", getpid(), named ? "" : "@",
             named           ? bytes
             : bytes - 1 > 0 ? bytes - 1
                             : 0,
             at.un.sun_path + (named ? 0 : 1));
  } else {
    snprintf(text, sizeof text, "%d family %d\n", getpid(), at.any.sa_family);
  }
  if (write(out, text, strlen(text)) < 0) {
    abort();
  }
  close(out);
}

int listen(int fd, int backlog) {
  int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
  int result = next(fd, backlog);
  int failure = errno;
  if (result == 0) {
    note(fd);
  }
  errno = failure;
  return result;
}
