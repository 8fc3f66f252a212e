/* Consumed messages are decrypted in place, or meet the failure action (spec/kafka.md). */
#ifndef CL_OPEN_H
#define CL_OPEN_H

#include "handle.h"

/*
 * Opens messages and leaves out of the array those that the application is not to get; gives back how many stay. `handle` may be NULL when
 * it is not known. What a message needs beside itself lives as long as `owner` (NULL: as each message). `discard` (or NULL) is called for
 * what was left out.
 */
size_t cl_open(cl_handle *handle, rd_kafka_message_t **messages, size_t count, const void *owner,
               void (*discard)(rd_kafka_message_t *message));

#endif
