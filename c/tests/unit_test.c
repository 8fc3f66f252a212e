/* Configuration, JSON, names, codes, compression, cipher: at their limits and beyond. Covers CL-CFG-001, CL-CFG-002, CL-ERR-004. */
#include "check.h"
#include "compression.h"
#include "config.h"
#include "error.h"
#include "json.h"
#include "slots.h"
#include "support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

static char *folder;

typedef struct setting {
    const char *name;
    const char *value;
    const char *says; /* in the message; NULL: accepted */
} setting;

static void settings(void)
{
    static const setting CASES[] = {
        {"cipherlane.keys.cache.max", "16", NULL},
        {"cipherlane.keys.cache.max", "1000000", NULL},
        {"cipherlane.keys.cache.max", "15", "16 to 1000000"},
        {"cipherlane.keys.cache.max", "1000001", "16 to 1000000"},
        {"cipherlane.keys.cache.max", "-16", "16 to 1000000"},
        {"cipherlane.keys.cache.max", " 16", "16 to 1000000"},
        {"cipherlane.keys.cache.max", "16x", "16 to 1000000"},
        {"cipherlane.keys.cache.max", "", "16 to 1000000"},
        {"cipherlane.keys.cache.max", "99999999999", "16 to 1000000"},
        {"cipherlane.max.plaintext.bytes", "1073741824", NULL},
        {"cipherlane.max.plaintext.bytes", "1073741825", "1 to 1073741824"},
        {"cipherlane.max.plaintext.bytes", "0", "1 to 1073741824"},
        {"cipherlane.keyservice.tls.ca", "", "1 to 4095 characters"},
        {"cipherlane.keyservice.tls.caa", "x", "'cipherlane.keyservice.tls.ca'"},
        {"cipherlane.keys.deadline", "x", "'cipherlane.keys.deadline.ms'"},
        {"cipherlane.", "x", "there is no setting"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        cl_error error = {0};
        cl_config *config = cl_config_new();
        cl_code code = cl_config_set(config, CASES[i].name, CASES[i].value, &error);
        CHECK(code == (CASES[i].says == NULL ? CL_OK : CL_CONFIGURATION_INVALID));
        if (!CHECK(CASES[i].says == NULL || strstr(error.message, CASES[i].says) != NULL)) {
            (void)fprintf(stderr, "  %s\n", error.message);
        }
        cl_config_free(config);
    }
}

/* A good configuration with one setting changed; what cl_client_new says of it. */
static void try_with(const char *name, const char *value, const char *says)
{
    cl_error error = {0};
    cl_client *client = NULL;
    cl_config *config = make_config(folder, "https://127.0.0.1:1");
    CHECK(cl_config_set(config, name, value, &error) == CL_OK);
    cl_code code = cl_client_new(&client, config, &error);
    CHECK((client != NULL) == (says == NULL) && code == (says == NULL ? CL_OK : CL_CONFIGURATION_INVALID));
    if (!CHECK(says == NULL || strstr(error.message, says) != NULL)) {
        (void)fprintf(stderr, "  %s\n", error.message);
    }
    cl_client_free(client);
    cl_config_free(config);
}

static void addresses(void)
{
    static const char *const BAD[] = {"http://a:1",     "https://a",    "https://a:0",  "https://a:65536",
                                      "https://a:1/",   "https://:1",   "https://a:1,", "https://u@a:1",
                                      "https://[::1:1", "https://a:1x", "ftp://a:1",    ","};
    static const char *const GOOD[] = {"https://a:1", "https://[::1]:8443", "https://a.b-c_d:65535, https://b:2"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        try_with("cipherlane.keyservice.urls", BAD[i], "https://host:port");
    }
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        try_with("cipherlane.keyservice.urls", GOOD[i], NULL);
    }
}

static void files(void)
{
    try_with("cipherlane.keyservice.tls.ca", "/nowhere", "tls.ca");
    try_with("cipherlane.keyservice.tls.certificate", "/nowhere", "tls.certificate");
    try_with("cipherlane.keyservice.tls.key", "/nowhere", "tls.key");
    try_with("cipherlane.keyservice.tls.key", in_folder(folder, "server.key"), "tls.key"); /* of another certificate */
    try_with("cipherlane.failure.action", "skipp", "failure.action");
    try_with("cipherlane.failure.action", "dead-letter", NULL);
    try_with("cipherlane.failure.action", "fail", NULL);
    cl_client *client = NULL;
    cl_error error = {0};
    cl_config *config = cl_config_new();
    CHECK(cl_client_new(&client, config, &error) == CL_CONFIGURATION_INVALID && client == NULL);
    CHECK(strstr(error.message, "cipherlane.keyservice.urls is required") != NULL);
    cl_config_free(config);
}

/* A client with only the settings of a text and two of the required ones. */
static void try_identity(const char *text, const char *says)
{
    char lines[512];
    cl_error error = {0};
    cl_client *client = NULL;
    cl_config *config = cl_config_new();
    (void)snprintf(lines, sizeof lines,
                   "cipherlane.keyservice.urls=https://127.0.0.1:1\ncipherlane.keyservice.tls.ca=%s\n%s",
                   in_folder(folder, "ca.pem"), text);
    CHECK(cl_config_read(config, lines, "text", &error) == CL_OK);
    cl_code code = cl_client_new(&client, config, &error);
    CHECK(code == (says == NULL ? CL_OK : CL_CONFIGURATION_INVALID));
    if (!CHECK(says == NULL || strstr(error.message, says) != NULL)) {
        (void)fprintf(stderr, "  %s: %s\n", text, error.message);
    }
    cl_client_free(client);
    cl_config_free(config);
}

static void identities(void)
{
    try_identity("cipherlane.identity.token.file=/nowhere", NULL); /* it may come later */
    try_identity("cipherlane.identity.jwt.file=/nowhere\ncipherlane.identity.renew=true", NULL);
    try_identity("cipherlane.identity.renew=true", "tls.certificate is required");
    try_identity("cipherlane.identity.renew=yes\ncipherlane.identity.jwt.file=x", "true or false");
    try_identity("cipherlane.identity.renew=false\ncipherlane.identity.jwt.file=x", "identity.renew=false");
    try_identity("cipherlane.identity.token.file=x\ncipherlane.identity.jwt.file=x", "one of them");
    try_identity("cipherlane.identity.token.file=x\ncipherlane.keyservice.tls.key=x", "takes the place");
}

static void load(const char *text, size_t size, const char *says)
{
    cl_error error = {0};
    cl_config *config = cl_config_new();
    FILE *file = fopen(in_folder(folder, "c.properties"), "w");
    CHECK(fwrite(text, 1, size, file) == size);
    (void)fclose(file);
    CHECK(cl_config_load(config, in_folder(folder, "c.properties"), &error) ==
          (says == NULL ? CL_OK : CL_CONFIGURATION_INVALID));
    CHECK(says == NULL || strstr(error.message, says) != NULL);
    cl_config_free(config);
}

static void configuration_files(void)
{
    static const char good[] = "# comment\n\n cipherlane.keys.cache.max = 17\r\ncipherlane.failure.action=fail";
    static char large[65537];
    memset(large, '\n', sizeof large);
    load(good, sizeof good - 1, NULL);
    load(large, 65536, NULL);
    load(large, 65537, "64 KiB");
    load("a\0b", 3, "no text");
    load("\ncipherlane.keys.cache.max", 26, "line 2");
    load("cipherlane.keys.cache.max=1", 27, "line 1");
    cl_config *config = cl_config_new();
    CHECK(cl_config_load(config, "/nowhere", NULL) == CL_CONFIGURATION_INVALID);
    cl_config_free(config);
}

/* Whether cl_json_parse takes a text. */
static bool takes(const char *text)
{
    size_t size = strlen(text);
    uint8_t *exact = malloc(size + 1);
    memcpy(exact, text, size);
    cJSON *tree = cl_json_parse(exact, size);
    bool taken = tree != NULL;
    cl_json_free(tree);
    free(exact);
    return taken;
}

static void json(void)
{
    static const char *const GOOD[] = {
        "{}",  " [ ] ",  "\"\\u00e4\\n\\\"\"", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"", "-0",
        "1e5", "1.5E-3", "[[[[[[[[]]]]]]]]",   "{\"a\":1,\"b\":true,\"c\":null}",          "false"};
    static const char *const BAD[] = {"",
                                      "{",
                                      "[1,]",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":1,\"\\u0061\":2}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u0000\"",
                                      "\"\x01\"",
                                      "\"\xff\"",
                                      "\"\xc0\xaf\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xe2\x82\"",
                                      "[[[[[[[[[]]]]]]]]]",
                                      "nul",
                                      "{} {}",
                                      "{a:1}",
                                      "{\"a\" 1}",
                                      "'a'",
                                      "[1 2]",
                                      "\"\\",
                                      "-",
                                      "NaN"};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        CHECK(takes(GOOD[i]));
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        if (!CHECK(!takes(BAD[i]))) {
            (void)fprintf(stderr, "  %s\n", BAD[i]);
        }
    }
}

/* Names, layers and retriability of all codes [CL-ERR-004]. */
static void codes(void)
{
    for (unsigned i = CL_CONFIGURATION_INVALID; i < CL_CODES; i++) {
        cl_code found = cl_code_of_name(cl_code_name((cl_code)i));
        CHECK(found == (cl_code)i || (i == CL_INTERNAL && found == CL_KEY_SERVICE_INTERNAL));
        CHECK(strlen(cl_code_layer((cl_code)i)) > 3);
    }
    CHECK(cl_code_of_name("made-up") == CL_CODES && strcmp(cl_code_name(CL_CODES), "internal") == 0);
    CHECK(cl_code_retriable(CL_KEY_SERVICE_UNAVAILABLE) && cl_code_retriable(CL_LEASE_EXPIRED) &&
          cl_code_retriable(CL_AUDIT_UNAVAILABLE) && cl_code_retriable(CL_KEY_SERVICE_INTERNAL));
    CHECK(!cl_code_retriable(CL_NOT_AUTHORIZED) && !cl_code_retriable(CL_KEY_UNKNOWN) &&
          !cl_code_retriable(CL_INTERNAL));
    CHECK(strcmp(cl_version(), "0.1.0") == 0);
}

/* A frame without its size: the buffer decides, then the limit. */
static void decompression(void)
{
    static uint8_t plain[5000];
    uint8_t frame[1000];
    uint8_t out[5001];
    size_t size = 0;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1); /* it comes when the buffer is full */
    const cl_bytes unsized = {frame, ZSTD_compress2(context, frame, sizeof frame, plain, sizeof plain)};
    uint8_t nothing[32];
    const cl_bytes empty = {nothing, ZSTD_compress2(context, nothing, sizeof nothing, plain, 0)};
    (void)ZSTD_freeCCtx(context);
    CHECK(cl_decompress(empty, 5000, out, 0, &size) == CL_OK && size == 0);
    CHECK(cl_decompress(unsized, 5000, out, 5000, &size) == CL_OK && size == 5000);
    CHECK(cl_decompress(unsized, 5000, out, 5001, &size) == CL_OK && size == 5000);
    CHECK(cl_decompress(unsized, 9999, out, 100, &size) == CL_BUFFER_TOO_SMALL && size > 100);
    CHECK(cl_decompress(unsized, 4999, out, 5001, &size) == CL_PLAINTEXT_TOO_LONG);
    for (size_t cut = 0; cut < unsized.size; cut++) {
        CHECK(cl_decompress((cl_bytes){frame, cut}, 5000, out, 5001, &size) == CL_DECOMPRESSION_FAILED);
    }
    CHECK(cl_decompress(unsized, 9999, out, 5000, &size) == CL_OK && size == 5000);
    for (size_t cut = 4; cut < unsized.size; cut++) { /* the buffer is full, or not, and the frame has not ended */
        CHECK(cl_decompress((cl_bytes){frame, cut}, 9999, out, 5000, &size) == CL_DECOMPRESSION_FAILED);
    }
    const cl_bytes sized = {frame, ZSTD_compress(frame, sizeof frame, plain, sizeof plain, 1)};
    CHECK(cl_decompress(sized, 5000, out, 5000, &size) == CL_OK && size == 5000);
    CHECK(cl_decompress(sized, 5000, out, 4999, &size) == CL_BUFFER_TOO_SMALL && size == 5000);
    CHECK(cl_decompress(sized, 4999, out, 5000, &size) == CL_PLAINTEXT_TOO_LONG);
}

/* More keys than one chunk holds; each cell is apart, and comes back wiped. */
static void secrets(void)
{
    enum { MANY = 1500 };
    static uint8_t *cells[MANY];
    cl_secrets *arena = cl_secrets_new();
    for (size_t i = 0; i < MANY; i++) {
        cells[i] = cl_secret_new(arena);
        CHECK(cells[i] != NULL);
        memset(cells[i], (int)(i % 251), CL_KEY_SIZE);
    }
    for (size_t i = 0; i < MANY; i++) {
        CHECK(cells[i][0] == i % 251 && cells[i][31] == i % 251);
    }
    cl_secret_free(arena, cells[7]);
    CHECK(cells[7][31] == 0 && cells[7][16] == 0);
    cl_secret_free(arena, NULL);
    cl_secrets_wipe(arena);
    CHECK(cells[9][0] == 0 && cells[9][31] == 0);
    cl_secrets_free(arena);
    cl_secrets_free(NULL);
}

static void *take_and_give(void *slots)
{
    cl_slot_give(cl_slot_take(slots));
    return NULL;
}

/* A thread that finds all slots taken waits for the first that is free. */
static void all_slots_taken(void)
{
    enum { ALL = 32 };
    const struct timespec moment = {0, 30000000};
    pthread_t waiting;
    cl_slot *taken[ALL];
    cl_slots *slots = cl_slots_new(NULL);
    for (size_t i = 0; i < ALL; i++) {
        taken[i] = cl_slot_take(slots);
    }
    CHECK(pthread_create(&waiting, NULL, take_and_give, slots) == 0);
    (void)nanosleep(&moment, NULL);
    for (size_t i = 0; i < ALL; i++) {
        cl_slot_give(taken[i]);
    }
    CHECK(pthread_join(waiting, NULL) == 0);
    cl_slots_free(slots);
}

int main(void)
{
    folder = make_folder();
    make_pki(folder);
    check_case("CL-CFG-001, CL-CFG-002: settings", settings);
    check_case("CL-KEY-002: addresses", addresses);
    check_case("CL-CFG-002: files", files);
    check_case("CL-CFG-002: identities", identities);
    check_case("configuration files", configuration_files);
    check_case("json", json);
    check_case("CL-ERR-004: codes", codes);
    check_case("CL-ENV-011: decompression", decompression);
    check_case("secrets", secrets);
    check_case("all slots taken", all_slots_taken);
    remove_folder(folder);
    return check_finish("unit");
}
