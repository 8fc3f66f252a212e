package access

import (
	"context"

	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
)

// KeyService is the Authority of a sidecar. Make the client with the certificate of the sidecar, whose principal needs the action access.
type KeyService struct{ Client *keyclient.Client }

// Access implements Authority.
func (k KeyService) Access(ctx context.Context, s Subject, checks []Check) ([]Decision, error) {
	subject := keyclient.Subject{Principal: s.Principal, Certificate: s.Certificate}
	if s.Remote.IsValid() {
		subject.Remote = s.Remote.String()
	}
	if p := s.Process; p != nil {
		subject.Process = &keyclient.Process{UID: p.UID, Executable: p.Executable, SHA256: p.SHA256, Labels: p.Labels}
	}
	asked := make([]keyclient.Check, len(checks))
	for i, c := range checks {
		asked[i] = keyclient.Check{Action: string(c.Action), Name: c.Name}
	}
	given, err := k.Client.Access(ctx, subject, asked)
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(given))
	for i, d := range given {
		decisions[i] = Decision{d.Allowed, d.Code, d.Lease.Refresh, d.Lease.Expires}
	}
	return decisions, nil
}
