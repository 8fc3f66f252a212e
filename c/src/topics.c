/* Globs over topic names. */
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

/* Goes back to the last star when a character does not fit; linear in practice, quadratic at most. */
static bool matches(cl_bytes glob, const char *name)
{
    size_t at = 0;
    size_t star = SIZE_MAX;
    const char *resume = name;
    while (*name != '\0') {
        if (at < glob.size && glob.data[at] == '*') {
            star = at++;
            resume = name;
        } else if (at < glob.size && (glob.data[at] == '?' || glob.data[at] == (uint8_t)*name)) {
            at++;
            name++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            name = ++resume;
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
    while (*topic != '\0' && next_item(&list, &item)) {
        if (matches(item, topic)) {
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
