/*
 * The n-th call fails, for n = 1, 2, 3, … until everything succeeds: memory (ours, cJSON's, libcurl's and OpenSSL's), random
 * numbers, requests. After each failure: an error, no plaintext, no crash, and (ASan, Valgrind) no leak [CL-ENV-044].
 */
#include "check.h"
#include "faults.h"
#include "json.h"
#include "support.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CALLS 20000

static char *folder;

static void *cjson_malloc(size_t size)
{
    return malloc(size);
}

void *__real_malloc(size_t size);

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return faults_hit(MEMORY) ? NULL : __real_malloc(size);
}

static void *openssl_realloc(void *block, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return faults_hit(MEMORY) ? NULL : realloc(block, size);
}

static void openssl_free(void *block, const char *file, int line)
{
    (void)file, (void)line;
    free(block);
}

static const uint8_t CANARY[] = "canary 19f3a7 canary 19f3a7 canary 19f3a7 canary 19f3a7"; /* compressible */

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

static void memory(void)
{
    faults_in_turn(MEMORY, MOST_CALLS, whole_story);
}

static void random_numbers(void)
{
    faults_in_turn(RANDOM, MOST_CALLS, whole_story);
}

static void request(void)
{
    faults_in_turn(REQUEST, MOST_CALLS, whole_story);
}

static void system_calls(void)
{
    faults_in_turn(SYSTEM, MOST_CALLS, whole_story);
}

static void write_configuration(void)
{
    FILE *file = fopen(in_folder(folder, "client.properties"), "w");
    (void)fprintf(file,
                  "cipherlane.keyservice.urls=https://127.0.0.1:1\ncipherlane.keyservice.tls.ca=%s\n"
                  "cipherlane.keyservice.tls.certificate=%s\ncipherlane.keyservice.tls.key=%s\n"
                  "cipherlane.compression.topics=*\ncipherlane.compression.min.bytes=1\n",
                  in_folder(folder, "ca.pem"), in_folder(folder, "client.pem"), in_folder(folder, "client.key"));
    (void)fclose(file);
}

int main(void)
{
    cJSON_Hooks hooks = {cjson_malloc, free};
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
    check_case("the n-th system or cipher call fails", system_calls);
    remove_folder(folder);
    return check_finish("faults");
}
