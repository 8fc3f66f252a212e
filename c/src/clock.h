/* The clock of leases and sessions: runs on through suspend, does not follow the wall clock [CL-KEY-005]. */
#ifndef CL_CLOCK_H
#define CL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CL_SECOND UINT64_C(1000000000)
#define CL_MILLISECOND UINT64_C(1000000)

/* Nanoseconds since the machine started. */
static inline uint64_t cl_now(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * CL_SECOND + (uint64_t)now.tv_nsec;
}

/* How far a remembered cl_now() may be behind while cl_tick() stays the same: the longest tick of a kernel. */
#define CL_TICK (10 * CL_MILLISECOND)

/* A number that changes at every tick of the kernel; four times as cheap as cl_now(). A suspended machine ticks when it wakes. */
static inline uint64_t cl_tick(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * CL_SECOND + (uint64_t)now.tv_nsec;
}

#endif
