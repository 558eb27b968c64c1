package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
)

const (
	cellWidth, cellHeight = 8.43, 19.0
	margin                = 16.0
	// separator is the line between two terminals.
	separator = "\x00"
)

// colours are those of SGR codes on a dark background.
var colours = map[int]string{
	31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd", 37: "#c9d1d9", 90: "#8b949e",
}

// drawing is the frames as an SVG that repeats. Each line stands in it once for each time that it changed.
func drawing(frames []frame) string {
	total := frames[len(frames)-1].at + hold
	rows := len(frames[0].lines)
	width, height := columns*cellWidth+2*margin, float64(rows)*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-size="14" fill="#c9d1d9" `+
		`font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace">`+"\n", width, height)
	b.WriteString("<title>An update whose service is killed in the middle, and which goes on</title>\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for row := range rows {
		for from := 0; from < len(frames); {
			to := from + 1
			for to < len(frames) && frames[to].lines[row] == frames[from].lines[row] {
				to++
			}
			end := total
			if to < len(frames) {
				end = frames[to].at
			}
			drawLine(&b, row, frames[from].lines[row], span{frames[from].at, end, total})
			from = to
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// span is when a line is shown, within the whole.
type span struct{ from, to, total time.Duration }

// animation hides the line outside its time. Where nothing moves, the last frame is seen.
func (s span) animation() (attribute, element string) {
	at := func(d time.Duration) string { return strconv.FormatFloat(float64(d)/float64(s.total), 'f', 4, 64) }
	values, times := "hidden;visible;hidden", "0;"+at(s.from)+";"+at(s.to)
	switch {
	case s.from <= each && s.to == s.total:
		return "", ""
	case s.from <= each:
		values, times = "visible;hidden", "0;"+at(s.to)
	case s.to == s.total:
		values, times = "hidden;visible", "0;"+at(s.from)
	}
	if s.to != s.total {
		attribute = ` visibility="hidden"`
	}
	return attribute, fmt.Sprintf(`<animate attributeName="visibility" calcMode="discrete" dur="%.1fs" `+
		`repeatCount="indefinite" values="%s" keyTimes="%s"/>`, s.total.Seconds(), values, times)
}

func drawLine(b *strings.Builder, row int, line string, s span) {
	y := margin + (float64(row)+0.75)*cellHeight
	if line == separator {
		fmt.Fprintf(b, `<rect x="0" y="%.0f" width="100%%" height="1" fill="#30363d"/>`+"\n", y-4)
		return
	}
	runs := styled(line)
	if len(runs) == 0 {
		return
	}
	attribute, animation := s.animation()
	fmt.Fprintf(b, `<text y="%.1f" xml:space="preserve"%s>%s`, y, attribute, animation)
	for _, r := range runs {
		fmt.Fprintf(b, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(r.column)*cellWidth, r.style, html.EscapeString(r.text))
	}
	b.WriteString("</text>\n")
}

// carry splits what a terminal shows into lines that do not depend on each other: each begins with the style in which
// the one before ends.
func carry(text string) []string {
	lines, style := strings.Split(text, "\n"), ""
	for i, line := range lines {
		lines[i] = style + line
		for _, part := range strings.Split(line, "\x1b[")[1:] {
			codes, _, _ := strings.Cut(part, "m")
			if codes == "0" || strings.HasPrefix(codes, "0;") {
				style = ""
			}
			style += "\x1b[" + codes + "m"
		}
	}
	return lines
}

// run is text of one style.
type run struct {
	column      int
	style, text string
}

// styled takes a line with SGR sequences apart.
func styled(line string) (runs []run) {
	column, bold, dim, colour := 0, false, false, ""
	for i, part := range strings.Split(line, "\x1b[") {
		if i > 0 {
			codes, rest, _ := strings.Cut(part, "m")
			part = rest
			for code := range strings.SplitSeq(codes, ";") {
				n, _ := strconv.Atoi(code)
				switch {
				case n == 0:
					bold, dim, colour = false, false, ""
				case n == 1:
					bold = true
				case n == 2:
					dim = true
				case n == 22:
					bold, dim = false, false
				case n >= 30 && n < 40 || n >= 90:
					colour = colours[n] // 39, the default, is none
				}
			}
		}
		style := ""
		if bold {
			style += ` font-weight="bold"`
		}
		if dim {
			style += ` fill-opacity="0.6"`
		}
		if colour != "" {
			style += ` fill="` + colour + `"`
		}
		text := strings.TrimRight(part, " ")
		indent := len(text) - len(strings.TrimLeft(text, " "))
		if text != "" {
			runs = append(runs, run{column + indent, style, text[indent:]})
		}
		column += len([]rune(part))
	}
	return runs
}
