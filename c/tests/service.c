/* The hostile key service as tests see it. */
#include "service.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char *folder;
child service;
char url[64];

child start_service(const char *certificate, char out_url[64])
{
    char *argv[] = {strdup("python3"),
                    strdup(TESTS "/hostile_service.py"),
                    strdup(in_folder(folder, certificate)),
                    strdup(in_folder(folder, strcmp(certificate, "server.pem") == 0 ? "server.key" : "wrongname.key")),
                    strdup(in_folder(folder, "ca.pem")),
                    NULL};
    child started = start_child(argv);
    for (size_t i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
    json_t *ready = read_json(&started);
    (void)snprintf(out_url, 64, "https://127.0.0.1:%lld", json_integer_value(json_object_get(ready, "port")));
    json_decref(ready);
    return started;
}

void behave(const char *topic, const char *what)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "{\"topic\":\"%s\",\"do\":%s}", topic, what);
    json_decref(ask_child(&service, line));
}

long long requests(const char *topic)
{
    char line[512];
    (void)snprintf(line, sizeof line, "{\"count\":\"%s\"}", topic);
    json_t *answer = ask_child(&service, line);
    long long count = json_integer_value(answer);
    json_decref(answer);
    return count;
}

void pause_ms(long milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

double seconds(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

const uint8_t CANARY[CANARY_SIZE] = "canary 6f1b9d02e4";
uint8_t envelope_bytes[256];

cl_code encrypt_canary(cl_client *client, const char *topic, cl_bytes *out, cl_error *error)
{
    return cl_encrypt(client, topic, (cl_bytes){CANARY, sizeof CANARY}, NULL, envelope_bytes, sizeof envelope_bytes,
                      out, error);
}

/* Encrypts and expects a code; on failure nothing is handed over and the message names the topic [CL-KAF-001]. */
void expect(cl_client *client, const char *topic, cl_code wanted)
{
    cl_bytes out = {CANARY, 1};
    cl_error error = {0};
    memset(envelope_bytes, 0, sizeof envelope_bytes);
    cl_code code = encrypt_canary(client, topic, &out, &error);
    if (!CHECK(code == wanted)) {
        (void)fprintf(stderr, "  wanted %s, got %s: %s\n", cl_code_name(wanted), cl_code_name(code), error.message);
    }
    if (wanted != CL_OK) {
        CHECK(error.code == wanted && out.data == NULL && strstr(error.message, topic) != NULL);
    }
    CHECK(memmem(envelope_bytes, sizeof envelope_bytes, CANARY, 8) == NULL);
    CHECK(memmem(error.message, sizeof error.message, CANARY, 8) == NULL); /* [CL-ERR-001] */
}

void begin_service(void)
{
    folder = make_folder();
    make_pki(folder);
    service = start_service("server.pem", url);
}

void end_service(void)
{
    stop_child(&service);
    remove_folder(folder);
}
