// Conditions in CEL. They are checked when the policy is loaded: names, types, and that the result is true or false.
// What cannot be evaluated at a call, or costs too much, refuses the call [CL-POL-013].

package policy

import (
	"crypto/x509"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
)

// Limits of a condition (spec/limits.md).
const (
	maxCondition = 4096 // characters
	maxCost      = 10_000
	maxRecursion = 50
)

type condition struct{ program cel.Program }

// environment is what conditions may name; see spec/policy.md.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	texts := cel.ListType(cel.StringType)
	return cel.NewEnv(
		cel.ParserExpressionSizeLimit(maxCondition), cel.ParserRecursionLimit(maxRecursion), ext.Network(), ext.Strings(ext.StringsVersion(4)),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		cel.Variable("principal", cel.StringType),
		cel.Variable("request.action", cel.StringType),
		cel.Variable("request.topic", cel.StringType),
		cel.Variable("request.scope", cel.StringType),
		cel.Variable("request.group", cel.StringType),
		cel.Variable("request.transaction", cel.StringType),
		cel.Variable("request.time", cel.TimestampType),
		cel.Variable("request.remote", cel.StringType),
		cel.Variable("claims", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("process.given", cel.BoolType),
		cel.Variable("process.uid", cel.IntType),
		cel.Variable("process.executable", cel.StringType),
		cel.Variable("process.sha256", cel.StringType),
		cel.Variable("process.labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("certificate.given", cel.BoolType),
		cel.Variable("certificate.common_name", cel.StringType),
		cel.Variable("certificate.subject", cel.StringType),
		cel.Variable("certificate.issuer", cel.StringType),
		cel.Variable("certificate.serial", cel.StringType),
		cel.Variable("certificate.organizations", texts),
		cel.Variable("certificate.organizational_units", texts),
		cel.Variable("certificate.dns_names", texts),
		cel.Variable("certificate.uris", texts),
		cel.Variable("certificate.not_before", cel.TimestampType),
		cel.Variable("certificate.not_after", cel.TimestampType),
	)
})

// readCondition compiles a condition.
func readCondition(n node) (*condition, error) {
	text, err := n.Text()
	if err != nil {
		return nil, err
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, n.Errorf("the condition is not valid: %s", firstIssue(issues))
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, n.Errorf("the condition gives %s, not true or false: compare it with something", ast.OutputType())
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, n.Errorf("the condition is not valid: %v", err)
	}
	return &condition{program}, nil
}

func firstIssue(issues *cel.Issues) string {
	first := issues.Errors()[0]
	return fmt.Sprintf("column %d: %s", first.Location.Column()+1, first.Message)
}

// holds evaluates the condition. The error says nothing of the values.
func (c *condition) holds(a *ask) (holds bool, err error) {
	if a.variables == nil {
		a.variables = variables(a)
	}
	result, _, err := c.program.Eval(a.variables)
	if err != nil {
		return false, fmt.Errorf("the condition: %w", err)
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the condition gave %s", result.Type().TypeName())
	}
	return holds, nil
}

// variables leaves out what was not given, so that a condition on it fails rather than compares with nothing. Claims
// may be empty: what is not in them fails by itself, and has() can look first.
func variables(a *ask) map[string]any {
	all := map[string]any{
		"principal": a.Principal, "request.action": string(a.action), "request.topic": a.topic, "request.scope": a.scope,
		"request.time": a.Time, "certificate.given": a.Certificate != nil, "claims": a.Claims, "process.given": a.Process != nil,
		"request.group": "", "request.transaction": "",
	}
	if on := a.action.On(); on == OnGroup || on == OnTransaction {
		all["request."+string(on)] = a.name
	}
	if p := a.Process; p != nil {
		all["process.uid"], all["process.executable"], all["process.sha256"], all["process.labels"] = p.UID, p.Executable, p.SHA256, p.Labels
	}
	if a.Claims == nil {
		all["claims"] = map[string]any{}
	}
	if a.Remote.IsValid() {
		all["request.remote"] = a.Remote.Unmap().WithZone("").String()
	}
	if c := a.Certificate; c != nil {
		all["certificate.common_name"], all["certificate.serial"] = c.Subject.CommonName, fmt.Sprintf("%x", c.SerialNumber)
		all["certificate.subject"], all["certificate.issuer"] = c.Subject.String(), c.Issuer.String()
		all["certificate.organizations"], all["certificate.organizational_units"] = c.Subject.Organization, c.Subject.OrganizationalUnit
		all["certificate.dns_names"], all["certificate.uris"] = c.DNSNames, uriTexts(c)
		all["certificate.not_before"], all["certificate.not_after"] = c.NotBefore, c.NotAfter
	}
	return all
}

func uriTexts(c *x509.Certificate) []string {
	texts := make([]string, len(c.URIs))
	for i, u := range c.URIs {
		texts[i] = u.String()
	}
	return texts
}
