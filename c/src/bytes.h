/*
 * Bounds-checked reading and writing of bytes. All parsing of foreign bytes goes through cl_cursor; a function that
 * returns false has taken nothing.
 */
#ifndef CL_BYTES_H
#define CL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct cl_cursor {
    const uint8_t *at;
    size_t left;
} cl_cursor;

static inline bool cl_take(cl_cursor *cursor, size_t size, const uint8_t **taken)
{
    if (cursor->left < size) {
        return false;
    }
    *taken = cursor->at;
    cursor->at += size;
    cursor->left -= size;
    return true;
}

static inline bool cl_take_byte(cl_cursor *cursor, uint8_t *byte)
{
    const uint8_t *taken = NULL;
    if (!cl_take(cursor, 1, &taken)) {
        return false;
    }
    *byte = *taken;
    return true;
}

static inline void cl_store16(uint8_t out[2], uint16_t value)
{
    out[0] = (uint8_t)(value >> 8U);
    out[1] = (uint8_t)(value & 0xFFU);
}

static inline void cl_store32(uint8_t out[4], uint32_t value)
{
    cl_store16(out, (uint16_t)(value >> 16U));
    cl_store16(out + 2, (uint16_t)(value & 0xFFFFU));
}

#endif
