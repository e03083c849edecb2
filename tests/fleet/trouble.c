/* A disk that is slow to confirm and a clock that steps, for every program that loads this first: the file that
   TROUBLE names holds two numbers, the microseconds that each fsync takes besides and the seconds that the clock is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *trouble;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("TROUBLE");
  int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void *seen = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
  if (seen != MAP_FAILED) trouble = seen;
  close(file);
}

static void wait_for_the_disk(void) {
  if (trouble != NULL && trouble[0] > 0) usleep((useconds_t)trouble[0]);
}

int fsync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_for_the_disk();
  return real(file);
}

int fdatasync(int file) {
  static int (*real)(int);
  if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_the_disk();
  return real(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int told = real(which, now);
  if (told == 0 && trouble != NULL && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    now->tv_sec += trouble[1];
  return told;
}
