// The calls of producers and consumers, and rotate.

package api

import (
	"context"
	"net/http"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

func (a *api) encryptionKey(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	record := call.Record(policy.ActionEncrypt)
	var request encryptionKeyRequest
	if err := read(w, r, &request); err != nil {
		return nil, a.service.Refuse(ctx, record, err)
	}
	topic, usage, err := request.check()
	if err != nil {
		record.Topic = topic
		return nil, a.service.Refuse(ctx, record, err)
	}
	answer, err := a.service.EncryptionKey(ctx, call, topic, usage)
	if err != nil {
		return nil, err
	}
	return newEncryptionKeyAnswer(answer), nil
}

func (a *api) decryptionKeys(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	record := call.Record(policy.ActionDecrypt)
	var request decryptionKeysRequest
	if err := read(w, r, &request); err != nil {
		return nil, a.service.Refuse(ctx, record, err)
	}
	topic, kids, err := request.check()
	if err != nil {
		record.Topic = topic
		return nil, a.service.Refuse(ctx, record, err)
	}
	if wait, ok := a.payForMany(call, len(kids)); !ok {
		x := &exchange{name: "decryption-keys", action: policy.ActionDecrypt, call: call, w: w, r: r}
		return nil, a.tooMany(ctx, x, errRate, wait, "this principal asks for too many keys")
	}
	answer, err := a.service.DecryptionKeys(ctx, call, topic, kids)
	if err != nil {
		return nil, err
	}
	return newDecryptionKeysAnswer(answer), nil
}

func (a *api) rotate(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	scope := r.PathValue("scope")
	if err := checkRotate(w, r, scope); err != nil {
		record := call.Record(policy.ActionRotate)
		record.Scope = scope
		return nil, a.service.Refuse(ctx, record, err)
	}
	kid, err := a.service.Rotate(ctx, call, scope)
	if err != nil {
		return nil, err
	}
	return rotateAnswer{Scope: scope, Kid: kid.String()}, nil
}

func checkRotate(w http.ResponseWriter, r *http.Request, scope string) error {
	if err := checkScope(scope); err != nil {
		return err
	}
	return readNothing(w, r)
}

func checkScope(scope string) error {
	if err := names.CheckTopic(scope); err != nil {
		return invalid("not a scope: %v", err)
	}
	return nil
}

// readNothing takes no body, or an empty object.
func readNothing(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, true)
	if err != nil || body == nil {
		return err
	}
	return decode(body, &struct{}{})
}

func read(w http.ResponseWriter, r *http.Request, request any) error {
	body, err := readBody(w, r, false)
	if err != nil {
		return err
	}
	return decode(body, request)
}
