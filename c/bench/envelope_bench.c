/*
 * What encrypting and decrypting cost over a bare EVP loop that keeps the key schedule and only resets the IV, with additional
 * data of the same size (row raw-cipher; raw-cipher-no-aad leaves the additional data out). CPU time of the process; the
 * runs of the rows are interleaved; values are medians. Counts calls of malloc by the library meanwhile: there must be none.
 */
#include "cipher.h"
#include "clock.h"
#include "error.h"
#include "http.h"
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 7
#define TOPIC "claims"

static const char ANSWER_HEAD[] = "{\"mode\":\"encrypt\",\"plaintext\":\"reject\",";
static const char KID[] = "4bc31153e689f5bbe9cd6136ff2f83bb";
static const char KEY_MEMBERS[] = "\"scope\":\"claims\",\"kid\":\"4bc31153e689f5bbe9cd6136ff2f83bb\","
                                  "\"key\":\"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=\","
                                  "\"refresh_in\":86400,\"expires_in\":86400";

/* The key service of this benchmark: one key for a day. */
cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error);

cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error)
{
    (void)http, (void)error;
    char *text = NULL;
    const char *close = strstr(request->body, KID) == NULL ? "]}" : "}]}";
    const char *open = strstr(request->body, KID) == NULL ? "" : "{";
    int size = asprintf(&text, "%s%s,\"keys\":[%s%s%s", ANSWER_HEAD, KEY_MEMBERS, open, *open == '{' ? KEY_MEMBERS : "",
                        close);
    *answer = (cl_http_answer){.status = 200, .body = (uint8_t *)text, .size = (size_t)size, .sent_at = cl_now()};
    (void)snprintf(answer->content_type, sizeof answer->content_type, "application/json");
    return CL_OK;
}

static atomic_ullong allocations;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    (void)atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __real_malloc(size);
}

typedef struct bench {
    cl_client *client;
    EVP_CIPHER_CTX *encrypting;
    EVP_CIPHER_CTX *decrypting;
    size_t size;
    size_t count;
    uint8_t *plain;
    uint8_t *envelope; /* of the plain bytes */
    uint8_t *out;
    uint8_t aad[28]; /* preamble, length, "claims" */
} bench;

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static void raw(const bench *b, EVP_CIPHER_CTX *context, bool encrypt, bool with_aad)
{
    int size = 0;
    uint8_t iv[12] = {0};
    uint8_t tag[16];
    const uint8_t *from = encrypt ? b->plain : b->envelope + CL_ENVELOPE_HEADER;
    for (size_t i = 0; i < b->count; i++) {
        bool good = false;
        memcpy(iv, encrypt ? (const uint8_t *)&i : b->envelope + 32, encrypt ? sizeof i : sizeof iv);
        good = EVP_CipherInit_ex2(context, NULL, NULL, iv, -1, NULL) == 1;
        good = good && (!with_aad || EVP_CipherUpdate(context, NULL, &size, b->aad, sizeof b->aad) == 1);
        good = good && EVP_CipherUpdate(context, b->out, &size, from, (int)b->size) == 1;
        if (encrypt) {
            good = good && EVP_CipherFinal_ex(context, tag, &size) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
        } else {
            memcpy(tag, b->envelope + CL_ENVELOPE_HEADER + b->size, sizeof tag);
            good = good && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1;
            good = good && (EVP_CipherFinal_ex(context, tag, &size) == 1 || !with_aad);
        }
        must(good, "raw cipher");
    }
}

static void ours(const bench *b, bool encrypt)
{
    cl_bytes out;
    const cl_bytes plain = {b->plain, b->size};
    const cl_bytes envelope = {b->envelope, b->size + CL_ENVELOPE_OVERHEAD};
    for (size_t i = 0; i < b->count; i++) {
        cl_code code =
            encrypt ? cl_encrypt(b->client, TOPIC, plain, NULL, b->out, b->size + CL_ENVELOPE_OVERHEAD, &out, NULL)
                    : cl_decrypt(b->client, TOPIC, envelope, NULL, b->out, b->size, &out, NULL);
        must(code == CL_OK, "cipherlane");
    }
}

enum { RAW, NO_AAD, OURS, ROWS };
static const char *const NAMES[ROWS] = {"raw-cipher", "raw-cipher-no-aad", "cipherlane"};

static double cpu_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double run_row(const bench *b, int row, bool encrypt)
{
    double before = cpu_ns();
    if (row == OURS) {
        ours(b, encrypt);
    } else {
        raw(b, encrypt ? b->encrypting : b->decrypting, encrypt, row == RAW);
    }
    return (cpu_ns() - before) / (double)b->count;
}

static int ascending(const void *left, const void *right)
{
    double l = *(const double *)left;
    double r = *(const double *)right;
    return (l > r) - (l < r);
}

static double median(const double *values)
{
    double sorted[RUNS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, RUNS, sizeof sorted[0], ascending);
    return sorted[RUNS / 2];
}

static double extreme(const double *values, bool most)
{
    double found = values[0];
    for (size_t i = 1; i < RUNS; i++) {
        found = (values[i] > found) == most ? values[i] : found;
    }
    return found;
}

static void report(const bench *b, bool encrypt, double times[ROWS][RUNS])
{
    static const char *separator = "";
    for (int row = 0; row < ROWS; row++) {
        double ratios[RUNS];
        for (size_t i = 0; i < RUNS; i++) {
            ratios[i] = times[row][i] / times[RAW][i];
        }
        double value = median(times[row]);
        (void)printf("%s{\"case\": \"%s/%zuB\", \"row\": \"%s\", \"value\": %.1f, \"min\": %.1f, \"max\": %.1f, "
                     "\"gb_per_s\": %.2f",
                     separator, encrypt ? "encrypt" : "decrypt", b->size, NAMES[row], value, extreme(times[row], false),
                     extreme(times[row], true), (double)b->size / value);
        if (row != RAW) {
            (void)printf(", \"baseline\": \"raw-cipher\", \"ratio\": %.3f", median(ratios));
        }
        (void)printf("}");
        separator = ", ";
        (void)fprintf(stderr, "%s %6zu B  %-18s %9.1f ns  %6.2f GB/s  ratio %.3f\n", encrypt ? "encrypt" : "decrypt",
                      b->size, NAMES[row], value, (double)b->size / value, median(ratios));
    }
}

static void compare(const bench *b, bool encrypt)
{
    double times[ROWS][RUNS];
    for (int row = 0; row < ROWS; row++) {
        (void)run_row(b, row, encrypt); /* warm-up */
    }
    unsigned long long before = atomic_load(&allocations);
    for (size_t i = 0; i < RUNS; i++) {
        for (int row = 0; row < ROWS; row++) {
            times[row][i] = run_row(b, row, encrypt);
        }
    }
    must(atomic_load(&allocations) == before, "zero allocations");
    report(b, encrypt, times);
}

static void prepare(bench *b, size_t size)
{
    static const uint8_t salt[12];
    static const cl_algorithms *algorithms;
    static cl_algorithms opened;
    const uint8_t key[CL_KEY_SIZE] = {7};
    if (algorithms == NULL) {
        must(cl_algorithms_open(&opened) == CL_OK, "OpenSSL");
        algorithms = &opened;
    }
    b->size = size;
    b->count = size <= 1024 ? 400000 : 1600000000 / (size * 4);
    b->count = size > 1024 ? b->count / 20 + 2000 : b->count;
    b->plain = calloc(1, size);
    b->envelope = calloc(1, size + CL_ENVELOPE_OVERHEAD);
    b->out = calloc(1, size + CL_ENVELOPE_OVERHEAD);
    cl_bytes out;
    must(cl_encrypt(b->client, TOPIC, (cl_bytes){b->plain, size}, NULL, b->envelope, size + CL_ENVELOPE_OVERHEAD, &out,
                    NULL) == CL_OK,
         "encrypt");
    memcpy(b->aad, b->envelope, CL_PREAMBLE_SIZE);
    memcpy(b->aad + CL_PREAMBLE_SIZE, "\0\6claims", 8);
    EVP_CIPHER_CTX_free(b->encrypting);
    EVP_CIPHER_CTX_free(b->decrypting);
    b->encrypting = cl_cipher_new(algorithms, key, salt, true);
    /* the real data key, so that the bare loop verifies the same tag */
    uint8_t data_key[CL_KEY_SIZE + 1];
    (void)EVP_DecodeBlock(data_key, (const unsigned char *)"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=", 44);
    b->decrypting = cl_cipher_new(algorithms, data_key, b->envelope + CL_PREAMBLE_SIZE, false);
    must(b->encrypting != NULL && b->decrypting != NULL, "OpenSSL");
}

static void release(bench *b)
{
    free(b->plain);
    free(b->envelope);
    free(b->out);
}

static void *thread_body(void *context)
{
    bench own = *(const bench *)context;
    own.out = calloc(1, own.size + CL_ENVELOPE_OVERHEAD);
    ours(&own, true);
    free(own.out);
    return NULL;
}

/* Records a second of several threads on one client, by the wall clock. */
static double with_threads(const bench *b, size_t threads)
{
    pthread_t started[8];
    uint64_t before = cl_now();
    for (size_t i = 0; i < threads; i++) {
        must(pthread_create(&started[i], NULL, thread_body, (void *)(uintptr_t)b) == 0, "thread");
    }
    for (size_t i = 0; i < threads; i++) {
        (void)pthread_join(started[i], NULL);
    }
    return (double)(b->count * threads) / ((double)(cl_now() - before) / 1e9);
}

static void threads(const bench *b)
{
    static const size_t COUNTS[] = {1, 2, 8};
    double rates[3][RUNS];
    for (size_t i = 0; i < RUNS; i++) {
        for (size_t c = 0; c < 3; c++) {
            rates[c][i] = with_threads(b, COUNTS[c]);
        }
    }
    for (size_t c = 0; c < 3; c++) {
        double ratios[RUNS];
        for (size_t i = 0; i < RUNS; i++) {
            ratios[i] = rates[c][i] / rates[0][i];
        }
        (void)printf(", {\"case\": \"encrypt/%zuB/%zuthreads\", \"row\": \"cipherlane\", \"unit\": \"records_per_s\", "
                     "\"value\": %.0f, \"min\": %.0f, \"max\": %.0f, \"ratio_to_1_thread\": %.2f}",
                     b->size, COUNTS[c], median(rates[c]), extreme(rates[c], false), extreme(rates[c], true),
                     median(ratios));
        (void)fprintf(stderr, "encrypt %6zu B  %zu threads  %.2f million records/s, %.2f times one thread\n", b->size,
                      COUNTS[c], median(rates[c]) / 1e6, median(ratios));
    }
}

int main(void)
{
    static const size_t SIZES[] = {128, 1024, 8192, 65536};
    char *folder = make_folder();
    make_pki(folder);
    bench b = {.client = make_client(folder, "https://127.0.0.1:1", NULL, NULL)};
    (void)printf("{\"benchmark\": \"c-envelope\", \"unit\": \"cpu_ns_per_record\", \"runs\": %d, \"rows\": [", RUNS);
    for (size_t i = 0; i < 4; i++) {
        prepare(&b, SIZES[i]);
        compare(&b, true);
        compare(&b, false);
        release(&b);
    }
    prepare(&b, 1024);
    threads(&b);
    release(&b);
    (void)printf("]}\n");
    cl_client_free(b.client);
    remove_folder(folder);
    return 0;
}
