/*
 * The thread of the key cache: renews what is used and due [CL-KEY-006], ends and wipes what has expired [CL-KEY-005]. It sleeps
 * on a timer of the lease clock, so that a lease that ended while the machine slept is wiped when it wakes.
 */
#include "fetch.h"

#include "clock.h"
#include "thread.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define IDLE (60 * CL_SECOND)          /* longest sleep; sessions end meanwhile by themselves */
#define SHORTEST (50 * CL_MILLISECOND) /* between looks at a lease that is due and unused */

static void set_timer(const cl_keys *keys, uint64_t at)
{
    struct itimerspec when = {0};
    when.it_value.tv_sec = (time_t)(at / CL_SECOND);
    when.it_value.tv_nsec = (long)(at % CL_SECOND);
    (void)timerfd_settime(keys->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void cl_refresher_wake(const cl_keys *keys)
{
    set_timer(keys, 1); /* long ago */
}

static bool due(const cl_entry *entry, uint64_t now)
{
    return entry->lease != NULL && !entry->asking && now >= entry->refresh_at && now >= entry->retry_at &&
           atomic_load_explicit(&entry->lease->used, memory_order_relaxed);
}

/* When to look at an entry again: at its dates; a lease that is due but unused may be used any time. */
static uint64_t next_look(const cl_entry *entry, uint64_t now)
{
    uint64_t end = atomic_load_explicit(&entry->lease->expires_at, memory_order_relaxed);
    if (now < entry->refresh_at) {
        return entry->refresh_at < end ? entry->refresh_at : end;
    }
    uint64_t soon = now + (end > now ? (end - now) / 8 : 0);
    uint64_t look = soon > now + SHORTEST ? soon : now + SHORTEST;
    look = look < entry->retry_at ? entry->retry_at : look;
    return look < end ? look : end;
}

/* Ends what has expired and finds something to renew; otherwise says until when to sleep. */
static cl_entry *look(cl_keys *keys, uint64_t now, uint64_t *until)
{
    *until = now + IDLE;
    for (cl_entry *entry = keys->entries.newest; entry != NULL; entry = entry->older) {
        if (!cl_entry_held(entry, now)) {
            continue;
        }
        if (due(entry, now)) {
            return entry;
        }
        uint64_t next = next_look(entry, now);
        *until = next < *until ? next : *until;
    }
    return NULL;
}

/* Renews a key together with all others of its topic that are due. */
static void renew_keys(cl_keys *keys, const cl_entry *first, uint64_t now, uint64_t deadline)
{
    cl_entry *batch[CL_KIDS_PER_CALL];
    size_t count = 0;
    for (cl_entry *entry = keys->entries.newest; entry != NULL && count < CL_KIDS_PER_CALL; entry = entry->older) {
        if (entry->subject.kind == CL_KIND_DECRYPTION && due(entry, now) &&
            strcmp(entry->subject.topic, first->subject.topic) == 0) {
            batch[count++] = entry;
        }
    }
    cl_fetch_decryption(keys, batch, count, NULL, deadline);
}

static void renew(cl_keys *keys, cl_entry *entry, uint64_t now)
{
    const cl_settings *settings = keys->parts.settings;
    uint64_t deadline = now + settings->url_count * settings->request_timeout_ms * CL_MILLISECOND;
    switch (entry->subject.kind) {
    case CL_KIND_ENCRYPTION:
        cl_fetch_encryption(keys, entry, deadline);
        break;
    case CL_KIND_DECRYPTION:
        renew_keys(keys, entry, now, deadline);
        break;
    case CL_KIND_PLAINTEXT:
        cl_fetch_decryption(keys, NULL, 0, entry, deadline);
        break;
    }
}

/* One round; the mutex is held, and released while sessions are swept. */
static void round_once(cl_keys *keys)
{
    uint64_t now = cl_now();
    uint64_t until = 0;
    (void)pthread_mutex_unlock(&keys->mutex);
    cl_slots_sweep(keys->parts.slots, now);
    (void)pthread_mutex_lock(&keys->mutex);
    for (cl_entry *entry = look(keys, now, &until); entry != NULL && !keys->stopping; entry = look(keys, now, &until)) {
        renew(keys, entry, now);
        now = cl_now();
    }
    if (!keys->stopping) {
        set_timer(keys, until);
    }
}

static void *run(void *context)
{
    cl_keys *keys = context;
    uint64_t expirations = 0;
    (void)pthread_mutex_lock(&keys->mutex);
    while (!keys->stopping) {
        round_once(keys);
        (void)pthread_mutex_unlock(&keys->mutex);
        (void)!read(keys->timer, &expirations, sizeof expirations);
        (void)pthread_mutex_lock(&keys->mutex);
    }
    (void)pthread_mutex_unlock(&keys->mutex);
    return NULL;
}

bool cl_refresher_start(cl_keys *keys)
{
    keys->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (keys->timer < 0) {
        return false;
    }
    bool started = cl_thread_start(&keys->thread, run, keys);
    if (!started) {
        (void)close(keys->timer);
    }
    return started;
}

void cl_refresher_stop(cl_keys *keys)
{
    (void)pthread_mutex_lock(&keys->mutex);
    keys->stopping = true;
    cl_refresher_wake(keys);
    (void)pthread_mutex_unlock(&keys->mutex);
    cl_keyservice_interrupt(keys->parts.service);
    (void)pthread_join(keys->thread, NULL);
    cl_keyservice_resume(keys->parts.service); /* for the report of what was encrypted */
    (void)close(keys->timer);
}
