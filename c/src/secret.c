/* An arena of 32-byte cells for data keys. */
#include "secret.h"

#include "cipher.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_SIZE 16384U
#define CELLS (CHUNK_SIZE / CL_KEY_SIZE)

typedef union cell {
    uint8_t bytes[CL_KEY_SIZE];
    union cell *next; /* while it is free */
} cell;

typedef struct chunk {
    struct chunk *next;
    cell *cells;
} chunk;

struct cl_secrets {
    pthread_mutex_t mutex;
    chunk *chunks;
    cell *free;
};

cl_secrets *cl_secrets_new(void)
{
    cl_secrets *secrets = calloc(1, sizeof *secrets);
    if (secrets != NULL) {
        (void)pthread_mutex_init(&secrets->mutex, NULL);
    }
    return secrets;
}

/* Neither a low RLIMIT_MEMLOCK nor an old kernel stops us: locking is "where permitted". */
static cell *map_cells(void)
{
    void *memory = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    (void)mlock(memory, CHUNK_SIZE);
    (void)madvise(memory, CHUNK_SIZE, MADV_DONTDUMP);
    return memory;
}

static void add_chunk(cl_secrets *secrets)
{
    chunk *added = malloc(sizeof *added);
    cell *cells = added == NULL ? NULL : map_cells();
    if (cells == NULL) {
        free(added);
        return;
    }
    *added = (chunk){secrets->chunks, cells};
    secrets->chunks = added;
    for (size_t i = 0; i < CELLS; i++) {
        cells[i].next = secrets->free;
        secrets->free = &cells[i];
    }
}

uint8_t *cl_secret_new(cl_secrets *secrets)
{
    (void)pthread_mutex_lock(&secrets->mutex);
    if (secrets->free == NULL) {
        add_chunk(secrets);
    }
    cell *taken = secrets->free;
    if (taken != NULL) {
        secrets->free = taken->next;
    }
    (void)pthread_mutex_unlock(&secrets->mutex);
    return taken == NULL ? NULL : taken->bytes;
}

void cl_secret_free(cl_secrets *secrets, uint8_t *bytes)
{
    if (bytes == NULL) {
        return;
    }
    cell *freed = (cell *)(uintptr_t)bytes; /* what cl_secret_new gave out */
    OPENSSL_cleanse(freed, sizeof *freed);
    (void)pthread_mutex_lock(&secrets->mutex);
    freed->next = secrets->free;
    secrets->free = freed;
    (void)pthread_mutex_unlock(&secrets->mutex);
}

void cl_secrets_wipe(cl_secrets *secrets)
{
    for (chunk *each = secrets->chunks; each != NULL; each = each->next) {
        OPENSSL_cleanse(each->cells, CHUNK_SIZE);
    }
}

void cl_secrets_free(cl_secrets *secrets)
{
    if (secrets == NULL) {
        return;
    }
    cl_secrets_wipe(secrets);
    while (secrets->chunks != NULL) {
        chunk *first = secrets->chunks;
        secrets->chunks = first->next;
        (void)munmap(first->cells, CHUNK_SIZE);
        free(first);
    }
    (void)pthread_mutex_destroy(&secrets->mutex);
    free(secrets);
}
