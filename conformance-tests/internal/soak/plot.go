package soak

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// The picture, in pixels: two charts, one below the other, with the names at the right.
const (
	chartWidth  = 860
	chartHeight = 300
	margin      = 60
	namesWidth  = 260
	lineHeight  = 18
)

// Seven colours that the colour-blind tell apart, as solid and as dashed lines.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// Plot draws memory and descriptors of processes over time, as SVG.
func Plot(out io.Writer, processes []*Process) error {
	var svg strings.Builder
	width, height := margin+chartWidth+namesWidth, 2*(chartHeight+2*margin)
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	chart(&svg, margin, "resident memory of its own, MiB", processes, func(s Sample) float64 { return s.RSS })
	chart(&svg, chartHeight+3*margin, "descriptors", processes, func(s Sample) float64 { return float64(s.Descriptors) })
	svg.WriteString("</svg>\n")
	_, err := io.WriteString(out, svg.String())
	return err
}

func chart(svg *strings.Builder, top int, title string, processes []*Process, value func(Sample) float64) {
	life, most := time.Second, 1.0
	for _, process := range processes {
		for _, sample := range process.Samples {
			life, most = max(life, sample.At), max(most, value(sample))
		}
	}
	fmt.Fprintf(svg, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", margin, top-12, title)
	for i := range 5 {
		y := top + chartHeight - i*chartHeight/4
		fmt.Fprintf(svg, `<path d="M%d %dh%d" stroke="#ddd"/><text x="%d" y="%d" text-anchor="end">%.0f</text>`+"\n",
			margin, y, chartWidth, margin-6, y+4, most*float64(i)/4)
		x := margin + i*chartWidth/4
		fmt.Fprintf(svg, `<text x="%d" y="%d" text-anchor="middle">%.1f min</text>`+"\n", x, top+chartHeight+lineHeight, life.Minutes()*float64(i)/4)
	}
	for i, process := range processes {
		style := fmt.Sprintf(`stroke=%q`, colours[i%len(colours)])
		if i >= len(colours) {
			style += ` stroke-dasharray="5 3"`
		}
		var points strings.Builder
		for _, sample := range process.Samples {
			fmt.Fprintf(&points, "%.1f,%.1f ", margin+chartWidth*sample.At.Seconds()/life.Seconds(), float64(top)+chartHeight*(1-value(sample)/most))
		}
		fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke-width="1.5" %s/>`+"\n", strings.TrimSpace(points.String()), style)
		y := top + i*lineHeight
		fmt.Fprintf(svg, `<path d="M%d %dh24" stroke-width="2" %s/><text x="%d" y="%d">%s</text>`+"\n",
			margin+chartWidth+16, y-4, style, margin+chartWidth+46, y, html.EscapeString(process.Name))
	}
}
