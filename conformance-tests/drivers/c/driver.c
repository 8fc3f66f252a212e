/*
 * The conformance driver of the C SDK (spec/conformance.md). Built twice: with the drop-in (DROP_IN), and as a program that knows nothing
 * of Cipherlane, to be run under the preload library.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *failure;

cJSON *error_of(const char *code, const char *message)
{
    cJSON *error = cJSON_CreateObject();
    cJSON_AddStringToObject(error, "code", code);
    cJSON_AddStringToObject(error, "message", message);
    return error;
}

cJSON *fail(const char *code, const char *message)
{
    cJSON_Delete(failure);
    failure = error_of(code, message);
    return NULL;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

text from_hex(const cJSON *item)
{
    if (!cJSON_IsString(item)) {
        return (text){NULL, 0};
    }
    size_t size = strlen(item->valuestring) / 2;
    text out = {malloc(size + 1), size};
    for (size_t i = 0; out.data != NULL && i < size; i++) {
        out.data[i] = (uint8_t)(digit(item->valuestring[2 * i]) << 4 | digit(item->valuestring[2 * i + 1]));
    }
    return out;
}

cJSON *to_hex(const void *data, size_t size)
{
    static const char DIGITS[] = "0123456789abcdef";
    const uint8_t *bytes = data;
    char *hex = data == NULL ? NULL : malloc(2 * size + 1);
    if (hex == NULL) {
        return cJSON_CreateNull();
    }
    for (size_t i = 0; i < size; i++) {
        hex[2 * i] = DIGITS[bytes[i] >> 4];
        hex[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    hex[2 * size] = '\0';
    cJSON *item = cJSON_CreateString(hex);
    free(hex);
    return item;
}

const char *string_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static operation hello;

static const struct {
    const char *name;
    operation *run;
} OPERATIONS[] = {
    {"hello", hello},
#ifdef DROP_IN
    {"open", core_open},
    {"rotate", core_rotate},
    {"encrypt", core_encrypt},
    {"decrypt", core_decrypt},
    {"decrypt-all", core_decrypt_all},
    {"xaes-decrypt", core_xaes_decrypt},
    {"primitive", core_primitive},
#endif
    {"produce", kafka_produce},
    {"consume", kafka_consume},
    {"load", kafka_load},
    {"soak-write", kafka_soak_write},
    {"soak-read", kafka_soak_read},
};
#define COUNT (sizeof OPERATIONS / sizeof OPERATIONS[0])

static cJSON *hello(const cJSON *request)
{
    (void)request;
    cJSON *ok = cJSON_CreateObject();
    cJSON_AddNumberToObject(ok, "protocol", 1);
#ifdef DROP_IN
    cJSON_AddStringToObject(ok, "name", "c drop-in");
#else
    cJSON_AddStringToObject(ok, "name", "c preload");
#endif
    cJSON_AddStringToObject(ok, "version", "0.1.0");
    cJSON *operations = cJSON_AddArrayToObject(ok, "operations");
    for (size_t i = 0; i < COUNT; i++) {
        cJSON_AddItemToArray(operations, cJSON_CreateString(OPERATIONS[i].name));
    }
    cJSON *features = cJSON_AddArrayToObject(ok, "features");
    static const char *const FEATURES[] = {"transactions", "record-key", "compression", "failure-actions"};
    for (size_t i = 0; i < sizeof FEATURES / sizeof FEATURES[0]; i++) {
        cJSON_AddItemToArray(features, cJSON_CreateString(FEATURES[i]));
    }
    return ok;
}

static cJSON *run(const cJSON *request)
{
    const char *name = string_of(request, "op");
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(OPERATIONS[i].name, name) == 0) {
            return OPERATIONS[i].run(request);
        }
    }
    return fail("unsupported-operation", name);
}

static void answer(const char *line)
{
    cJSON *request = cJSON_Parse(line);
    cJSON *ok = request == NULL ? fail("driver", "a line that is not JSON") : run(request);
    cJSON *out = cJSON_CreateObject();
    cJSON_AddItemToObject(out, "id", cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(request, "id"), true));
    cJSON_AddItemToObject(out, ok == NULL ? "error" : "ok", ok == NULL ? failure : ok);
    failure = ok == NULL ? NULL : failure;
    char *printed = cJSON_PrintUnformatted(out);
    (void)puts(printed == NULL ? "null" : printed);
    (void)fflush(stdout);
    free(printed);
    cJSON_Delete(out);
    cJSON_Delete(request);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        answer(line);
    }
    free(line);
#ifdef DROP_IN
    core_close();
#endif
    return 0;
}
