/* Key pairs, requests and checks over OpenSSL's X.509. */
#include "certificate.h"

#include "error.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CERTIFICATES_MAX 16 /* in a text [CL-IDN-033] */

EVP_PKEY *cl_certificate_key(void)
{
    return EVP_EC_gen("P-256");
}

/* A copy of what was written, with a NUL; the memory of the BIO is wiped when it is freed. */
static bool text_of(BIO *bio, cl_pem_text *text)
{
    char *data = NULL;
    long size = BIO_get_mem_data(bio, &data);
    return size > 0 && cl_pem_text_copy(text, data, (size_t)size);
}

char *cl_certificate_csr(EVP_PKEY *key)
{
    cl_pem_text text = {NULL, 0};
    X509_REQ *request = X509_REQ_new();
    BIO *bio = BIO_new(BIO_s_mem());
    if (request != NULL && bio != NULL && X509_REQ_set_version(request, X509_REQ_VERSION_1) == 1 &&
        X509_REQ_set_pubkey(request, key) == 1 && X509_REQ_sign(request, key, EVP_sha256()) > 0 &&
        PEM_write_bio_X509_REQ(bio, request) == 1) {
        (void)text_of(bio, &text);
    }
    BIO_free(bio);
    X509_REQ_free(request);
    return text.data;
}

static bool key_text(EVP_PKEY *key, cl_pem_text *text)
{
    BIO *bio = BIO_new(BIO_s_mem());
    bool good =
        bio != NULL && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 && text_of(bio, text);
    BIO_free(bio);
    return good;
}

/* The certificates of a text, at most 16 of them and nothing that is none; NULL otherwise. */
static STACK_OF(X509) * certificates_of(const char *pem)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *each = NULL;
    bool good = all != NULL && bio != NULL;
    while (good && (each = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        good = sk_X509_num(all) < CERTIFICATES_MAX && sk_X509_push(all, each) > 0;
        if (!good) {
            X509_free(each);
        }
    }
    ERR_clear_error(); /* the end of the text is an error to OpenSSL */
    BIO_free(bio);
    if (!good || sk_X509_num(all) == 0) {
        sk_X509_pop_free(all, X509_free);
        return NULL;
    }
    return all;
}

static bool copy_name(const ASN1_STRING *name, char principal[CL_PRINCIPAL_MAX])
{
    const unsigned char *text = ASN1_STRING_get0_data(name);
    int size = ASN1_STRING_length(name);
    if (size <= 0 || (unsigned)size >= CL_PRINCIPAL_MAX || memchr(text, '\0', (size_t)size) != NULL) {
        return false;
    }
    memcpy(principal, text, (size_t)size);
    principal[size] = '\0';
    return true;
}

/* The SPIFFE ids among the alternative names: how many, and the last of them. */
static int spiffe_ids(const X509 *certificate, char principal[CL_PRINCIPAL_MAX])
{
    static const char SCHEME[] = "spiffe://";
    int found = 0;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_URI && copy_name(name->d.uniformResourceIdentifier, principal) &&
            strncasecmp(principal, SCHEME, sizeof SCHEME - 1) == 0) {
            found++;
        }
    }
    GENERAL_NAMES_free(names);
    return found;
}

bool cl_certificate_principal(const X509 *certificate, char principal[CL_PRINCIPAL_MAX])
{
    int ids = spiffe_ids(certificate, principal);
    if (ids != 0) {
        return ids == 1;
    }
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    return at >= 0 && copy_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), principal);
}

/* Whether the first of the chain holds now and chains to one of the roots. */
static bool verifies(STACK_OF(X509) * chain, STACK_OF(X509) * roots)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    bool good = store != NULL && context != NULL;
    for (int i = 0; good && i < sk_X509_num(roots); i++) {
        good = X509_STORE_add_cert(store, sk_X509_value(roots, i)) == 1;
    }
    good = good && X509_STORE_CTX_init(context, store, sk_X509_value(chain, 0), chain) == 1 &&
           X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT) == 1 && X509_verify_cert(context) == 1;
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return good;
}

/* What is wrong with the certificate, or NULL. */
static const char *fault(STACK_OF(X509) * chain, STACK_OF(X509) * roots, const EVP_PKEY *key, const char *principal)
{
    char named[CL_PRINCIPAL_MAX];
    if (chain == NULL || roots == NULL) {
        return "certificate and ca take 1 to 16 certificates in PEM each";
    }
    const X509 *leaf = sk_X509_value(chain, 0);
    if (EVP_PKEY_eq(X509_get0_pubkey(leaf), key) != 1) {
        return "the certificate is for another key";
    }
    if (!cl_certificate_principal(leaf, named) || (principal != NULL && strcmp(named, principal) != 0)) {
        return "the certificate is for another principal";
    }
    return verifies(chain, roots) ? NULL : "the certificate does not hold now, or does not chain to ca";
}

/* The CAs configured, and those of the answer. */
static bool join(cl_pem_text *text, const cl_pem_text *configured, const char *more)
{
    size_t size = configured->size + 1 + strlen(more);
    char *joined = malloc(size + 1);
    if (joined == NULL) {
        return false;
    }
    memcpy(joined, configured->data, configured->size);
    joined[configured->size] = '\n';
    memcpy(joined + configured->size + 1, more, strlen(more) + 1);
    *text = (cl_pem_text){joined, size};
    return true;
}

static cl_pem *pem_of(const cl_certificate_answer *answer, EVP_PKEY *key, const cl_pem_text *configured)
{
    cl_pem *pem = cl_pem_new();
    if (pem == NULL ||
        (join(&pem->text[CL_PEM_CA], configured, answer->ca) &&
         cl_pem_text_copy(&pem->text[CL_PEM_CERTIFICATE], answer->certificate, strlen(answer->certificate)) &&
         key_text(key, &pem->text[CL_PEM_KEY]) && cl_pem_text_copy(&pem->peers, answer->ca, strlen(answer->ca)))) {
        return pem;
    }
    cl_pem_drop(pem);
    return NULL;
}

cl_pem *cl_certificate_accept(const cl_certificate_answer *answer, EVP_PKEY *key, const char *principal,
                              const cl_pem_text *configured, cl_error *error)
{
    STACK_OF(X509) *chain = certificates_of(answer->certificate);
    STACK_OF(X509) *roots = certificates_of(answer->ca);
    const char *wrong = fault(chain, roots, key, principal);
    cl_pem *pem = wrong == NULL ? pem_of(answer, key, configured) : NULL;
    if (wrong != NULL) {
        (void)cl_fail(error, CL_KEY_SERVICE_BAD_ANSWER, "key-service-bad-answer: %s", wrong);
    } else if (pem == NULL) {
        (void)cl_no_memory(error);
    }
    sk_X509_pop_free(chain, X509_free);
    sk_X509_pop_free(roots, X509_free);
    return pem;
}
