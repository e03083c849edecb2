/* What of macOS' C library filepact calls, done by Linux: with the arguments, the numbers of flags and the
   errors that macOS has, over whatever file system is there. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The filter of sitecustomize.py lets this one word pass: a program of macOS has no renameat2 of its own. */
#define OURS 0x6d61636f73L
#define NO_ATTRIBUTE 93 /* ENOATTR */

int renameatx_np(int from, const char *old, int to, const char *new, unsigned flags) {
  unsigned ours = flags & 2 ? 2 : flags & 4 ? 1 : 0; /* RENAME_SWAP, RENAME_EXCL */
  if ((flags & ~6u) || flags == 6) {
    errno = EINVAL;
    return -1;
  }
  return syscall(SYS_renameat2, from, old, to, new, ours, OURS);
}

/* An attribute has no prefix there: on this disk all of them are `user.`, and what else is there is not seen. */
static const char *named(const char *name) {
  static _Thread_local char full[512];
  snprintf(full, sizeof full, "user.%s", name);
  return full;
}

static long told(long result) {
  if (result < 0 && errno == ENODATA) errno = NO_ATTRIBUTE;
  return result;
}

ssize_t fgetxattr(int file, const char *name, void *value, size_t size, uint32_t position, int options) {
  if (position || options) return errno = EINVAL, -1;
  return told(syscall(SYS_fgetxattr, file, named(name), value, value ? size : 0));
}

int fsetxattr(int file, const char *name, const void *value, size_t size, uint32_t position, int options) {
  if (position || options) return errno = EINVAL, -1;
  return told(syscall(SYS_fsetxattr, file, named(name), value, size, 0));
}

int fremovexattr(int file, const char *name, int options) {
  if (options) return errno = EINVAL, -1;
  return told(syscall(SYS_fremovexattr, file, named(name)));
}

ssize_t flistxattr(int file, char *names, size_t size, int options) {
  static _Thread_local char all[65536];
  ssize_t found = syscall(SYS_flistxattr, file, all, sizeof all), used = 0;
  if (found < 0 || options) return -1;
  for (char *one = all; one < all + found; one += strlen(one) + 1) {
    if (strncmp(one, "user.", 5)) continue;
    size_t length = strlen(one + 5) + 1;
    if (names) {
      if (used + length > size) return errno = ERANGE, -1;
      memcpy(names + used, one + 5, length);
    }
    used += length;
  }
  return used;
}

/* The same by a path; a link itself (XATTR_NOFOLLOW) has none on Linux. */
static int at(const char *path, int options) {
  if (options & ~1) return errno = EINVAL, -1;
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (options ? O_NOFOLLOW : 0));
}

#define BY_PATH(call)                  \
  int file = at(path, options), number; \
  if (file < 0) return -1;             \
  long result = call;                  \
  number = errno, close(file), errno = number; \
  return result

ssize_t getxattr(const char *path, const char *name, void *value, size_t size, uint32_t position, int options) {
  BY_PATH(fgetxattr(file, name, value, size, position, 0));
}

int setxattr(const char *path, const char *name, const void *value, size_t size, uint32_t position, int options) {
  BY_PATH(fsetxattr(file, name, value, size, position, 0));
}

int removexattr(const char *path, const char *name, int options) {
  BY_PATH(fremovexattr(file, name, 0));
}

ssize_t listxattr(const char *path, char *names, size_t size, int options) {
  BY_PATH(flistxattr(file, names, size, 0));
}

/* ATTR_CMN_NAME alone: an entry's name as its folder has it. */
/* ATTR_CMN_CRTIME: the length of all, and a `struct timespec`. */
static int born(int folder, const char *name, char *found, size_t size) {
  struct statx there;
  uint32_t whole = 20;
  if (size < whole) return errno = ERANGE, -1;
  if (syscall(SYS_statx, folder, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &there, OURS)) return -1;
  if (!(there.stx_mask & STATX_BTIME)) return errno = EINVAL, -1;
  int64_t time[2] = {there.stx_btime.tv_sec, there.stx_btime.tv_nsec};
  memcpy(found, &whole, 4);
  memcpy(found + 4, time, 16);
  return 0;
}

int getattrlistat(int folder, const char *name, void *asked, void *found, size_t size, unsigned long options) {
  const uint32_t *attributes = asked;
  struct stat wanted;
  if (attributes[0] == 5 && attributes[1] == 0x200 && options == 1) return born(folder, name, found, size);
  if ((attributes[0] & 0xffff) != 5 || attributes[1] != 1 || options != 1) return errno = EINVAL, -1;
  if (fstatat(folder, name, &wanted, AT_SYMLINK_NOFOLLOW)) return -1;
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = again < 0 ? NULL : fdopendir(again);
  if (!listing) return -1;
  char best[256] = "";
  for (struct dirent *one; (one = readdir(listing));) {
    if (one->d_ino != wanted.st_ino || !strcmp(one->d_name, ".") || !strcmp(one->d_name, "..")) continue;
    snprintf(best, sizeof best, "%s", one->d_name);
    if (!strcmp(best, name)) break;
  }
  closedir(listing);
  uint32_t length = strlen(best) + 1, whole = 12 + length;
  int32_t offset = 8;
  if (!*best || whole > size) return errno = *best ? ERANGE : ENOENT, -1;
  memcpy(found, &whole, 4);
  memcpy((char *)found + 4, &offset, 4);
  memcpy((char *)found + 8, &length, 4);
  memcpy((char *)found + 12, best, length);
  return 0;
}

int fcopyfile(int old, int new, void *state, uint32_t flags) {
  (void)old, (void)new, (void)state;
  return flags == 1 ? 0 : (errno = EINVAL, -1); /* COPYFILE_ACL: this disk has no such lists */
}
