/* Strict JSON: the scanner looks at the text first, cJSON builds the tree, then members are compared. */
#include "json.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* A scan over text that may be changed. */
typedef struct scanner {
    uint8_t *at;
    size_t left;
} scanner;

static int peek(const scanner *scan)
{
    return scan->left > 0 ? *scan->at : -1;
}

static bool take(scanner *scan, size_t size, const uint8_t **taken)
{
    if (scan->left < size) {
        return false;
    }
    *taken = scan->at;
    scan->at += size;
    scan->left -= size;
    return true;
}

static bool take_byte(scanner *scan, uint8_t *byte)
{
    const uint8_t *taken = NULL;
    if (!take(scan, 1, &taken)) {
        return false;
    }
    *byte = *taken;
    return true;
}

static bool accept(scanner *scan, char c)
{
    const uint8_t *taken = NULL;
    return peek(scan) == c && take(scan, 1, &taken);
}

static void skip_space(scanner *scan)
{
    while (accept(scan, ' ') || accept(scan, '\t') || accept(scan, '\n') || accept(scan, '\r')) {
    }
}

static bool accept_word(scanner *scan, const char *word)
{
    const uint8_t *taken = NULL;
    size_t size = strlen(word);
    return scan->left >= size && memcmp(scan->at, word, size) == 0 && take(scan, size, &taken);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool digits(scanner *scan)
{
    const uint8_t *taken = NULL;
    if (!is_digit(peek(scan))) {
        return false;
    }
    while (is_digit(peek(scan))) {
        (void)take(scan, 1, &taken);
    }
    return true;
}

static bool exponent(scanner *scan)
{
    (void)(accept(scan, '+') || accept(scan, '-'));
    return digits(scan);
}

/* A number. One that is no integer has three characters at least, room for "". */
static bool number(scanner *scan)
{
    uint8_t *begin = scan->at;
    (void)accept(scan, '-');
    if (!accept(scan, '0') && !digits(scan)) {
        return false;
    }
    const uint8_t *whole = scan->at;
    bool good = !accept(scan, '.') || digits(scan);
    good = good && (!(accept(scan, 'e') || accept(scan, 'E')) || exponent(scan));
    if (good && scan->at != whole) {
        memset(begin, ' ', (size_t)(scan->at - begin));
        begin[0] = '"';
        begin[1] = '"';
    }
    return good;
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What follows a backslash. cJSON refuses lone surrogates; NUL would cut a C string short. */
static bool escape(scanner *scan)
{
    uint8_t c = 0;
    const uint8_t *hex = NULL;
    if (!take_byte(scan, &c)) {
        return false;
    }
    if (c != 'u') {
        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
    }
    return take(scan, 4, &hex) && is_hex(hex[0]) && is_hex(hex[1]) && is_hex(hex[2]) && is_hex(hex[3]) &&
           memcmp(hex, "0000", 4) != 0;
}

/* The rest of a UTF-8 sequence (RFC 3629: nothing overlong, no surrogates, nothing over 10FFFF). */
static bool utf8_rest(scanner *scan, uint8_t first)
{
    static const uint32_t SMALLEST[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
    const uint8_t *rest = NULL;
    if (first < 0xC2U || first > 0xF4U || !take(scan, length - 1, &rest)) {
        return false;
    }
    uint32_t point = first & (0x7FU >> length);
    for (size_t i = 0; i < length - 1; i++) {
        if ((rest[i] & 0xC0U) != 0x80U) {
            return false;
        }
        point = point << 6U | (rest[i] & 0x3FU);
    }
    return point >= SMALLEST[length] && point <= 0x10FFFFU && (point < 0xD800U || point > 0xDFFFU);
}

static bool string(scanner *scan)
{
    uint8_t c = 0;
    if (!accept(scan, '"')) {
        return false;
    }
    while (take_byte(scan, &c) && c >= 0x20U) {
        if (c == '"') {
            return true;
        }
        if ((c == '\\' && !escape(scan)) || (c >= 0x80U && !utf8_rest(scan, c))) {
            return false;
        }
    }
    return false;
}

static bool value(scanner *scan, unsigned depth);

static bool member(scanner *scan, unsigned depth)
{
    skip_space(scan);
    if (!string(scan)) {
        return false;
    }
    skip_space(scan);
    return accept(scan, ':') && value(scan, depth);
}

/* An object or array after its opening bracket. */
static bool container(scanner *scan, char closing, bool (*item)(scanner *, unsigned), unsigned depth)
{
    skip_space(scan);
    if (accept(scan, closing)) {
        return true;
    }
    do {
        if (!item(scan, depth)) {
            return false;
        }
        skip_space(scan);
    } while (accept(scan, ','));
    return accept(scan, closing);
}

static bool value(scanner *scan, unsigned depth)
{
    skip_space(scan);
    if (accept(scan, '{')) {
        return depth > 0 && container(scan, '}', member, depth - 1);
    }
    if (accept(scan, '[')) {
        return depth > 0 && container(scan, ']', value, depth - 1);
    }
    if (peek(scan) == '"') {
        return string(scan);
    }
    return accept_word(scan, "true") || accept_word(scan, "false") || accept_word(scan, "null") || number(scan);
}

static bool well_formed(uint8_t *text, size_t size)
{
    scanner scan = {text, size};
    bool whole = value(&scan, CL_JSON_DEPTH);
    skip_space(&scan);
    return whole && scan.left == 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorted, so that a hostile answer with very many members does not cost their square. */
static bool names_differ(const cJSON *object)
{
    size_t count = (size_t)cJSON_GetArraySize(object);
    const char **names = count < 2 ? NULL : malloc(count * sizeof *names);
    if (names == NULL) {
        return count < 2;
    }
    size_t filled = 0;
    for (const cJSON *each = object->child; each != NULL; each = each->next) {
        names[filled++] = each->string;
    }
    qsort((void *)names, count, sizeof *names, by_name);
    bool differ = true;
    for (size_t i = 1; i < count; i++) {
        differ = differ && strcmp(names[i - 1], names[i]) != 0;
    }
    free((void *)names);
    return differ;
}

/* Whether no object in the tree has a duplicate member; the depth is bounded by the scanner. */
static bool unambiguous(const cJSON *tree)
{
    if (cJSON_IsObject(tree) && !names_differ(tree)) {
        return false;
    }
    for (const cJSON *each = tree->child; each != NULL; each = each->next) {
        if (!unambiguous(each)) {
            return false;
        }
    }
    return true;
}

cJSON *cl_json_parse(uint8_t *text, size_t size)
{
    if (!well_formed(text, size)) {
        return NULL;
    }
    cJSON *tree = cJSON_ParseWithLength((const char *)text, size);
    if (tree != NULL && !unambiguous(tree)) {
        cl_json_free(tree);
        return NULL;
    }
    return tree;
}

static void wipe(cJSON *tree)
{
    for (cJSON *each = tree; each != NULL; each = each->next) {
        if (each->valuestring != NULL) {
            OPENSSL_cleanse(each->valuestring, strlen(each->valuestring));
        }
        wipe(each->child);
    }
}

void cl_json_free(cJSON *tree)
{
    wipe(tree);
    cJSON_Delete(tree);
}

const char *cl_json_string(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

bool cl_json_integer(const cJSON *object, const char *name, uint32_t low, uint32_t high, uint32_t *value)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(found) || found->valuedouble < low || found->valuedouble > high) {
        return false;
    }
    *value = (uint32_t)found->valuedouble;
    return (double)*value == found->valuedouble;
}
