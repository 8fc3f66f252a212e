// Package release says which version of the programs this is.
package release

// Version is set when a release is linked.
var Version = "0.1.0-dev"
