package vault

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// works opens a store, uses it, and sees that its token is given back at the end.
func works(t *testing.T, server *testvault.Server, o Options) {
	t.Helper()
	s, err := Open(t.Context(), o, quiet())
	if err != nil {
		t.Fatal(err)
	}
	token := s.client.api.Token()
	_ = mustCurrent(t, s, "claims")
	if err := server.Root.Auth().Token().RevokeTree(token); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal("not logged in again: ", err)
	}
	token = s.client.api.Token()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Root.Auth().Token().Lookup(token); err == nil {
		t.Error("the token outlives the store")
	}
}

func policyName(o Options) string { return strings.Replace(o.KV, "kv-", "keyservice-", 1) }

func TestAppRole(t *testing.T) {
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	initialise(t, o)
	server.Write(t, "sys/auth/approle", map[string]any{"type": "approle"})
	server.Write(t, "auth/approle/role/keyservice", map[string]any{"token_policies": policyName(o), "token_ttl": "1h", "token_no_default_policy": true})
	role, err := server.Root.Logical().Read("auth/approle/role/keyservice/role-id")
	if err != nil {
		t.Fatal(err)
	}
	secret := server.Write(t, "auth/approle/role/keyservice/secret-id", nil)
	roleID, secretID := fmt.Sprint(role.Data["role_id"]), fmt.Sprint(secret.Data["secret_id"])
	o.Login = Login{AppRole: &AppRoleLogin{"approle", testvault.SecretFile(t, roleID), testvault.SecretFile(t, secretID)}}
	works(t, server, o)

	once := fmt.Sprint(server.Write(t, "auth/approle/role/keyservice/secret-id", map[string]any{"num_uses": 1}).Data["secret_id"])
	for name, l := range map[string]*AppRoleLogin{
		"wrong secret": {"approle", testvault.SecretFile(t, roleID), testvault.SecretFile(t, "x")},
		"wrong role":   {"approle", testvault.SecretFile(t, "x"), testvault.SecretFile(t, secretID)},
		"wrong mount":  {"none", testvault.SecretFile(t, roleID), testvault.SecretFile(t, secretID)},
		"empty file":   {"approle", testvault.SecretFile(t, roleID), testvault.SecretFile(t, "")},
		"no file":      {"approle", testvault.SecretFile(t, roleID), "/none"},
		"used up":      {"approle", testvault.SecretFile(t, roleID), testvault.SecretFile(t, once)},
	} {
		o.Login.AppRole = l
		if name == "used up" {
			works1(t, o)
		}
		_, err := Open(t.Context(), o, quiet())
		if err == nil || errors.Is(err, errAbsent) || strings.Contains(err.Error(), secretID) || strings.Contains(err.Error(), once) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// works1 logs in once.
func works1(t *testing.T, o Options) {
	t.Helper()
	s, err := Open(t.Context(), o, quiet())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}

func TestLooseSecretFile(t *testing.T) {
	path := testvault.SecretFile(t, "hvs.secret")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecret(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

// A real login by Kubernetes, except that the API server's TokenReview is answered by the test: a JWT that it vouches for gets a
// token, another does not.
func TestKubernetes(t *testing.T) {
	server := testvault.Dev(t, false)
	o := newPlace(t, server)
	initialise(t, o)
	good, other := serviceAccountToken(t), serviceAccountToken(t)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				Token string `json:"token"`
			} `json:"spec"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
			"status": map[string]any{"authenticated": review.Spec.Token == good, "user": map[string]any{
				"username": "system:serviceaccount:kafka:keyservice", "uid": "1", "groups": []string{"system:serviceaccounts"},
			}},
		})
	}))
	defer api.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	server.Write(t, "sys/auth/kubernetes", map[string]any{"type": testvault.KubernetesPlugin()})
	server.Write(t, "auth/kubernetes/config", map[string]any{
		"kubernetes_host": api.URL, "kubernetes_ca_cert": string(ca), "disable_local_ca_jwt": true, "token_reviewer_jwt": good,
	})
	server.Write(t, "auth/kubernetes/role/keyservice", map[string]any{
		"bound_service_account_names": "keyservice", "bound_service_account_namespaces": "kafka", "token_policies": policyName(o), "token_no_default_policy": true,
	})
	o.Login = Login{Kubernetes: &KubernetesLogin{"kubernetes", "keyservice", testvault.SecretFile(t, good)}}
	works(t, server, o)
	for name, l := range map[string]*KubernetesLogin{
		"not vouched for": {"kubernetes", "keyservice", testvault.SecretFile(t, other)},
		"unknown role":    {"kubernetes", "other", testvault.SecretFile(t, good)},
		"no file":         {"kubernetes", "keyservice", "/none"},
	} {
		o.Login.Kubernetes = l
		if _, err := Open(t.Context(), o, quiet()); err == nil || strings.Contains(err.Error(), good) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// serviceAccountToken makes a JWT like those of Kubernetes, under a key of its own.
func serviceAccountToken(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:kafka:keyservice", "iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "kafka", "serviceaccount": map[string]any{"name": "keyservice", "uid": "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestCertificateLogin(t *testing.T) {
	server := testvault.Dev(t, true)
	o := newPlace(t, server)
	initialise(t, o)
	certificate, key := clientCertificate(t)
	text, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	server.Write(t, "sys/auth/cert", map[string]any{"type": "cert"})
	server.Write(t, "auth/cert/certs/keyservice", map[string]any{"certificate": string(text), "token_policies": policyName(o), "token_no_default_policy": true})
	o.Login = Login{Certificate: &CertificateLogin{Mount: "cert", Role: "keyservice", CertificateFile: certificate, KeyFile: key}}
	works(t, server, o)
	foreign, foreignKey := clientCertificate(t)
	for name, l := range map[string]*CertificateLogin{
		"foreign":      {"cert", "keyservice", foreign, foreignKey},
		"unknown role": {"cert", "other", certificate, key},
		"wrong key":    {"cert", "keyservice", certificate, foreignKey},
		"no file":      {"cert", "keyservice", "/none", key},
	} {
		o.Login.Certificate = l
		if _, err := Open(t.Context(), o, quiet()); err == nil {
			t.Errorf("%s: logged in", name)
		}
	}
}

// clientCertificate makes a self-signed one: Vault's role trusts exactly this.
func clientCertificate(t *testing.T) (certificate, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "keyservice"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return certificate, testvault.SecretFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
}
