// Package dev makes a folder with all that a key service on a laptop needs: a CA, certificates, an example policy, a
// store and a configuration. Nothing in it is meant for production: the CA's key lies beside everything else.
package dev

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cipherlane/cipherlane/keyservice/internal/config"
	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded"
)

//go:embed policy.yaml
var examplePolicy []byte

//go:embed keyservice.yaml
var exampleConfig []byte

// DefaultPrincipals are those that the example policy knows, and one that it does not.
var DefaultPrincipals = []string{"producer", "consumer", "operator", "stranger"}

// Options say what to make, and where.
type Options struct {
	Dir        string   // made when it is missing, used again when it is there
	Policy     string   // empty: the example policy in Dir
	Principals []string // besides the default ones
}

// Folder is what was made. Paths are absolute.
type Folder struct {
	Config     string               `json:"config"`
	Dir        string               `json:"dir"`
	CA         string               `json:"ca"`
	Audit      string               `json:"audit"`
	Operator   string               `json:"operator"` // for the tool cipherlane: where the service is, and who the operator is
	Policy     string               `json:"policy"`
	Principals map[string]Principal `json:"principals"`
}

// Principal is a client that the key service knows.
type Principal struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	SPIFFEID    string `json:"spiffe_id"`
}

// Prepare makes what is missing in the folder and gives the configuration to serve with.
func Prepare(o Options) (Folder, config.Config, error) {
	f, err := newFolder(o)
	if err != nil {
		return f, config.Config{}, err
	}
	if err := f.write(o); err != nil {
		return f, config.Config{}, err
	}
	cfg, err := config.Read(f.Config)
	if err != nil {
		return f, cfg, err
	}
	cfg.Policy = f.Policy
	relax(&cfg.Limits)
	return f, cfg, nil
}

// manyCalls is a limit that the tests and benchmarks of a laptop do not meet.
const manyCalls = 1_000_000

// relax lifts the limit of a principal, unless the folder's configuration sets one.
func relax(l *config.Limits) {
	usual := config.Default().Limits
	if l.PrincipalRate == usual.PrincipalRate && l.PrincipalBurst == usual.PrincipalBurst {
		l.PrincipalRate, l.PrincipalBurst = manyCalls, manyCalls
	}
}

func newFolder(o Options) (Folder, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Folder{}, err
	}
	f := Folder{
		Dir: dir, Config: filepath.Join(dir, "keyservice.yaml"), CA: filepath.Join(dir, "ca.pem"),
		Audit: filepath.Join(dir, "audit.jsonl"), Policy: filepath.Join(dir, "policy.yaml"),
		Operator: filepath.Join(dir, "cipherlane.yaml"), Principals: map[string]Principal{},
	}
	if o.Policy != "" {
		if f.Policy, err = filepath.Abs(o.Policy); err != nil {
			return f, err
		}
	}
	for _, name := range append(append([]string{}, DefaultPrincipals...), o.Principals...) {
		if err := checkName(name); err != nil {
			return f, err
		}
		f.Principals[name] = Principal{
			Certificate: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+"-key.pem"), SPIFFEID: spiffeID(name),
		}
	}
	return f, nil
}

var principalName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// checkName allows names that make a file name and a SPIFFE path segment, and none that is a file of the folder's own.
func checkName(name string) error {
	if !principalName.MatchString(name) || name == "ca" || name == "server" {
		return fmt.Errorf("principal %q: 1 to 63 of a-z 0-9 _ -, beginning with a letter or digit, and neither ca nor server", name)
	}
	return nil
}

func (f Folder) write(o Options) error {
	if err := os.MkdirAll(f.Dir, files.DirMode); err != nil {
		return err
	}
	if err := files.CheckFolder(f.Dir); err != nil {
		return err
	}
	if err := f.writeExamples(o); err != nil {
		return err
	}
	if err := f.writeStore(); err != nil {
		return err
	}
	return f.writeCertificates()
}

func (f Folder) writeExamples(o Options) error {
	if err := createMissing(f.Config, exampleConfig); err != nil || o.Policy != "" {
		return err
	}
	return createMissing(f.Policy, examplePolicy)
}

func createMissing(path string, content []byte) error {
	err := files.CreateSecret(path, content)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// writeStore makes a store in a folder that has none. One that lost only one of its two files is left as it is: the
// service refuses it and says so.
func (f Folder) writeStore() error {
	paths := embedded.Paths{Keys: filepath.Join(f.Dir, "keys.db"), KEK: filepath.Join(f.Dir, "kek.json")}
	for _, path := range []string{paths.Keys, paths.KEK} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return embedded.Init(paths)
}
