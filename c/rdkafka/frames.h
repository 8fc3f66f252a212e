/* Where a stream of Kafka's frames (a big-endian int32 length, then so many bytes) is at a boundary. Pure; one direction of one connection. */
#ifndef CL_FRAMES_H
#define CL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cl_frames {
    uint8_t head[4];
    size_t have;   /* bytes of the length read so far */
    size_t left;   /* bytes of the frame to come */
    uint64_t done; /* whole frames */
} cl_frames;

/* Follows what was sent. */
static inline void cl_frames_follow(cl_frames *frames, const uint8_t *data, size_t size)
{
    while (size > 0) {
        if (frames->have < sizeof frames->head) {
            frames->head[frames->have++] = *data++;
            size--;
            const uint8_t *h = frames->head;
            frames->left = (size_t)h[0] << 24U | (size_t)h[1] << 16U | (size_t)h[2] << 8U | h[3];
        }
        if (frames->have == sizeof frames->head) {
            size_t step = size < frames->left ? size : frames->left;
            frames->left -= step;
            data += step;
            size -= step;
            bool whole = frames->left == 0;
            frames->have = whole ? 0 : frames->have;
            frames->done += whole ? 1 : 0;
        }
    }
}

/* How many bytes may follow before the next boundary is looked for; 0: here is one. */
static inline size_t cl_frames_rest(const cl_frames *frames)
{
    return frames->have == 0                    ? 0
           : frames->have < sizeof frames->head ? sizeof frames->head - frames->have
                                                : frames->left;
}

#endif
