/* PEM files in memory. */
#include "pem.h"

#include "error.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const cl_settings *settings, cl_pem_file which)
{
    const char *const paths[CL_PEM_FILES] = {settings->ca, settings->certificate, settings->key};
    return paths[which];
}

static cl_pem_mark mark_of(const struct stat *status)
{
    return (cl_pem_mark){status->st_dev, status->st_ino, status->st_size, status->st_mtim.tv_sec,
                         status->st_mtim.tv_nsec};
}

static bool read_whole(int file, cl_pem_text *text)
{
    size_t done = 0;
    while (done < text->size) {
        ssize_t got = read(file, text->data + done, text->size - done);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

bool cl_pem_text_read(const char *path, size_t size, cl_pem_text *text, cl_pem_mark *mark)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool good =
        fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && (size_t)status.st_size < size;
    if (good) {
        *mark = mark_of(&status);
        *text = (cl_pem_text){calloc(1, (size_t)status.st_size + 1), (size_t)status.st_size};
        good = text->data != NULL && read_whole(file, text);
    }
    (void)close(file);
    return good;
}

bool cl_pem_text_copy(cl_pem_text *text, const char *data, size_t size)
{
    *text = (cl_pem_text){calloc(1, size + 1), size};
    if (text->data == NULL) {
        return false;
    }
    memcpy(text->data, data, size);
    return true;
}

void cl_pem_text_free(cl_pem_text *text)
{
    if (text->data != NULL) {
        OPENSSL_cleanse(text->data, text->size);
        free(text->data);
        text->data = NULL;
    }
}

cl_pem *cl_pem_new(void)
{
    cl_pem *pem = calloc(1, sizeof *pem);
    if (pem != NULL) {
        atomic_init(&pem->references, 1);
    }
    return pem;
}

cl_pem *cl_pem_keep(cl_pem *pem)
{
    (void)atomic_fetch_add_explicit(&pem->references, 1, memory_order_relaxed);
    return pem;
}

/* An encrypted key is refused: a passphrase is never asked for. */
static int no_passphrase(char *buffer, int size, int writing, void *context)
{
    (void)buffer, (void)size, (void)writing, (void)context;
    return -1;
}

static BIO *bio_of(const cl_pem_text *text)
{
    return BIO_new_mem_buf(text->data, (int)text->size);
}

X509 *cl_pem_certificate(const cl_pem_text *text)
{
    BIO *bio = bio_of(text);
    X509 *certificate = bio == NULL ? NULL : PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
    BIO_free(bio);
    return certificate;
}

static bool key_fits(const cl_pem_text *text, const X509 *certificate)
{
    BIO *bio = bio_of(text);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    bool fits = key != NULL && X509_check_private_key(certificate, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return fits;
}

/* Which of the texts cannot be used; NULL: all can. */
static const char *unusable(const cl_pem *pem)
{
    const char *bad = NULL;
    X509 *ca = cl_pem_certificate(&pem->text[CL_PEM_CA]);
    X509 *certificate = cl_pem_certificate(&pem->text[CL_PEM_CERTIFICATE]);
    if (ca == NULL) {
        bad = CL_SETTING "keyservice.tls.ca";
    } else if (certificate == NULL) {
        bad = CL_SETTING "keyservice.tls.certificate";
    } else if (!key_fits(&pem->text[CL_PEM_KEY], certificate)) {
        bad = CL_SETTING "keyservice.tls.key";
    }
    X509_free(ca);
    X509_free(certificate);
    return bad;
}

/* The setting that is wrong, or NULL. */
static const char *read_all(cl_pem *pem, const cl_settings *settings)
{
    static const char *const NAMES[CL_PEM_FILES] = {
        CL_SETTING "keyservice.tls.ca", CL_SETTING "keyservice.tls.certificate", CL_SETTING "keyservice.tls.key"};
    for (cl_pem_file i = CL_PEM_CA; i < CL_PEM_FILES; i++) {
        if (!cl_pem_text_read(path_of(settings, i), CL_PEM_MAX, &pem->text[i], &pem->mark[i])) {
            return NAMES[i];
        }
    }
    return unusable(pem);
}

cl_pem *cl_pem_read(const cl_settings *settings, cl_error *error)
{
    cl_pem *pem = cl_pem_new();
    if (pem == NULL) {
        (void)cl_no_memory(error);
        return NULL;
    }
    const char *bad = read_all(pem, settings);
    if (bad != NULL) {
        (void)cl_fail(error, CL_CONFIGURATION_INVALID,
                      "configuration-invalid: %s: not a readable PEM file, or the key does not fit the certificate",
                      bad);
        cl_pem_drop(pem);
        return NULL;
    }
    return pem;
}

static bool same_mark(const cl_pem_mark *left, const cl_pem_mark *right)
{
    return left->device == right->device && left->inode == right->inode && left->size == right->size &&
           left->seconds == right->seconds && left->nanoseconds == right->nanoseconds;
}

bool cl_pem_changed(const cl_pem *pem, const cl_settings *settings)
{
    for (cl_pem_file i = CL_PEM_CA; i < CL_PEM_FILES; i++) {
        struct stat status;
        if (stat(path_of(settings, i), &status) != 0) {
            continue; /* away for a moment, while somebody replaces it */
        }
        const cl_pem_mark now = mark_of(&status);
        if (!same_mark(&now, &pem->mark[i])) {
            return true;
        }
    }
    return false;
}

void cl_pem_drop(cl_pem *pem)
{
    if (pem == NULL || atomic_fetch_sub_explicit(&pem->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    for (cl_pem_file i = CL_PEM_CA; i < CL_PEM_FILES; i++) {
        cl_pem_text_free(&pem->text[i]);
    }
    cl_pem_text_free(&pem->bearer);
    cl_pem_text_free(&pem->peers);
    free(pem);
}
