/* The consume functions: librdkafka's, with what they give opened. */
#include "consume.h"

#include "attach.h"
#include "delivery.h"
#include "open.h"

#include <cipherlane/rdkafka.h>
#include <time.h>

/* Where messages come from. */
typedef struct source {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    rd_kafka_queue_t *queue;
} source;

/* Reads up to `size` messages; 0 when none came in time. */
typedef ssize_t (*reader)(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size);

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Reads again when none of the messages is for the application, within the time that is left: to it, nothing has come yet.
 */
static ssize_t read_opened(const source *from, reader read, cl_handle *handle, int timeout_ms,
                           rd_kafka_message_t **messages, size_t size)
{
    int left_ms = timeout_ms;
    int64_t until = 0;
    cl_not_refused();
    for (;;) {
        ssize_t got = read(from, left_ms, messages, size);
        if (got <= 0) {
            return got;
        }
        size_t kept = cl_open(handle, messages, (size_t)got, NULL, cl_rd_kafka_message_destroy);
        if (kept > 0) {
            return (ssize_t)kept;
        }
        if (timeout_ms > 0) {
            int64_t now = now_ms();
            until = until == 0 ? now + timeout_ms : until;
            left_ms = now < until ? (int)(until - now) : 0;
        }
    }
}

static rd_kafka_message_t *read_one(const source *from, reader read, cl_handle *handle, int timeout_ms)
{
    rd_kafka_message_t *message = NULL;
    return read_opened(from, read, handle, timeout_ms, &message, 1) == 1 ? message : NULL;
}

int cl_rd_kafka_poll(rd_kafka_t *rk, int timeout_ms)
{
    cl_handle *before = cl_handle_serving();
    cl_handle_serve(cl_handle_of(rk));
    int served = cl_kafka()->rd_kafka_poll(rk, timeout_ms);
    cl_handle_serve(before);
    return served;
}

static ssize_t from_consumer(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size)
{
    (void)size;
    messages[0] = cl_kafka()->rd_kafka_consumer_poll(from->rk, timeout_ms);
    return messages[0] == NULL ? 0 : 1;
}

rd_kafka_message_t *cl_rd_kafka_consumer_poll(rd_kafka_t *rk, int timeout_ms)
{
    const source from = {.rk = rk};
    cl_handle *before = cl_handle_serving();
    cl_handle *handle = cl_handle_of(rk);
    cl_handle_serve(handle);
    rd_kafka_message_t *message = read_one(&from, from_consumer, handle, timeout_ms);
    cl_handle_serve(before);
    return message;
}

static ssize_t from_partition(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size)
{
    (void)size;
    messages[0] = cl_kafka()->rd_kafka_consume(from->rkt, from->partition, timeout_ms);
    return messages[0] == NULL ? 0 : 1;
}

rd_kafka_message_t *cl_rd_kafka_consume(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms)
{
    const source from = {.rkt = rkt, .partition = partition};
    return read_one(&from, from_partition, cl_handle_of(rkt), timeout_ms);
}

static ssize_t batch_from_partition(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size)
{
    return cl_kafka()->rd_kafka_consume_batch(from->rkt, from->partition, timeout_ms, messages, size);
}

ssize_t cl_rd_kafka_consume_batch(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                  rd_kafka_message_t **rkmessages, size_t rkmessages_size)
{
    const source from = {.rkt = rkt, .partition = partition};
    return read_opened(&from, batch_from_partition, cl_handle_of(rkt), timeout_ms, rkmessages, rkmessages_size);
}

static ssize_t from_queue(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size)
{
    (void)size;
    messages[0] = cl_kafka()->rd_kafka_consume_queue(from->queue, timeout_ms);
    return messages[0] == NULL ? 0 : 1;
}

rd_kafka_message_t *cl_rd_kafka_consume_queue(rd_kafka_queue_t *rkqu, int timeout_ms)
{
    const source from = {.queue = rkqu};
    return read_one(&from, from_queue, cl_handle_of(rkqu), timeout_ms);
}

static ssize_t batch_from_queue(const source *from, int timeout_ms, rd_kafka_message_t **messages, size_t size)
{
    return cl_kafka()->rd_kafka_consume_batch_queue(from->queue, timeout_ms, messages, size);
}

ssize_t cl_rd_kafka_consume_batch_queue(rd_kafka_queue_t *rkqu, int timeout_ms, rd_kafka_message_t **rkmessages,
                                        size_t rkmessages_size)
{
    const source from = {.queue = rkqu};
    return read_opened(&from, batch_from_queue, cl_handle_of(rkqu), timeout_ms, rkmessages, rkmessages_size);
}

/* An application's callback for one call, and the handle it is about. */
typedef struct callback {
    cl_consume_cb call;
    void *opaque;
    cl_handle *handle;
} callback;

static void on_message(rd_kafka_message_t *message, void *opaque)
{
    const callback *application = opaque;
    if (cl_open(application->handle, &message, 1, NULL, NULL) == 1) {
        application->call(message, application->opaque);
    }
    cl_detach(message);
}

int cl_rd_kafka_consume_callback(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms, cl_consume_cb consume_cb,
                                 void *opaque)
{
    callback application = {consume_cb, opaque, cl_handle_of(rkt)};
    return cl_kafka()->rd_kafka_consume_callback(rkt, partition, timeout_ms, on_message, &application);
}

int cl_rd_kafka_consume_callback_queue(rd_kafka_queue_t *rkqu, int timeout_ms, cl_consume_cb consume_cb, void *opaque)
{
    callback application = {consume_cb, opaque, cl_handle_of(rkqu)};
    return cl_kafka()->rd_kafka_consume_callback_queue(rkqu, timeout_ms, on_message, &application);
}

/* Called in rd_kafka_poll or rd_kafka_consumer_poll, which say whose it is. */
void cl_on_consume(rd_kafka_message_t *message, void *opaque)
{
    cl_handle *handle = cl_handle_serving();
    if (handle != NULL && handle->callbacks.consume != NULL) {
        callback application = {handle->callbacks.consume, opaque, handle};
        on_message(message, &application);
    }
}

void cl_rd_kafka_message_destroy(rd_kafka_message_t *rkmessage)
{
    cl_detach(rkmessage);
    cl_kafka()->rd_kafka_message_destroy(rkmessage);
}

rd_kafka_event_t *cl_rd_kafka_queue_poll(rd_kafka_queue_t *rkqu, int timeout_ms)
{
    rd_kafka_event_t *event = cl_kafka()->rd_kafka_queue_poll(rkqu, timeout_ms);
    rd_kafka_event_type_t type = event == NULL ? RD_KAFKA_EVENT_NONE : cl_kafka()->rd_kafka_event_type(event);
    if (type == RD_KAFKA_EVENT_FETCH || type == RD_KAFKA_EVENT_DR) {
        (void)cl_handle_note(event, cl_handle_of(rkqu));
    }
    return event;
}

/*
 * Messages of an event: fetched ones are opened, reported ones show what the application sent. Gives back how many the application
 * gets.
 */
static size_t show(rd_kafka_event_t *event, rd_kafka_message_t **messages, size_t count)
{
    cl_handle *handle = cl_handle_of(event);
    if (cl_kafka()->rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR) {
        return cl_open(handle, messages, count, event, NULL);
    }
    for (size_t i = 0; handle != NULL && handle->callbacks.dr_events && i < count; i++) {
        cl_delivery_show(event, messages[i]);
    }
    return count;
}

const rd_kafka_message_t *cl_rd_kafka_event_message_next(rd_kafka_event_t *rkev)
{
    rd_kafka_message_t *message = NULL;
    do {
        message = (rd_kafka_message_t *)(uintptr_t)cl_kafka()->rd_kafka_event_message_next(rkev);
    } while (message != NULL && show(rkev, &message, 1) == 0);
    return message;
}

/* librdkafka's own calls its rd_kafka_event_message_next, which may be ours (preload): each message would be opened twice. */
size_t cl_rd_kafka_event_message_array(rd_kafka_event_t *rkev, const rd_kafka_message_t **rkmessages, size_t size)
{
    size_t count = 0;
    while (count < size && (rkmessages[count] = cl_kafka()->rd_kafka_event_message_next(rkev)) != NULL) {
        count++;
    }
    return show(rkev, (rd_kafka_message_t **)(uintptr_t)rkmessages, count);
}

void cl_rd_kafka_event_destroy(rd_kafka_event_t *rkev)
{
    cl_detach(rkev);
    cl_delivery_hide(rkev);
    cl_handle_forget(rkev);
    cl_kafka()->rd_kafka_event_destroy(rkev);
}
