// The KV v2 engine: one JSON document at a path, with a version to compare when it is written.

package vault

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// kv reads and writes documents below one folder of one mount.
type kv struct {
	client *client
	mount  string
	folder string
}

func (k *kv) dataPath(name string) string { return k.mount + "/data/" + k.folder + "/" + name }

// read gives a document and its version. errAbsent and version 0 mean that there is none. A member that is not known
// is refused: a newer service wrote it, and what it means must not be lost.
func (k *kv) read(ctx context.Context, name string, document any) (version int, err error) {
	var answer struct {
		Data struct {
			Data     jsontext.Value `json:"data"`
			Metadata struct {
				Version int `json:"version"`
			} `json:"metadata"`
		} `json:"data"`
	}
	path := k.dataPath(name)
	if err := k.client.get(ctx, path, nil, &answer); err != nil {
		return 0, err
	}
	if answer.Data.Metadata.Version < 1 {
		return 0, &Error{Reason: BadAnswer, Op: "GET " + path, Text: "a document without a version: is the engine KV version 2?"}
	}
	if err := json.Unmarshal(answer.Data.Data, document, json.RejectUnknownMembers(true)); err != nil {
		return 0, damaged("GET "+path, "the document is not what this version of cipherlane-keyservice writes: %v", err)
	}
	return answer.Data.Metadata.Version, nil
}

// write stores a document if the version is still the one given (0: none is there), else it fails with Conflict.
func (k *kv) write(ctx context.Context, name string, version int, document any) (newVersion int, err error) {
	type options struct {
		CAS int `json:"cas"`
	}
	request := struct {
		Options options `json:"options"`
		Data    any     `json:"data"`
	}{options{version}, document}
	var answer struct {
		Data struct {
			Version int `json:"version"`
		} `json:"data"`
	}
	if err := k.client.put(ctx, k.dataPath(name), request, &answer); err != nil {
		return 0, noAbsence(err, "PUT "+k.dataPath(name))
	}
	return answer.Data.Version, nil
}

// purge destroys every version of a document but the newest: what stood in them is gone from Vault.
func (k *kv) purge(ctx context.Context, name string) error {
	var answer struct {
		Data struct {
			Current  int `json:"current_version"`
			Versions map[string]struct {
				Destroyed bool `json:"destroyed"`
			} `json:"versions"`
		} `json:"data"`
	}
	path := k.mount + "/metadata/" + k.folder + "/" + name
	if err := k.client.get(ctx, path, nil, &answer); err != nil {
		return noAbsence(err, "GET "+path)
	}
	older := []int{}
	for text, v := range answer.Data.Versions {
		number, err := strconv.Atoi(text)
		if err != nil || answer.Data.Current < 1 {
			return &Error{Reason: BadAnswer, Op: "GET " + path, Text: "a version that is not a number"}
		}
		if !v.Destroyed && number < answer.Data.Current {
			older = append(older, number)
		}
	}
	if len(older) == 0 {
		return nil
	}
	path = k.mount + "/destroy/" + k.folder + "/" + name
	return noAbsence(k.client.put(ctx, path, map[string][]int{"versions": older}, nil), "PUT "+path)
}

// list gives the names of the documents in a folder.
func (k *kv) list(ctx context.Context, folder string) ([]string, error) {
	var answer struct {
		Data struct {
			Keys []string `json:"keys"`
		} `json:"data"`
	}
	path := k.mount + "/metadata/" + k.folder + "/" + folder
	err := k.client.get(ctx, path, map[string][]string{"list": {"true"}}, &answer)
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	var documents []string
	for _, name := range answer.Data.Keys {
		if !strings.HasSuffix(name, "/") {
			documents = append(documents, name)
		}
	}
	return documents, err
}

// checkMount sees that the mount is a KV engine of version 2: version 1 would answer "not there" to everything.
func (k *kv) checkMount(ctx context.Context) error {
	var answer struct {
		Data struct {
			Type    string            `json:"type"`
			Options map[string]string `json:"options"`
		} `json:"data"`
	}
	path := "sys/internal/ui/mounts/" + k.mount
	if err := k.client.get(ctx, path, nil, &answer); err != nil {
		if reasonOf(err) == Denied { // Vault's answer also when there is no such mount
			return &Error{Reason: NoMount, Op: "GET " + path, Text: "there is no such mount, or the token has no right on it", Cause: err}
		}
		return noAbsence(err, "GET "+path)
	}
	if answer.Data.Type != "kv" || answer.Data.Options["version"] != "2" {
		return &Error{Reason: NoMount, Op: "GET " + path, Text: "it is not a KV engine of version 2"}
	}
	return nil
}

// noAbsence turns errAbsent into an error where nothing can be absent.
func noAbsence(err error, op string) error {
	if errors.Is(err, errAbsent) {
		return &Error{Reason: BadAnswer, Op: op, Status: 404, Text: "Vault says that there is no such path"}
	}
	return err
}
