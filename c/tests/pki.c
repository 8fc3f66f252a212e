/* Certificates for one test run: never on disk before it, nor after it. */
#include "support.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void extend(X509 *certificate, int kind, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* A certificate of `key` for an hour, signed by the issuer (NULL: itself). */
static X509 *certify(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *issuer_key, const char *alternative)
{
    static long serial = 1;
    X509 *certificate = X509_new();
    must(certificate != NULL && X509_set_version(certificate, X509_VERSION_3) == 1);
    must(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++) == 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME *subject = X509_get_subject_name(certificate);
    must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) == 1);
    must(X509_set_issuer_name(certificate, issuer == NULL ? subject : X509_get_subject_name(issuer)) == 1);
    must(X509_set_pubkey(certificate, key) == 1);
    extend(certificate, NID_basic_constraints, issuer == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (alternative != NULL) {
        extend(certificate, NID_subject_alt_name, alternative);
    }
    must(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
    return certificate;
}

static void save(const char *folder, const char *name, X509 *certificate, EVP_PKEY *key)
{
    char file[64];
    (void)snprintf(file, sizeof file, "%s.pem", name);
    FILE *out = fopen(in_folder(folder, file), "w");
    must(out != NULL && PEM_write_X509(out, certificate) == 1);
    (void)fclose(out);
    if (key != NULL) {
        (void)snprintf(file, sizeof file, "%s.key", name);
        out = fopen(in_folder(folder, file), "w");
        must(out != NULL && PEM_write_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1);
        (void)fclose(out);
    }
}

static void issue(const char *folder, const char *name, X509 *ca, EVP_PKEY *ca_key, const char *alternative)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key != NULL);
    X509 *certificate = certify(key, name, ca, ca_key, alternative);
    save(folder, name, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void make_pki(const char *folder)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256");
    must(ca_key != NULL);
    X509 *ca = certify(ca_key, "test CA", NULL, ca_key, NULL);
    save(folder, "ca", ca, NULL);
    issue(folder, "server", ca, ca_key, "IP:127.0.0.1,DNS:localhost");
    issue(folder, "wrongname", ca, ca_key, "DNS:elsewhere.example");
    issue(folder, "client", ca, ca_key, "URI:spiffe://example.org/test");
    issue(folder, "client2", ca, ca_key, "URI:spiffe://example.org/test");
    X509_free(ca);
    EVP_PKEY_free(ca_key);
}
