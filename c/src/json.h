/*
 * Strict JSON on top of cJSON, which by itself takes duplicate members, NUL characters, broken UTF-8, odd numbers and a
 * thousand levels of depth.
 */
#ifndef CL_JSON_H
#define CL_JSON_H

#include <cipherlane/cipherlane.h>
#include <cjson/cJSON.h>

#define CL_JSON_DEPTH 8U

/*
 * The tree, or NULL when the text is not one RFC 8259 value in valid UTF-8 without NUL characters, is more than 8 levels
 * deep, has a duplicate member, or when memory failed. Changes the text: a number with a fraction or an exponent, which
 * nothing here takes and cJSON cannot tell from an integer, becomes an empty string.
 */
cJSON *cl_json_parse(uint8_t *text, size_t size);

/* Wipes all strings and frees the tree. */
void cl_json_free(cJSON *tree);

/* The text of a member, or NULL when it is missing or no string. */
const char *cl_json_string(const cJSON *object, const char *name);

/* Reads a member that is an integer from `low` to `high`; false when it is not. */
bool cl_json_integer(const cJSON *object, const char *name, uint32_t low, uint32_t high, uint32_t *value);

#endif
