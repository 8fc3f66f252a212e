// The names in a certificate.

package certificate

import (
	"net/url"
	"strings"
)

// maxCommonName is X.509's limit, in characters.
const maxCommonName = 64

// subjectNames are the names that stand in a principal's certificate [CL-IDN-022].
type subjectNames struct {
	commonName string
	uri        *url.URL // nil: the principal is a common name
}

// namesOf gives a SPIFFE id as URI, with the last segment of its path as common name, for people; other principals have
// their common name only, because a URI would make another principal of them.
func namesOf(principal string) subjectNames {
	if !strings.HasPrefix(principal, "spiffe://") {
		return subjectNames{commonName: principal}
	}
	uri, err := url.Parse(principal)
	if err != nil {
		return subjectNames{commonName: principal}
	}
	last := principal[strings.LastIndexByte(principal, '/')+1:]
	return subjectNames{commonName: last[:min(len(last), maxCommonName)], uri: uri} // ASCII, as SPIFFE says
}

// uris gives the URI as x509 wants it.
func (n subjectNames) uris() []*url.URL {
	if n.uri == nil {
		return nil
	}
	return []*url.URL{n.uri}
}
