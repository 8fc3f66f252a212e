/*
 * libcipherlane-rdkafka.so, for LD_PRELOAD: a jump for each function of librdkafka that we stand in for. It needs no other library,
 * so that OpenSSL and libcurl do not come between a program and its own; the work is done by libcipherlane-rdkafka-private.so
 * beside it, loaded privately. Without it, or with a librdkafka inside the program itself, the program is stopped.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORWARDED(X)                                                                                                   \
    X(rd_kafka_conf_new)                                                                                               \
    X(rd_kafka_conf_set_dr_cb)                                                                                         \
    X(rd_kafka_conf_set_dr_msg_cb)                                                                                     \
    X(rd_kafka_conf_set_consume_cb)                                                                                    \
    X(rd_kafka_conf_set_events)                                                                                        \
    X(rd_kafka_new)                                                                                                    \
    X(rd_kafka_destroy)                                                                                                \
    X(rd_kafka_destroy_flags)                                                                                          \
    X(rd_kafka_last_error)                                                                                             \
    X(rd_kafka_topic_new)                                                                                              \
    X(rd_kafka_queue_new)                                                                                              \
    X(rd_kafka_queue_get_main)                                                                                         \
    X(rd_kafka_queue_get_consumer)                                                                                     \
    X(rd_kafka_queue_get_partition)                                                                                    \
    X(rd_kafka_queue_get_background)                                                                                   \
    X(rd_kafka_queue_destroy)                                                                                          \
    X(rd_kafka_produce)                                                                                                \
    X(rd_kafka_producev)                                                                                               \
    X(rd_kafka_produceva)                                                                                              \
    X(rd_kafka_produce_batch)                                                                                          \
    X(rd_kafka_poll)                                                                                                   \
    X(rd_kafka_consumer_poll)                                                                                          \
    X(rd_kafka_consume)                                                                                                \
    X(rd_kafka_consume_batch)                                                                                          \
    X(rd_kafka_consume_callback)                                                                                       \
    X(rd_kafka_consume_queue)                                                                                          \
    X(rd_kafka_consume_batch_queue)                                                                                    \
    X(rd_kafka_consume_callback_queue)                                                                                 \
    X(rd_kafka_message_destroy)                                                                                        \
    X(rd_kafka_queue_poll)                                                                                             \
    X(rd_kafka_event_message_next)                                                                                     \
    X(rd_kafka_event_message_array)                                                                                    \
    X(rd_kafka_event_destroy)

/* A jump keeps all arguments where they are, also those of the variadic rd_kafka_producev. */
#if defined(__x86_64__)
#define JUMP(name) "endbr64\n\tjmp *cl_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, cl_slot_" #name "\n\tldr x16, [x16, #:lo12:cl_slot_" #name "]\n\tbr x16\n"
#else
#error "the preload library knows x86-64 and aarch64"
#endif

#define DEFINE(name)                                                                                                   \
    extern void *cl_slot_##name;                                                                                       \
    __attribute__((visibility("hidden"))) void *cl_slot_##name;                                                        \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n\t" JUMP(name) ".size " #name            \
                                                                                             ", .-" #name "\n");
FORWARDED(DEFINE)

typedef struct forward {
    const char *name; /* of ours; librdkafka's is three characters shorter */
    void **slot;
} forward;

static const forward FORWARDS[] = {
#define ENTRY(name) {"cl_" #name, &cl_slot_##name},
    FORWARDED(ENTRY)
#undef ENTRY
};
#define COUNT (sizeof FORWARDS / sizeof FORWARDS[0])

_Noreturn static void stop(const char *why)
{
    (void)fprintf(stderr, "cipherlane: %s; stopping, so that nothing is sent unencrypted\n", why);
    abort();
}

/* A help text that only librdkafka's own code has: whoever has it in the program file is linked statically. */
static bool has_librdkafka_inside(const char *path)
{
    static const char HELP[] = "Maximum Kafka protocol request message siz";
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        if (file >= 0) {
            (void)close(file);
        }
        return false;
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    (void)close(file);
    if (bytes == MAP_FAILED) {
        return false;
    }
    bool found = memmem(bytes, (size_t)status.st_size, HELP, sizeof HELP - 1) != NULL;
    (void)munmap(bytes, (size_t)status.st_size);
    return found;
}

/* Somebody's rd_kafka_produce before ours is in the program itself, where we cannot stand in for it. */
static void check_program(void)
{
    Dl_info ours;
    Dl_info first;
    const void *produce = dlsym(RTLD_DEFAULT, "rd_kafka_produce");
    bool known = dladdr((const void *)FORWARDS, &ours) != 0 && produce != NULL && dladdr(produce, &first) != 0;
    if (!known || ours.dli_fbase != first.dli_fbase || has_librdkafka_inside("/proc/self/exe")) {
        stop("this program has librdkafka linked into it, which cannot be preloaded");
    }
}

static void *load_private(void)
{
    char path[4096];
    Dl_info ours;
    if (dladdr((const void *)FORWARDS, &ours) == 0) {
        stop("the preload library does not find itself");
    }
    const char *slash = strrchr(ours.dli_fname, '/');
    int size = slash == NULL ? 0 : (int)(slash - ours.dli_fname) + 1;
    (void)snprintf(path, sizeof path, "%.*slibcipherlane-rdkafka-private.so", size, ours.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fprintf(stderr, "cipherlane: %s\n", dlerror()); /* NOLINT(concurrency-mt-unsafe): before main */
        stop("libcipherlane-rdkafka-private.so cannot be loaded");
    }
    return library;
}

__attribute__((constructor)) static void start(void)
{
    check_program();
    void *library = load_private();
    for (size_t i = 0; i < COUNT; i++) {
        *FORWARDS[i].slot = dlsym(library, FORWARDS[i].name);
        if (*FORWARDS[i].slot == NULL) {
            stop("libcipherlane-rdkafka-private.so is of another version");
        }
    }
}
