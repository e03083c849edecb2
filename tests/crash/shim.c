/* Before the C library: counts calls that change something below a folder, and spoils some.
 *
 * It also tells how long one file was when it was synchronised last (`watch`, `synced`).
 *
 * `spoil` is called by the process itself: below which folder, from the how-manieth call on (0: only
 * count), with which error (0: none), whether each later one as well, and how.  `spoiled` tells how
 * many calls were counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum how { COUNT, FAIL, KILL, SHORT };

static char below[4096];
static size_t length;
static long from, counted;
static int number, sticky;
static enum how mode;

void spoil(const char *folder, long at, int error, int each, int how)
{
    snprintf(below, sizeof below, "%s", folder);
    length = strlen(below);
    counted = 0, from = at, number = error, sticky = each, mode = how;
}

long spoiled(void) { return counted; }

/* One file whose length is told as it was when it was synchronised last. */
static char watched[4096];
static long durable;

void watch(const char *file) { snprintf(watched, sizeof watched, "%s", file); }

long synced(void) { return durable; }

/* Whether this call fails; 2: it does only half of its work. */
static int hit(void)
{
    long now = __sync_add_and_fetch(&counted, 1);
    if (from == 0 || now < from || (now > from && !sticky)) return 0;
    if (mode == KILL) {
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    if (mode == FAIL) {
        errno = number;
        return 1;
    }
    return mode == SHORT ? 2 : 0;
}

static int open_below(int descriptor)
{
    char name[64], path[4200];
    if (!length) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return !strncmp(path, below, length);
}

static void note_synced(int descriptor)
{
    char name[64], path[4200];
    struct stat found;
    if (!watched[0]) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t n = readlink(name, path, sizeof path - 1);
    if (n <= 0) return;
    path[n] = 0;
    if (!strcmp(path, watched) && !fstat(descriptor, &found)) durable = found.st_size;
}

static int named_below(int folder, const char *path)
{
    if (!length) return 0;
    if (path && path[0] == '/') return !strncmp(path, below, length);
    return folder != AT_FDCWD && open_below(folder);
}

#define WRITES(name, kinds, whole, half) \
    ssize_t name kinds \
    { \
        static ssize_t (*real) kinds; \
        if (!real) real = (ssize_t (*) kinds)dlsym(RTLD_NEXT, #name); \
        int what = open_below(fd) ? hit() : 0; \
        if (what == 1) return -1; \
        return what == 2 && n > 1 ? real half : real whole; \
    }

#define CHANGES(name, kinds, names, where) \
    int name kinds \
    { \
        static int (*real) kinds; \
        if (!real) real = (int (*) kinds)dlsym(RTLD_NEXT, #name); \
        return (where) && hit() == 1 ? -1 : real names; \
    }

#define MAKES(name, kinds, names, where) \
    int name kinds \
    { \
        static int (*real) kinds; \
        if (!real) real = (int (*) kinds)dlsym(RTLD_NEXT, #name); \
        mode_t bits = 0; \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list more; \
            va_start(more, flags); \
            bits = va_arg(more, int); \
            va_end(more); \
        } \
        return (flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE) && (where) \
            && hit() == 1 ? -1 : real names; \
    }

WRITES(write, (int fd, const void *b, size_t n), (fd, b, n), (fd, b, n / 2))
WRITES(pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), (fd, b, n / 2, o))
WRITES(pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o), (fd, b, n / 2, o))
CHANGES(fsync, (int fd), (fd), (note_synced(fd), open_below(fd)))
CHANGES(fdatasync, (int fd), (fd), (note_synced(fd), open_below(fd)))
/* What has no function of its own: a file is put on its disk by io_submit and waited for by io_getevents. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    static long begun;
    static int submitted;
    long a[6];
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
    va_end(more);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_submit) {
        long before = durable;
        submitted = (int)((struct iocb **)a[2])[0]->aio_fildes;
        note_synced(submitted);
        begun = durable, durable = before;
        if (open_below(submitted) && hit() == 1) return -1;
    }
    int fails = number == SYS_io_getevents && open_below(submitted) && hit() == 1;
    int with = errno;
    long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_io_getevents && result == 1) {
        if (fails) ((struct io_event *)a[3])->res = -with;
        else durable = begun;
    }
    return result;
}

CHANGES(ftruncate, (int fd, off_t o), (fd, o), open_below(fd))
CHANGES(ftruncate64, (int fd, off64_t o), (fd, o), open_below(fd))
CHANGES(fchmod, (int fd, mode_t m), (fd, m), open_below(fd))
CHANGES(fchown, (int fd, uid_t u, gid_t g), (fd, u, g), open_below(fd))
CHANGES(truncate, (const char *p, off_t o), (p, o), named_below(AT_FDCWD, p))
CHANGES(truncate64, (const char *p, off64_t o), (p, o), named_below(AT_FDCWD, p))
CHANGES(renameat2, (int a, const char *p, int b, const char *q, unsigned f), (a, p, b, q, f), named_below(a, p))
CHANGES(renameat, (int a, const char *p, int b, const char *q), (a, p, b, q), named_below(a, p))
CHANGES(rename, (const char *p, const char *q), (p, q), named_below(AT_FDCWD, p))
CHANGES(unlinkat, (int a, const char *p, int f), (a, p, f), named_below(a, p))
CHANGES(unlink, (const char *p), (p), named_below(AT_FDCWD, p))
CHANGES(rmdir, (const char *p), (p), named_below(AT_FDCWD, p))
CHANGES(mkdirat, (int a, const char *p, mode_t m), (a, p, m), named_below(a, p))
CHANGES(mkdir, (const char *p, mode_t m), (p, m), named_below(AT_FDCWD, p))
CHANGES(symlinkat, (const char *t, int a, const char *p), (t, a, p), named_below(a, p))
CHANGES(linkat, (int a, const char *p, int b, const char *q, int f), (a, p, b, q, f), named_below(a, p))
MAKES(open, (const char *p, int flags, ...), (p, flags, bits), named_below(AT_FDCWD, p))
MAKES(open64, (const char *p, int flags, ...), (p, flags, bits), named_below(AT_FDCWD, p))
MAKES(openat, (int a, const char *p, int flags, ...), (a, p, flags, bits), named_below(a, p))
MAKES(openat64, (int a, const char *p, int flags, ...), (a, p, flags, bits), named_below(a, p))
