package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"round": func(d time.Duration) time.Duration { return d.Round(time.Millisecond) },
	"time":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
}).Parse(pageText))

type pageData struct {
	Facts                          Facts
	Passed, Failed, Skipped, Known int
	Suites, Drivers                []string
	Cells                          map[string]map[string]Tally // by suite and driver
	Failures, Skips                []Result
}

func (r *Results) writePage(out io.Writer) error {
	data := pageData{
		Facts: r.Facts, Passed: r.Count(Passed), Failed: r.Count(Failed, Stale), Skipped: r.Count(Skipped), Known: r.Count(Known),
		Cells: map[string]map[string]Tally{},
	}
	for _, tally := range r.Tallies() {
		if data.Cells[tally.Suite] == nil {
			data.Cells[tally.Suite] = map[string]Tally{}
			data.Suites = append(data.Suites, tally.Suite)
		}
		data.Cells[tally.Suite][tally.Driver] = tally
		if !slices.Contains(data.Drivers, tally.Driver) {
			data.Drivers = append(data.Drivers, tally.Driver)
		}
	}
	slices.Sort(data.Drivers)
	for _, result := range r.All {
		switch result.Status {
		case Failed, Stale, Known:
			data.Failures = append(data.Failures, result)
		case Skipped:
			data.Skips = append(data.Skips, result)
		}
	}
	return page.Execute(out, data)
}
