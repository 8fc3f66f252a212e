// Values that several sections have.

package config

import (
	"net"
	"strconv"

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

type (
	node   = strictyaml.Node
	field  = strictyaml.Field
	fields = map[string]strictyaml.Field
)

const maxPort = 65535

func section(members fields) field {
	return field{Read: func(n node) error { return n.Members(members) }}
}

func word(target *string, words ...string) field {
	return field{Read: func(n node) error { return n.OneOf(target, words...) }}
}

func texts(n node, into *[]string) error {
	_, err := n.List(func(item node) error {
		text, err := item.Text()
		*into = append(*into, text)
		return err
	})
	return err
}

// address reads host:port.
func address(n node, into *string) error {
	text, err := n.Text()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(text)
	if number, bad := strconv.Atoi(port); err != nil || bad != nil || number < 0 || number > maxPort {
		return n.Errorf("%q is not host:port", text)
	}
	*into = text
	return nil
}

func addresses(n node, into *[]string) error {
	_, err := n.List(func(item node) error {
		var text string
		err := address(item, &text)
		*into = append(*into, text)
		return err
	})
	return err
}
