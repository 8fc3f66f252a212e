/* What the binding knows of an rd_kafka_t, and of a configuration before there is one. */
#ifndef CL_HANDLE_H
#define CL_HANDLE_H

#include "api.h"
#include "map.h"

#include <cipherlane/cipherlane.h>

typedef void (*cl_dr_cb)(rd_kafka_t *, void *, size_t, rd_kafka_resp_err_t, void *, void *);
typedef void (*cl_dr_msg_cb)(rd_kafka_t *, const rd_kafka_message_t *, void *);
typedef void (*cl_consume_cb)(rd_kafka_message_t *, void *);

/* The application's callbacks, which ours stand in for. */
typedef struct cl_callbacks {
    cl_dr_cb dr;
    cl_dr_msg_cb dr_msg;
    cl_consume_cb consume;
    bool dr_events;
} cl_callbacks;

typedef struct cl_handle {
    cl_client *client;
    struct cl_pump *pump; /* for connections under the identity's certificate, or NULL */
    cl_callbacks callbacks;
    pthread_mutex_t mutex;         /* guards what follows (letters.c) */
    rd_kafka_conf_t *letters_conf; /* for the producer of dead letters, until there is one */
    rd_kafka_t *letters;
} cl_handle;

/* The handle of an rd_kafka_t, a topic, a queue or an event; NULL: none of ours. */
cl_handle *cl_handle_of(const void *kafka_object);

/* Notes that an object belongs to a handle; false without memory, and if one of them is NULL: then the object stays unknown and is refused. */
bool cl_handle_note(const void *kafka_object, cl_handle *handle);

/* Notes a handle before its rd_kafka_t is made, and that it is made. */
bool cl_handle_begin(cl_handle *handle);
void cl_handle_made(const rd_kafka_t *rk, cl_handle *handle);

void cl_handle_forget(const void *kafka_object);
void cl_handle_forget_all(const cl_handle *handle);

/* The handle whose callbacks the calling thread is serving. */
cl_handle *cl_handle_serving(void);
void cl_handle_serve(cl_handle *handle);

/* What the calling thread was refused, for rd_kafka_last_error; the message also goes to standard error in the preload library. */
rd_kafka_resp_err_t cl_refuse(rd_kafka_resp_err_t code, const char *message);

/* The code of the last refusal of this thread, RD_KAFKA_RESP_ERR_NO_ERROR after a call that was not refused. */
rd_kafka_resp_err_t cl_refused(void);
void cl_not_refused(void);

#endif
