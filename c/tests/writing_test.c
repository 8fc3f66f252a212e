/*
 * What a writer's settings do, renewed PEM files, the numbers, and the last usage report, against a key service over real TLS. Covers
 * CL-KAF-030, CL-KAF-031, CL-ENV-045, CL-ENV-046, CL-KEY-016, CL-KEY-017.
 */
#include "check.h"
#include "service.h"
#include "topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLAGS 3

/* Encrypts into envelope_bytes. */
static cl_code write_value(cl_client *client, const char *topic, cl_bytes value, const cl_bytes *key, cl_bytes *out)
{
    return cl_encrypt(client, topic, value, key, envelope_bytes, sizeof envelope_bytes, out, NULL);
}

/* [CL-KAF-030] [CL-KAF-031]: bound where the settings say so; refused without a key; read back only with the same. */
static void bound(void)
{
    const cl_bytes value = {CANARY, sizeof CANARY};
    const cl_bytes key = {(const uint8_t *)"key", 3};
    const cl_bytes other = {(const uint8_t *)"kez", 3};
    const cl_bytes empty = {(const uint8_t *)"", 0};
    const cl_bytes null = {NULL, 0};
    const cl_bytes *const keys[] = {&key, &empty, &null};
    uint8_t buffer[64];
    cl_bytes out = {0};
    cl_bytes plain = {0};
    cl_client *client = make_client(folder, url, "cipherlane.record.key.topics", "bound.?, b*d2");
    CHECK(write_value(client, "bound.a", value, NULL, &out) == CL_RECORD_KEY_UNAVAILABLE && out.data == NULL);
    CHECK(write_value(client, "bound.a", null, NULL, &out) == CL_OK && out.data == NULL); /* nothing to bind */
    for (size_t i = 0; i < 3; i++) {
        CHECK(write_value(client, "bound.a", value, keys[i], &out) == CL_OK && out.data[FLAGS] == 4);
        for (size_t j = 0; j < 3; j++) {
            cl_code code = cl_decrypt(client, "bound.a", out, keys[j], buffer, sizeof buffer, &plain, NULL);
            CHECK(code == (i == j ? CL_OK : CL_AUTHENTICATION_FAILED));
        }
        CHECK(cl_decrypt(client, "bound.a", out, &other, buffer, 64, &plain, NULL) == CL_AUTHENTICATION_FAILED);
        CHECK(cl_decrypt(client, "bound.a", out, NULL, buffer, 64, &plain, NULL) == CL_RECORD_KEY_UNAVAILABLE);
    }
    CHECK(write_value(client, "bound2", value, &key, &out) == CL_OK && out.data[FLAGS] == 4);
    CHECK(write_value(client, "bound.aa", value, &key, &out) == CL_OK && out.data[FLAGS] == 0);
    const cl_bytes huge = {(const uint8_t *)"", (size_t)1 << 32U};
    CHECK(write_value(client, "bound.a", value, &huge, &out) == CL_PLAINTEXT_TOO_LONG && out.data == NULL);
    cl_client_free(client);
}

/* [CL-ENV-045]: from the least size on, and only if it is shorter. [CL-ENV-046]: usage counts the value before. */
static void compression(void)
{
    static uint8_t flat[2000];
    static uint8_t noise[2000];
    static uint8_t buffer[2100];
    static uint8_t plain_bytes[2000];
    cl_bytes out = {0};
    cl_bytes plain = {0};
    cl_client *client = make_client(folder, url, "cipherlane.compression.topics", "zstd");
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)((i * i * 2654435761U) >> 11U);
    }
    CHECK(cl_encrypt(client, "zstd", (cl_bytes){flat, 1024}, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    CHECK(out.size < 200 && out.data[FLAGS] == 1);
    CHECK(cl_decrypt(client, "zstd", out, NULL, plain_bytes, sizeof plain_bytes, &plain, NULL) == CL_OK);
    CHECK(plain.size == 1024 && memcmp(plain.data, flat, 1024) == 0);
    CHECK(cl_encrypt(client, "zstd", (cl_bytes){flat, 1023}, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    CHECK(out.size == 1083 && out.data[FLAGS] == 0);
    CHECK(cl_encrypt(client, "zstd", (cl_bytes){noise, 2000}, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    CHECK(out.size <= 2060);
    CHECK(cl_decrypt(client, "zstd", out, NULL, plain_bytes, sizeof plain_bytes, &plain, NULL) == CL_OK);
    CHECK(plain.size == 2000 && memcmp(plain.data, noise, 2000) == 0);
    CHECK(cl_encrypt(client, "other", (cl_bytes){flat, 2000}, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    CHECK(out.size == 2060 && out.data[FLAGS] == 0);
    cl_client_free(client);
    json_t *last = ask_child(&service, "{\"last\":\"zstd\"}");
    CHECK(json_integer_value(json_object_get(json_object_get(last, "usage"), "bytes")) == 1024 + 1023 + 2000);
    json_decref(last);
}

/* The empty value, of which no frame is shorter, even when everything is compressed. */
static void empty_value(void)
{
    cl_bytes out = {0};
    cl_client *client = NULL;
    cl_config *config = make_config(folder, url);
    CHECK(cl_config_set(config, "cipherlane.compression.topics", "*", NULL) == CL_OK);
    CHECK(cl_config_set(config, "cipherlane.compression.min.bytes", "0", NULL) == CL_OK);
    CHECK(cl_client_new(&client, config, NULL) == CL_OK);
    CHECK(write_value(client, "empty", (cl_bytes){CANARY, 0}, NULL, &out) == CL_OK && out.size == 60 &&
          out.data[FLAGS] == 0);
    CHECK(write_value(client, "empty", (cl_bytes){CANARY, 1}, NULL, &out) == CL_OK && out.size == 61);
    cl_client_free(client);
    cl_config_free(config);
}

/* [CL-KEY-017]: what was encrypted since the last report is told at close, once; the end waits a second at most. */
static void reported_at_close(void)
{
    cl_client *client = make_client(folder, url, NULL, NULL);
    expect(client, "close", CL_OK);
    expect(client, "close", CL_OK);
    CHECK(requests("close") == 1);
    cl_client_free(client);
    CHECK(requests("close") == 2);
    json_t *last = ask_child(&service, "{\"last\":\"close\"}");
    const json_t *usage = json_object_get(last, "usage");
    CHECK(json_integer_value(json_object_get(usage, "records")) == 2);
    CHECK(json_integer_value(json_object_get(usage, "bytes")) == 2 * (json_int_t)sizeof CANARY);
    json_decref(last);

    client = make_client(folder, url, NULL, NULL);
    expect(client, "closeslow", CL_OK);
    expect(client, "closeslow2", CL_OK);
    behave("closeslow", "{\"delay\":3}");
    behave("closeslow2", "{\"delay\":3}");
    double before = seconds();
    cl_client_free(client);
    CHECK(seconds() - before < 2);

    client = make_client(folder, url, NULL, NULL);
    behave("closequiet", "{\"mode\":\"clear\"}");
    expect(client, "reads", CL_OK);
    cl_client_free(client);
    client = make_client(folder, url, NULL, NULL);
    cl_bytes out = {0};
    CHECK(encrypt_canary(client, "closequiet", &out, NULL) == CL_OK);
    cl_client_free(client);
    CHECK(requests("closequiet") == 1); /* nothing was encrypted */
}

static void copy_file(const char *from, const char *to)
{
    char text[16384];
    FILE *in = fopen(in_folder(folder, from), "r");
    size_t size = fread(text, 1, sizeof text, in);
    (void)fclose(in);
    FILE *out = fopen(in_folder(folder, to), "w");
    CHECK(fwrite(text, 1, size, out) == size);
    (void)fclose(out);
}

/* Whether the service saw this client in the last request for a topic, by the name in its certificate. */
static bool seen(const char *topic, const char *name)
{
    char line[128];
    (void)snprintf(line, sizeof line, "{\"peer\":\"%s\"}", topic);
    json_t *answer = ask_child(&service, line);
    bool same = json_string_value(answer) != NULL && strcmp(json_string_value(answer), name) == 0;
    json_decref(answer);
    return same;
}

/* [CL-KEY-016]: another certificate is used from the next request on; files that cannot be used change nothing. */
static void renewed_files(void)
{
    copy_file("client.pem", "old.pem");
    copy_file("client.key", "old.key");
    cl_client *client = make_client(folder, url, NULL, NULL);
    expect(client, "pem1", CL_OK);
    CHECK(seen("pem1", "client"));
    copy_file("client2.pem", "client.pem"); /* and not yet its key: they do not fit */
    expect(client, "pem2", CL_OK);
    CHECK(seen("pem2", "client"));
    copy_file("client2.key", "client.key");
    expect(client, "pem3", CL_OK);
    CHECK(seen("pem3", "client2"));
    FILE *file = fopen(in_folder(folder, "client.key"), "w");
    (void)fputs("no key", file);
    (void)fclose(file);
    expect(client, "pem4", CL_OK);
    CHECK(seen("pem4", "client2"));
    CHECK(unlink(in_folder(folder, "client.key")) == 0);
    expect(client, "pem5", CL_OK);
    CHECK(seen("pem5", "client2"));
    copy_file("old.pem", "client.pem");
    copy_file("old.key", "client.key");
    expect(client, "pem6", CL_OK);
    CHECK(seen("pem6", "client"));
    cl_client_free(client);
}

static void numbers(void)
{
    cl_numbers now;
    cl_bytes out = {0};
    uint8_t buffer[64];
    cl_client *client = make_client(folder, url, NULL, NULL);
    CHECK(cl_client_numbers(client, &now, NULL) == CL_OK && now.keys_cached == 0 && now.lease_seconds_left == 0);
    expect(client, "count", CL_OK);
    CHECK(encrypt_canary(client, "count", &out, NULL) == CL_OK);
    CHECK(cl_decrypt(client, "count", out, NULL, buffer, sizeof buffer, &out, NULL) == CL_OK);
    behave("countopen", "{\"plaintext\":\"accept\"}");
    CHECK(cl_decrypt(client, "countopen", (cl_bytes){CANARY, 5}, NULL, buffer, 64, &out, NULL) == CL_OK);
    behave("countbad", "{\"status\":500,\"body\":\"\"}");
    expect(client, "countbad", CL_KEY_SERVICE_UNAVAILABLE);
    CHECK(cl_client_numbers(client, &now, NULL) == CL_OK);
    CHECK(now.records_encrypted == 2 && now.records_decrypted == 1 && now.plaintext_accepted == 1);
    CHECK(now.failures[CL_KEY_SERVICE_UNAVAILABLE] == 1 && now.failures[CL_OK] == 0);
    CHECK(now.key_requests == 4 && now.key_request_failures == 1);
    CHECK(now.keys_cached == 2 && now.lease_seconds_left > 290 && now.lease_seconds_left <= 300);
    CHECK(now.skipped == 0 && now.dead_lettered == 0 && now.marked == 0);
    cl_client_free(client);
}

typedef struct glob {
    const char *list;
    const char *topic;
    bool has;
} glob;

static void globs(void)
{
    static const glob CASES[] = {
        {"", "a", false},        {"a", "a", true},         {"a", "ab", false},    {"a", "A", false},
        {"*", "a", true},        {"a*", "a", true},        {"a*c", "abbc", true}, {"a*c", "abcb", false},
        {"?", "a", true},        {"?", "ab", false},       {"a.b", "axb", false}, {"*.x.*", "1.x.2", true},
        {"*a*b*", "xaxb", true}, {"*a*b*", "xbxa", false}, {"b,a", "a", true},    {" b , a ", "a", true},
        {"a**", "a", true},      {"*ab", "aab", true},     {"x*", "", false},     {"a?*", "a", false},
    };
    char out[CL_SCOPE_MAX + 1];
    char deep[CL_SCOPE_MAX + 1];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        if (!CHECK(cl_topics_have(CASES[i].list, CASES[i].topic) == CASES[i].has)) {
            (void)fprintf(stderr, "  %s %s\n", CASES[i].list, CASES[i].topic);
        }
    }
    CHECK(cl_topics_valid("") && cl_topics_valid("a, b*?") && !cl_topics_valid("a,") && !cl_topics_valid(",") &&
          !cl_topics_valid("a b") && !cl_topics_valid("[a]") && !cl_topics_valid("\xc3\xa4"));
    memset(deep, 'a', CL_SCOPE_MAX);
    deep[CL_SCOPE_MAX] = '\0';
    CHECK(cl_dead_letter_topic("{topic}.dead-letter", "t", out) && strcmp(out, "t.dead-letter") == 0);
    CHECK(cl_dead_letter_topic("x{topic}{topic}", "t", out) && strcmp(out, "xtt") == 0);
    CHECK(cl_dead_letter_topic("{topic}", deep, out) && !cl_dead_letter_topic("{topic}x", deep, out));
    CHECK(!cl_dead_letter_topic("{Topic}", "t", out) && !cl_dead_letter_topic("", "t", out) &&
          !cl_dead_letter_topic("a b", "t", out));
}

static void ids(void)
{
    static const char LIST[] = "spiffe://a.org/x, spiffe://a.org/y/*/z?,spiffe://b*/**,spiffe://c/[d]";
    static const char *const INSIDE[] = {"a.org/x", "a.org/y/1/z2", "a.org/y//z2", "b/q", "bb/q/r/s", "c/[d]"};
    static const char *const OUTSIDE[] = {"a.org/x/y", "a.org/xx", "a.org", "a.org/y/1/2/z3", "a.org/y/1/z/", "b",
                                          "b/",        "x/b/q",    "c/d",   "c/[d]/e"};
    static const char *const WRONG[] = {"a", "spiffe://", "spiffe://a,,spiffe://b", ",", "spiffe://a b", "https://a/b"};
    char id[64];
    for (size_t i = 0; i < sizeof INSIDE / sizeof INSIDE[0]; i++) {
        (void)snprintf(id, sizeof id, "spiffe://%s", INSIDE[i]);
        CHECK(cl_ids_have(LIST, id));
    }
    for (size_t i = 0; i < sizeof OUTSIDE / sizeof OUTSIDE[0]; i++) {
        (void)snprintf(id, sizeof id, "spiffe://%s", OUTSIDE[i]);
        CHECK(!cl_ids_have(LIST, id));
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        CHECK(!cl_ids_valid(WRONG[i]));
    }
    CHECK(!cl_ids_have(LIST, "") && cl_ids_valid("") && cl_ids_valid(LIST));
}

int main(void)
{
    begin_service();
    check_case("CL-KAF-030, CL-KAF-031: bound record keys", bound);
    check_case("CL-ENV-045, CL-ENV-046: compression", compression);
    check_case("CL-ENV-045: empty value", empty_value);
    check_case("CL-KEY-017: usage is reported at close", reported_at_close);
    check_case("CL-KEY-016: renewed files", renewed_files);
    check_case("numbers", numbers);
    check_case("globs and dead-letter names", globs);
    check_case("CL-POL-009: ids of peers", ids);
    end_service();
    return check_finish("writing");
}
