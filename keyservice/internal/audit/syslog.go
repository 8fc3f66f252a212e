// Syslog as RFC 5424 messages: over a Unix socket, UDP, TCP, or TLS (RFC 5425) with octet counting (RFC 6587). The standard library's
// log/syslog writes the older form only and knows no TLS.

package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// Syslog says where messages go.
type Syslog struct {
	Address string      // unix:///dev/log, udp://host:port, tcp://host:port or tls://host:port
	TLS     *tls.Config // for tls only; the server's name is taken from Address
}

// priority is facility 13 (log audit), severity 6 (informational).
const (
	priority    = 13*8 + 6
	appName     = "cipherlane-keyservice"
	sendTimeout = 5 * time.Second
)

type syslogTransport struct {
	network, address string
	tls              *tls.Config
	framed           bool // octet counting, on streams
	host             string
	conn             net.Conn // nil when it must be dialled
}

// CheckSyslogAddress says why text is no address for syslog, or nil.
func CheckSyslogAddress(text string) error {
	_, err := parseSyslogAddress(text)
	return err
}

func parseSyslogAddress(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	if err == nil {
		switch at.Scheme {
		case "unix":
			if at.Host == "" && at.Path != "" {
				return at, nil
			}
		case "udp", "tcp", "tls":
			if at.Hostname() != "" && at.Port() != "" && at.Path == "" {
				return at, nil
			}
		}
	}
	return nil, fmt.Errorf("%q is not an address for syslog: unix:///dev/log, udp://host:port, tcp://host:port or tls://host:port", text)
}

func (s *Syslog) open() (*syslogTransport, error) {
	at, err := parseSyslogAddress(s.Address)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	t := &syslogTransport{network: at.Scheme, address: at.Host, host: host, framed: at.Scheme == "tcp" || at.Scheme == "tls"}
	switch at.Scheme {
	case "unix":
		t.network, t.address = "unixgram", at.Path
	case "tls":
		if s.TLS == nil {
			return nil, errors.New("syslog over TLS needs a CA")
		}
		t.network, t.tls = "tcp", s.TLS.Clone()
		t.tls.ServerName = at.Hostname()
	}
	return t, nil
}

// send implements transport. A connection that broke is dialled again at the next try.
func (t *syslogTransport) send(lines []byte) error {
	if err := t.dial(); err != nil {
		return err
	}
	err := t.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	for line := range bytes.Lines(lines) {
		if err == nil {
			_, err = t.conn.Write(t.message(bytes.TrimSuffix(line, []byte("\n"))))
		}
	}
	if err != nil {
		err = errors.Join(err, t.close())
	}
	return err
}

func (t *syslogTransport) dial() error {
	if t.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	dialer := &net.Dialer{}
	var err error
	if t.tls != nil {
		t.conn, err = (&tls.Dialer{NetDialer: dialer, Config: t.tls}).DialContext(ctx, t.network, t.address)
	} else {
		t.conn, err = dialer.DialContext(ctx, t.network, t.address)
	}
	if err != nil {
		t.conn = nil
	}
	return err
}

// message is one line as an RFC 5424 message, with the time of the record.
func (t *syslogTransport) message(line []byte) []byte {
	var of struct {
		Time   time.Time `json:"time"`
		Action string    `json:"action"`
	}
	_ = json.Unmarshal(line, &of) // a time of zero is written for what cannot be read
	text := fmt.Appendf(nil, "<%d>1 %s %s %s %d %s - ", priority, of.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), t.host, appName, os.Getpid(), word(of.Action))
	text = append(text, line...)
	if !t.framed {
		return text
	}
	return append(append(strconv.AppendInt(nil, int64(len(text)), 10), ' '), text...)
}

// word is the message id of RFC 5424: never empty.
func word(action string) string {
	if action == "" {
		return "-"
	}
	return action
}

func (t *syslogTransport) close() error {
	if t.conn == nil {
		return nil
	}
	err := t.conn.Close()
	t.conn = nil
	return err
}
