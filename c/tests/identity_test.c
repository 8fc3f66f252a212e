/* Certificates that a key service gives: what is taken, and what is refused. Covers CL-IDN-030, CL-IDN-033, CL-IDN-034. */
#include "certificate.h"
#include "check.h"
#include "pki.h"
#include "support.h"

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHO "URI:spiffe://example.org/test"
#define PRINCIPAL "spiffe://example.org/test"

static const cl_pem_text CONFIGURED = {(char *)(uintptr_t)"configured", 10};

/* The certificate in PEM, `times` times over. */
static char *pem_of(X509 *certificate, int times)
{
    char *data = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    for (int i = 0; i < times; i++) {
        CHECK(PEM_write_bio_X509(bio, certificate) == 1);
    }
    long size = BIO_get_mem_data(bio, &data);
    char *text = strndup(data == NULL ? "" : data, (size_t)size);
    BIO_free(bio);
    return text;
}

/* What the library says about a certificate of `subject` for the key of the request; "" when it is taken. */
static const char *judge(const cl_certificate_answer *answer, EVP_PKEY *key, const char *principal)
{
    static cl_error error;
    error = (cl_error){0};
    cl_pem *pem = cl_certificate_accept(answer, key, principal, &CONFIGURED, &error);
    CHECK((pem == NULL) == (error.code == CL_KEY_SERVICE_BAD_ANSWER));
    cl_pem_drop(pem);
    return error.message;
}

typedef struct issued {
    const char *name;
    const char *alternative;
    long begins;
    long ends;
    bool other_key;
    bool other_ca;
    int chain;
    int roots;
    const char *says; /* NULL: taken */
} issued;

static void answers(void)
{
    static const issued CASES[] = {
        {"test", WHO, -HOUR, HOUR, false, false, 1, 1, NULL},
        {"test", WHO, -HOUR, HOUR, false, false, 16, 16, NULL},
        {"test", WHO, -HOUR, HOUR, true, false, 1, 1, "another key"},
        {"test", WHO, -HOUR, -1, false, false, 1, 1, "does not hold now"},
        {"test", WHO, HOUR, 2 * HOUR, false, false, 1, 1, "does not hold now"},
        {"test", WHO, -HOUR, HOUR, false, true, 1, 1, "does not chain"},
        {"test", "URI:spiffe://example.org/other", -HOUR, HOUR, false, false, 1, 1, "another principal"},
        {"test", WHO ",URI:spiffe://example.org/other", -HOUR, HOUR, false, false, 1, 1, "another principal"},
        {PRINCIPAL, NULL, -HOUR, HOUR, false, false, 1, 1, NULL},
        {"test", NULL, -HOUR, HOUR, false, false, 1, 1, "another principal"},
        {"test", WHO, -HOUR, HOUR, false, false, 17, 1, "1 to 16"},
        {"test", WHO, -HOUR, HOUR, false, false, 1, 17, "1 to 16"},
        {"test", WHO, -HOUR, HOUR, false, false, 0, 1, "1 to 16"},
        {"test", WHO, -HOUR, HOUR, false, false, 1, 0, "1 to 16"},
    };
    signer ca = new_ca("one");
    signer other = new_ca("two");
    EVP_PKEY *key = cl_certificate_key();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const issued *one = &CASES[i];
        X509 *certificate = certify(one->other_key ? other.key : key, one->name, one->other_ca ? &other : &ca,
                                    one->alternative, one->begins, one->ends);
        const cl_certificate_answer answer = {.certificate = pem_of(certificate, one->chain),
                                              .ca = pem_of(ca.certificate, one->roots)};
        const char *said = judge(&answer, key, PRINCIPAL);
        if (!CHECK(one->says == NULL ? *said == '\0' : strstr(said, one->says) != NULL)) {
            (void)fprintf(stderr, "  case %zu: %s\n", i, said);
        }
        free(answer.certificate);
        free(answer.ca);
        X509_free(certificate);
    }
    EVP_PKEY_free(key);
    free_ca(&ca);
    free_ca(&other);
}

/* The texts of what is taken fit together, and trust both what was configured and `ca`. */
static void taken(void)
{
    signer ca = new_ca("one");
    EVP_PKEY *key = cl_certificate_key();
    X509 *certificate = certify(key, "test", &ca, WHO, -HOUR, HOUR);
    const cl_certificate_answer answer = {.certificate = pem_of(certificate, 1), .ca = pem_of(ca.certificate, 1)};
    cl_pem *pem = cl_certificate_accept(&answer, key, NULL, &CONFIGURED, NULL);
    if (CHECK(pem != NULL)) {
        CHECK(strstr(pem->text[CL_PEM_CA].data, "configured\n-----BEGIN CERTIFICATE-----") != NULL);
        CHECK(strcmp(pem->peers.data, answer.ca) == 0);
        CHECK(strcmp(pem->text[CL_PEM_CERTIFICATE].data, answer.certificate) == 0);
        BIO *bio = BIO_new_mem_buf(pem->text[CL_PEM_KEY].data, (int)pem->text[CL_PEM_KEY].size);
        EVP_PKEY *again = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
        CHECK(EVP_PKEY_eq(again, key) == 1 && EVP_PKEY_get_bits(key) == 256 && EVP_PKEY_is_a(key, "EC") == 1);
        EVP_PKEY_free(again);
        BIO_free(bio);
        cl_pem_drop(pem);
    }
    free(answer.certificate);
    free(answer.ca);
    X509_free(certificate);
    EVP_PKEY_free(key);
    free_ca(&ca);
}

/* Every text cut short, and many with a byte changed: nothing crashes, and what is taken is the certificate. */
static void damaged(void)
{
    signer ca = new_ca("one");
    EVP_PKEY *key = cl_certificate_key();
    X509 *certificate = certify(key, "test", &ca, WHO, -HOUR, HOUR);
    cl_certificate_answer answer = {.certificate = pem_of(certificate, 1), .ca = pem_of(ca.certificate, 1)};
    size_t size = strlen(answer.certificate);
    for (size_t i = 0; i < size; i++) {
        char kept = answer.certificate[i];
        answer.certificate[i] = '\0';
        CHECK(i >= size - 1 || *judge(&answer, key, PRINCIPAL) != '\0');
        answer.certificate[i] = kept;
    }
    for (size_t i = 30; i < size - 30; i += 7) {
        char kept = answer.certificate[i];
        answer.certificate[i] = kept == 'A' ? 'B' : 'A';
        CHECK(kept == '\n' || *judge(&answer, key, PRINCIPAL) != '\0');
        answer.certificate[i] = kept;
    }
    free(answer.certificate);
    free(answer.ca);
    X509_free(certificate);
    EVP_PKEY_free(key);
    free_ca(&ca);
}

/* The request is signed by the key and names nobody: the key service knows who asks. */
static void request(void)
{
    EVP_PKEY *key = cl_certificate_key();
    char *csr = cl_certificate_csr(key);
    BIO *bio = BIO_new_mem_buf(csr, -1);
    X509_REQ *read = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    CHECK(read != NULL && X509_REQ_verify(read, key) == 1 &&
          X509_NAME_entry_count(X509_REQ_get_subject_name(read)) == 0);
    X509_REQ_free(read);
    BIO_free(bio);
    free(csr);
    EVP_PKEY_free(key);
}

int main(void)
{
    check_case("request", request);
    check_case("answers", answers);
    check_case("taken", taken);
    check_case("damaged", damaged);
    return check_finish("identity");
}
