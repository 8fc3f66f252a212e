/* A hash table with chains under one mutex; the hot path does not come here (handle.c remembers per thread). */
#include "map.h"

#include <stdint.h>
#include <stdlib.h>

static cl_map_node **place(cl_map *map, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    cl_map_node **node = &map->buckets[hash >> 54U];
    while (*node != NULL && (*node)->key != key) {
        node = &(*node)->next;
    }
    return node;
}

static void changed(cl_map *map)
{
    (void)atomic_fetch_add_explicit(&map->version, 1, memory_order_release);
}

bool cl_map_put(cl_map *map, const void *key, void *value)
{
    (void)pthread_mutex_lock(&map->mutex);
    cl_map_node **node = place(map, key);
    bool fresh = *node == NULL;
    if (fresh) {
        *node = calloc(1, sizeof **node);
        (void)atomic_fetch_add(&map->count, *node == NULL ? 0 : 1);
    }
    bool stored = *node != NULL;
    if (stored) {
        (*node)->key = key;
        (*node)->value = value;
        changed(map);
    }
    (void)pthread_mutex_unlock(&map->mutex);
    return stored;
}

void *cl_map_get(cl_map *map, const void *key)
{
    (void)pthread_mutex_lock(&map->mutex);
    const cl_map_node *node = *place(map, key);
    void *value = node == NULL ? NULL : node->value;
    (void)pthread_mutex_unlock(&map->mutex);
    return value;
}

static void *take(cl_map *map, cl_map_node **node)
{
    cl_map_node *taken = *node;
    void *value = taken->value;
    *node = taken->next;
    free(taken);
    (void)atomic_fetch_sub(&map->count, 1);
    changed(map);
    return value;
}

void *cl_map_take(cl_map *map, const void *key)
{
    if (atomic_load(&map->count) == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&map->mutex);
    cl_map_node **node = place(map, key);
    void *value = *node == NULL ? NULL : take(map, node);
    (void)pthread_mutex_unlock(&map->mutex);
    return value;
}

void cl_map_rename(cl_map *map, const void *key, const void *fresh)
{
    (void)pthread_mutex_lock(&map->mutex);
    cl_map_node **from = place(map, key);
    cl_map_node *node = *from;
    if (node != NULL) {
        *from = node->next;
        cl_map_node **to = place(map, fresh);
        node->key = fresh;
        node->next = *to;
        *to = node;
        changed(map);
    }
    (void)pthread_mutex_unlock(&map->mutex);
}

void cl_map_take_value(cl_map *map, const void *value)
{
    (void)pthread_mutex_lock(&map->mutex);
    for (unsigned i = 0; i < CL_MAP_BUCKETS; i++) {
        cl_map_node **node = &map->buckets[i];
        while (*node != NULL) {
            if ((*node)->value == value) {
                (void)take(map, node);
            } else {
                node = &(*node)->next;
            }
        }
    }
    (void)pthread_mutex_unlock(&map->mutex);
}
