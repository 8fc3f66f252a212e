/* The primitives under the envelope, through the library's inside. */
#include "cipher.h"
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OUTPUT (1U << 20)

/* What an operation works with; `out` has room for `size` bytes, for the input with a tag, and for a block. */
typedef struct work {
    cl_algorithms algorithms;
    text key;
    text nonce; /* of HKDF the salt */
    text aad;   /* of HKDF the info */
    text input;
    size_t size; /* of HKDF's output */
    uint8_t *out;
    size_t written;
} work;

static const char *const UNREACHED = "unsupported-operation";

static cl_code gcm_decrypt(work *w)
{
    if (w->key.size != CL_KEY_SIZE || w->nonce.size != CL_IV_SIZE || w->input.size < CL_TAG_SIZE) {
        return CL_AUTHENTICATION_FAILED;
    }
    w->written = w->input.size - CL_TAG_SIZE;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    const cl_aead_input sealed = {w->nonce.data, {{w->aad.data, w->aad.size}}, {w->input.data, w->written}};
    cl_code code = CL_INTERNAL;
    if (EVP_CipherInit_ex2(context, w->algorithms.gcm, w->key.data, NULL, 0, NULL) == 1) {
        code = cl_cipher_decrypt(context, &sealed, w->input.data + w->written, w->out);
    }
    EVP_CIPHER_CTX_free(context);
    return code;
}

static cl_code xaes_encrypt(work *w)
{
    EVP_CIPHER_CTX *context = cl_cipher_new(&w->algorithms, w->key.data, w->nonce.data, true);
    const cl_aead_input plain = {
        w->nonce.data + CL_SALT_SIZE, {{w->aad.data, w->aad.size}}, {w->input.data, w->input.size}};
    cl_code code = context == NULL ? CL_INTERNAL : cl_cipher_encrypt(context, &plain, w->out);
    EVP_CIPHER_CTX_free(context);
    w->written = w->input.size + CL_TAG_SIZE;
    return code;
}

static cl_code hkdf(work *w)
{
    const cl_hkdf_input input = {
        {w->key.data, w->key.size}, {w->nonce.data, w->nonce.size}, {w->aad.data, w->aad.size}};
    w->written = w->size;
    return w->size > MOST_OUTPUT ? CL_INTERNAL : cl_hkdf(&w->algorithms, &input, w->out, w->size);
}

static cl_code cmac(work *w)
{
    cl_block block;
    cl_block mac;
    memcpy(block.bytes, w->input.data, sizeof block);
    cl_code code = cl_cmac_blocks(&w->algorithms, w->key.data, &block, 1, &mac);
    memcpy(w->out, mac.bytes, sizeof mac);
    w->written = sizeof mac;
    return code;
}

static cJSON *run(const char *name, work *w)
{
    cl_code code = CL_INTERNAL;
    if (strcmp(name, "aes-256-gcm-decrypt") == 0) {
        code = gcm_decrypt(w);
    } else if (strcmp(name, "xaes-256-gcm-encrypt") == 0) {
        code = xaes_encrypt(w);
    } else if (strcmp(name, "hkdf-sha256") == 0) {
        code = hkdf(w);
    } else if (strcmp(name, "aes-256-cmac") == 0 && w->input.size == CL_BLOCK_SIZE) {
        code = cmac(w);
    } else {
        return fail(UNREACHED, name);
    }
    if (code != CL_OK) {
        return fail(cl_code_name(code), name);
    }
    cJSON *ok = cJSON_CreateObject();
    cJSON_AddItemToObject(ok, "value", to_hex(w->out, w->written));
    return ok;
}

/* A member of the request; what is absent is empty, not NULL. */
static text part(const cJSON *request, const char *name)
{
    text given = from_hex(cJSON_GetObjectItemCaseSensitive(request, name));
    return given.data != NULL ? given : (text){calloc(1, 1), 0};
}

cJSON *core_primitive(const cJSON *request)
{
    work w = {.key = part(request, "key"),
              .nonce = part(request, "nonce"),
              .aad = part(request, "aad"),
              .input = part(request, "input")};
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(request, "size");
    w.size = cJSON_IsNumber(size) ? (size_t)size->valuedouble : 0;
    w.out = malloc(w.input.size + MOST_OUTPUT);
    cl_code code = cl_algorithms_open(&w.algorithms);
    cJSON *ok = code == CL_OK ? run(string_of(request, "name"), &w) : fail(cl_code_name(code), "algorithms");
    cl_algorithms_close(&w.algorithms);
    free(w.out);
    free(w.key.data);
    free(w.nonce.data);
    free(w.aad.data);
    free(w.input.data);
    return ok;
}
