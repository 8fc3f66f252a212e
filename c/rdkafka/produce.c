/* The produce functions. A value that cannot be encrypted never reaches librdkafka [CL-KAF-001]. */
#include "delivery.h"

#include <cipherlane/rdkafka.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define STACK_VALUE 8192U /* longer values are encrypted into memory of their own */
#define VUS 128U          /* arguments of one rd_kafka_producev */

/* A value on its way: what the application gave, and what is sent instead. */
typedef struct outgoing {
    cl_handle *handle;
    int flags;
    void *payload;
    size_t size;
    cl_bytes key;
    void *opaque;
    cl_bytes value; /* to be sent */
    uint8_t *block; /* which librdkafka is to own, or NULL */
    cl_tracker *tracker;
} outgoing;

static rd_kafka_resp_err_t refuse_unknown(void)
{
    return cl_refuse(RD_KAFKA_RESP_ERR__INVALID_ARG,
                     "configuration-invalid: the topic or handle was not made by Cipherlane's functions");
}

/* Where to encrypt: before the tracker, on the stack, or in a block of its own; NULL without memory. */
static uint8_t *room(outgoing *what, uint8_t stack[STACK_VALUE + CL_ENVELOPE_OVERHEAD])
{
    if (what->payload != NULL && cl_delivery_wanted(what->handle)) {
        what->tracker = cl_tracker_new(what->handle, what->flags, what->payload, what->size, what->opaque);
        what->block = what->tracker == NULL ? NULL : what->tracker->envelope;
        return what->block;
    }
    if (what->size <= STACK_VALUE) {
        return stack;
    }
    what->block = what->size > SIZE_MAX / 4 ? NULL : malloc(what->size + CL_ENVELOPE_OVERHEAD);
    return what->block;
}

/* A value in the clear takes the place of the envelope, so that the block still goes with the message. */
static void fill_block(outgoing *what)
{
    if (what->value.data != what->block && what->value.data != NULL) {
        memcpy(what->block, what->value.data, what->value.size);
        what->value.data = what->block;
    }
}

/* Makes what is sent; finish must follow, whatever comes back. */
static rd_kafka_resp_err_t prepare(outgoing *what, const char *topic, uint8_t stack[STACK_VALUE + CL_ENVELOPE_OVERHEAD])
{
    cl_error error;
    cl_not_refused();
    what->size = what->payload == NULL ? 0 : what->size;
    const cl_bytes value = {what->payload, what->size};
    uint8_t *buffer = room(what, stack);
    if (buffer == NULL) {
        return cl_refuse(RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION, "internal: no memory");
    }
    if (cl_encrypt(what->handle->client, topic, value, &what->key, buffer, value.size + CL_ENVELOPE_OVERHEAD,
                   &what->value, &error) != CL_OK) {
        return cl_refuse(RD_KAFKA_RESP_ERR__VALUE_SERIALIZATION, error.message);
    }
    if (what->block != NULL) {
        fill_block(what);
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* librdkafka owns a block; anything else it copies. */
static int sent_flags(const outgoing *what)
{
    int flags = what->flags & ~(RD_KAFKA_MSG_F_FREE | RD_KAFKA_MSG_F_COPY);
    return flags | (what->block == NULL ? RD_KAFKA_MSG_F_COPY : RD_KAFKA_MSG_F_FREE);
}

static void *sent_opaque(const outgoing *what)
{
    return what->tracker == NULL ? what->opaque : what->tracker;
}

/* After success librdkafka, or in its place we, own a payload given with RD_KAFKA_MSG_F_FREE; after failure the application does. */
static void finish(const outgoing *what, bool sent)
{
    bool given = (what->flags & RD_KAFKA_MSG_F_FREE) != 0 && (what->flags & RD_KAFKA_MSG_F_COPY) == 0;
    if (!sent) {
        free(what->block);
    } else if (given) {
        free(what->payload);
    }
}

static rd_kafka_resp_err_t produce(rd_kafka_topic_t *rkt, int32_t partition, outgoing *what)
{
    uint8_t stack[STACK_VALUE + CL_ENVELOPE_OVERHEAD];
    const kafka_api *kafka = cl_kafka();
    rd_kafka_resp_err_t failed = prepare(what, kafka->rd_kafka_topic_name(rkt), stack);
    if (failed == RD_KAFKA_RESP_ERR_NO_ERROR &&
        kafka->rd_kafka_produce(rkt, partition, sent_flags(what), (void *)(uintptr_t)what->value.data, what->value.size,
                                what->key.data, what->key.size, sent_opaque(what)) != 0) {
        failed = kafka->rd_kafka_last_error();
    }
    finish(what, failed == RD_KAFKA_RESP_ERR_NO_ERROR);
    return failed;
}

int cl_rd_kafka_produce(rd_kafka_topic_t *rkt, int32_t partition, int msgflags, void *payload, size_t len,
                        const void *key, size_t keylen, void *msg_opaque)
{
    outgoing what = {.handle = cl_handle_of(rkt),
                     .flags = msgflags,
                     .payload = payload,
                     .size = len,
                     .key = {key, keylen},
                     .opaque = msg_opaque};
    if (what.handle == NULL) {
        (void)refuse_unknown();
        return -1;
    }
    return produce(rkt, partition, &what) == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

int cl_rd_kafka_produce_batch(rd_kafka_topic_t *rkt, int32_t partition, int msgflags, rd_kafka_message_t *rkmessages,
                              int message_cnt)
{
    cl_handle *handle = cl_handle_of(rkt);
    bool own_partition = (msgflags & RD_KAFKA_MSG_F_PARTITION) != 0;
    int sent = 0;
    for (int i = 0; i < message_cnt; i++) {
        rd_kafka_message_t *message = &rkmessages[i];
        outgoing what = {.handle = handle,
                         .flags = msgflags & ~RD_KAFKA_MSG_F_PARTITION,
                         .payload = message->payload,
                         .size = message->len,
                         .key = {message->key, message->key_len},
                         .opaque = message->_private};
        message->err =
            handle == NULL ? refuse_unknown() : produce(rkt, own_partition ? message->partition : partition, &what);
        sent += message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? 1 : 0;
    }
    return sent;
}

/* Where in the arguments of a produceva what we change stands; VUS: nowhere. */
typedef struct places {
    size_t value;
    size_t flags;
    size_t opaque;
    size_t key;
    const char *topic;
} places;

static bool find_places(const rd_kafka_vu_t *vus, size_t count, places *at)
{
    *at = (places){VUS, VUS, VUS, VUS, NULL};
    for (size_t i = 0; i < count; i++) {
        switch (vus[i].vtype) {
        case RD_KAFKA_VTYPE_TOPIC:
            at->topic = vus[i].u.cstr;
            break;
        case RD_KAFKA_VTYPE_RKT:
            at->topic = cl_kafka()->rd_kafka_topic_name(vus[i].u.rkt);
            break;
        case RD_KAFKA_VTYPE_VALUE:
            at->value = i;
            break;
        case RD_KAFKA_VTYPE_MSGFLAGS:
            at->flags = i;
            break;
        case RD_KAFKA_VTYPE_OPAQUE:
            at->opaque = i;
            break;
        case RD_KAFKA_VTYPE_KEY:
            at->key = i;
            break;
        case RD_KAFKA_VTYPE_PARTITION:
        case RD_KAFKA_VTYPE_TIMESTAMP:
        case RD_KAFKA_VTYPE_HEADER:
        case RD_KAFKA_VTYPE_HEADERS:
            break;
        default: /* what it means, and whether it is a value, nobody here knows */
            return false;
        }
    }
    return at->topic != NULL;
}

/* An argument at its place, or a new one at the end. */
static rd_kafka_vu_t *argument(rd_kafka_vu_t *vus, size_t *count, size_t at, rd_kafka_vtype_t type)
{
    rd_kafka_vu_t *found = &vus[at < VUS ? at : (*count)++];
    found->vtype = type;
    return found;
}

/* `vus` has room for three more than VUS. */
static rd_kafka_error_t *produce_vus(rd_kafka_t *rk, cl_handle *handle, rd_kafka_vu_t *vus, size_t count)
{
    uint8_t stack[STACK_VALUE + CL_ENVELOPE_OVERHEAD];
    places at;
    const kafka_api *kafka = cl_kafka();
    if (!find_places(vus, count, &at)) {
        rd_kafka_resp_err_t code =
            cl_refuse(RD_KAFKA_RESP_ERR__INVALID_ARG, "value-type: no topic, or an argument that is not known");
        return kafka->rd_kafka_error_new(code, "%s", cl_rd_kafka_refusal());
    }
    outgoing what = {.handle = handle};
    what.payload = at.value < VUS ? vus[at.value].u.mem.ptr : NULL;
    what.size = at.value < VUS ? vus[at.value].u.mem.size : 0;
    what.flags = at.flags < VUS ? vus[at.flags].u.i : 0;
    if (at.key < VUS) {
        what.key = (cl_bytes){vus[at.key].u.mem.ptr, vus[at.key].u.mem.size};
    }
    what.opaque = at.opaque < VUS ? vus[at.opaque].u.ptr : NULL;
    rd_kafka_resp_err_t refused = prepare(&what, at.topic, stack);
    rd_kafka_error_t *error = NULL;
    if (refused == RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_vu_t *value = argument(vus, &count, at.value, RD_KAFKA_VTYPE_VALUE);
        value->u.mem.ptr = (void *)(uintptr_t)what.value.data;
        value->u.mem.size = what.value.size;
        argument(vus, &count, at.flags, RD_KAFKA_VTYPE_MSGFLAGS)->u.i = sent_flags(&what);
        argument(vus, &count, at.opaque, RD_KAFKA_VTYPE_OPAQUE)->u.ptr = sent_opaque(&what);
        error = kafka->rd_kafka_produceva(rk, vus, count);
    } else {
        error = kafka->rd_kafka_error_new(refused, "%s", cl_rd_kafka_refusal());
    }
    finish(&what, error == NULL);
    return error;
}

rd_kafka_error_t *cl_rd_kafka_produceva(rd_kafka_t *rk, const rd_kafka_vu_t *vus, size_t cnt)
{
    rd_kafka_vu_t own[VUS + 3];
    cl_handle *handle = cl_handle_of(rk);
    if (handle == NULL || cnt > VUS) {
        rd_kafka_resp_err_t code = refuse_unknown();
        return cl_kafka()->rd_kafka_error_new(code, "%s", cl_rd_kafka_refusal());
    }
    for (size_t i = 0; i < cnt; i++) {
        own[i] = vus[i];
    }
    return produce_vus(rk, handle, own, cnt);
}

/* Reads one argument of a variadic call; false when its type, and so its size, is not known. */
static bool read_argument(rd_kafka_vu_t *vu, va_list *list)
{
    switch (vu->vtype) {
    case RD_KAFKA_VTYPE_TOPIC:
        vu->u.cstr = va_arg(*list, const char *);
        return true;
    case RD_KAFKA_VTYPE_RKT:
        vu->u.rkt = va_arg(*list, rd_kafka_topic_t *);
        return true;
    case RD_KAFKA_VTYPE_PARTITION:
        vu->u.i32 = va_arg(*list, int32_t);
        return true;
    case RD_KAFKA_VTYPE_VALUE:
    case RD_KAFKA_VTYPE_KEY:
        vu->u.mem.ptr = va_arg(*list, void *);
        vu->u.mem.size = va_arg(*list, size_t);
        return true;
    case RD_KAFKA_VTYPE_OPAQUE:
        vu->u.ptr = va_arg(*list, void *);
        return true;
    case RD_KAFKA_VTYPE_MSGFLAGS:
        vu->u.i = va_arg(*list, int);
        return true;
    case RD_KAFKA_VTYPE_TIMESTAMP:
        vu->u.i64 = va_arg(*list, int64_t);
        return true;
    case RD_KAFKA_VTYPE_HEADER:
        vu->u.header.name = va_arg(*list, const char *);
        vu->u.header.val = va_arg(*list, void *);
        vu->u.header.size = va_arg(*list, ssize_t);
        return true;
    case RD_KAFKA_VTYPE_HEADERS:
        vu->u.headers = va_arg(*list, rd_kafka_headers_t *);
        return true;
    default:
        return false;
    }
}

static bool read_arguments(rd_kafka_vu_t *vus, size_t *count, va_list *list)
{
    for (*count = 0; *count < VUS; (*count)++) {
        vus[*count].vtype = va_arg(*list, rd_kafka_vtype_t);
        if (vus[*count].vtype == RD_KAFKA_VTYPE_END) {
            return true;
        }
        if (!read_argument(&vus[*count], list)) {
            return false;
        }
    }
    return false;
}

rd_kafka_resp_err_t cl_rd_kafka_producev(rd_kafka_t *rk, ...)
{
    rd_kafka_vu_t own[VUS + 3];
    size_t count = 0;
    va_list list;
    va_start(list, rk);
    bool known = read_arguments(own, &count, &list);
    va_end(list);
    cl_handle *handle = cl_handle_of(rk);
    if (handle == NULL || !known) {
        return refuse_unknown();
    }
    rd_kafka_error_t *error = produce_vus(rk, handle, own, count);
    rd_kafka_resp_err_t code = error == NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : cl_kafka()->rd_kafka_error_code(error);
    if (error != NULL) {
        cl_kafka()->rd_kafka_error_destroy(error);
    }
    return code;
}
