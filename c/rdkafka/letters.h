/*
 * What becomes of records that will never be readable: left out, or first put into the dead-letter topic by a producer with the consumer's own
 * connection and security settings [CL-KAF-021] [CL-KAF-022].
 */
#ifndef CL_LETTERS_H
#define CL_LETTERS_H

#include "handle.h"

/* The header by which a client says why a value is still encrypted, or is a dead letter. */
#define CL_ERROR_HEADER "cipherlane.error"

/* A message that failed, in the order of its batch. */
typedef struct cl_letter {
    struct cl_letter *next;
    rd_kafka_message_t *message;
    const void *owner;
    cl_error error;
    bool wanted;                /* it goes to the dead-letter topic */
    rd_kafka_resp_err_t result; /* of the broker */
    const char *why;            /* not left out; NULL: it is */
    unsigned *pending;          /* how many of the batch the broker has not answered */
} cl_letter;

/* The configuration for dead letters, from the consumer's before librdkafka takes it. */
rd_kafka_conf_t *cl_letters_conf(const rd_kafka_conf_t *conf);

/* Sends those that are wanted and waits until the broker has answered each; sets `why` of those that failed [CL-KAF-023]. */
void cl_letters_send(cl_handle *handle, cl_letter *letters);

/* Ends the producer, if there is one. */
void cl_letters_close(cl_handle *handle);

#endif
