/* Certificates for one test run: never on disk before it, nor after it. */
#include "pki.h"

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

X509 *certify(EVP_PKEY *key, const char *name, const signer *issuer, const char *alternative, long begins, long ends)
{
    static long serial = 1;
    X509 *certificate = X509_new();
    must(certificate != NULL && X509_set_version(certificate, X509_VERSION_3) == 1);
    must(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++) == 1);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), begins);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), ends);
    X509_NAME *subject = X509_get_subject_name(certificate);
    must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) == 1);
    must(X509_set_issuer_name(certificate, issuer == NULL ? subject : X509_get_subject_name(issuer->certificate)) == 1);
    must(X509_set_pubkey(certificate, key) == 1);
    extend(certificate, NID_basic_constraints, issuer == NULL ? "critical,CA:TRUE" : "CA:FALSE");
    if (alternative != NULL) {
        extend(certificate, NID_subject_alt_name, alternative);
    }
    must(X509_sign(certificate, issuer == NULL ? key : issuer->key, EVP_sha256()) > 0);
    return certificate;
}

signer new_ca(const char *name)
{
    signer ca = {.key = EVP_EC_gen("P-256")};
    must(ca.key != NULL);
    ca.certificate = certify(ca.key, name, NULL, NULL, -HOUR, HOUR);
    return ca;
}

void free_ca(signer *ca)
{
    X509_free(ca->certificate);
    EVP_PKEY_free(ca->key);
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

static void issue(const char *folder, const char *name, const signer *ca, const char *alternative)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key != NULL);
    X509 *certificate = certify(key, name, ca, alternative, -HOUR, HOUR);
    save(folder, name, certificate, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void make_pki(const char *folder)
{
    signer ca = new_ca("test CA");
    save(folder, "ca", ca.certificate, NULL);
    issue(folder, "server", &ca, "IP:127.0.0.1,DNS:localhost");
    issue(folder, "wrongname", &ca, "DNS:elsewhere.example");
    issue(folder, "client", &ca, "URI:spiffe://example.org/test");
    issue(folder, "client2", &ca, "URI:spiffe://example.org/test");
    free_ca(&ca);
}
