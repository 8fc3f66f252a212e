/*
 * Eight threads on one client while its lease is renewed and its key rotates: every nonce once [CL-ENV-031], every envelope
 * opens, sessions end after their last counter [CL-ENV-032] and after 15 minutes [CL-ENV-033].
 */
#include "check.h"
#include "clock.h"
#include "http.h"
#include "slots.h"
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, RECORDS = 4000, SIZE = 24 };

static char *folder;
static cl_client *client;
static atomic_uint generation;
static uint8_t nonces[THREADS * RECORDS][CL_NONCE_SIZE];

cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error);

/* Two keys that take turns, and leases of a second, so that everything happens while threads are busy. */
cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error)
{
    static const char *const KIDS[2] = {"4bc31153e689f5bbe9cd6136ff2f83bb", "8de6e188e23fec7f033af048e3871cbe"};
    static const char *const KEYS[2] = {"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=",
                                        "Pmal6IOmbwv21qriR462/i+l+iTGFjk/k5HiBtoEhXM="};
    (void)http, (void)error;
    char *text = NULL;
    int size = 0;
    if (strstr(request->path, "encryption-key") != NULL) {
        unsigned which = atomic_fetch_add(&generation, 1) % 2;
        size = asprintf(&text,
                        "{\"mode\":\"encrypt\",\"scope\":\"claims\",\"kid\":\"%s\",\"key\":\"%s\",\"refresh_in\":1,"
                        "\"expires_in\":2}",
                        KIDS[which], KEYS[which]);
    } else {
        unsigned which = strstr(request->body, KIDS[0]) != NULL ? 0 : 1;
        size = asprintf(&text,
                        "{\"plaintext\":\"reject\",\"refresh_in\":1,\"expires_in\":1,\"keys\":[{\"kid\":\"%s\","
                        "\"scope\":\"claims\",\"key\":\"%s\",\"refresh_in\":1,\"expires_in\":1}]}",
                        KIDS[which], KEYS[which]);
    }
    *answer = (cl_http_answer){.status = 200, .body = (uint8_t *)text, .size = (size_t)size, .sent_at = cl_now()};
    (void)snprintf(answer->content_type, sizeof answer->content_type, "application/json");
    return CL_OK;
}

static void one_record(uint8_t (*nonce)[CL_NONCE_SIZE], size_t number)
{
    uint8_t value[SIZE];
    uint8_t envelope[SIZE + CL_ENVELOPE_OVERHEAD];
    uint8_t plain[SIZE];
    cl_bytes sent = {0};
    cl_bytes read = {0};
    cl_error error = {0};
    memset(value, (int)(number & 0xFFU), sizeof value);
    if (!CHECK(cl_encrypt(client, "claims", (cl_bytes){value, SIZE}, NULL, envelope, sizeof envelope, &sent, &error) ==
               CL_OK) ||
        !CHECK(cl_decrypt(client, "claims", sent, NULL, plain, sizeof plain, &read, &error) == CL_OK)) {
        (void)fprintf(stderr, "  %s\n", error.message);
        return;
    }
    memcpy(nonce, envelope + CL_PREAMBLE_SIZE, CL_NONCE_SIZE);
    CHECK(read.size == SIZE && memcmp(plain, value, SIZE) == 0);
}

static void *work(void *context)
{
    size_t first = *(const size_t *)context;
    for (size_t i = 0; i < RECORDS; i++) {
        one_record(&nonces[first + i], i);
        if (i % (RECORDS / 40) == 0) {
            const struct timespec rest = {0, 50000000}; /* two seconds in all: leases come and go */
            (void)nanosleep(&rest, NULL);
        }
    }
    return NULL;
}

static int by_bytes(const void *left, const void *right)
{
    return memcmp(left, right, CL_NONCE_SIZE);
}

static void eight_threads(void)
{
    pthread_t threads[THREADS];
    size_t firsts[THREADS];
    client = make_client(folder, "https://127.0.0.1:1", NULL, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        firsts[i] = i * RECORDS;
        CHECK(pthread_create(&threads[i], NULL, work, &firsts[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    qsort(nonces, (size_t)THREADS * RECORDS, CL_NONCE_SIZE, by_bytes);
    for (size_t i = 1; i < (size_t)THREADS * RECORDS; i++) {
        CHECK(memcmp(nonces[i - 1], nonces[i], CL_NONCE_SIZE) != 0);
    }
    CHECK(atomic_load(&generation) >= 2);
    cl_client_free(client);
}

/* A lease that lives for an hour, and slots around it. */
static cl_algorithms algorithms;

typedef struct fixture {
    cl_secrets *secrets;
    cl_slots *slots;
    cl_lease *lease;
    cl_slot *slot;
    uint64_t now;
} fixture;

static fixture begin(void)
{
    fixture f = {.secrets = cl_secrets_new(), .now = cl_now()};
    static const uint8_t key[CL_KEY_SIZE] = {1};
    const cl_grant grant = {.mode = CL_MODE_ENCRYPT, .key = key, .topic = "t", .scope = "s"};
    CHECK(cl_algorithms_open(&algorithms) == CL_OK);
    f.slots = cl_slots_new(&algorithms);
    f.lease = cl_lease_new(f.secrets, &grant, f.now + 3600 * CL_SECOND);
    f.slot = cl_slot_take(f.slots);
    return f;
}

static void end(fixture *f)
{
    cl_slot_give(f->slot);
    cl_lease_drop(f->lease);
    cl_slots_free(f->slots);
    cl_secrets_free(f->secrets);
    cl_algorithms_close(&algorithms);
}

static void last_counter(void)
{
    fixture f = begin();
    cl_keyed *session = cl_slot_begin(f.slot, f.lease, f.now);
    session->counter = UINT32_MAX - 1;
    CHECK(cl_slot_session(f.slot, "t", f.now) == session);
    session->counter++; /* the record with counter FFFFFFFE was the last */
    CHECK(cl_slot_session(f.slot, "t", f.now) == NULL);
    end(&f);
}

static void fifteen_minutes(void)
{
    fixture f = begin();
    const cl_keyed *session = cl_slot_begin(f.slot, f.lease, f.now);
    CHECK(cl_slot_session(f.slot, "t", f.now + CL_SESSION_LIFE - 1) == session);
    CHECK(cl_slot_session(f.slot, "t", f.now + CL_SESSION_LIFE) == NULL);
    end(&f);
}

static void ended_lease(void)
{
    fixture f = begin();
    CHECK(cl_slot_begin(f.slot, f.lease, f.now) != NULL);
    cl_lease_end(f.lease);
    CHECK(cl_slot_session(f.slot, "t", f.now) == NULL);
    CHECK(cl_slot_begin(f.slot, f.lease, f.now) == NULL);
    end(&f);
}

/* A swept slot holds nothing of an ended lease: only our own reference is left, and the key is wiped with it. */
static void swept(void)
{
    fixture f = begin();
    CHECK(cl_slot_begin(f.slot, f.lease, f.now) != NULL && atomic_load(&f.lease->references) == 2);
    cl_slot_give(f.slot);
    cl_lease_end(f.lease);
    cl_slots_sweep(f.slots, f.now);
    CHECK(atomic_load(&f.lease->references) == 1);
    const uint8_t *cell = f.lease->key;
    cl_lease_drop(f.lease);
    f.lease = NULL;
    for (size_t i = sizeof(void *); i < CL_KEY_SIZE; i++) { /* the first bytes are a link of the free list */
        CHECK(cell[i] == 0);
    }
    CHECK(cell[0] != 1 || cell[1] != 0);
    f.slot = cl_slot_take(f.slots);
    end(&f);
}

/* More topics than a slot holds sessions: all work, each session has a nonce of its own. */
static void many_topics(void)
{
    fixture f = begin();
    static const uint8_t key[CL_KEY_SIZE] = {1};
    char topic[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(topic, sizeof topic, "t%d", i);
        const cl_grant grant = {.mode = CL_MODE_ENCRYPT, .key = key, .topic = topic, .scope = "s"};
        cl_lease *lease = cl_lease_new(f.secrets, &grant, f.now + 3600 * CL_SECOND);
        CHECK(cl_slot_begin(f.slot, lease, f.now) != NULL);
        CHECK(cl_slot_session(f.slot, topic, f.now) != NULL);
        cl_lease_drop(lease);
    }
    end(&f);
}

int main(void)
{
    folder = make_folder();
    make_pki(folder);
    check_case("eight threads, rotating keys", eight_threads);
    check_case("CL-ENV-032: last counter", last_counter);
    check_case("CL-ENV-033: fifteen minutes", fifteen_minutes);
    check_case("CL-ENV-034: ended lease", ended_lease);
    check_case("CL-KEY-005: swept and wiped", swept);
    check_case("many topics", many_topics);
    remove_folder(folder);
    return check_finish("threads");
}
