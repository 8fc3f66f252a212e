/* The thread with its streams. */
#include "pump.h"

#include "clock.h"
#include "error.h"
#include "stream.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#define EVENTS 64
#define TICK_MS 500 /* between looks at ends of certificates */

struct cl_pump {
    cl_tls *tls;
    int epoll;
    int wake;
    pthread_t thread;
    cl_stream *streams; /* the thread's own */
    uint8_t piece[CL_STREAM_PIECE];
    char complaint[256];
    uint64_t complained;
    pthread_mutex_t mutex; /* guards what follows */
    cl_stream *fresh;
    const rd_kafka_t *rk; /* to log with */
    bool mute;
    bool stopping;
};

static _Thread_local cl_pump *serving;

/* One line a minute for one cause, to where librdkafka logs. */
static void complain(cl_pump *pump, const cl_stream *one)
{
    char line[256];
    uint64_t now = cl_now();
    if (*one->why == '\0') {
        return;
    }
    (void)snprintf(line, sizeof line, "%.100s: %.140s", one->name, one->why);
    if (strcmp(line, pump->complaint) != 0 || now - pump->complained > 60 * CL_SECOND) {
        (void)snprintf(pump->complaint, sizeof pump->complaint, "%s", line);
        pump->complained = now;
        (void)pthread_mutex_lock(&pump->mutex);
        if (pump->rk != NULL && !pump->mute) {
            cl_kafka()->rd_kafka_log_print(pump->rk, LOG_ERR, "CIPHERLANE", line);
        }
        (void)pthread_mutex_unlock(&pump->mutex);
    }
}

static void watch(const cl_pump *pump, cl_side *one, uint32_t events)
{
    if (one->events != events) {
        struct epoll_event event = {.events = events, .data.ptr = one};
        (void)epoll_ctl(pump->epoll, one->events == UINT32_MAX ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, one->fd, &event);
        one->events = events;
    }
}

static void work(cl_pump *pump, cl_stream *one)
{
    cl_stream_work(one, pump->tls, pump->piece);
    if (!one->over) {
        watch(pump, &one->plain, cl_stream_plain_events(one));
        watch(pump, &one->wire, cl_stream_wire_events(one));
    }
}

/* Connections that librdkafka's threads asked for. */
static void take_over(cl_pump *pump)
{
    (void)pthread_mutex_lock(&pump->mutex);
    cl_stream *fresh = pump->fresh;
    pump->fresh = NULL;
    (void)pthread_mutex_unlock(&pump->mutex);
    while (fresh != NULL) {
        cl_stream *one = fresh;
        fresh = one->next;
        if (cl_stream_dial(one, pump->tls)) {
            one->next = pump->streams;
            pump->streams = one;
            watch(pump, &one->plain, 0);
            watch(pump, &one->wire, EPOLLOUT); /* when it is connected */
        } else {
            complain(pump, one);
            cl_stream_free(one);
        }
    }
}

static void bury(cl_pump *pump)
{
    for (cl_stream **place = &pump->streams; *place != NULL;) {
        cl_stream *one = *place;
        if (one->over) {
            *place = one->next;
            complain(pump, one);
            cl_stream_free(one);
        } else {
            place = &one->next;
        }
    }
}

static bool stopping(cl_pump *pump)
{
    (void)pthread_mutex_lock(&pump->mutex);
    bool yes = pump->stopping;
    (void)pthread_mutex_unlock(&pump->mutex);
    return yes;
}

/* A descriptor is at its end. */
static void hang_up(const cl_side *which)
{
    cl_stream *one = which->stream;
    if (!one->open && !one->over && which == &one->wire) {
        (void)snprintf(one->why, sizeof one->why, "cannot connect");
    }
    one->over = true;
}

static void serve_events(cl_pump *pump, const struct epoll_event *events, int count)
{
    uint64_t wakes = 0;
    for (int i = 0; i < count; i++) {
        cl_side *ready = events[i].data.ptr;
        if (ready == NULL) {
            (void)!read(pump->wake, &wakes, sizeof wakes);
            take_over(pump);
        } else if (!ready->stream->over) {
            work(pump, ready->stream);
            if ((events[i].events & (uint32_t)(EPOLLHUP | EPOLLERR)) != 0) {
                hang_up(ready);
            }
        }
    }
}

/* Those that had more to do than a turn; whether one still has. */
static bool go_on(cl_pump *pump)
{
    bool more = false;
    for (cl_stream *one = pump->streams; one != NULL; one = one->next) {
        if (one->again && !one->over) {
            work(pump, one);
            more = more || one->again;
        }
    }
    return more;
}

static void *run(void *context)
{
    cl_pump *pump = context;
    bool more = false;
    uint64_t looked = cl_now();
    while (!stopping(pump)) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(pump->epoll, events, EVENTS, more ? 0 : TICK_MS);
        serve_events(pump, events, count);
        more = go_on(pump);
        uint64_t now = cl_now();
        if (now - looked >= TICK_MS * CL_MILLISECOND) {
            looked = now;
            for (cl_stream *one = pump->streams; one != NULL; one = one->next) {
                cl_stream_look_at_dates(one, now);
            }
        }
        bury(pump);
    }
    return NULL;
}

void cl_pump_serve(cl_pump *pump, const rd_kafka_t *rk)
{
    serving = pump;
    (void)pthread_mutex_lock(&pump->mutex);
    pump->rk = pump->rk == NULL ? rk : pump->rk;
    (void)pthread_mutex_unlock(&pump->mutex);
}

void cl_pump_mute(cl_pump *pump)
{
    (void)pthread_mutex_lock(&pump->mutex);
    pump->mute = true;
    (void)pthread_mutex_unlock(&pump->mutex);
}

/* Nothing here waits: librdkafka holds a lock meanwhile. */
int cl_pump_connect(int socket, const struct sockaddr *address, int size, const char *name, void *opaque)
{
    (void)opaque; /* the application's */
    int pair[2];
    const uint64_t one_more = 1;
    cl_pump *pump = serving;
    if (pump == NULL || size < 0 || (size_t)size > sizeof(struct sockaddr_storage) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        return ECONNREFUSED;
    }
    cl_stream *one = cl_stream_new(address, size, name, pair[1]);
    bool placed = one != NULL && dup3(pair[0], socket, O_CLOEXEC) == socket;
    (void)close(pair[0]);
    if (!placed) {
        (void)close(pair[1]);
        free(one);
        return ENOMEM;
    }
    (void)pthread_mutex_lock(&pump->mutex);
    one->next = pump->fresh;
    pump->fresh = one;
    (void)pthread_mutex_unlock(&pump->mutex);
    (void)!write(pump->wake, &one_more, sizeof one_more);
    return 0;
}

static bool open_set(cl_pump *pump)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    pump->epoll = epoll_create1(EPOLL_CLOEXEC);
    pump->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return pump->epoll >= 0 && pump->wake >= 0 && epoll_ctl(pump->epoll, EPOLL_CTL_ADD, pump->wake, &event) == 0;
}

static void close_set(const cl_pump *pump)
{
    if (pump->epoll >= 0) {
        (void)close(pump->epoll);
    }
    if (pump->wake >= 0) {
        (void)close(pump->wake);
    }
}

static void free_all(cl_stream *first)
{
    while (first != NULL) {
        cl_stream *next = first->next;
        cl_stream_free(first);
        first = next;
    }
}

static void destroy(cl_pump *pump)
{
    free_all(pump->streams);
    free_all(pump->fresh);
    close_set(pump);
    cl_tls_free(pump->tls);
    (void)pthread_mutex_destroy(&pump->mutex);
    free(pump);
}

static cl_pump *begin(cl_tls *tls, cl_error *error)
{
    cl_pump *pump = calloc(1, sizeof *pump);
    if (pump == NULL) {
        cl_tls_free(tls);
        (void)cl_no_memory(error);
        return NULL;
    }
    (void)pthread_mutex_init(&pump->mutex, NULL);
    pump->tls = tls;
    if (open_set(pump) && cl_thread_start(&pump->thread, run, pump)) {
        return pump;
    }
    (void)cl_fail(error, CL_INTERNAL, "internal: no descriptors, or no thread, for TLS to brokers");
    destroy(pump);
    return NULL;
}

cl_pump *cl_pump_new(cl_identity *identity, const cl_tls_terms *terms, cl_error *error)
{
    cl_tls *tls = cl_tls_new(identity, terms, error);
    return tls == NULL ? NULL : begin(tls, error);
}

void cl_pump_free(cl_pump *pump)
{
    const uint64_t one_more = 1;
    if (pump != NULL) {
        (void)pthread_mutex_lock(&pump->mutex);
        pump->stopping = true;
        (void)pthread_mutex_unlock(&pump->mutex);
        (void)!write(pump->wake, &one_more, sizeof one_more);
        (void)pthread_join(pump->thread, NULL);
        destroy(pump);
    }
}
