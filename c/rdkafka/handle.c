/* Handles: found by any object of librdkafka, without a lock when the thread asked for the same one before. */
#include "handle.h"

#include <cipherlane/rdkafka.h>

#include <errno.h>
#include <stdio.h>

static cl_map handles = CL_MAP_INIT;

static _Thread_local struct {
    const void *key;
    cl_handle *handle;
    unsigned version;
} remembered;

static _Thread_local cl_handle *serving;
static _Thread_local rd_kafka_resp_err_t last_refusal;
static _Thread_local char last_message[CL_ERROR_MESSAGE];

cl_handle *cl_handle_of(const void *kafka_object)
{
    unsigned version = atomic_load_explicit(&handles.version, memory_order_acquire);
    if (remembered.key != kafka_object || remembered.version != version) {
        remembered.handle = cl_map_get(&handles, kafka_object);
        remembered.key = kafka_object;
        remembered.version = version;
    }
    return remembered.handle;
}

bool cl_handle_note(const void *kafka_object, cl_handle *handle)
{
    return kafka_object != NULL && handle != NULL && cl_map_put(&handles, kafka_object, handle);
}

bool cl_handle_begin(cl_handle *handle)
{
    return cl_map_put(&handles, handle, handle);
}

void cl_handle_made(const rd_kafka_t *rk, cl_handle *handle)
{
    cl_map_rename(&handles, handle, rk);
}

void cl_handle_forget(const void *kafka_object)
{
    (void)cl_map_take(&handles, kafka_object);
}

void cl_handle_forget_all(const cl_handle *handle)
{
    cl_map_take_value(&handles, handle);
}

cl_handle *cl_handle_serving(void)
{
    return serving;
}

void cl_handle_serve(cl_handle *handle)
{
    serving = handle;
}

rd_kafka_resp_err_t cl_refuse(rd_kafka_resp_err_t code, const char *message)
{
    last_refusal = code;
    (void)snprintf(last_message, sizeof last_message, "%s", message);
    if (cl_kafka_preloaded()) {
        (void)fprintf(stderr, "cipherlane: %s\n", message);
    }
    errno = EACCES;
    return code;
}

rd_kafka_resp_err_t cl_refused(void)
{
    return last_refusal;
}

void cl_not_refused(void)
{
    last_refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
}

const char *cl_rd_kafka_refusal(void)
{
    return last_refusal == RD_KAFKA_RESP_ERR_NO_ERROR ? NULL : last_message;
}
