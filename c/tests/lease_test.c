/*
 * Leases against the same key service: renewed, ended, revoked, rotated, waited for.
 * Covers CL-KEY-005 to CL-KEY-009, CL-KEY-011, CL-KEY-012, CL-ENV-034.
 */
#include "check.h"
#include "service.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Until there were `count` requests for a topic, at most ten seconds: a loaded machine is late, not wrong. */
static void await_requests(const char *topic, long long count)
{
    for (int i = 0; i < 200 && requests(topic) < count; i++) {
        pause_ms(50);
    }
}

/*
 * [CL-KEY-005] [CL-KEY-006] [CL-KEY-007]: renewals fail and the old lease goes on; at its end the key is gone, and the error is that of
 * the last attempt.
 */
static void lease_ends(void)
{
    cl_client *client = make_client(folder, url, "cipherlane.keys.retry.backoff.ms", "50");
    cl_code code = CL_OK;
    double asked = seconds();
    behave("ends", "{\"refresh_in\":1,\"expires_in\":3}");
    expect(client, "ends", CL_OK);
    double answered = seconds();
    behave("ends", "{\"status\":500,\"body\":\"\"}");
    while (code == CL_OK) {
        cl_bytes out = {0};
        double before = seconds();
        code = encrypt_canary(client, "ends", &out, NULL);
        CHECK(code != CL_OK || before - answered < 3);
        CHECK(code == CL_OK || seconds() - asked > 2.95); /* less a tick of the kernel */
        pause_ms(20);
    }
    CHECK(code == CL_KEY_SERVICE_UNAVAILABLE && requests("ends") > 2);
    behave("ends", "{}");
    pause_ms(100);
    expect(client, "ends", CL_OK);
    cl_client_free(client);
}

/* [CL-KEY-006]: the caller never waits for a renewal, and the session goes on under the same key. */
static void renewed_ahead(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    behave("ahead", "{\"refresh_in\":1,\"expires_in\":10}");
    expect(client, "ahead", CL_OK);
    uint8_t nonce[20];
    memcpy(nonce, envelope_bytes + 20, sizeof nonce);
    behave("ahead", "{\"refresh_in\":1,\"expires_in\":10,\"delay\":1.5}");
    double longest = 0;
    for (int i = 0; i < 50; i++) {
        double before = seconds();
        expect(client, "ahead", CL_OK);
        double took = seconds() - before;
        longest = took > longest ? took : longest;
        pause_ms(100);
    }
    CHECK(longest < 1);
    CHECK(requests("ahead") >= 2);
    CHECK(memcmp(nonce, envelope_bytes + 20, sizeof nonce) == 0);
    cl_client_free(client);
}

/* [CL-KEY-008]: a renewal that is refused ends the lease at once. */
static void revoked(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    behave("revoked", "{\"refresh_in\":1,\"expires_in\":60}");
    expect(client, "revoked", CL_OK);
    behave("revoked",
           "{\"status\":403,\"type\":\"application/problem+json\",\"body\":\"{\\\"code\\\":\\\"not-authorized\\\"}\"}");
    await_requests("revoked", 2);
    pause_ms(500);
    expect(client, "revoked", CL_NOT_AUTHORIZED);
    cl_client_free(client);
}

/* [CL-ENV-034]: a new data key starts a new session; what was encrypted is reported with the renewal. */
static void rotated(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    behave("rotated", "{\"refresh_in\":1,\"expires_in\":60}");
    expect(client, "rotated", CL_OK);
    uint8_t before[44];
    memcpy(before, envelope_bytes, sizeof before);
    expect(client, "rotated", CL_OK);
    behave("rotated", "{\"refresh_in\":1,\"expires_in\":60,\"generation\":1}");
    await_requests("rotated", 2);
    pause_ms(500);
    expect(client, "rotated", CL_OK);
    CHECK(memcmp(before + 4, envelope_bytes + 4, 16) != 0 && memcmp(before + 20, envelope_bytes + 20, 20) != 0);
    json_t *last = ask_child(&service, "{\"last\":\"rotated\"}");
    const json_t *usage = json_object_get(last, "usage");
    CHECK(json_integer_value(json_object_get(usage, "records")) == 2);
    CHECK(json_integer_value(json_object_get(usage, "bytes")) == 2 * (json_int_t)sizeof CANARY);
    json_decref(last);
    cl_client_free(client);
}

/* An unused lease is not renewed. */
static void unused(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    behave("unused", "{\"refresh_in\":1,\"expires_in\":3}");
    expect(client, "unused", CL_OK);
    await_requests("unused", 2); /* renewed once: it was used */
    pause_ms(4000);
    CHECK(requests("unused") == 2);
    cl_client_free(client);
}

/* [CL-KEY-012]: within the backoff the same error, without a request. */
static void backs_off(void)
{
    cl_client *client = make_client(folder, url, "cipherlane.keys.retry.backoff.ms", "2000");
    behave("backoff", "{\"status\":500,\"body\":\"\"}");
    for (int i = 0; i < 10; i++) {
        expect(client, "backoff", CL_KEY_SERVICE_UNAVAILABLE);
    }
    CHECK(requests("backoff") == 1);
    pause_ms(2600);
    expect(client, "backoff", CL_KEY_SERVICE_UNAVAILABLE);
    CHECK(requests("backoff") == 2);
    cl_client_free(client);
}

/* [CL-KEY-011]: nobody waits longer than the deadline, leader or not. */
static void deadline(void)
{
    cl_client *client = make_client(folder, url, "cipherlane.keys.deadline.ms", "300");
    behave("slow", "{\"delay\":3}");
    double before = seconds();
    expect(client, "slow", CL_KEY_SERVICE_UNAVAILABLE);
    CHECK(seconds() - before < 2.5);
    cl_client_free(client);
}

static void *first_record(void *context)
{
    cl_bytes out = {0};
    uint8_t buffer[128];
    cl_code code = cl_encrypt(context, "flight", (cl_bytes){CANARY, 8}, NULL, buffer, sizeof buffer, &out, NULL);
    CHECK(code == CL_OK);
    return NULL;
}

/* [CL-KEY-009]: eight threads, one request. */
static void single_flight(void)
{
    pthread_t threads[8];
    cl_client *client = make_client(folder, url, NULL, NULL);
    behave("flight", "{\"delay\":0.5}");
    for (size_t i = 0; i < 8; i++) {
        CHECK(pthread_create(&threads[i], NULL, first_record, client) == 0);
    }
    for (size_t i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK(requests("flight") == 1);
    cl_client_free(client);
}

static void *impatient(void *context)
{
    cl_bytes out = {0};
    uint8_t buffer[128];
    cl_code code = cl_encrypt(context, "patience", (cl_bytes){CANARY, 8}, NULL, buffer, sizeof buffer, &out, NULL);
    CHECK(code == CL_KEY_SERVICE_UNAVAILABLE || code == CL_LEASE_EXPIRED);
    return NULL;
}

/* [CL-KEY-007] [CL-KEY-011]: a lease has ended, its renewal hangs, nobody waits longer than the deadline. */
static void renewal_hangs(void)
{
    pthread_t threads[4];
    cl_client *client = make_client(folder, url, "cipherlane.keys.deadline.ms", "700");
    behave("patience", "{\"refresh_in\":1,\"expires_in\":2}");
    expect(client, "patience", CL_OK);
    behave("patience", "{\"delay\":4}");
    pause_ms(2100); /* the thread asks since the first second, and the lease has ended */
    double before = seconds();
    for (size_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, impatient, client) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK(seconds() - before < 2.4);
    cl_client_free(client);
}

/* [CL-KEY-006] [CL-KEY-008] for reading: keys of a topic are renewed together; one that is destroyed ends at once. */
static void decryption_renewed(void)
{
    static uint8_t values[2][64];
    cl_bytes batch[2];
    cl_bytes out = {0};
    uint8_t buffer[64];
    char what[64];
    cl_client *client = make_client(folder, url, NULL, NULL);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(what, sizeof what, "{\"generation\":%zu}", i);
        behave("reading", what);
        cl_client *writer = make_client(folder, url, NULL, NULL);
        CHECK(cl_encrypt(writer, "reading", (cl_bytes){CANARY, 4}, NULL, values[i], 64, &batch[i], NULL) == CL_OK);
        cl_client_free(writer);
    }
    behave("reading", "{\"refresh_in\":1,\"expires_in\":2,\"plaintext\":\"accept\"}");
    cl_prefetch(client, "reading", batch, 2);
    long long before = requests("reading");
    for (int i = 0; i < 35; i++) {
        CHECK(cl_decrypt(client, "reading", batch[i % 2], NULL, buffer, 64, &out, NULL) == CL_OK);
        CHECK(cl_decrypt(client, "reading", (cl_bytes){CANARY, 4}, NULL, buffer, 64, &out, NULL) == CL_OK);
        pause_ms(100);
    }
    CHECK(requests("reading") >= before + 2 && requests("reading") <= before + 12);
    behave("reading", "{\"refresh_in\":1,\"expires_in\":9,\"kid_error\":\"key-destroyed\"}");
    for (int i = 0; i < 20; i++) {
        (void)cl_decrypt(client, "reading", batch[0], NULL, buffer, 64, &out, NULL);
        pause_ms(100);
    }
    CHECK(cl_decrypt(client, "reading", batch[0], NULL, buffer, 64, &out, NULL) == CL_KEY_DESTROYED);
    cl_client_free(client);
}

int main(void)
{
    begin_service();
    check_case("lease ends", lease_ends);
    check_case("renewed ahead", renewed_ahead);
    check_case("revoked", revoked);
    check_case("rotated, usage reported", rotated);
    check_case("unused lease is not renewed", unused);
    check_case("backs off", backs_off);
    check_case("deadline", deadline);
    check_case("single flight", single_flight);
    check_case("renewal hangs", renewal_hangs);
    check_case("decryption keys renewed", decryption_renewed);
    end_service();
    return check_finish("lease");
}
