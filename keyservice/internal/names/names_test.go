package names

import (
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

// [CL-POL-006]
func TestVectorsOfTopics(t *testing.T) {
	for _, v := range vectors.Read(t, "topic") {
		t.Run(v.ID, func(t *testing.T) {
			var in struct{ Topic string }
			vectors.Decode(t, v.Input, &in)
			if err := CheckTopic(in.Topic); (err == nil) != (v.Result == "ok") {
				t.Fatalf("%q: %v", in.Topic, err)
			}
		})
	}
}

func TestPrincipals(t *testing.T) {
	for _, good := range []string{"a", "spiffe://example.org/x", "Jürgen Müller", strings.Repeat("x", MaxPrincipal)} {
		if err := CheckPrincipal(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", strings.Repeat("x", MaxPrincipal+1), "a\nb", "a\x00", "\xff", "a\u2028b", "\u200b", "tab\t", strings.Repeat("é", MaxPrincipal/2) + "x",
	} {
		if err := CheckPrincipal(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
