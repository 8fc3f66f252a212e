/* What the parts of the C driver share: driver.c has the loop, core.c the operations of libcipherlane, kafka.c those of Kafka. */
#ifndef DRIVER_H
#define DRIVER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a value, key or header; data == NULL is null. Freed by its owner with free(data). */
typedef struct text {
    uint8_t *data;
    size_t size;
} text;

/* An operation: the answer's "ok", or NULL after fail(). */
typedef cJSON *operation(const cJSON *request);

/* Notes the error of the answer; gives NULL. */
cJSON *fail(const char *code, const char *message);

/* {"code", "message"}. */
cJSON *error_of(const char *code, const char *message);

text from_hex(const cJSON *item);
cJSON *to_hex(const void *data, size_t size);
const char *string_of(const cJSON *object, const char *name);

operation core_open, core_rotate, core_encrypt, core_decrypt, core_decrypt_all, core_xaes_decrypt, core_primitive;
operation kafka_produce, kafka_consume, kafka_load, kafka_soak_write, kafka_soak_read;
void core_close(void);

#endif
