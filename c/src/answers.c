/* The answers of the key service, checked member by member. */
#include "answers.h"

#include "error.h"
#include "json.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEASE_MAX 604800U /* seconds: a week */
#define KEY_TEXT 44U      /* base64 of 32 bytes */
#define CHAIN_MAX 65536U  /* bytes of certificates in PEM [CL-IDN-033] */

static cl_code bad(cl_error *error, const char *what)
{
    return cl_fail(error, CL_KEY_SERVICE_BAD_ANSWER,
                   "key-service-bad-answer: %s; is the address really the key service?", what);
}

/* The media type, whatever parameters follow it. */
static bool has_type(const cl_http_answer *http, const char *type)
{
    size_t size = strlen(type);
    char after = '\0';
    if (strncasecmp(http->content_type, type, size) == 0) {
        after = http->content_type[size];
        return after == '\0' || after == ';' || after == ' ';
    }
    return false;
}

/* The codes that a status may carry (spec/errors.md, "HTTP"). */
static bool code_fits(long status, cl_code code)
{
    switch (status) {
    case 400:
        return code == CL_REQUEST_INVALID || code == CL_TOPIC_INVALID;
    case 401:
        return code == CL_UNAUTHENTICATED;
    case 403:
        return code == CL_NOT_AUTHORIZED || code == CL_TOPIC_FORBIDDEN || code == CL_TOPIC_UNKNOWN;
    case 413:
        return code == CL_REQUEST_TOO_LARGE;
    case 415:
        return code == CL_REQUEST_INVALID;
    case 500:
        return code == CL_KEY_SERVICE_INTERNAL;
    case 503:
        return code == CL_AUDIT_UNAVAILABLE || code == CL_KEY_SERVICE_UNAVAILABLE;
    default:
        return false;
    }
}

/* What a refusal means when its code is not one of the status. */
static cl_code default_code(long status)
{
    if (status == 429 || status >= 500) {
        return CL_KEY_SERVICE_UNAVAILABLE;
    }
    return CL_KEY_SERVICE_BAD_ANSWER;
}

static cl_code named_code(const char *name)
{
    cl_code code = name == NULL ? CL_CODES : cl_code_of_name(name);
    return code == CL_INTERNAL ? CL_KEY_SERVICE_INTERNAL : code;
}

/* Text of the service for a message: printable ASCII only, shortened by the caller's %.200s. */
static const char *printable(const char *text)
{
    for (const char *c = text; c != NULL && *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            return "";
        }
    }
    return text == NULL ? "" : text;
}

static cl_code refusal(const cl_http_answer *http, cl_error *error)
{
    bool problem = has_type(http, "application/problem+json");
    cJSON *tree = problem ? cl_json_parse(http->body, http->size) : NULL;
    const char *name = cl_json_string(tree, "code");
    cl_code code = named_code(name);
    if (!code_fits(http->status, code)) {
        bool refused = name != NULL && (http->status == 401 || http->status == 403);
        code = refused ? CL_NOT_AUTHORIZED : default_code(http->status);
    }
    if (code == CL_KEY_SERVICE_BAD_ANSWER) {
        (void)cl_fail(error, code, "%s: unexpected status %ld", cl_code_name(code), http->status);
    } else {
        (void)cl_fail(error, code, "%s: the key service answered %ld %.200s", cl_code_name(code), http->status,
                      printable(cl_json_string(tree, "detail")));
    }
    cl_json_free(tree);
    return code;
}

/* The object in an answer of status 200; otherwise NULL with *code and error set. */
static cJSON *answer_object(const cl_http_answer *http, cl_code *code, cl_error *error)
{
    if (http->status != 200) {
        *code = refusal(http, error);
        return NULL;
    }
    cJSON *tree = has_type(http, "application/json") ? cl_json_parse(http->body, http->size) : NULL;
    if (!cJSON_IsObject(tree)) {
        *code = bad(error, "not a JSON object");
        cl_json_free(tree);
        return NULL;
    }
    return tree;
}

static bool read_terms(const cJSON *object, cl_terms *terms)
{
    return cl_json_integer(object, "refresh_in", 1, LEASE_MAX, &terms->refresh_in) &&
           cl_json_integer(object, "expires_in", 1, LEASE_MAX, &terms->expires_in) &&
           terms->refresh_in <= terms->expires_in;
}

/* Whether the bits that padding leaves over are 0. `last` is the last character that is no padding. */
static bool no_spare_bits(char last, size_t padding)
{
    const char *allowed = padding == 1 ? "AEIMQUYcgkosw048" : "AQgw";
    return padding == 0 || strchr(allowed, last) != NULL;
}

/* Whether a text is base64 as RFC 4648 says, with padding, and the only such text for its bytes. */
static bool is_base64(const char *text)
{
    size_t size = strlen(text);
    size_t used = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    size_t padding = size - used;
    return size % 4 == 0 && padding <= 2 && strspn(text + used, "=") == padding &&
           (used == 0 || no_spare_bits(text[used - 1], padding));
}

/* A text that is no base64 is no answer; base64 of something else than 32 bytes is no key. */
static cl_code decode_key(const char *text, uint8_t key[CL_KEY_SIZE])
{
    uint8_t bytes[CL_KEY_SIZE + 1];
    if (!is_base64(text)) {
        return CL_KEY_SERVICE_BAD_ANSWER;
    }
    if (strlen(text) != KEY_TEXT || text[KEY_TEXT - 1] != '=' || text[KEY_TEXT - 2] == '=') {
        return CL_KEY_MALFORMED;
    }
    int size = EVP_DecodeBlock(bytes, (const uint8_t *)text, (int)KEY_TEXT);
    memcpy(key, bytes, CL_KEY_SIZE);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return size == (int)sizeof bytes ? CL_OK : CL_KEY_MALFORMED;
}

/* Reads scope and key beside a kid and proves that they belong together [CL-ENV-009] [CL-KEY-004]. */
static cl_code read_key(const cl_algorithms *algorithms, const cJSON *object, const cl_kid *kid,
                        char scope[CL_SCOPE_MAX + 1], uint8_t key[CL_KEY_SIZE])
{
    const char *scope_text = cl_json_string(object, "scope");
    const char *key_text = cl_json_string(object, "key");
    cl_kid computed;
    if (scope_text == NULL || key_text == NULL || !cl_name_valid(scope_text)) {
        return CL_KEY_SERVICE_BAD_ANSWER;
    }
    (void)snprintf(scope, CL_SCOPE_MAX + 1, "%s", scope_text);
    cl_code code = decode_key(key_text, key);
    if (code != CL_OK) {
        return code;
    }
    if (cl_key_id(algorithms, key, &computed) != CL_OK) {
        return CL_INTERNAL;
    }
    return memcmp(&computed, kid, sizeof computed) == 0 ? CL_OK : CL_KEY_ID_MISMATCH;
}

static bool read_mode(const cJSON *object, cl_mode *mode)
{
    const char *text = cl_json_string(object, "mode");
    if (text == NULL) {
        return false;
    }
    *mode = strcmp(text, "clear") == 0 ? CL_MODE_CLEAR : strcmp(text, "forbid") == 0 ? CL_MODE_FORBID : CL_MODE_ENCRYPT;
    return *mode != CL_MODE_ENCRYPT || strcmp(text, "encrypt") == 0;
}

static cl_code read_encryption(const cl_algorithms *algorithms, const cJSON *tree, cl_encryption_answer *answer,
                               cl_error *error)
{
    if (!read_mode(tree, &answer->mode) || !read_terms(tree, &answer->terms)) {
        return bad(error, "mode or lease");
    }
    if (answer->mode != CL_MODE_ENCRYPT) {
        return CL_OK;
    }
    const char *kid = cl_json_string(tree, "kid");
    if (kid == NULL || !cl_kid_parse(kid, &answer->kid)) {
        return bad(error, "no key id");
    }
    cl_code code = read_key(algorithms, tree, &answer->kid, answer->scope, answer->key);
    if (code != CL_OK) {
        return cl_fail(error, code, "%s: the key service gave a key for encrypting that cannot be used",
                       cl_code_name(code));
    }
    return CL_OK;
}

cl_code cl_parse_encryption(const cl_algorithms *algorithms, const cl_http_answer *http, cl_encryption_answer *answer,
                            cl_error *error)
{
    cl_code code = CL_OK;
    cJSON *tree = answer_object(http, &code, error);
    if (tree != NULL) {
        code = read_encryption(algorithms, tree, answer, error);
        cl_json_free(tree);
    }
    return code;
}

/* The error beside a kid; a code that says nothing about a key is taken for a refusal. */
static bool read_key_error(const cJSON *object, cl_code *code)
{
    const char *name = cl_json_string(object, "code");
    cl_code named = named_code(name);
    bool known = named == CL_SCOPE_MISMATCH || named == CL_KEY_UNKNOWN || named == CL_KEY_DESTROYED;
    *code = known ? named : CL_NOT_AUTHORIZED;
    return name != NULL;
}

static cl_key_answer *find_kid(cl_decryption_answer *answer, const cl_kid *kid)
{
    for (size_t i = 0; i < answer->count; i++) {
        if (memcmp(&answer->keys[i].kid, kid, sizeof *kid) == 0) {
            return &answer->keys[i];
        }
    }
    return NULL;
}

/* One entry of `keys`; false when the answer as a whole cannot be believed. */
static bool read_entry(const cl_algorithms *algorithms, const cJSON *entry, cl_decryption_answer *answer)
{
    cl_kid kid;
    const char *text = cl_json_string(entry, "kid");
    cl_key_answer *asked = text != NULL && cl_kid_parse(text, &kid) ? find_kid(answer, &kid) : NULL;
    if (asked == NULL || asked->answered) {
        return false;
    }
    asked->answered = true;
    const cJSON *failure = cJSON_GetObjectItemCaseSensitive(entry, "error");
    const cJSON *key = cJSON_GetObjectItemCaseSensitive(entry, "key");
    if (failure != NULL) {
        return key == NULL && read_key_error(failure, &asked->code);
    }
    if (!read_terms(entry, &asked->terms)) {
        return false;
    }
    asked->code = read_key(algorithms, entry, &asked->kid, asked->scope, asked->key);
    return asked->code != CL_KEY_SERVICE_BAD_ANSWER;
}

static bool read_plaintext(const cJSON *tree, cl_mode *mode)
{
    const char *text = cl_json_string(tree, "plaintext");
    if (text == NULL) {
        return false;
    }
    *mode = strcmp(text, "accept") == 0 ? CL_MODE_ACCEPT : CL_MODE_REJECT;
    return *mode == CL_MODE_ACCEPT || strcmp(text, "reject") == 0;
}

static cl_code read_decryption(const cl_algorithms *algorithms, const cJSON *tree, cl_decryption_answer *answer,
                               cl_error *error)
{
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(tree, "keys");
    if (!read_plaintext(tree, &answer->plaintext) || !read_terms(tree, &answer->terms) || !cJSON_IsArray(keys) ||
        (size_t)cJSON_GetArraySize(keys) != answer->count) {
        return bad(error, "plaintext, lease, or the number of keys");
    }
    for (const cJSON *each = keys->child; each != NULL; each = each->next) {
        if (!read_entry(algorithms, each, answer)) {
            return bad(error, "an entry of keys");
        }
    }
    return CL_OK;
}

cl_code cl_parse_decryption(const cl_algorithms *algorithms, const cl_http_answer *http, cl_decryption_answer *answer,
                            cl_error *error)
{
    cl_code code = CL_OK;
    cJSON *tree = answer_object(http, &code, error);
    if (tree != NULL) {
        code = read_decryption(algorithms, tree, answer, error);
        cl_json_free(tree);
    }
    return code;
}

static cl_code read_certificate(const cJSON *tree, cl_certificate_answer *answer, cl_error *error)
{
    const char *certificate = cl_json_string(tree, "certificate");
    const char *ca = cl_json_string(tree, "ca");
    if (certificate == NULL || ca == NULL || strlen(certificate) > CHAIN_MAX || strlen(ca) > CHAIN_MAX ||
        !read_terms(tree, &answer->terms)) {
        return bad(error, "certificate, ca, or the times");
    }
    answer->certificate = strdup(certificate);
    answer->ca = strdup(ca);
    if (answer->certificate != NULL && answer->ca != NULL) {
        return CL_OK;
    }
    free(answer->certificate);
    free(answer->ca);
    return cl_no_memory(error);
}

cl_code cl_parse_certificate(const cl_http_answer *http, cl_certificate_answer *answer, cl_error *error)
{
    cl_code code = CL_OK;
    cJSON *tree = answer_object(http, &code, error);
    if (tree != NULL) {
        code = read_certificate(tree, answer, error);
        cl_json_free(tree);
    }
    return code;
}

char *cl_certificate_request(const char *csr)
{
    cJSON *tree = cJSON_CreateObject();
    bool made = tree != NULL && cJSON_AddStringToObject(tree, "csr", csr) != NULL;
    char *text = made ? cJSON_PrintUnformatted(tree) : NULL;
    cJSON_Delete(tree);
    return text;
}

char *cl_encryption_request(const char *topic, const cl_kid *kid, uint64_t records, uint64_t bytes)
{
    const uint64_t most = UINT64_C(9007199254740991);
    char text[CL_SCOPE_MAX + 200];
    char kid_text[CL_KID_TEXT + 1];
    if (records == 0) {
        (void)snprintf(text, sizeof text, "{\"topic\":\"%s\"}", topic);
        return strdup(text);
    }
    cl_kid_write(kid_text, kid);
    (void)snprintf(text, sizeof text, "{\"topic\":\"%s\",\"usage\":{\"kid\":\"%s\",\"records\":%llu,\"bytes\":%llu}}",
                   topic, kid_text, (unsigned long long)(records < most ? records : most),
                   (unsigned long long)(bytes < most ? bytes : most));
    return strdup(text);
}

char *cl_decryption_request(const char *topic, const cl_key_answer *keys, size_t count)
{
    static const size_t ENTRY = CL_KID_TEXT + 3; /* quotes and a comma */
    size_t capacity = CL_SCOPE_MAX + 64 + count * ENTRY;
    char *text = malloc(capacity);
    if (text == NULL) {
        return NULL;
    }
    size_t at = (size_t)snprintf(text, capacity, "{\"topic\":\"%s\",\"kids\":[", topic);
    for (size_t i = 0; i < count; i++) {
        char kid[CL_KID_TEXT + 1];
        cl_kid_write(kid, &keys[i].kid);
        at += (size_t)snprintf(text + at, capacity - at, "%s\"%s\"", i == 0 ? "" : ",", kid);
    }
    (void)snprintf(text + at, capacity - at, "]}");
    return text;
}
