// The ways to a token. Secrets are read from files at each login, so that they can be replaced while the service runs.

package vault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/vault/api"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const maxSecretFile = 64 << 10

// method is a way to log in.
type method interface {
	check() error
	// login gives a secret whose Auth holds the token and how long it lasts. c has no token.
	login(ctx context.Context, c *api.Client) (*api.Secret, error)
}

// method gives the one that is set; check has seen that there is exactly one.
func (l Login) method() method {
	switch {
	case l.Token != nil:
		return l.Token
	case l.AppRole != nil:
		return l.AppRole
	case l.Kubernetes != nil:
		return l.Kubernetes
	default:
		return l.Certificate
	}
}

func (l *TokenLogin) check() error { return required("login.token", "file", l.File) }

func (l *TokenLogin) login(ctx context.Context, c *api.Client) (*api.Secret, error) {
	token, err := readSecret(l.File)
	if err != nil {
		return nil, err
	}
	c.SetToken(token)
	found, err := c.Auth().Token().LookupSelfWithContext(ctx)
	if err != nil {
		return nil, classify("look up the token of "+l.File, err)
	}
	return asLogin(token, found)
}

// asLogin gives a token that is already there the form of an answer to a login.
func asLogin(token string, found *api.Secret) (*api.Secret, error) {
	ttl, err := found.TokenTTL()
	if err != nil {
		return nil, fmt.Errorf("the token's lifetime: %w", err)
	}
	renewable, err := found.TokenIsRenewable()
	if err != nil {
		return nil, fmt.Errorf("the token's lifetime: %w", err)
	}
	seconds := int(ttl.Seconds())
	if found.Data["expire_time"] != nil { // else it is a root token, which has no end
		seconds = max(seconds, 1)
	}
	return &api.Secret{Auth: &api.SecretAuth{ClientToken: token, Renewable: renewable, LeaseDuration: seconds}}, nil
}

func (l *AppRoleLogin) check() error {
	return errors.Join(required("login.approle", "role_id_file", l.RoleIDFile), required("login.approle", "secret_id_file", l.SecretIDFile), checkPath(l.Mount))
}

func (l *AppRoleLogin) login(ctx context.Context, c *api.Client) (*api.Secret, error) {
	role, err := readSecret(l.RoleIDFile)
	if err != nil {
		return nil, err
	}
	secret, err := readSecret(l.SecretIDFile)
	if err != nil {
		return nil, err
	}
	return loginAt(ctx, c, l.Mount, map[string]any{"role_id": role, "secret_id": secret})
}

func (l *KubernetesLogin) check() error {
	return errors.Join(required("login.kubernetes", "role", l.Role), required("login.kubernetes", "token_file", l.TokenFile), checkPath(l.Mount))
}

func (l *KubernetesLogin) login(ctx context.Context, c *api.Client) (*api.Secret, error) {
	// The kubelet writes the file 0644 behind a symbolic link and replaces it before the token expires.
	jwt, err := files.ReadTrusted(l.TokenFile, maxSecretFile)
	if err != nil {
		return nil, err
	}
	return loginAt(ctx, c, l.Mount, map[string]any{"role": l.Role, "jwt": strings.TrimSpace(string(jwt))})
}

func (l *CertificateLogin) check() error {
	return errors.Join(required("login.certificate", "certificate", l.CertificateFile), required("login.certificate", "key", l.KeyFile), checkPath(l.Mount))
}

func (l *CertificateLogin) login(ctx context.Context, c *api.Client) (*api.Secret, error) {
	body := map[string]any{}
	if l.Role != "" {
		body["name"] = l.Role
	}
	return loginAt(ctx, c, l.Mount, body)
}

// load reads certificate and key.
func (l *CertificateLogin) load() (*tls.Certificate, error) {
	chain, err := files.ReadTrusted(l.CertificateFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("vault: login.certificate: %w", err)
	}
	key, err := files.ReadCredential(l.KeyFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("vault: login.certificate: %w", err)
	}
	defer clear(key)
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("vault: login.certificate: %s and %s: %w", l.CertificateFile, l.KeyFile, err)
	}
	return &pair, nil
}

func loginAt(ctx context.Context, c *api.Client, mount string, body map[string]any) (*api.Secret, error) {
	path := "auth/" + mount + "/login"
	secret, err := c.Logical().WriteWithContext(ctx, path, body)
	if err != nil {
		return nil, classify("PUT "+path, err)
	}
	if secret == nil || secret.Auth == nil || secret.Auth.ClientToken == "" {
		return nil, &Error{Reason: BadAnswer, Op: "PUT " + path, Text: "a login without a token"}
	}
	return secret, nil
}

func readSecret(path string) (string, error) {
	data, err := files.ReadCredential(path, maxSecretFile)
	if err != nil {
		return "", err
	}
	defer clear(data)
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

func required(section, name, value string) error {
	if value == "" {
		return fmt.Errorf("%s: %s is missing", section, name)
	}
	return nil
}
