/*
 * The client against a key service over real TLS that misbehaves on command: refusals, garbage, silence, a fork.
 * Covers CL-KEY-001 to CL-KEY-004, CL-KEY-010, CL-KEY-013, CL-KEY-014, CL-ERR-001 to CL-ERR-003, CL-ERR-006, CL-ENV-035.
 */
#include "check.h"
#include "service.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void round_trip(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    cl_bytes out = {0};
    cl_bytes plain = {0};
    uint8_t buffer[64];
    CHECK(encrypt_canary(client, "round", &out, NULL) == CL_OK && out.size == sizeof CANARY + CL_ENVELOPE_OVERHEAD);
    CHECK(cl_decrypt(client, "round", out, NULL, buffer, sizeof buffer, &plain, NULL) == CL_OK);
    CHECK(plain.size == sizeof CANARY && memcmp(plain.data, CANARY, sizeof CANARY) == 0);
    CHECK(cl_decrypt(client, "round", out, NULL, buffer, 3, &plain, NULL) == CL_BUFFER_TOO_SMALL);
    CHECK(plain.data == NULL && plain.size == sizeof CANARY);
    CHECK(cl_decrypt(client, "round", out, NULL, envelope_bytes + CL_ENVELOPE_HEADER, sizeof CANARY, &plain, NULL) ==
          CL_OK); /* in place */
    CHECK(plain.size == sizeof CANARY && memcmp(plain.data, CANARY, sizeof CANARY) == 0);
    CHECK(cl_encrypt(client, "round", (cl_bytes){CANARY, 4}, NULL, buffer, 63, &out, NULL) == CL_BUFFER_TOO_SMALL);
    CHECK(out.data == NULL);
    CHECK(requests("round") == 2); /* one for each direction */
    cl_client_free(client);
}

/* Every bit and every length of 20 envelopes: each change is refused, none crashes. */
static void flips_and_cuts(void)
{
    cl_client *client = make_client(folder, url, "cipherlane.keys.retry.backoff.ms", "60000");
    uint8_t value[256];
    uint8_t buffer[256];
    for (size_t size = 0; size < 20; size++) {
        cl_bytes out = {0};
        cl_bytes plain = {0};
        CHECK(cl_encrypt(client, "flips", (cl_bytes){CANARY, size}, NULL, value, sizeof value, &out, NULL) == CL_OK);
        for (size_t bit = 0; bit < 8 * out.size; bit++) {
            /* a changed kid asks the key service: two of its bits are enough */
            if (bit / 8 >= 4 && bit / 8 < 20 && bit % 64 != 0) {
                continue;
            }
            value[bit / 8] ^= (uint8_t)(1U << bit % 8);
            CHECK(cl_decrypt(client, "flips", out, NULL, buffer, sizeof buffer, &plain, NULL) != CL_OK &&
                  plain.data == NULL);
            value[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        for (size_t cut = 0; cut < out.size; cut++) {
            uint8_t *exact = malloc(cut + 1); /* so that ASan sees a read behind the end */
            memcpy(exact, value, cut);
            CHECK(cl_decrypt(client, "flips", (cl_bytes){exact, cut}, NULL, buffer, sizeof buffer, &plain, NULL) !=
                  CL_OK);
            free(exact);
        }
        CHECK(cl_decrypt(client, "flips", out, NULL, buffer, sizeof buffer, &plain, NULL) == CL_OK);
    }
    cl_client_free(client);
}

typedef struct refusal {
    const char *topic;
    const char *what;
    cl_code code;
} refusal;

/* A moved or foreign answer is never a missing key, and never plaintext [CL-ERR-003] [CL-ERR-006]. */
static void refusals(void)
{
    static const refusal CASES[] = {
        {"r403",
         "{\"status\":403,\"type\":\"application/problem+json\",\"body\":\"{\\\"code\\\":\\\"not-authorized\\\"}\"}",
         CL_NOT_AUTHORIZED},
        {"runknown",
         "{\"status\":403,\"type\":\"application/problem+json\",\"body\":\"{\\\"code\\\":\\\"topic-unknown\\\"}\"}",
         CL_TOPIC_UNKNOWN},
        {"r404", "{\"status\":404,\"body\":\"{}\"}", CL_KEY_SERVICE_BAD_ANSWER},
        {"r302", "{\"status\":302,\"location\":\"https://127.0.0.1:1/\",\"body\":\"\"}", CL_KEY_SERVICE_BAD_ANSWER},
        {"r500", "{\"status\":500,\"type\":\"text/html\",\"body\":\"oh\"}", CL_KEY_SERVICE_UNAVAILABLE},
        {"r429", "{\"status\":429,\"body\":\"\"}", CL_KEY_SERVICE_UNAVAILABLE},
        {"raudit",
         "{\"status\":503,\"type\":\"application/problem+json\",\"body\":\"{\\\"code\\\":\\\"audit-unavailable\\\"}\"}",
         CL_AUDIT_UNAVAILABLE},
        {"garbage", "{\"body\":\"<html>\"}", CL_KEY_SERVICE_BAD_ANSWER},
        {"large", "{\"body\":\"[1,2,3,4,5,6,7,8]\",\"times\":100000}", CL_KEY_SERVICE_BAD_ANSWER},
        {"dropped", "{\"drop\":true}", CL_KEY_SERVICE_UNAVAILABLE},
        {"short", "{\"key_bytes\":31}", CL_KEY_MALFORMED},
        {"long", "{\"key_bytes\":33}", CL_KEY_MALFORMED},
        {"other", "{\"key_bytes\":32}", CL_KEY_ID_MISMATCH},
        {"forbid", "{\"mode\":\"forbid\"}", CL_TOPIC_FORBIDDEN},
        {"mode", "{\"mode\":\"maybe\"}", CL_KEY_SERVICE_BAD_ANSWER},
        {"lease0", "{\"expires_in\":0}", CL_KEY_SERVICE_BAD_ANSWER},
        {"leaselong", "{\"expires_in\":604801}", CL_KEY_SERVICE_BAD_ANSWER},
    };
    cl_client *client = make_client(folder, url, NULL, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        behave(CASES[i].topic, CASES[i].what);
        expect(client, CASES[i].topic, CASES[i].code);
        CHECK(requests(CASES[i].topic) == 1);
    }
    expect(client, "no/topic", CL_TOPIC_INVALID);
    cl_client_free(client);
}

/* Clear topics pass on what is no envelope, and only that [CL-ENV-041]. */
static void clear_topic(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    const uint8_t magic[] = {0xC1, 0x9E, 0x01};
    cl_bytes out = {0};
    behave("clear", "{\"mode\":\"clear\"}");
    CHECK(encrypt_canary(client, "clear", &out, NULL) == CL_OK && out.data == CANARY && out.size == sizeof CANARY);
    CHECK(cl_encrypt(client, "clear", (cl_bytes){magic, 3}, NULL, envelope_bytes, 256, &out, NULL) ==
          CL_AMBIGUOUS_PLAINTEXT);
    CHECK(out.data == NULL);
    cl_client_free(client);
}

static void plaintext_policy(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    cl_bytes out = {0};
    uint8_t buffer[64];
    const cl_bytes value = {CANARY, sizeof CANARY};
    CHECK(cl_decrypt(client, "strict", value, NULL, buffer, sizeof buffer, &out, NULL) == CL_PLAINTEXT_REJECTED);
    CHECK(out.data == NULL);
    behave("lenient", "{\"plaintext\":\"accept\"}");
    CHECK(cl_decrypt(client, "lenient", value, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    CHECK(out.data == CANARY && out.size == sizeof CANARY);
    behave("nopolicy", "{\"status\":500,\"body\":\"\"}");
    CHECK(cl_decrypt(client, "nopolicy", value, NULL, buffer, sizeof buffer, &out, NULL) == CL_KEY_SERVICE_UNAVAILABLE);
    CHECK(out.data == NULL);
    cl_client_free(client);
}

/* [CL-KEY-014]: the next address when one cannot be reached or fails, never after a refusal. */
static void fails_over(void)
{
    char both[160];
    (void)snprintf(both, sizeof both, "https://127.0.0.1:1, %s", url);
    cl_client *client = make_client(folder, both, NULL, NULL);
    expect(client, "over", CL_OK);
    cl_client_free(client);
    (void)snprintf(both, sizeof both, "%s,%s", url, url);
    client = make_client(folder, both, NULL, NULL);
    behave("over500", "{\"status\":500,\"body\":\"\"}");
    expect(client, "over500", CL_KEY_SERVICE_UNAVAILABLE);
    CHECK(requests("over500") == 2);
    behave("over403",
           "{\"status\":403,\"type\":\"application/problem+json\",\"body\":\"{\\\"code\\\":\\\"not-authorized\\\"}\"}");
    expect(client, "over403", CL_NOT_AUTHORIZED);
    CHECK(requests("over403") == 1);
    cl_client_free(client);
}

/* [CL-KEY-001]: a certificate of another name, or of another CA, is no key service. */
static void wrong_server(void)
{
    char other_url[64];
    child other = start_service("wrongname.pem", other_url);
    cl_client *client = make_client(folder, other_url, NULL, NULL);
    expect(client, "name", CL_KEY_SERVICE_UNAVAILABLE);
    cl_client_free(client);
    stop_child(&other);
    char *foreign = make_folder();
    make_pki(foreign);
    client = make_client(foreign, url, NULL, NULL);
    expect(client, "ca", CL_KEY_SERVICE_UNAVAILABLE);
    cl_client_free(client);
    remove_folder(foreign);
    CHECK(requests("name") == 0 && requests("ca") == 0);
}

/* [CL-KEY-010]: all keys of a batch in one request; a bad kid does not hurt the others. */
static void prefetched(void)
{
    enum { MANY = 40 };
    static uint8_t values[MANY][64];
    cl_bytes batch[MANY];
    char what[64];
    uint8_t buffer[64];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(what, sizeof what, "{\"generation\":%zu}", i / 2);
        behave("batch", what);
        cl_client *writer = make_client(folder, url, NULL, NULL);
        CHECK(cl_encrypt(writer, "batch", (cl_bytes){CANARY, 4}, NULL, values[i], 64, &batch[i], NULL) == CL_OK);
        cl_client_free(writer);
    }
    values[7][4] ^= 1U;
    long long before = requests("batch");
    cl_client *client = make_client(folder, url, NULL, NULL);
    cl_prefetch(client, "batch", batch, MANY);
    for (size_t i = 0; i < MANY; i++) {
        cl_bytes out = {0};
        cl_code code = cl_decrypt(client, "batch", batch[i], NULL, buffer, sizeof buffer, &out, NULL);
        CHECK(code == (i == 7 ? CL_KEY_UNKNOWN : CL_OK));
    }
    CHECK(requests("batch") == before + 1);
    cl_client_free(client);
}

/* [CL-KEY-013]: more keys than the cache holds: everything still works, the memory is bounded by the cache. */
static void bounded_cache(void)
{
    cl_client *client = make_client(folder, url, "cipherlane.keys.cache.max", "16");
    char topic[32];
    for (int i = 0; i < 120; i++) {
        (void)snprintf(topic, sizeof topic, "many%d", i % 60);
        expect(client, topic, CL_OK);
    }
    cl_client_free(client);
}

#if !defined(__SANITIZE_THREAD__)
/* [CL-ENV-035]: the child has a session and keys of its own, and can decrypt what its parent wrote. */
static void forked(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    uint8_t parent[256];
    cl_bytes out = {0};
    cl_bytes plain = {0};
    uint8_t buffer[64];
    int pipes[2];
    expect(client, "forked", CL_OK);
    CHECK(pipe(pipes) == 0);
    memcpy(parent, envelope_bytes, sizeof parent);
    pid_t pid = fork();
    if (pid == 0) {
        bool good = encrypt_canary(client, "forked", &out, NULL) == CL_OK &&
                    write(pipes[1], envelope_bytes, sizeof envelope_bytes) == (ssize_t)sizeof envelope_bytes;
        out = (cl_bytes){parent, sizeof CANARY + CL_ENVELOPE_OVERHEAD};
        good = good && cl_decrypt(client, "forked", out, NULL, buffer, sizeof buffer, &plain, NULL) == CL_OK;
#if defined(__SANITIZE_ADDRESS__) /* for Valgrind what the parent left would then be out of reach */
        cl_client_free(client);
#endif
        _exit(good ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    uint8_t theirs[256] = {0};
    CHECK(read(pipes[0], theirs, sizeof theirs) == (ssize_t)sizeof theirs);
    CHECK(memcmp(parent + 4, theirs + 4, 16) == 0);   /* same key */
    CHECK(memcmp(parent + 20, theirs + 20, 20) != 0); /* another session */
    expect(client, "forked", CL_OK);                  /* the parent goes on in its own */
    CHECK(memcmp(parent + 20, envelope_bytes + 20, 20) == 0 && memcmp(parent + 40, envelope_bytes + 40, 4) != 0);
    CHECK(requests("forked") >=
          3); /* parent, child to encrypt, child to decrypt, and what the child reports at its end */
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    cl_client_free(client);
}
#endif

int main(void)
{
    begin_service();
    check_case("round trip, small buffer, in place", round_trip);
    check_case("bit flips and cuts of 20 envelopes", flips_and_cuts);
    check_case("refusals and garbage", refusals);
    check_case("clear topic", clear_topic);
    check_case("plaintext by policy", plaintext_policy);
    check_case("fails over", fails_over);
    check_case("wrong server", wrong_server);
    check_case("prefetched", prefetched);
    check_case("bounded cache", bounded_cache);
#if !defined(__SANITIZE_THREAD__)
    check_case("forked", forked);
#endif
    end_service();
    return check_finish("service");
}
