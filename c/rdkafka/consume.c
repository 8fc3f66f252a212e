/* The consume functions: each message is decrypted in place, or becomes an error at its place [CL-KAF-010]. */
#include "consume.h"

#include "delivery.h"

#include <cipherlane/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256U
#define ERROR_TEXT 640U
#define FLAGS_OFFSET 3U
#define COMPRESSED 1U
#define LARGEST 1073741824U

/* Memory that goes with a message or an event of librdkafka, whose address is its key. */
typedef struct attachment {
    struct attachment *next;
    cl_tracker *tracker;
    uint8_t bytes[];
} attachment;

static cl_map attachments = CL_MAP_INIT;

/* Memory that lives as long as `owner`; NULL without memory. */
static attachment *attach(const void *owner, size_t size)
{
    attachment *fresh = malloc(sizeof *fresh + size);
    if (fresh == NULL) {
        return NULL;
    }
    fresh->tracker = NULL;
    fresh->next = cl_map_get(&attachments, owner);
    if (!cl_map_put(&attachments, owner, fresh)) {
        free(fresh);
        return NULL;
    }
    return fresh;
}

static void detach(const void *owner)
{
    attachment *each = cl_map_take(&attachments, owner);
    while (each != NULL) {
        attachment *next = each->next;
        cl_tracker_free(each->tracker);
        free(each);
        each = next;
    }
}

/* The message becomes an error of its own; nothing of the value stays in it [CL-ENV-012]. */
static void fail(rd_kafka_message_t *message, const void *owner, const char *why)
{
    static char none[] = "internal: not decrypted, and no memory to say why";
    attachment *text = attach(owner, ERROR_TEXT);
    message->err = RD_KAFKA_RESP_ERR__VALUE_DESERIALIZATION;
    message->payload = none;
    if (text != NULL) {
        (void)snprintf((char *)text->bytes, ERROR_TEXT, "partition %d, offset %lld: %s", (int)message->partition,
                       (long long)message->offset, why);
        message->payload = text->bytes;
    }
    message->len = strlen(message->payload);
}

static bool compressed(cl_bytes value)
{
    return value.size >= CL_ENVELOPE_OVERHEAD && (value.data[FLAGS_OFFSET] & COMPRESSED) != 0;
}

/* Into memory of its own, which grows until the plaintext fits. */
static cl_code decrypt_compressed(const cl_handle *handle, const rd_kafka_message_t *message, const void *owner,
                                  cl_bytes *out, cl_error *error)
{
    const cl_bytes value = {message->payload, message->len};
    const cl_bytes key = {message->key, message->key_len};
    const char *topic = cl_kafka()->rd_kafka_topic_name(message->rkt);
    cl_code code = CL_BUFFER_TOO_SMALL;
    for (size_t size = 4 * value.size; code == CL_BUFFER_TOO_SMALL && size <= LARGEST; size *= 4) {
        size = out->size > size ? out->size : size;
        attachment *memory = attach(owner, size);
        code = memory == NULL ? CL_INTERNAL
                              : cl_decrypt(handle->client, topic, value, &key, memory->bytes, size, out, error);
    }
    return code;
}

static cl_code decrypt_value(const cl_handle *handle, const rd_kafka_message_t *message, const void *owner,
                             cl_bytes *out, cl_error *error)
{
    const cl_bytes value = {message->payload, message->len};
    const cl_bytes key = {message->key, message->key_len};
    if (compressed(value)) {
        return decrypt_compressed(handle, message, owner, out, error);
    }
    bool envelope = value.size >= CL_ENVELOPE_OVERHEAD;
    uint8_t *in_place = envelope ? (uint8_t *)message->payload + CL_ENVELOPE_HEADER : NULL;
    return cl_decrypt(handle->client, cl_kafka()->rd_kafka_topic_name(message->rkt), value, &key, in_place,
                      envelope ? value.size - CL_ENVELOPE_OVERHEAD : 0, out, error);
}

static void open_message(cl_handle *handle, rd_kafka_message_t *message, const void *owner)
{
    cl_bytes out = {NULL, 0};
    cl_error error = {.message = "internal: no memory"};
    if (message == NULL || message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    if (handle == NULL) {
        handle = cl_handle_of(message->rkt);
    }
    if (handle == NULL) {
        fail(message, owner, "configuration-invalid: the handle was not made by Cipherlane's functions");
    } else if (decrypt_value(handle, message, owner, &out, &error) != CL_OK) {
        fail(message, owner, error.message);
    } else {
        message->payload = (void *)(uintptr_t)out.data;
        message->len = out.size;
    }
}

/* Fetches the keys of neighbours of one topic together [CL-KEY-010]. */
static void prefetch(const cl_handle *handle, rd_kafka_message_t **messages, size_t count)
{
    cl_bytes values[BATCH];
    const char *topic = NULL;
    size_t held = 0;
    for (size_t i = 0; i < count; i++) {
        if (messages[i]->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            continue;
        }
        const char *name = cl_kafka()->rd_kafka_topic_name(messages[i]->rkt);
        if (held == BATCH || (topic != NULL && strcmp(topic, name) != 0)) {
            cl_prefetch(handle->client, topic, values, held);
            held = 0;
        }
        topic = name;
        values[held++] = (cl_bytes){messages[i]->payload, messages[i]->len};
    }
    if (held > 0) {
        cl_prefetch(handle->client, topic, values, held);
    }
}

static ssize_t open_batch(cl_handle *handle, rd_kafka_message_t **messages, ssize_t count)
{
    if (handle != NULL && count > 0) {
        prefetch(handle, messages, (size_t)count);
    }
    for (ssize_t i = 0; i < count; i++) {
        open_message(handle, messages[i], messages[i]);
    }
    return count;
}

static rd_kafka_message_t *opened(cl_handle *handle, rd_kafka_message_t *message)
{
    open_message(handle, message, message);
    return message;
}

int cl_rd_kafka_poll(rd_kafka_t *rk, int timeout_ms)
{
    cl_handle *before = cl_handle_serving();
    cl_handle_serve(cl_handle_of(rk));
    int served = cl_kafka()->rd_kafka_poll(rk, timeout_ms);
    cl_handle_serve(before);
    return served;
}

rd_kafka_message_t *cl_rd_kafka_consumer_poll(rd_kafka_t *rk, int timeout_ms)
{
    cl_handle *before = cl_handle_serving();
    cl_handle *handle = cl_handle_of(rk);
    cl_not_refused();
    cl_handle_serve(handle);
    rd_kafka_message_t *message = cl_kafka()->rd_kafka_consumer_poll(rk, timeout_ms);
    cl_handle_serve(before);
    return opened(handle, message);
}

rd_kafka_message_t *cl_rd_kafka_consume(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms)
{
    cl_not_refused();
    return opened(cl_handle_of(rkt), cl_kafka()->rd_kafka_consume(rkt, partition, timeout_ms));
}

ssize_t cl_rd_kafka_consume_batch(rd_kafka_topic_t *rkt, int32_t partition, int timeout_ms,
                                  rd_kafka_message_t **rkmessages, size_t rkmessages_size)
{
    cl_not_refused();
    return open_batch(cl_handle_of(rkt), rkmessages,
                      cl_kafka()->rd_kafka_consume_batch(rkt, partition, timeout_ms, rkmessages, rkmessages_size));
}

rd_kafka_message_t *cl_rd_kafka_consume_queue(rd_kafka_queue_t *rkqu, int timeout_ms)
{
    cl_not_refused();
    return opened(cl_handle_of(rkqu), cl_kafka()->rd_kafka_consume_queue(rkqu, timeout_ms));
}

ssize_t cl_rd_kafka_consume_batch_queue(rd_kafka_queue_t *rkqu, int timeout_ms, rd_kafka_message_t **rkmessages,
                                        size_t rkmessages_size)
{
    cl_not_refused();
    return open_batch(cl_handle_of(rkqu), rkmessages,
                      cl_kafka()->rd_kafka_consume_batch_queue(rkqu, timeout_ms, rkmessages, rkmessages_size));
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
    open_message(application->handle, message, message);
    application->call(message, application->opaque);
    detach(message);
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
    detach(rkmessage);
    cl_kafka()->rd_kafka_message_destroy(rkmessage);
}

rd_kafka_event_t *cl_rd_kafka_queue_poll(rd_kafka_queue_t *rkqu, int timeout_ms)
{
    rd_kafka_event_t *event = cl_kafka()->rd_kafka_queue_poll(rkqu, timeout_ms);
    rd_kafka_event_type_t type = event == NULL ? RD_KAFKA_EVENT_NONE : cl_kafka()->rd_kafka_event_type(event);
    if (type == RD_KAFKA_EVENT_FETCH || type == RD_KAFKA_EVENT_DR) {
        cl_handle_note(event, cl_handle_of(rkqu));
    }
    return event;
}

/* A message of an event: fetched ones are opened, reported ones show what the application sent. */
static void show(rd_kafka_event_t *event, const rd_kafka_message_t *message)
{
    rd_kafka_message_t *own = (rd_kafka_message_t *)(uintptr_t)message;
    cl_handle *handle = cl_handle_of(event);
    if (cl_kafka()->rd_kafka_event_type(event) != RD_KAFKA_EVENT_DR) {
        open_message(handle, own, event);
    } else if (handle != NULL && handle->callbacks.dr_events && own->_private != NULL) {
        cl_tracker *tracker = cl_delivery_show(own);
        attachment *memory = attach(event, 0);
        if (memory != NULL) {
            memory->tracker = tracker;
        } /* otherwise the handle frees it at its end */
    }
}

const rd_kafka_message_t *cl_rd_kafka_event_message_next(rd_kafka_event_t *rkev)
{
    const rd_kafka_message_t *message = cl_kafka()->rd_kafka_event_message_next(rkev);
    if (message != NULL) {
        show(rkev, message);
    }
    return message;
}

size_t cl_rd_kafka_event_message_array(rd_kafka_event_t *rkev, const rd_kafka_message_t **rkmessages, size_t size)
{
    size_t count = cl_kafka()->rd_kafka_event_message_array(rkev, rkmessages, size);
    for (size_t i = 0; i < count; i++) {
        show(rkev, rkmessages[i]);
    }
    return count;
}

void cl_rd_kafka_event_destroy(rd_kafka_event_t *rkev)
{
    detach(rkev);
    cl_handle_forget(rkev);
    cl_kafka()->rd_kafka_event_destroy(rkev);
}
