/*
 * Every vector of spec/vectors. Those that need a key service run the whole library; only cl_http_post is replaced (by the
 * linker), so that the answer is the vector's.
 */
#include "answers.h"
#include "check.h"
#include "error.h"
#include "http.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_algorithms algorithms;
static const char *folder;
static char *answer_body; /* what the key service would say */

cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error);

cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error)
{
    (void)http, (void)request;
    if (answer_body == NULL) {
        return cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "no key was to be asked for");
    }
    *answer = (cl_http_answer){.status = 200, .body = (uint8_t *)strdup(answer_body), .size = strlen(answer_body)};
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    answer->sent_at = (uint64_t)now.tv_sec * 1000000000U;
    (void)snprintf(answer->content_type, sizeof answer->content_type, "application/json");
    return CL_OK;
}

static bool good(const json_t *vector)
{
    return strcmp(json_string_value(json_object_get(vector, "result")), "ok") == 0;
}

/* Whether a code is the one that a vector ends in, in the same layer. */
static void check_code(const json_t *vector, cl_code code)
{
    const json_t *error = json_object_get(vector, "error");
    const char *name = error == NULL ? "ok" : json_string_value(json_object_get(error, "code"));
    if (!CHECK(strcmp(cl_code_name(code), name) == 0)) {
        (void)fprintf(stderr, "  wanted %s, got %s\n", name, cl_code_name(code));
    }
    CHECK(error == NULL || strcmp(cl_code_layer(code), json_string_value(json_object_get(error, "layer"))) == 0);
}

static void check_bytes(cl_bytes got, const json_t *wanted_hex)
{
    cl_bytes wanted = from_hex(wanted_hex);
    CHECK((got.data == NULL) == (wanted.data == NULL));
    CHECK(got.size == wanted.size && (got.size == 0 || memcmp(got.data, wanted.data, got.size) == 0));
    free((void *)(uintptr_t)wanted.data);
}

static void key_id(const json_t *vector, const json_t *input)
{
    cl_bytes key = from_hex(json_object_get(input, "key"));
    cl_kid kid;
    char text[CL_KID_TEXT + 1] = "";
    cl_code code = key.size == CL_KEY_SIZE ? cl_key_id(&algorithms, key.data, &kid) : CL_KEY_MALFORMED;
    check_code(vector, code);
    if (code == CL_OK) {
        cl_kid_write(text, &kid);
        CHECK(strcmp(text, json_string_value(json_object_get(json_object_get(vector, "output"), "kid"))) == 0);
    }
    free((void *)(uintptr_t)key.data);
}

/* Both ways to give OpenSSL the IV of a record to be decrypted, which take turns under one key schedule. */
static cl_code decrypt_both_ways(EVP_CIPHER_CTX *context, const cl_aead_input *what, const uint8_t *tag, uint8_t *out)
{
    void *quick = EVP_CIPHER_CTX_get_app_data(context);
    cl_code first = cl_cipher_decrypt(context, what, tag, out);
    EVP_CIPHER_CTX_set_app_data(context, NULL);
    CHECK(cl_cipher_decrypt(context, what, tag, out) == first);
    EVP_CIPHER_CTX_set_app_data(context, quick);
    CHECK(cl_cipher_decrypt(context, what, tag, out) == first);
    return first;
}

static void xaes(const json_t *vector, const json_t *input)
{
    bool encrypt = json_object_get(input, "plaintext") != NULL;
    cl_bytes key = from_hex(json_object_get(input, "key"));
    cl_bytes nonce = from_hex(json_object_get(input, "nonce"));
    cl_bytes aad = from_hex(json_object_get(input, "aad"));
    cl_bytes text = from_hex(json_object_get(input, encrypt ? "plaintext" : "ciphertext"));
    size_t size = encrypt ? text.size : text.size - CL_TAG_SIZE;
    uint8_t *out = malloc(text.size + CL_TAG_SIZE);
    EVP_CIPHER_CTX *context = cl_cipher_new(&algorithms, key.data, nonce.data, encrypt);
    const cl_aead_input what = {nonce.data + CL_SALT_SIZE, {aad}, {text.data, size}};
    cl_code code =
        encrypt ? cl_cipher_encrypt(context, &what, out) : decrypt_both_ways(context, &what, text.data + size, out);
    check_code(vector, code);
    if (code == CL_OK) {
        const json_t *output = json_object_get(vector, "output");
        check_bytes((cl_bytes){out, encrypt ? size + CL_TAG_SIZE : size},
                    json_object_get(output, encrypt ? "ciphertext" : "plaintext"));
    }
    EVP_CIPHER_CTX_free(context);
    free(out);
    free((void *)(uintptr_t)key.data);
    free((void *)(uintptr_t)nonce.data);
    free((void *)(uintptr_t)aad.data);
    free((void *)(uintptr_t)text.data);
}

/* The envelope of a vector from the library's own parts: preamble, AAD, cipher. */
static void encrypt(const json_t *vector, const json_t *input)
{
    uint8_t flags = (uint8_t)json_integer_value(json_object_get(input, "flags"));
    uint32_t counter = (uint32_t)json_integer_value(json_object_get(input, "counter"));
    cl_bytes key = from_hex(json_object_get(input, "key"));
    cl_bytes prefix = from_hex(json_object_get(input, "nonce_prefix"));
    cl_bytes text = from_hex(json_object_get(input, "plaintext"));
    cl_bytes record_key = from_hex(json_object_get(input, "record_key"));
    uint8_t *envelope = malloc(text.size + CL_ENVELOPE_OVERHEAD);
    uint8_t *nonce = envelope + CL_PREAMBLE_SIZE;
    uint8_t size[4];
    cl_kid kid;
    cl_aad aad;
    CHECK(cl_key_id(&algorithms, key.data, &kid) == CL_OK);
    cl_preamble_write(envelope, flags, &kid);
    memcpy(nonce, prefix.data, prefix.size);
    nonce[20] = (uint8_t)(counter >> 24U);
    nonce[21] = (uint8_t)(counter >> 16U & 0xFFU);
    nonce[22] = (uint8_t)(counter >> 8U & 0xFFU);
    nonce[23] = (uint8_t)(counter & 0xFFU);
    cl_aad_build(&aad, envelope, json_string_value(json_object_get(input, "scope")));
    cl_key_prefix(size, record_key);
    cl_aead_input what = {nonce + CL_SALT_SIZE, {{aad.bytes, aad.size}, {NULL, 0}, {NULL, 0}}, text};
    if ((flags & CL_FLAG_KEY_BOUND) != 0) {
        what.aad[1] = (cl_bytes){size, sizeof size};
        what.aad[2] = record_key;
    }
    EVP_CIPHER_CTX *context = cl_cipher_new(&algorithms, key.data, nonce, true);
    check_code(vector, cl_cipher_encrypt(context, &what, envelope + CL_ENVELOPE_HEADER));
    check_bytes((cl_bytes){envelope, text.size + CL_ENVELOPE_OVERHEAD},
                json_object_get(json_object_get(vector, "output"), "envelope"));
    EVP_CIPHER_CTX_free(context);
    free(envelope);
    free((void *)(uintptr_t)key.data);
    free((void *)(uintptr_t)prefix.data);
    free((void *)(uintptr_t)text.data);
    free((void *)(uintptr_t)record_key.data);
}

static cl_client *client_with_limit(const json_t *input)
{
    char limit[32];
    (void)snprintf(limit, sizeof limit, "%lld", json_integer_value(json_object_get(input, "max_plaintext")));
    return make_client(folder, "https://127.0.0.1:1", "cipherlane.max.plaintext.bytes", limit);
}

/* A text that the caller frees. */
static char *base64(cl_bytes bytes)
{
    char *text = calloc(1, bytes.size / 3 * 4 + 5);
    (void)EVP_EncodeBlock((unsigned char *)text, bytes.data, (int)bytes.size);
    return text;
}

static json_t *key_answer(const char *kid, const json_t *key)
{
    const json_t *error = json_object_get(key, "error");
    if (key == NULL || error != NULL) {
        const char *code = key == NULL ? "key-unknown" : json_string_value(error);
        return json_pack("{s:s,s:{s:s}}", "kid", kid, "error", "code", code);
    }
    cl_bytes bytes = from_hex(json_object_get(key, "key"));
    char *text = base64(bytes);
    json_t *answer =
        json_pack("{s:s,s:s,s:s,s:i,s:i}", "kid", kid, "scope", json_string_value(json_object_get(key, "scope")), "key",
                  text, "refresh_in", 150, "expires_in", 300);
    free(text);
    free((void *)(uintptr_t)bytes.data);
    return answer;
}

/* What the key service would answer for the one kid that this value names, or for none. */
static char *decryption_answer(const json_t *input, cl_bytes value)
{
    json_t *keys = json_array();
    cl_envelope envelope;
    if (value.data != NULL && cl_has_magic(value) && cl_envelope_parse(value, &envelope) == CL_OK) {
        char kid[CL_KID_TEXT + 1];
        cl_kid_write(kid, &envelope.kid);
        (void)json_array_append_new(keys, key_answer(kid, json_object_get(json_object_get(input, "keys"), kid)));
    }
    json_t *answer = json_pack("{s:s,s:i,s:i,s:o}", "plaintext", json_string_value(json_object_get(input, "plaintext")),
                               "refresh_in", 150, "expires_in", 300, "keys", keys);
    char *text = json_dumps(answer, 0);
    json_decref(answer);
    return text;
}

static void decrypt(const json_t *vector, const json_t *input)
{
    enum { CAPACITY = 1200000 };
    cl_client *client = client_with_limit(input);
    cl_bytes value = from_hex(json_object_get(input, "value"));
    const json_t *key = json_object_get(input, "record_key");
    cl_bytes record_key = from_hex(key);
    cl_bytes out = {0};
    cl_error error = {0};
    uint8_t *buffer = malloc(CAPACITY);
    const char *topic = json_string_value(json_object_get(input, "topic"));
    answer_body = value.data == NULL ? NULL : decryption_answer(input, value);
    cl_code code = cl_decrypt(client, topic, value, key == NULL ? NULL : &record_key, buffer, CAPACITY, &out, &error);
    check_code(vector, code);
    CHECK(code == error.code);
    if (code == CL_OK) {
        check_bytes(out, json_object_get(json_object_get(vector, "output"), "plaintext"));
    } else {
        CHECK(out.data == NULL && strstr(error.message, topic) != NULL);
    }
    free(answer_body);
    free(buffer);
    free((void *)(uintptr_t)value.data);
    free((void *)(uintptr_t)record_key.data);
    cl_client_free(client);
}

static void write_one(const json_t *vector, const json_t *input)
{
    uint8_t buffer[8192];
    cl_client *client = client_with_limit(input);
    cl_bytes value = from_hex(json_object_get(input, "value"));
    cl_bytes out = {0};
    cl_error error = {0};
    char text[256];
    const char *mode = json_string_value(json_object_get(input, "mode"));
    (void)snprintf(text, sizeof text,
                   "{\"mode\":\"%s\",\"scope\":\"claims\",\"kid\":\"4bc31153e689f5bbe9cd6136ff2f83bb\","
                   "\"key\":\"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=\",\"refresh_in\":150,\"expires_in\":300}",
                   mode);
    answer_body = text;
    check_code(vector, cl_encrypt(client, "claims", value, NULL, buffer, sizeof buffer, &out, &error));
    if (good(vector)) {
        const char *action = json_string_value(json_object_get(json_object_get(vector, "output"), "action"));
        bool unchanged = strcmp(action, "unchanged") == 0;
        CHECK(unchanged ? out.data == value.data && out.size == value.size
                        : out.data == buffer && out.size == value.size + CL_ENVELOPE_OVERHEAD && cl_has_magic(out));
    } else {
        CHECK(out.data == NULL);
    }
    free((void *)(uintptr_t)value.data);
    cl_client_free(client);
}

/* The HTTP answer of a vector; its body is freed by cl_http_answer_free. */
static cl_http_answer http_answer(const json_t *input)
{
    const json_t *body = json_object_get(input, "body");
    cl_http_answer answer = {.status = (long)json_integer_value(json_object_get(input, "status")),
                             .size = json_string_length(body)};
    answer.body = malloc(answer.size + 1);
    memcpy(answer.body, json_string_value(body), answer.size);
    const char *type = json_string_value(json_object_get(input, "content_type"));
    (void)snprintf(answer.content_type, sizeof answer.content_type, "%s", type == NULL ? "" : type);
    return answer;
}

static void encryption_answer(const json_t *vector, const json_t *input)
{
    static const char *const MODES[] = {"encrypt", "clear", "forbid"};
    cl_http_answer http = http_answer(input);
    cl_encryption_answer answer = {0};
    cl_error error = {0};
    check_code(vector, cl_parse_encryption(&algorithms, &http, &answer, &error));
    if (good(vector)) {
        const json_t *output = json_object_get(vector, "output");
        char kid[CL_KID_TEXT + 1];
        cl_kid_write(kid, &answer.kid);
        CHECK(strcmp(MODES[answer.mode], json_string_value(json_object_get(output, "mode"))) == 0);
        CHECK(answer.terms.refresh_in == json_integer_value(json_object_get(output, "refresh_in")));
        CHECK(answer.terms.expires_in == json_integer_value(json_object_get(output, "expires_in")));
        CHECK(answer.mode != CL_MODE_ENCRYPT ||
              (strcmp(answer.scope, json_string_value(json_object_get(output, "scope"))) == 0 &&
               strcmp(kid, json_string_value(json_object_get(output, "kid"))) == 0));
    }
    cl_http_answer_free(&http);
}

static void check_key(const cl_key_answer *got, const json_t *wanted)
{
    const json_t *error = json_object_get(wanted, "error");
    CHECK(strcmp(cl_code_name(got->code), error == NULL ? "ok" : json_string_value(error)) == 0);
    CHECK(error != NULL || strcmp(got->scope, json_string_value(json_object_get(wanted, "scope"))) == 0);
}

static void decryption_keys(const json_t *vector, const json_t *input)
{
    const json_t *kids = json_object_get(input, "kids");
    cl_http_answer http = http_answer(input);
    cl_decryption_answer answer = {.count = json_array_size(kids)};
    cl_error error = {0};
    answer.keys = calloc(answer.count + 1, sizeof *answer.keys);
    for (size_t i = 0; i < answer.count; i++) {
        CHECK(cl_kid_parse(json_string_value(json_array_get(kids, i)), &answer.keys[i].kid));
    }
    check_code(vector, cl_parse_decryption(&algorithms, &http, &answer, &error));
    const json_t *output = json_object_get(vector, "output");
    for (size_t i = 0; good(vector) && i < answer.count; i++) {
        check_key(&answer.keys[i],
                  json_object_get(json_object_get(output, "keys"), json_string_value(json_array_get(kids, i))));
    }
    CHECK(!good(vector) || (answer.plaintext == CL_MODE_ACCEPT) ==
                               (strcmp(json_string_value(json_object_get(output, "plaintext")), "accept") == 0));
    free(answer.keys);
    cl_http_answer_free(&http);
}

/* A name in C ends at its first NUL, so the two vectors with one inside cannot even be said. */
static void topic(const json_t *vector, const json_t *input)
{
    const json_t *name = json_object_get(input, "topic");
    bool sayable = strlen(json_string_value(name)) == json_string_length(name);
    bool valid = sayable && cl_name_valid(json_string_value(name));
    check_code(vector, valid ? CL_OK : CL_TOPIC_INVALID);
}

typedef struct kind {
    const char *name;
    void (*run)(const json_t *vector, const json_t *input);
} kind;

typedef struct one {
    void (*run)(const json_t *vector, const json_t *input);
    const json_t *vector;
} one;

static void run_one(void *context)
{
    const one *what = context;
    what->run(what->vector, json_object_get(what->vector, "input"));
}

static void run_kind(const kind *which)
{
    json_t *file = load_vectors(which->name);
    const json_t *vectors = json_object_get(file, "vectors");
    for (size_t i = 0; i < json_array_size(vectors); i++) {
        one what = {which->run, json_array_get(vectors, i)};
        check_case_with(json_string_value(json_object_get(what.vector, "id")), run_one, &what);
    }
    json_decref(file);
}

int main(void)
{
    static const kind KINDS[] = {{"key-id", key_id},
                                 {"xaes", xaes},
                                 {"encrypt", encrypt},
                                 {"write", write_one},
                                 {"decrypt", decrypt},
                                 {"encryption-key-answer", encryption_answer},
                                 {"decryption-keys-answer", decryption_keys},
                                 {"topic", topic}};
    char *made = make_folder();
    folder = made;
    make_pki(folder);
    if (cl_algorithms_open(&algorithms) != CL_OK) {
        return 1;
    }
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        run_kind(&KINDS[i]);
    }
    cl_algorithms_close(&algorithms);
    remove_folder(made);
    return check_finish("vectors");
}
