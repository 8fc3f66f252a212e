/*
 * The n-th call fails, for n = 1, 2, 3, … until everything succeeds: memory (ours, cJSON's, libcurl's and OpenSSL's), random
 * numbers, requests. After each failure: an error, no plaintext, no crash, and (ASan, Valgrind) no leak [CL-ENV-044].
 */
#include "check.h"
#include "clock.h"
#include "error.h"
#include "http.h"
#include "json.h"
#include "support.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum what { MEMORY, RANDOM, REQUEST, KINDS };

static char *folder;
static atomic_long countdown[KINDS]; /* the call that finds 1 fails; 0: off */

static bool fails(enum what kind)
{
    long left = atomic_load(&countdown[kind]);
    if (left <= 0) {
        return false;
    }
    return atomic_fetch_sub(&countdown[kind], 1) == 1;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
ssize_t __real_getrandom(void *out, size_t size, unsigned flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);
cl_code __wrap_cl_http_post(cl_http *http, const char *url, const char *path, const char *body, uint32_t timeout_ms,
                            cl_http_answer *answer, cl_error *error);

void *__wrap_malloc(size_t size)
{
    return fails(MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails(MEMORY) ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    char *copy = __wrap_malloc(strlen(text) + 1);
    if (copy != NULL) {
        memcpy(copy, text, strlen(text) + 1);
    }
    return copy;
}

ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags)
{
    if (fails(RANDOM)) {
        errno = EIO;
        return -1;
    }
    return __real_getrandom(out, size, flags);
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails(MEMORY) ? NULL : __real_malloc(size);
}

static void *openssl_realloc(void *block, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails(MEMORY) ? NULL : realloc(block, size);
}

static void openssl_free(void *block, const char *file, int line)
{
    (void)file, (void)line;
    free(block);
}

cl_code __wrap_cl_http_post(cl_http *http, const char *url, const char *path, const char *body, uint32_t timeout_ms,
                            cl_http_answer *answer, cl_error *error)
{
    static const char KEY[] = "\"scope\":\"claims\",\"kid\":\"4bc31153e689f5bbe9cd6136ff2f83bb\","
                              "\"key\":\"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=\",\"refresh_in\":100,"
                              "\"expires_in\":200";
    (void)http, (void)url, (void)timeout_ms, (void)body;
    *answer = (cl_http_answer){.status = 200, .sent_at = cl_now()};
    answer->body = __wrap_malloc(1024);
    if (answer->body == NULL || fails(REQUEST)) {
        free(answer->body);
        *answer = (cl_http_answer){0};
        return cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: as this test wants it");
    }
    const char *format = strstr(path, "encryption-key") != NULL ? "{\"mode\":\"encrypt\",%s}"
                                                                : "{\"plaintext\":\"reject\",\"refresh_in\":100,"
                                                                  "\"expires_in\":200,\"keys\":[{%s}]}";
    answer->size = (size_t)snprintf((char *)answer->body, 1024, format, KEY);
    (void)snprintf(answer->content_type, sizeof answer->content_type, "application/json");
    return CL_OK;
}

static const uint8_t CANARY[] = "canary 19f3a7";

/* Everything once: configuration, client, encrypt, decrypt. True if all of it succeeded. */
static bool whole_story(void)
{
    uint8_t buffer[128] = {0};
    uint8_t plain[64] = {0};
    cl_bytes sent = {0};
    cl_bytes read = {0};
    cl_error error = {0};
    cl_client *client = NULL;
    cl_config *config = cl_config_new();
    bool good = config != NULL && cl_config_load(config, in_folder(folder, "client.properties"), &error) == CL_OK &&
                cl_client_new(&client, config, &error) == CL_OK;
    cl_config_free(config);
    if (good) {
        good = cl_encrypt(client, "claims", (cl_bytes){CANARY, sizeof CANARY}, NULL, buffer, sizeof buffer, &sent,
                          &error) == CL_OK;
        CHECK(good == (sent.data != NULL));
        CHECK(memmem(buffer, sizeof buffer, CANARY, sizeof CANARY - 1) == NULL);
    }
    if (good) {
        good = cl_decrypt(client, "claims", sent, NULL, plain, sizeof plain, &read, &error) == CL_OK;
        CHECK(good == (read.data != NULL));
        CHECK(good || memmem(plain, sizeof plain, CANARY, sizeof CANARY - 1) == NULL);
    }
    CHECK(good || config == NULL || error.code != CL_OK);
    cl_client_free(client);
    return good;
}

/* What OpenSSL and libcurl allocate once for the process is not what is tested. */
static void warm_up(void)
{
    CHECK(whole_story());
}

static void nth_fails(enum what kind)
{
    long n = 1;
    bool done = false;
    for (; !done && n < 20000; n++) {
        atomic_store(&countdown[kind], n);
        bool good = whole_story();
        done = atomic_load(&countdown[kind]) > 0; /* not reached: there were fewer calls */
        atomic_store(&countdown[kind], 0);
        CHECK(!done || good);
    }
    CHECK(done && n > 2);
    (void)printf("  failed in turn: %ld calls\n", n - 2);
}

static void memory(void)
{
    nth_fails(MEMORY);
}

static void random_numbers(void)
{
    nth_fails(RANDOM);
}

static void request(void)
{
    nth_fails(REQUEST);
}

static void write_configuration(void)
{
    FILE *file = fopen(in_folder(folder, "client.properties"), "w");
    (void)fprintf(file,
                  "cipherlane.keyservice.urls=https://127.0.0.1:1\ncipherlane.keyservice.tls.ca=%s\n"
                  "cipherlane.keyservice.tls.certificate=%s\ncipherlane.keyservice.tls.key=%s\n",
                  in_folder(folder, "ca.pem"), in_folder(folder, "client.pem"), in_folder(folder, "client.key"));
    (void)fclose(file);
}

int main(void)
{
    cJSON_Hooks hooks = {__wrap_malloc, free};
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1) {
        return 1;
    }
    cJSON_InitHooks(&hooks);
    folder = make_folder();
    make_pki(folder);
    write_configuration();
    check_case("nothing fails", warm_up);
    check_case("the n-th allocation fails", memory);
    check_case("the n-th random number fails", random_numbers);
    check_case("the n-th request fails", request);
    remove_folder(folder);
    return check_finish("faults");
}
