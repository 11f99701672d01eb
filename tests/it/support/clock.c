// A wall clock that a test sets while a program runs, put before the C library's by LD_PRELOAD.
//
// The file named by SIGNALBOX_TEST_CLOCK holds four 64-bit integers: by how many milliseconds the wall clock is off; by how
// many the monotonic one is ahead, as after a time in which the program did not run; and how many millionths the wall clock
// has run fast since the real monotonic clock showed so many milliseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offsets;

__attribute__((constructor)) static void open_offsets(void) {
  const char *path = getenv("SIGNALBOX_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, 32, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) offsets = map;
  close(file);
}

static void add(struct timespec *time, int64_t millis) {
  int64_t nanos = time->tv_nsec + millis % 1000 * 1000000;
  time->tv_sec += millis / 1000 + (nanos >= 1000000000) - (nanos < 0);
  time->tv_nsec = (nanos + 1000000000) % 1000000000;
}

static int64_t drifted(void) {
  struct timespec now;
  if (!offsets[2]) return 0;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (now.tv_sec * 1000 + now.tv_nsec / 1000000 - offsets[3]) * offsets[2] / 1000000;
}

int clock_gettime(clockid_t id, struct timespec *time) {
  int failed = (int)syscall(SYS_clock_gettime, id, time);
  if (failed || !offsets) return failed;
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) add(time, offsets[0] + drifted());
  if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_MONOTONIC_RAW) add(time, offsets[1]);
  return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
