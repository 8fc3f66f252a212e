// The file by which the tool cipherlane finds the service and speaks as the operator.

package dev

import (
	"fmt"
	"os"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
)

const operatorFile = `# For the operator's tool: cipherlane --config %s
url: %s
ca: ca.pem
certificate: operator.pem
key: operator-key.pem
`

// WriteOperator writes it anew: the port may be another at each start.
func (r Running) WriteOperator() error {
	return os.WriteFile(r.Operator, fmt.Appendf(nil, operatorFile, r.Operator, r.URL), files.SecretMode)
}
