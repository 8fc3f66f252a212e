// Access control through a real broker, a real key service and real clients.

package main

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const accessPolicy = `version: 1
lease: {expires_in: 2s}
topics:
  - {topics: [open, mixed, windowed, fetched, away, busy, console, "new-*"], mode: clear}
  - {topics: [secret], mode: forbid}
  - {topics: [other], mode: clear}
grants:
  - {principals: ["spiffe://dev.cipherlane/sidecar"], actions: [access], for: ["spiffe://dev.cipherlane/*"]}
  - {principals: ["spiffe://dev.cipherlane/operator"], actions: [admin, revoke]}
  - {principals: ["spiffe://dev.cipherlane/reader"], actions: [read, group], topics: [open, mixed, secret, fetched], groups: ["readers*"]}
  - {principals: ["spiffe://dev.cipherlane/writer"], actions: [write, transaction], topics: [open, mixed, secret, fetched, away, busy], transactions: ["tx-*"]}
  - {principals: ["spiffe://dev.cipherlane/java"], actions: [read, write, group], topics: [console], groups: ["*"]}
  - {principals: ["spiffe://dev.cipherlane/boss"], actions: [manage, cluster], topics: ["*"]}
`

// guarded is a broker behind a sidecar that asks a key service.
type guarded struct {
	*testservice.PKI

	service *testservice.KeyService
	sidecar *testservice.Sidecar
	policy  string
	audit   string
	broker  string
}

// startGuarded starts all three. Everybody's certificate is of one CA.
func startGuarded(t *testing.T, broker, policy string) *guarded {
	t.Helper()
	return startGuardedOn(t, broker, policy, "embedded: {path: keys.db, kek: kek.json}")
}

// startGuardedOn does so with a key service whose keys are elsewhere.
func startGuardedOn(t *testing.T, broker, policy, store string) *guarded {
	t.Helper()
	g := &guarded{PKI: testservice.NewPKI(t), broker: broker}
	dir := filepath.Join(t.TempDir(), "dev")
	g.policy = filepath.Join(dir, "policy.yaml")
	config := fmt.Sprintf("listen: 127.0.0.1:8443\ntls: {certificate: server.pem, key: server-key.pem, client_ca: %s}\npolicy: policy.yaml\n"+
		"store: {%s}\naudit: {file: audit.jsonl}\n", g.CA, store)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(g.policy, []byte(policy), 0o600), os.WriteFile(filepath.Join(dir, "keyservice.yaml"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(store, "vault:") {
		initialise(t, filepath.Join(dir, "keyservice.yaml"))
	}
	g.service = testservice.StartKeyServiceIn(t, dir)
	g.audit = filepath.Join(t.TempDir(), "sidecar.jsonl")
	own := g.issue(t, "sidecar")
	g.sidecar = testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n"+
		"tls: {ca: %s, certificate: %s, key: %s}\naccess: {urls: ['%s'], ca: %s, audit: {file: %s}}\n",
		g.broker, freeRange(t, 3), g.CA, own.Certificate, own.Key, g.service.URL, g.service.CA, g.audit))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.sidecar.Log)
		}
	})
	return g
}

func (g *guarded) issue(t *testing.T, name string) testservice.Pair {
	t.Helper()
	return g.Issue(t, name, "spiffe://dev.cipherlane/"+name, time.Hour)
}

// operator calls the key service as one.
func (g *guarded) operator(t *testing.T) *operator.Client {
	t.Helper()
	own := g.issue(t, "operator")
	c, err := operator.Open(operator.Options{URL: g.service.URL, CA: g.service.CA, Certificate: own.Certificate, Key: own.Key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// as makes a client with a principal's certificate.
func (g *guarded) as(t *testing.T, name string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	own := g.issue(t, name)
	pair, err := tls.LoadX509KeyPair(own.Certificate, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := operator.TLSConfig(g.CA, "", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return kafkaClient(t, g.sidecar.Listeners["kafka"], append([]kgo.Opt{
		kgo.DialTLSConfig(cfg), kgo.ClientID("test-" + name), kgo.MetadataMinAge(100 * time.Millisecond), kgo.RetryTimeout(5 * time.Second), kgo.RecordRetries(2),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}, options...)...)
}

// replacePolicy puts another policy in place and waits until it holds.
func (g *guarded) replacePolicy(t *testing.T, policy string) {
	t.Helper()
	fresh := g.policy + ".new"
	reloads := strings.Count(g.service.Log.String(), "policy reloaded")
	if err := errors.Join(os.WriteFile(fresh, []byte(policy), 0o600), os.Rename(fresh, g.policy)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new policy", func() bool { return strings.Count(g.service.Log.String(), "policy reloaded") > reloads })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain for: %s", what)
}

func (g *guarded) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.sidecar.Listeners["admin"]+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// write produces one record and gives the error.
func write(t *testing.T, c *kgo.Client, topic string) error {
	t.Helper()
	return c.ProduceSync(within(t, 20*time.Second), &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
}

// readError polls until there are records or an error.
func readError(t *testing.T, c *kgo.Client) (records int, err error) {
	t.Helper()
	ctx := within(t, 20*time.Second)
	for {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return 0, err
		}
		for _, e := range fetches.Errors() {
			return fetches.NumRecords(), e.Err
		}
		if n := fetches.NumRecords(); n > 0 {
			return n, nil
		}
	}
}

// TestBehindAGuardingSidecar has one broker for all, as starting one takes longer than the tests.
func TestBehindAGuardingSidecar(t *testing.T) {
	broker := testservice.StartBroker(t, "open:2,mixed:1,secret:1,other:1,windowed:1,fetched:1,away:1,busy:1,console:3")
	for _, test := range []struct {
		name string
		run  func(*testing.T, string)
	}{
		{"access", testAccess},
		{"a lease ends during a fetch", testLeaseEndsDuringAFetch},
		{"the key service is away", testKeyServiceAway},
		{"metadata while it is away", testMetadataWhileKeyServiceIsAway},
		{"a window ends", testWindowEnds},
		{"the policy is reloaded while busy", testPolicyReloadedWhileBusy},
		{"local processes", testLocalProcesses},
		{"through tunnels", testAccessThroughTunnels},
		{"a key service on Vault", testAccessOnVault},
		{"topic ids that are new", testNewTopicIDs},
		{"no acknowledgement", testAccessWithoutAcknowledgement},
		{"share groups", testShareGroups},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, broker) })
	}
}

// [CL-ACC-011] [CL-ACC-016] [CL-AUD-008] Allowed, denied and mixed requests of real clients.
func testAccess(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	writer, reader := g.as(t, "writer"), g.as(t, "reader", kgo.ConsumeTopics("open"), kgo.ConsumerGroup("readers-1"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := write(t, writer, "open"); err != nil {
		t.Fatal(err)
	}
	if n, err := readError(t, reader); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, topic := range []string{"secret", "other", "windowed"} {
		if err := write(t, writer, topic); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("%s: %v", topic, err)
		}
	}
	if err := write(t, g.as(t, "reader"), "open"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("a reader writes: %v", err)
	}
	g.mixed(t)
	g.groups(t)
	g.recorded(t)
	g.reported(t)
}

// mixed sees that one request with good and bad topics is answered for each, and lists show only what may be seen.
func (g *guarded) mixed(t *testing.T) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	reader := kadm.NewClient(g.as(t, "reader"))
	topics, err := reader.ListTopics(ctx)
	if names := topics.Names(); err != nil || !slices.Equal(names, []string{"fetched", "mixed", "open"}) {
		t.Errorf("%v %v", names, err)
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range []string{"nothing", "open", "other", "mixed", "secret"} {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	request.AllowAutoTopicCreation = true
	named, err := request.RequestWith(ctx, g.as(t, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	refused := kerr.TopicAuthorizationFailed.Code
	for i, want := range []int16{refused, 0, refused, 0, refused} {
		if got := named.Topics[i]; *got.Topic != *request.Topics[i].Topic || got.ErrorCode != want {
			t.Errorf("%d: %s %d", i, *got.Topic, got.ErrorCode)
		}
	}
	boss := kadm.NewClient(g.as(t, "boss"))
	if _, err := boss.CreateTopics(ctx, 1, 1, nil, "new-1"); err != nil {
		t.Error(err)
	}
	created, err := reader.CreateTopics(ctx, 1, 1, nil, "new-2")
	if err != nil || !errors.Is(created["new-2"].Err, kerr.TopicAuthorizationFailed) {
		t.Errorf("%+v %v", created, err)
	}
	deleted, err := boss.DeleteTopics(ctx, "new-1", "secret")
	if err != nil || deleted["new-1"].Err != nil || !errors.Is(deleted["secret"].Err, kerr.TopicAuthorizationFailed) {
		t.Errorf("%+v %v", deleted, err)
	}
	if _, err := reader.DescribeBrokerConfigs(ctx, 1); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		configs, err := reader.DescribeBrokerConfigs(ctx, 1)
		if err == nil && (len(configs) != 1 || !errors.Is(configs[0].Err, kerr.ClusterAuthorizationFailed)) {
			t.Errorf("%+v %v", configs, err)
		}
	}
}

func (g *guarded) groups(t *testing.T) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	foreign := g.as(t, "reader", kgo.ConsumeTopics("open"), kgo.ConsumerGroup("others"))
	if _, err := readError(t, foreign); !errors.Is(err, kerr.GroupAuthorizationFailed) {
		t.Errorf("a group of others: %v", err)
	}
	groups, err := kadm.NewClient(g.as(t, "reader")).ListGroups(ctx)
	if names := groups.Groups(); err != nil || !slices.Equal(names, []string{"readers-1"}) {
		t.Errorf("%v %v", names, err)
	}
	if groups, err = kadm.NewClient(g.as(t, "writer")).ListGroups(ctx); err != nil || len(groups) != 0 {
		t.Errorf("a writer sees %v %v", groups, err)
	}
	for id, want := range map[string]error{"tx-1": nil, "mine": kerr.TransactionalIDAuthorizationFailed} {
		c := g.as(t, "writer", kgo.TransactionalID(id))
		err := c.BeginTransaction()
		if err == nil {
			err = write(t, c, "open")
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
		if err == nil {
			err = c.EndTransaction(ctx, kgo.TryCommit)
		}
		if want == nil && err != nil {
			t.Error(err)
		}
	}
}

// recorded looks into the audit log and the metrics.
func (g *guarded) recorded(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(g.audit)
	if err != nil {
		t.Fatal(err)
	}
	const who = `"principal":"spiffe://dev.cipherlane/`
	for _, want := range [][]string{
		{`"action":"connection"`, who + `reader"`, `"host":"`},
		{`"action":"access"`, who + `writer"`, `"topic":"open"`, `"outcome":"allowed"`, `"right":"write"`, `"expires_in":`},
		{`"action":"access-use"`, who + `reader"`, `"right":"read"`, `"client":"test-reader"`},
		{`"action":"access"`, who + `writer"`, `"outcome":"refused"`, `"code":"topic-forbidden"`},
		{`"action":"access"`, who + `reader"`, `"group":"others"`, `"code":"not-authorized"`},
	} {
		if !slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
			return !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(line, part) })
		}) {
			t.Errorf("the audit log has no line with %v", want)
		}
	}
	figures := g.get(t, "/metrics")
	for _, want := range []string{
		`cipherlane_sidecar_records_total{action="write",principal="spiffe://dev.cipherlane/writer",topic="open"} `,
		`cipherlane_sidecar_records_total{action="read",principal="spiffe://dev.cipherlane/reader",topic="open"} `,
		`cipherlane_sidecar_denials_total{action="group",code="not-authorized",name="others",principal="spiffe://dev.cipherlane/reader"}`,
		`cipherlane_sidecar_lease_seconds{action="read",name="open",principal="spiffe://dev.cipherlane/reader"}`,
		`cipherlane_sidecar_client_certificate_seconds{principal="spiffe://dev.cipherlane/reader"}`,
		`cipherlane_sidecar_requests_total{api="Produce",principal="spiffe://dev.cipherlane/writer"}`,
	} {
		if !strings.Contains(figures, want) {
			t.Errorf("no %s in\n%s", want, figures)
		}
	}
}

// [CL-ACC-014] [CL-ACC-015] On loopback a client is the process that it is: this one may write, another program is nobody.
func testLocalProcesses(t *testing.T, broker string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := startGuarded(t, broker, strings.Replace(accessPolicy, "[other]", "[other, by-hash, by-other-hash, by-label, by-other-label]", 1)+conditions(t, self))
	brokerSide := testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s",
		broker, freeRange(t, 3), tlsPart(t, g.PKI, "broker-side")))
	own, log := g.issue(t, "sidecar"), filepath.Join(t.TempDir(), "local.jsonl")
	local := testservice.StartSidecar(t, fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n"+
		"tls: {ca: %s, certificate: %s, key: %s}\naccess: {urls: ['%s'], ca: %s, audit: {file: %s}, labels: [HOME], processes: [{principal: 'spiffe://dev.cipherlane/writer', executable: %s, uid: %d}, {principal: 'spiffe://dev.cipherlane/java', executable: %s}]}\n",
		brokerSide.Listeners["kafka"], freeRange(t, 3), g.CA, own.Certificate, own.Key, g.service.URL, g.service.CA, log, self, os.Getuid(), javaProgram(t)))
	if err := write(t, kafkaClient(t, local.Listeners["kafka"], kgo.RecordRetries(2)), "open"); err != nil {
		t.Errorf("%v; %s", err, local.Log)
	}
	t.Run("conditions on the program and the labels", func(t *testing.T) {
		made := kadm.NewClient(kafkaClient(t, broker))
		names := []string{"by-hash", "by-label", "by-other-hash", "by-other-label"}
		if _, err := made.CreateTopics(within(t, time.Minute), 1, 1, nil, names...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the topics", func() bool {
			known, err := made.ListTopics(within(t, time.Minute), names...)
			return err == nil && known.Error() == nil
		})
		c := kafkaClient(t, local.Listeners["kafka"], kgo.RecordRetries(2))
		for topic, want := range map[string]error{
			"by-hash": nil, "by-label": nil, "by-other-hash": kerr.TopicAuthorizationFailed, "by-other-label": kerr.TopicAuthorizationFailed,
		} {
			if err := write(t, c, topic); !errors.Is(err, want) {
				t.Errorf("%s: %v", topic, err)
			}
		}
	})
	t.Run("a process that nobody knows", func(t *testing.T) {
		cmd := exec.CommandContext(within(t, 20*time.Second), testservice.Installed(t, "kcat"), // #nosec G204 -- of this test
			"-b", local.Listeners["kafka"], "-P", "-t", "open", "-X", "message.timeout.ms=5000")
		cmd.Stdin = strings.NewReader("from nobody\n")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(strings.ToLower(string(out)), "authorization failed") {
			t.Errorf("kcat: %v %s", err, out)
		}
	})
	consoleTools(t, local.Listeners["kafka"])
	text, err := os.ReadFile(log)
	for _, part := range []string{`"executable":"` + self + `"`, `"labels":{"HOME":`, `"outcome":"refused","code":"unauthenticated"`} {
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("no %s: %v %s", part, err, text)
		}
	}
}

// conditions are grants to the writer for programs and labels, two that hold and two that do not.
func conditions(t *testing.T, program string) string {
	t.Helper()
	file, err := os.Open(program) // #nosec G304 -- of this test
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		t.Fatal(err)
	}
	var grants strings.Builder
	for topic, when := range map[string]string{
		"by-hash":        fmt.Sprintf(`process.sha256 == "%x"`, hash.Sum(nil)),
		"by-other-hash":  fmt.Sprintf(`process.sha256 == "%064x"`, 1),
		"by-label":       fmt.Sprintf(`process.labels["HOME"] == %q`, os.Getenv("HOME")),
		"by-other-label": `process.labels["HOME"] == "/nowhere"`,
	} {
		fmt.Fprintf(&grants, "  - {principals: ['spiffe://dev.cipherlane/writer'], actions: [write, manage], topics: [%s], when: '%s'}\n", topic, when)
	}
	return grants.String()
}

// javaProgram is the path of Java as the kernel knows it.
func javaProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("java")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// consoleTools writes and reads with Kafka's own clients, which keep to fetch sessions where they get them.
func consoleTools(t *testing.T, bootstrap string) {
	t.Helper()
	var want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	javaTool(t, want.String(), "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", "console")
	got := javaTool(t, "", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", "console",
		"--from-beginning", "--max-messages", "500", "--timeout-ms", "60000", "--group", "consoles")
	if lines := strings.Count(got, "\n"); lines != 500 {
		t.Errorf("%d lines", lines)
	}
}
