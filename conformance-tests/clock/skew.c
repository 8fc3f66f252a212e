/*
 * A wall clock that a test sets while the program runs: a library to preload. It adds the seconds in the file CLOCK_SKEW_FILE to what the
 * C library's calls tell of the wall clock, and writes back what it last told. The clocks that never jump are left alone, and a wait
 * until a moment of the wall clock ends when it would have ended, those of <threads.h> too, which librdkafka uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FIRST_OF_WALL 1000000000 /* s: a deadline before is one of a clock that began with the machine */

typedef struct {
    _Atomic int64_t offset; /* s, by the test */
    _Atomic int64_t told;   /* s, by this library */
} skew;

static skew none;
static skew *shared = &none;
static _Thread_local int64_t seen; /* what this thread was told last, and so took for its next deadline */

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("CLOCK_SKEW_FILE");
    int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(skew), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) {
        (void)close(file);
    }
    if (memory != MAP_FAILED) {
        shared = memory;
        shared->told = 0; /* so that the test sees who has this clock */
    }
}

EXPORT int clock_gettime(clockid_t id, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, id, now);
    if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        seen = shared->offset;
        shared->told = seen;
        now->tv_sec += seen;
    }
    return failed;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise = {0};
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return failed;
}

EXPORT time_t time(time_t *out)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

EXPORT int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* The kernel's own deadline for one that this thread reckoned. */
static struct timespec real(const struct timespec *deadline)
{
    return (struct timespec){deadline->tv_sec - (deadline->tv_sec > FIRST_OF_WALL ? seen : 0), deadline->tv_nsec};
}

static int c11(int error)
{
    return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

/* A condition may have been made for the clock that does not jump. */
EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict deadline)
{
    struct timespec until = real(deadline);
    clockid_t clock = until.tv_sec > FIRST_OF_WALL ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    return pthread_cond_clockwait(condition, mutex, clock, &until);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict deadline)
{
    struct timespec until = real(deadline);
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, &until);
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline)
{
    struct timespec until = real(deadline);
    return sem_clockwait(semaphore, CLOCK_REALTIME, &until);
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
    return c11(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, deadline));
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
    return c11(pthread_mutex_timedlock((pthread_mutex_t *)mutex, deadline));
}
