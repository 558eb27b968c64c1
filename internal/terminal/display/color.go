package display

// color is a colour of the terminal's own palette.
type color string

const (
	none    color = ""
	red     color = "31"
	green   color = "32"
	yellow  color = "33"
	magenta color = "35"
	cyan    color = "36"
	dim     color = "2"
	bold    color = "1"
)

// painter colours text, or leaves it as it is.
type painter bool

func (p painter) paint(c color, text string) string {
	if !p || c == none || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
