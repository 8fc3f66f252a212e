/* Levenshtein distance over the first 63 characters, which is enough for a hint. */
#include "nearest.h"

#include <string.h>

#define LONGEST 63U

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *left, const char *right)
{
    size_t row[LONGEST + 1];
    size_t width = strnlen(right, LONGEST);
    for (size_t i = 0; i <= width; i++) {
        row[i] = i;
    }
    for (size_t i = 0; i < LONGEST && left[i] != '\0'; i++) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < width; j++) {
            size_t changed = diagonal + (left[i] == right[j] ? 0U : 1U);
            diagonal = row[j + 1];
            row[j + 1] = least(changed, least(row[j], row[j + 1]) + 1);
        }
    }
    return row[width];
}

const char *cl_nearest(const char *wrong, const char *const *names, size_t count)
{
    const char *best = names[0];
    for (size_t i = 1; i < count; i++) {
        if (distance(wrong, names[i]) < distance(wrong, best)) {
            best = names[i];
        }
    }
    return best;
}
