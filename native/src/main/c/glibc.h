/*
 * Which versions of the C library's functions are wanted, so that a library built where glibc is
 * new loads where it is old. Each function that a newer glibc gave a new version is bound to its
 * first one here, or called by its number. build.sh checks what comes of it.
 */
#ifndef ZEROHOP_GLIBC_H
#define ZEROHOP_GLIBC_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In libdl until glibc 2.34, and in libc from then on, which knows their old versions as well. */
#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dlclose,dlclose@GLIBC_2.17");
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "say here how the kernel's struct stat differs from the C library's"
#endif

/* fstat is a function since glibc 2.33. The kernel's struct stat is the same on these machines. */
static inline int zh_fstat(int fd, struct stat *status) {
  return (int)syscall(SYS_fstat, fd, status);
}

/* lstat is a function since glibc 2.33. */
static inline int zh_lstat(const char *path, struct stat *status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

/* glibc has it since 2.27. */
static inline int zh_memfd_create(const char *name, unsigned flags) {
  return (int)syscall(SYS_memfd_create, name, flags);
}

#endif
