/* The operations that need no Kafka, through <cipherlane/cipherlane.h>; xaes-decrypt through the library's inside. */
#include "cipher.h"
#include "driver.h"

#include <cipherlane/cipherlane.h>
#include <stdlib.h>
#include <string.h>

/* More than a compressed value of any test needs. */
#define ROOM (4U << 20)

static cl_client *client;
static cJSON *settings;

void core_close(void)
{
    cl_client_free(client);
    client = NULL;
    cJSON_Delete(settings);
    settings = NULL;
}

static cJSON *reopen(void)
{
    cl_error error = {0};
    cl_config *config = cl_config_new();
    const cJSON *setting;
    cl_code code = CL_OK;
    cJSON_ArrayForEach(setting, settings)
    {
        code = code == CL_OK ? cl_config_set(config, setting->string, setting->valuestring, &error) : code;
    }
    cl_client_free(client);
    client = NULL;
    code = code == CL_OK ? cl_client_new(&client, config, &error) : code;
    cl_config_free(config);
    return code == CL_OK ? cJSON_CreateObject() : fail(cl_code_name(error.code), error.message);
}

cJSON *core_open(const cJSON *request)
{
    core_close();
    settings = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(request, "settings"), true);
    return reopen();
}

cJSON *core_rotate(const cJSON *request)
{
    (void)request;
    return reopen();
}

static cJSON *value_of(cl_bytes value)
{
    cJSON *ok = cJSON_CreateObject();
    cJSON_AddItemToObject(ok, "value", to_hex(value.data, value.size));
    return ok;
}

/* The record key of a request; `known` is set to it, or to NULL where it is not known. Its bytes are the caller's to free. */
static text record_key(const cJSON *request, cl_bytes *bytes, const cl_bytes **known)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(request, "record_key");
    text key = from_hex(item);
    *bytes = (cl_bytes){key.data, key.size};
    *known = item == NULL ? NULL : bytes;
    return key;
}

cJSON *core_encrypt(const cJSON *request)
{
    cl_error error = {0};
    cl_bytes out = {NULL, 0};
    cl_bytes bytes;
    const cl_bytes *known;
    text key = record_key(request, &bytes, &known);
    text value = from_hex(cJSON_GetObjectItemCaseSensitive(request, "value"));
    size_t capacity = value.size + CL_ENVELOPE_OVERHEAD;
    uint8_t *buffer = malloc(capacity);
    cl_code code = cl_encrypt(client, string_of(request, "topic"), (cl_bytes){value.data, value.size}, known, buffer,
                              capacity, &out, &error);
    cJSON *ok = code == CL_OK ? value_of(out) : fail(cl_code_name(error.code), error.message);
    free(buffer);
    free(value.data);
    free(key.data);
    return ok;
}

static cl_code decrypt(const char *topic, text value, const cl_bytes *key, uint8_t *buffer, cl_bytes *out,
                       cl_error *error)
{
    return cl_decrypt(client, topic, (cl_bytes){value.data, value.size}, key, buffer, ROOM, out, error);
}

cJSON *core_decrypt(const cJSON *request)
{
    cl_error error = {0};
    cl_bytes out = {NULL, 0};
    cl_bytes bytes;
    const cl_bytes *known;
    text key = record_key(request, &bytes, &known);
    text value = from_hex(cJSON_GetObjectItemCaseSensitive(request, "value"));
    uint8_t *buffer = malloc(ROOM);
    cl_code code = decrypt(string_of(request, "topic"), value, known, buffer, &out, &error);
    cJSON *ok = code == CL_OK ? value_of(out) : fail(cl_code_name(error.code), error.message);
    free(buffer);
    free(value.data);
    free(key.data);
    return ok;
}

static cJSON *outcome(const char *topic, text value, uint8_t *buffer)
{
    cl_error error = {0};
    cl_bytes out = {NULL, 0};
    if (decrypt(topic, value, NULL, buffer, &out, &error) == CL_OK) {
        return value_of(out);
    }
    cJSON *failed = cJSON_CreateObject();
    cJSON_AddItemToObject(failed, "error", error_of(cl_code_name(error.code), error.message));
    return failed;
}

cJSON *core_decrypt_all(const cJSON *request)
{
    const char *topic = string_of(request, "topic");
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(request, "values");
    size_t count = (size_t)cJSON_GetArraySize(values);
    text *texts = calloc(count + 1, sizeof *texts);
    cl_bytes *bytes = calloc(count + 1, sizeof *bytes);
    uint8_t *buffer = malloc(ROOM);
    cJSON *ok = cJSON_CreateObject();
    cJSON *results = cJSON_AddArrayToObject(ok, "results");
    const cJSON *value;
    size_t i = 0;
    cJSON_ArrayForEach(value, values)
    {
        texts[i] = from_hex(value);
        bytes[i] = (cl_bytes){texts[i].data, texts[i].size};
        i++;
    }
    cl_prefetch(client, topic, bytes, count);
    for (i = 0; i < count; i++) {
        cJSON_AddItemToArray(results, outcome(topic, texts[i], buffer));
        free(texts[i].data);
    }
    free(buffer);
    free(bytes);
    free(texts);
    return ok;
}

/* `out` has room for the ciphertext, whose last bytes are the tag. */
static cl_code open_xaes(text key, text nonce, text aad, text ciphertext, uint8_t *out)
{
    cl_algorithms algorithms;
    cl_code code = cl_algorithms_open(&algorithms);
    EVP_CIPHER_CTX *context = code == CL_OK ? cl_cipher_new(&algorithms, key.data, nonce.data, false) : NULL;
    if (context == NULL || ciphertext.size < CL_TAG_SIZE) {
        code = context == NULL ? CL_INTERNAL : CL_AUTHENTICATION_FAILED;
    } else {
        size_t size = ciphertext.size - CL_TAG_SIZE;
        const cl_aead_input input = {nonce.data + CL_SALT_SIZE, {{aad.data, aad.size}}, {ciphertext.data, size}};
        code = cl_cipher_decrypt(context, &input, ciphertext.data + size, out);
    }
    EVP_CIPHER_CTX_free(context);
    cl_algorithms_close(&algorithms);
    return code;
}

cJSON *core_xaes_decrypt(const cJSON *request)
{
    text parts[4];
    static const char *const NAMES[4] = {"key", "nonce", "aad", "ciphertext"};
    for (size_t i = 0; i < 4; i++) {
        parts[i] = from_hex(cJSON_GetObjectItemCaseSensitive(request, NAMES[i]));
    }
    uint8_t *out = malloc(parts[3].size + 1);
    cl_code code = open_xaes(parts[0], parts[1], parts[2], parts[3], out);
    cJSON *ok = code == CL_OK ? cJSON_CreateObject() : fail(cl_code_name(code), "xaes");
    if (ok != NULL) {
        cJSON_AddItemToObject(ok, "plaintext", to_hex(out, parts[3].size - CL_TAG_SIZE));
    }
    free(out);
    for (size_t i = 0; i < 4; i++) {
        free(parts[i].data);
    }
    return ok;
}
