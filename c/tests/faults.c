/* Calls that fail on command, put in by the linker (--wrap), and a key service that is only its answers. */
#include "faults.h"

#include "check.h"
#include "clock.h"
#include "error.h"
#include "http.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <zstd.h>

static atomic_long countdown[FAULTS]; /* the call that finds 1 fails; 0: off */

bool faults_hit(enum fault kind)
{
    long left = atomic_load(&countdown[kind]);
    if (left <= 0) {
        return false;
    }
    return atomic_fetch_sub(&countdown[kind], 1) == 1;
}

void faults_arm(enum fault kind, long n)
{
    atomic_store(&countdown[kind], n);
}

bool faults_disarm(enum fault kind)
{
    return atomic_exchange(&countdown[kind], 0) <= 0;
}

void faults_in_turn(enum fault kind, long most, bool (*story)(void))
{
    long n = 1;
    bool done = false;
    for (; !done && n < most; n++) {
        faults_arm(kind, n);
        bool good = story();
        done = !faults_disarm(kind); /* not reached: there were fewer calls */
        CHECK(!done || good);
    }
    CHECK(done && n > 2);
    (void)printf("  failed in turn: %ld calls\n", n - 2);
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
cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error);

void *__wrap_malloc(size_t size)
{
    return faults_hit(MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return faults_hit(MEMORY) ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return faults_hit(MEMORY) ? NULL : __real_aligned_alloc(alignment, size);
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
    if (faults_hit(RANDOM)) {
        errno = EIO;
        return -1;
    }
    return __real_getrandom(out, size, flags);
}

cl_code __wrap_cl_http_post(cl_http *http, const cl_http_request *request, cl_http_answer *answer, cl_error *error)
{
    static const char KEY[] = "\"scope\":\"claims\",\"kid\":\"4bc31153e689f5bbe9cd6136ff2f83bb\","
                              "\"key\":\"XZ241U6PBUWd/lM6MyslJdEkJucsNffpgmGoJ9AWTnw=\",\"refresh_in\":100,"
                              "\"expires_in\":200";
    (void)http;
    *answer = (cl_http_answer){.status = 200, .sent_at = cl_now()};
    answer->body = __wrap_malloc(1024);
    if (answer->body == NULL || faults_hit(REQUEST)) {
        free(answer->body);
        *answer = (cl_http_answer){0};
        return cl_fail(error, CL_KEY_SERVICE_UNAVAILABLE, "key-service-unavailable: as this test wants it");
    }
    const char *format = strstr(request->path, "encryption-key") != NULL
                             ? "{\"mode\":\"encrypt\",%s}"
                             : "{\"plaintext\":\"reject\",\"refresh_in\":100,"
                               "\"expires_in\":200,\"keys\":[{%s}]}";
    answer->size = (size_t)snprintf((char *)answer->body, 1024, format, KEY);
    (void)snprintf(answer->content_type, sizeof answer->content_type, "application/json");
    return CL_OK;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int __real_EVP_CipherInit_ex2(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                              const unsigned char *iv, int encrypt, const OSSL_PARAM *parameters);
int __wrap_EVP_CipherInit_ex2(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                              const unsigned char *iv, int encrypt, const OSSL_PARAM *parameters);
int __real_EVP_CipherUpdate(EVP_CIPHER_CTX *context, unsigned char *out, int *size, const unsigned char *in,
                            int in_size);
int __wrap_EVP_CipherUpdate(EVP_CIPHER_CTX *context, unsigned char *out, int *size, const unsigned char *in,
                            int in_size);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    return faults_hit(SYSTEM) ? EAGAIN : __real_pthread_create(thread, attributes, run, context);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return faults_hit(SYSTEM) ? -1 : __real_timerfd_create(clock, flags);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return faults_hit(SYSTEM) ? MAP_FAILED : __real_mmap(at, size, protection, flags, file, offset);
}

int __wrap_EVP_CipherInit_ex2(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, const unsigned char *key,
                              const unsigned char *iv, int encrypt, const OSSL_PARAM *parameters)
{
    return faults_hit(SYSTEM) ? 0 : __real_EVP_CipherInit_ex2(context, cipher, key, iv, encrypt, parameters);
}

int __wrap_EVP_CipherUpdate(EVP_CIPHER_CTX *context, unsigned char *out, int *size, const unsigned char *in,
                            int in_size)
{
    return faults_hit(SYSTEM) ? 0 : __real_EVP_CipherUpdate(context, out, size, in, in_size);
}

ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
    return faults_hit(SYSTEM) ? NULL : __real_ZSTD_createDCtx();
}

ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
    return faults_hit(SYSTEM) ? NULL : __real_ZSTD_createCCtx();
}
