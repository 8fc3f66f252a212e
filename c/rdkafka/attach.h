/* Memory that lives as long as a message or an event of librdkafka, whose address is its key. Thread-safe. */
#ifndef CL_ATTACH_H
#define CL_ATTACH_H

#include "map.h"

#include <stddef.h>
#include <stdint.h>

/* `size` bytes until cl_detach; NULL without memory. */
uint8_t *cl_attach(const void *owner, size_t size);

/* Frees all memory of an owner; costs nothing while no message has any. */
void cl_detach(const void *owner);

#endif
