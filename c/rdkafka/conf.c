/* Configurations and handles: what is set, made and destroyed. */
#include "delivery.h"

#include "client.h"
#include "consume.h"
#include "letters.h"
#include "transport.h"

#include <cipherlane/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "cipherlane"

/* Hangs on an rd_kafka_conf_t as the opaque of its interceptors, which librdkafka copies and destroys with it. */
typedef struct conf_state {
    cl_config *config;
    cl_callbacks callbacks;
    cl_error broken; /* the preload library's file could not be read */
    cl_pump *pump;   /* of the handle that is made from it */
} conf_state;

static cl_map states = CL_MAP_INIT;

static rd_kafka_conf_res_t on_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *errstr,
                                       size_t errstr_size, void *opaque)
{
    conf_state *state = opaque;
    cl_error error = {0};
    (void)conf;
    if (strcmp(name, "interceptor.classes") == 0 && value != NULL && strcmp(value, NAME) == 0) {
        return RD_KAFKA_CONF_OK;
    }
    if (!cl_config_ours(name)) { /* librdkafka's own; one of them says what rd_kafka_conf_set_events says */
        if (strcmp(name, "enabled_events") == 0 && value != NULL) {
            state->callbacks.dr_events = (strtol(value, NULL, 0) & RD_KAFKA_EVENT_DR) != 0;
        }
        return RD_KAFKA_CONF_UNKNOWN;
    }
    if (cl_config_set(state->config, name, value == NULL ? "" : value, &error) != CL_OK) {
        (void)snprintf(errstr, errstr_size, "%s", error.message);
        return RD_KAFKA_CONF_INVALID;
    }
    return RD_KAFKA_CONF_OK;
}

static rd_kafka_resp_err_t on_conf_destroy(void *opaque)
{
    conf_state *state = opaque;
    cl_map_take_value(&states, state);
    cl_config_free(state->config);
    free(state);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_conf_dup(rd_kafka_conf_t *fresh, const rd_kafka_conf_t *old, size_t filter_cnt,
                                       const char **filter, void *opaque);

static rd_kafka_resp_err_t on_thread_start(rd_kafka_t *rk, rd_kafka_thread_type_t type, const char *name, void *opaque)
{
    (void)type, (void)name;
    cl_pump_serve(opaque, rk);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *errstr,
                                  size_t errstr_size)
{
    const conf_state *state = opaque;
    (void)conf, (void)errstr, (void)errstr_size;
    return state->pump == NULL
               ? RD_KAFKA_RESP_ERR_NO_ERROR
               : cl_kafka()->rd_kafka_interceptor_add_on_thread_start(rk, NAME, on_thread_start, state->pump);
}

static conf_state *new_state(void)
{
    conf_state *state = calloc(1, sizeof *state);
    cl_config *config = cl_config_new();
    if (state == NULL || config == NULL) {
        free(state);
        cl_config_free(config);
        return NULL;
    }
    state->config = config;
    return state;
}

/* Hangs the state on a configuration; frees it when that fails. */
static conf_state *attach(rd_kafka_conf_t *conf, conf_state *state)
{
    const kafka_api *kafka = cl_kafka();
    if (state == NULL) {
        return NULL;
    }
    if (!cl_map_put(&states, conf, state) ||
        kafka->rd_kafka_conf_interceptor_add_on_conf_set(conf, NAME, on_conf_set, state) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        kafka->rd_kafka_conf_interceptor_add_on_conf_dup(conf, NAME, on_conf_dup, state) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        kafka->rd_kafka_conf_interceptor_add_on_new(conf, NAME, on_new, state) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        kafka->rd_kafka_conf_interceptor_add_on_conf_destroy(conf, NAME, on_conf_destroy, state) !=
            RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)on_conf_destroy(state);
        return NULL;
    }
    return state;
}

/* librdkafka may have made the copy with our rd_kafka_conf_new: then it has a state already. */
static rd_kafka_resp_err_t on_conf_dup(rd_kafka_conf_t *fresh, const rd_kafka_conf_t *old, size_t filter_cnt,
                                       const char **filter, void *opaque)
{
    const conf_state *from = opaque;
    conf_state *to = cl_map_get(&states, fresh);
    (void)old, (void)filter_cnt, (void)filter;
    to = to == NULL ? attach(fresh, new_state()) : to;
    if (to != NULL) {
        *to->config = *from->config;
        to->callbacks = from->callbacks;
        to->broken = from->broken;
        to->pump = from->pump;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void load_preload_file(conf_state *state)
{
    const char *path = getenv("CIPHERLANE_CONFIG"); /* NOLINT(concurrency-mt-unsafe): nobody here sets it */
    if (path == NULL) {
        state->broken.code = CL_CONFIGURATION_INVALID;
        (void)snprintf(state->broken.message, sizeof state->broken.message,
                       "configuration-invalid: CIPHERLANE_CONFIG does not name a file of settings");
    } else {
        (void)cl_config_load(state->config, path, &state->broken);
    }
}

rd_kafka_conf_t *cl_rd_kafka_conf_new(void)
{
    rd_kafka_conf_t *conf = cl_kafka()->rd_kafka_conf_new();
    conf_state *state = attach(conf, new_state());
    if (state != NULL && cl_kafka_preloaded()) {
        load_preload_file(state);
    }
    return conf; /* without a state cl_rd_kafka_new refuses it */
}

/* The callbacks that a configuration notes; of one that is not ours nobody asks for them. */
static cl_callbacks *callbacks_of(const rd_kafka_conf_t *conf)
{
    static _Thread_local cl_callbacks nobody;
    conf_state *state = cl_map_get(&states, conf);
    return state == NULL ? &nobody : &state->callbacks;
}

void cl_rd_kafka_conf_set_dr_cb(rd_kafka_conf_t *conf, cl_dr_cb dr_cb)
{
    callbacks_of(conf)->dr = dr_cb;
    cl_kafka()->rd_kafka_conf_set_dr_cb(conf, dr_cb == NULL ? NULL : cl_on_delivery_old);
}

void cl_rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *conf, cl_dr_msg_cb dr_msg_cb)
{
    callbacks_of(conf)->dr_msg = dr_msg_cb;
    cl_kafka()->rd_kafka_conf_set_dr_msg_cb(conf, dr_msg_cb == NULL ? NULL : cl_on_delivery);
}

void cl_rd_kafka_conf_set_consume_cb(rd_kafka_conf_t *conf, cl_consume_cb consume_cb)
{
    callbacks_of(conf)->consume = consume_cb;
    cl_kafka()->rd_kafka_conf_set_consume_cb(conf, consume_cb == NULL ? NULL : cl_on_consume);
}

void cl_rd_kafka_conf_set_events(rd_kafka_conf_t *conf, int events)
{
    callbacks_of(conf)->dr_events = (events & RD_KAFKA_EVENT_DR) != 0;
    cl_kafka()->rd_kafka_conf_set_events(conf, events);
}

static void free_handle(cl_handle *handle)
{
    if (handle != NULL) {
        cl_handle_forget_all(handle);
        cl_letters_close(handle);
        cl_pump_free(handle->pump);
        cl_client_free(handle->client);
        (void)pthread_mutex_destroy(&handle->mutex);
        free(handle);
    }
}

/* The handle of a configuration, not yet of an rd_kafka_t; NULL with errstr set. */
static cl_handle *new_handle(const conf_state *state, char *errstr, size_t errstr_size)
{
    cl_error error = {.message = "configuration-invalid: the configuration was not made by cl_rd_kafka_conf_new"};
    cl_handle *handle = calloc(1, sizeof *handle);
    if (handle != NULL) {
        (void)pthread_mutex_init(&handle->mutex, NULL);
    }
    if (state != NULL && handle != NULL) {
        error = state->broken;
        if (error.code == CL_OK && cl_client_new(&handle->client, state->config, &error) == CL_OK) {
            handle->callbacks = state->callbacks;
            if (cl_handle_begin(handle)) {
                return handle;
            }
            (void)snprintf(error.message, sizeof error.message, "internal: no memory");
        }
    }
    free_handle(handle);
    if (errstr != NULL) {
        (void)snprintf(errstr, errstr_size, "%s", error.message);
    }
    (void)cl_refuse(RD_KAFKA_RESP_ERR__INVALID_ARG, error.message);
    return NULL;
}

/* TLS under the identity's certificate, where the configuration asks for it. */
static bool begin_transport(cl_handle *handle, conf_state *state, rd_kafka_conf_t *conf, char *errstr,
                            size_t errstr_size)
{
    cl_error error = {0};
    if (cl_transport_begin(conf, &handle->client->settings, &handle->pump, &error) != CL_OK) {
        if (errstr != NULL) {
            (void)snprintf(errstr, errstr_size, "%s", error.message);
        }
        (void)cl_refuse(RD_KAFKA_RESP_ERR__INVALID_ARG, error.message);
        return false;
    }
    state->pump = handle->pump;
    return true;
}

/* While an rd_kafka_t is being destroyed nothing is logged with it. */
static void begin_end(const cl_handle *handle)
{
    if (handle != NULL && handle->pump != NULL) {
        cl_pump_mute(handle->pump);
    }
}

rd_kafka_t *cl_rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *errstr, size_t errstr_size)
{
    rd_kafka_conf_t *own = conf == NULL ? cl_rd_kafka_conf_new() : conf;
    conf_state *state = cl_map_get(&states, own);
    cl_handle *handle = new_handle(state, errstr, errstr_size);
    if (handle != NULL && !begin_transport(handle, state, own, errstr, errstr_size)) {
        free_handle(handle);
        handle = NULL;
    }
    if (handle != NULL && type == RD_KAFKA_CONSUMER && handle->client->settings.action == CL_ACTION_DEAD_LETTER) {
        handle->letters_conf = cl_letters_conf(own);
    }
    rd_kafka_t *rk = handle == NULL ? NULL : cl_kafka()->rd_kafka_new(type, own, errstr, errstr_size);
    if (rk == NULL) {
        free_handle(handle);
        if (conf == NULL) {
            cl_kafka()->rd_kafka_conf_destroy(own);
        }
        return NULL;
    }
    (void)cl_map_take(&states, own); /* librdkafka has freed it and kept what was in it */
    cl_handle_made(rk, handle);
    cl_not_refused();
    return rk;
}

void cl_rd_kafka_destroy(rd_kafka_t *rk)
{
    cl_handle *handle = cl_handle_of(rk);
    begin_end(handle);
    cl_kafka()->rd_kafka_destroy(rk);
    free_handle(handle);
}

void cl_rd_kafka_destroy_flags(rd_kafka_t *rk, int flags)
{
    cl_handle *handle = cl_handle_of(rk);
    begin_end(handle);
    cl_kafka()->rd_kafka_destroy_flags(rk, flags);
    free_handle(handle);
}

rd_kafka_resp_err_t cl_rd_kafka_numbers(rd_kafka_t *rk, cl_numbers *numbers)
{
    cl_handle *handle = cl_handle_of(rk);
    bool told = handle != NULL && cl_client_numbers(handle->client, numbers, NULL) == CL_OK;
    return told ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__INVALID_ARG;
}

rd_kafka_resp_err_t cl_rd_kafka_last_error(void)
{
    rd_kafka_resp_err_t refused = cl_refused();
    return refused == RD_KAFKA_RESP_ERR_NO_ERROR ? cl_kafka()->rd_kafka_last_error() : refused;
}

rd_kafka_topic_t *cl_rd_kafka_topic_new(rd_kafka_t *rk, const char *topic, rd_kafka_topic_conf_t *conf)
{
    rd_kafka_topic_t *rkt = cl_kafka()->rd_kafka_topic_new(rk, topic, conf);
    (void)cl_handle_note(rkt, cl_handle_of(rk));
    return rkt;
}

static rd_kafka_queue_t *noted(rd_kafka_queue_t *queue, const rd_kafka_t *rk)
{
    (void)cl_handle_note(queue, cl_handle_of(rk));
    return queue;
}

rd_kafka_queue_t *cl_rd_kafka_queue_new(rd_kafka_t *rk)
{
    return noted(cl_kafka()->rd_kafka_queue_new(rk), rk);
}

rd_kafka_queue_t *cl_rd_kafka_queue_get_main(rd_kafka_t *rk)
{
    return noted(cl_kafka()->rd_kafka_queue_get_main(rk), rk);
}

rd_kafka_queue_t *cl_rd_kafka_queue_get_consumer(rd_kafka_t *rk)
{
    return noted(cl_kafka()->rd_kafka_queue_get_consumer(rk), rk);
}

rd_kafka_queue_t *cl_rd_kafka_queue_get_partition(rd_kafka_t *rk, const char *topic, int32_t partition)
{
    return noted(cl_kafka()->rd_kafka_queue_get_partition(rk, topic, partition), rk);
}

rd_kafka_queue_t *cl_rd_kafka_queue_get_background(rd_kafka_t *rk)
{
    return noted(cl_kafka()->rd_kafka_queue_get_background(rk), rk);
}

void cl_rd_kafka_queue_destroy(rd_kafka_queue_t *rkqu)
{
    cl_handle_forget(rkqu);
    cl_kafka()->rd_kafka_queue_destroy(rkqu);
}
