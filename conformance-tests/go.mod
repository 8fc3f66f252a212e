module github.com/cipherlane/cipherlane/conformance-tests

go 1.26.4

require (
	github.com/alecthomas/kong v1.17.0
	github.com/c2sp/wycheproof v0.0.0-20260902155932-3fa63dd0344a
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/klauspost/compress v1.20.3
	github.com/tink-crypto/tink-go/v2 v2.9.0
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kadm v1.19.0
	github.com/twmb/franz-go/pkg/kmsg v1.15.0
	golang.org/x/sys v0.46.0
)

require (
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	golang.org/x/crypto v0.53.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
