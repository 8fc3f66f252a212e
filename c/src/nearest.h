/* The nearest name to one that was misspelt. */
#ifndef CL_NEAREST_H
#define CL_NEAREST_H

#include <stddef.h>

/* The name with the least edit distance; `count` is at least 1. */
const char *cl_nearest(const char *wrong, const char *const *names, size_t count);

#endif
