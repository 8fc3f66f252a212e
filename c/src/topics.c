/* Globs over topic names and SPIFFE ids. */
#include "topics.h"

#include <stdio.h>
#include <string.h>

/* The next item of a comma-separated list, without blanks around it; false at the end. */
static bool next_item(const char **list, cl_bytes *item)
{
    if (*list == NULL) {
        return false;
    }
    const char *from = *list + strspn(*list, " \t");
    const char *comma = strchr(from, ',');
    size_t size = comma == NULL ? strlen(from) : (size_t)(comma - from);
    while (size > 0 && strchr(" \t", from[size - 1]) != NULL) {
        size--;
    }
    *item = (cl_bytes){(const uint8_t *)from, size};
    *list = comma == NULL ? NULL : comma + 1;
    return true;
}

bool cl_topics_valid(const char *list)
{
    static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-*?";
    cl_bytes item;
    if (*list == '\0') {
        return true;
    }
    while (next_item(&list, &item)) {
        if (item.size == 0 || item.size > CL_SCOPE_MAX || strspn((const char *)item.data, ALLOWED) < item.size) {
            return false;
        }
    }
    return true;
}

/*
 * Goes back to the last star when a character does not fit; linear in practice, quadratic at most. No wildcard matches `stop` (NUL: each matches
 * everything).
 */
static bool matches(cl_bytes glob, cl_bytes name, char stop)
{
    size_t at = 0;
    size_t i = 0;
    size_t star = SIZE_MAX;
    size_t resume = 0;
    while (i < name.size) {
        bool wild = stop == '\0' || name.data[i] != (uint8_t)stop;
        if (at < glob.size && glob.data[at] == '*') {
            star = at++;
            resume = i;
        } else if (at < glob.size && ((glob.data[at] == '?' && wild) || glob.data[at] == name.data[i])) {
            at++;
            i++;
        } else if (star != SIZE_MAX && (stop == '\0' || name.data[resume] != (uint8_t)stop)) {
            at = star + 1;
            i = ++resume;
        } else {
            return false;
        }
    }
    while (at < glob.size && glob.data[at] == '*') {
        at++;
    }
    return at == glob.size;
}

bool cl_topics_have(const char *list, const char *topic)
{
    cl_bytes item;
    const cl_bytes name = {(const uint8_t *)topic, strlen(topic)};
    while (name.size > 0 && next_item(&list, &item)) {
        if (matches(item, name, '\0')) {
            return true;
        }
    }
    return false;
}

static const char SPIFFE[] = "spiffe://";

bool cl_ids_valid(const char *list)
{
    cl_bytes item;
    if (*list == '\0') {
        return true;
    }
    while (next_item(&list, &item)) {
        if (item.size <= sizeof SPIFFE - 1 || memcmp(item.data, SPIFFE, sizeof SPIFFE - 1) != 0 ||
            memchr(item.data, ' ', item.size) != NULL) {
            return false;
        }
    }
    return true;
}

static size_t slashes(cl_bytes text)
{
    size_t found = 0;
    for (size_t i = 0; i < text.size; i++) {
        found += text.data[i] == '/' ? 1 : 0;
    }
    return found;
}

/* A pattern that ends in / and two stars: what is before it matches the id up to the same number of slashes, and something follows. */
static bool below(cl_bytes pattern, cl_bytes id)
{
    const cl_bytes prefix = {pattern.data, pattern.size - 3};
    size_t left = slashes(prefix) + 1;
    for (size_t i = 0; i < id.size; i++) {
        left -= id.data[i] == '/' ? 1 : 0;
        if (left == 0) {
            return i + 1 < id.size && matches(prefix, (cl_bytes){id.data, i}, '/');
        }
    }
    return false;
}

bool cl_ids_have(const char *list, const char *id)
{
    cl_bytes item;
    const cl_bytes name = {(const uint8_t *)id, strlen(id)};
    while (*id != '\0' && next_item(&list, &item)) {
        bool open = item.size > 3 && memcmp(item.data + item.size - 3, "/**", 3) == 0;
        if (open ? below(item, name) : matches(item, name, '/')) {
            return true;
        }
    }
    return false;
}

bool cl_dead_letter_topic(const char *pattern, const char *topic, char out[CL_SCOPE_MAX + 1])
{
    static const char MARK[] = "{topic}";
    size_t size = 0;
    while (*pattern != '\0') {
        bool mark = strncmp(pattern, MARK, sizeof MARK - 1) == 0;
        size_t length = mark ? strlen(topic) : 1;
        if (length > CL_SCOPE_MAX - size) {
            return false;
        }
        memcpy(out + size, mark ? topic : pattern, length);
        size += length;
        pattern += mark ? sizeof MARK - 1 : 1;
    }
    out[size] = '\0';
    return cl_name_valid(out);
}
