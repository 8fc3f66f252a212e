/*
 * From a pointer of librdkafka to ours. librdkafka's objects have no place for a pointer of a third party, so this is the one place
 * with process-wide state. Thread-safe.
 */
#ifndef CL_MAP_H
#define CL_MAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CL_MAP_BUCKETS 1024U

typedef struct cl_map_node {
    struct cl_map_node *next;
    const void *key;
    void *value;
} cl_map_node;

typedef struct cl_map {
    pthread_mutex_t mutex;
    atomic_uint version; /* changes whenever a key is taken out or gets another value */
    atomic_uint count;
    cl_map_node *buckets[CL_MAP_BUCKETS];
} cl_map;

#define CL_MAP_INIT {.mutex = PTHREAD_MUTEX_INITIALIZER}

/* Sets the value of a key; false without memory. */
bool cl_map_put(cl_map *map, const void *key, void *value);

/* The value of a key, or NULL. */
void *cl_map_get(cl_map *map, const void *key);

/* Takes a key out and gives its value back, or NULL. */
void *cl_map_take(cl_map *map, const void *key);

/* Gives the value of a key to another key, without needing memory. */
void cl_map_rename(cl_map *map, const void *key, const void *fresh);

/* Takes out all keys with a value. */
void cl_map_take_value(cl_map *map, const void *value);

#endif
